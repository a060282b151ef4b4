"""The processor cores that this process may use: those of its affinity, within a container's quota.

The quota is a limit of Linux's control groups. Docker's ``--cpus 2`` and Kubernetes' ``limits``
allow two seconds of processor time a second, on any number of cores.
"""

import math
import os
from contextlib import suppress
from functools import cache
from pathlib import Path

__all__ = ["keep_to_quota", "usable_cores"]

_GROUPS = Path("/proc/self/cgroup")  # the control groups of this process
_LIMITS = Path("/sys/fs/cgroup")


@cache
def usable_cores() -> int:
    """The number of cores that can compute at once: the affinity's, or the quota rounded up."""
    return math.ceil(min(_quota(), _cores()))


def keep_to_quota() -> None:
    """Let OpenMP start no more threads than the quota allows; call it before importing torch.

    More threads use up the quota early in each period, and then all of them stand still. Who sets
    ``OMP_NUM_THREADS`` chooses the number.
    """
    if usable_cores() < _cores():
        os.environ.setdefault("OMP_NUM_THREADS", str(usable_cores()))


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):  # not on macOS and Windows
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _quota() -> float:
    """The least quota of this process's groups and the groups above them; inf without any."""
    quotas = [math.inf]
    with suppress(OSError):  # another system than Linux
        for line in _GROUPS.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if "cpu" in controllers.split(",") or not controllers:  # version 2 names none
                top = _LIMITS / ("cpu" if controllers else "")
                # A container has its own group as `top`, and no folder for the host's path.
                group = top / path.strip("/")
                quotas += map(_quota_of, (group, *group.parents))
    return min(quotas)


def _quota_of(group: Path) -> float:
    """The seconds of processor time that a group has in a second."""
    for files in (["cpu.max"], ["cpu.cfs_quota_us", "cpu.cfs_period_us"]):  # versions 2 and 1
        with suppress(OSError, ValueError):  # ValueError: "max"
            quota, period = map(int, " ".join((group / file).read_text() for file in files).split())
            if quota > 0:
                return quota / period
    return math.inf
