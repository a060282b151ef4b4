"""The processor cores that this process may use, within the quota of its container.

Docker's ``--cpus 2`` allows two seconds of processor time a second, on any number of cores.
"""

import math
import os
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

__all__ = ["keep_to_quota", "usable_cores"]

_GROUPS = Path("/proc/self/cgroup")  # Linux's control groups of this process
_LIMITS = Path("/sys/fs/cgroup")


@cache
def usable_cores() -> int:
    """The number of cores that compute at once: those of the affinity, or the quota rounded up."""
    return math.ceil(min(_cores(), *_quotas()))


def keep_to_quota() -> None:
    """Let OpenMP start no more threads than a quota allows; call it before importing torch.

    More threads use up a quota early in each period, and then all of them stand still.
    """
    if usable_cores() < _cores():
        os.environ.setdefault("OMP_NUM_THREADS", str(usable_cores()))


def _cores() -> int:
    known = hasattr(os, "sched_getaffinity")  # not on macOS and Windows
    return len(os.sched_getaffinity(0)) if known else os.cpu_count() or 1


def _quotas() -> Iterator[float]:
    """The seconds of processor time a second of each group and of the groups above it."""
    yield math.inf
    lines: list[str] = []
    with suppress(OSError):  # not on macOS and Windows
        lines = _GROUPS.read_text().splitlines()
    for line in lines:
        _, controllers, path = line.split(":", 2)
        group = _LIMITS / ("cpu" if controllers else "") / path.strip("/")
        if controllers and "cpu" not in controllers.split(","):  # version 2 names no controllers
            continue
        # A container has its own group at the top, and no folder for the host's path.
        for folder in (group, *group.parents):
            for names in (["cpu.max"], ["cpu.cfs_quota_us", "cpu.cfs_period_us"]):
                with suppress(OSError, ValueError):  # ValueError: "max"
                    words = [word for name in names for word in (folder / name).read_text().split()]
                    quota, period = map(int, words)
                    yield quota / period if quota > 0 else math.inf
