"""The part that all peers share: read a job, time the same updates on the same batches, report.

A job is a JSON file, named by the environment variable ``BENCHMARK_JOB``, with

- ``batches``: a .npz file with ``source_0``, ``target_0``, ``labels_0``, ``source_1`` … , padded
  arrays of ids (``(rows, length)``; the target begins with the start symbol, source and labels end
  with the end symbol);
- ``model``: ``vocab_size d_model num_heads d_ff num_encoder_layers num_decoder_layers dropout
  pad_id bos_id eos_id unk_id max_length``;
- ``updates``: the timed ones, after ``warm`` untimed ones (compiling, filling caches);
- ``rates``: the learning rates of these updates and more; ``smoothing``; ``clip``, the longest
  gradient;
- ``precision`` ("float32" or "bf16"), ``compiled``, ``threads``, ``device``, ``seed``.

Tokens are source + target tokens without padding, end symbols included.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

job: dict[str, Any] = {}
if "BENCHMARK_JOB" in os.environ:
    job = json.loads(Path(os.environ["BENCHMARK_JOB"]).read_text())
    # Before any library is imported: some read the number of threads only then.
    for _name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[_name] = str(job["threads"])

import numpy as np  # noqa: E402  after the threads are set

__all__ = [
    "Arrays",
    "Clock",
    "batches",
    "job",
    "peak_bytes",
    "report",
    "run_updates",
    "time_updates",
]


class Arrays(NamedTuple):
    """One prepared batch."""

    source: Any
    target: Any
    labels: Any

    def tokens(self, pad_id: int) -> int:
        return int((self.source != pad_id).sum() + (self.labels != pad_id).sum())


def batches() -> Iterator[Arrays]:
    """The prepared batches of the job, in their order."""
    with np.load(job["batches"]) as stored:
        for number in range(job["warm"] + job["updates"]):
            parts = (stored[f"{name}_{number}"] for name in Arrays._fields)
            yield Arrays(*(part.astype(np.int64) for part in parts))


def peak_bytes() -> int:
    """The most memory that this process held at once.

    Linux's VmHWM, not ``getrusage``, which also counts the memory that the parent process held
    when it started this one.
    """
    status = Path("/proc/self/status")
    if status.exists():
        lines = (line.split() for line in status.read_text().splitlines())
        return next(1024 * int(words[1]) for words in lines if words[0] == "VmHWM:")
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


class Clock(NamedTuple):
    """The clock and the memory of the device that computes, by default the CPU's."""

    mark: Callable[[], Any] = time.perf_counter
    """A moment of the device's work, such as the end of an update."""
    between: Callable[[Any, Any], float] = lambda begin, end: end - begin
    """The seconds between two moments."""
    wait: Callable[[], None] = lambda: None
    """Returns when the device is idle."""
    peak: Callable[[], int] = peak_bytes


def run_updates(
    prepare: Callable[[Arrays], Any],
    update: Callable[[Any, float], Any],
    *,
    library: str,
    parameters: int,
    clock: Clock = Clock(),  # noqa: B008  a record that nothing changes
) -> None:
    """Time ``update(prepare(batch), rate)`` for each batch and print the report.

    ``prepare`` converts a batch for the library in the host's memory, outside the timing.
    ``update`` copies the batch to its device and returns the loss (a mean in nats a target token)
    as a number or a tensor: it is read after the timing, so that a GPU need not wait.
    """
    arrays, pad_id = list(batches()), job["model"]["pad_id"]
    ready = [(prepare(batch), batch.tokens(pad_id)) for batch in arrays]
    time_updates(ready, update, library=library, parameters=parameters, clock=clock)


def time_updates(
    ready: Sequence[tuple[Any, int]],
    update: Callable[[Any, float], Any],
    *,
    library: str,
    parameters: int,
    clock: Clock,
) -> None:
    """Time ``update(batch, rate)`` for each ready batch with its number of tokens, and report."""
    warm = job["warm"]
    losses: list[Any] = []
    marks: list[Any] = []
    begin = first = time.perf_counter()
    for number, ((batch, _), rate) in enumerate(zip(ready, job["rates"], strict=False)):
        if number == warm:
            clock.wait()
            begin, marks = time.perf_counter(), [clock.mark()]
        losses.append(update(batch, rate))
        marks.append(clock.mark())
    clock.wait()
    end = time.perf_counter()
    each = [clock.between(*two) for two in pairwise(marks)]
    tokens = sum(count for _, count in ready[warm:])
    report(
        library=library,
        parameters=parameters,
        updates=job["updates"],
        tokens=tokens,
        seconds=end - begin,
        seconds_per_update=(end - begin) / len(ready[warm:]),
        median_update=median(each),
        slowest_update=max(each),
        tokens_per_second=tokens / (end - begin),
        warm_seconds=begin - first,
        peak_bytes=clock.peak(),
        losses=[float(loss) for loss in losses],
    )


def report(**figures: Any) -> None:
    """Print the last line of standard output, which the benchmark reads."""
    print(json.dumps(figures), flush=True)
