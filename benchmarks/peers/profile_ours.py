"""A profile of Glassformer's updates: the kernels, the device's work, and the longest kernels."""

import time
from collections import Counter
from collections.abc import Iterable
from typing import Any

from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

from benchmarks.peers.devices import clock_of
from benchmarks.peers.measure import job, report
from benchmarks.peers.ours import prepared

__all__ = ["main", "united"]

_LONGEST = 40


def main() -> None:
    """Profile the job's updates after ``warm`` others. A CPU's operations stand for kernels."""
    learner, ready = prepared()
    warm, wait = job["warm"], clock_of(job["device"]).wait
    for batch in ready[:warm]:
        learner.update([batch], rate=1e-4)
    wait()
    activities = [ProfilerActivity.CPU]
    on_cuda = job["device"].startswith("cuda")
    with profile(activities=[*activities, *[ProfilerActivity.CUDA] * on_cuda]) as profiled:
        begin = time.perf_counter()
        for batch in ready[warm:]:
            learner.update([batch], rate=1e-4)
        wait()
        seconds = time.perf_counter() - begin
    wanted = DeviceType.CUDA if on_cuda else DeviceType.CPU
    kernels: list[Any] = [
        event
        for event in profiled.events() or []
        if event.device_type == wanted and not event.is_user_annotation
    ]
    busy = united((kernel.time_range.start, kernel.time_range.end) for kernel in kernels) / 1e6
    times, counts = Counter[str](), Counter[str]()
    for kernel in kernels:
        times[kernel.name] += (
            kernel.time_range.elapsed_us() if on_cuda else kernel.self_cpu_time_total
        )
        counts[kernel.name] += 1
    updates = job["updates"]
    report(
        kernels_per_update=len(kernels) / updates,
        busy_ms_per_update=1000 * busy / updates,
        ms_per_update=1000 * seconds / updates,
        busy_share=busy / seconds,
        longest=[
            {"name": name, "ms_per_update": us / 1000 / updates, "each": counts[name] / updates}
            for name, us in times.most_common(_LONGEST)
        ],
    )


def united(spans: Iterable[tuple[float, float]]) -> float:
    """The length of all spans together; spans that overlap count once.

    >>> united([(0.0, 2.0), (1.0, 3.0), (5.0, 6.0)])
    4.0
    """
    length, end = 0.0, float("-inf")
    for begin, until in sorted(spans):
        length += max(0.0, until - max(begin, end))
        end = max(end, until)
    return length


if __name__ == "__main__":
    main()
