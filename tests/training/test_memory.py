"""Memory that is freed is kept: the next update asks the system for none."""

import resource
import subprocess
import sys

import pytest

from glassformer.training.memory import keep_freed_memory

_FAULTS = """
import resource, torch
from glassformer.training.memory import keep_freed_memory
if {keep}:
    keep_freed_memory()
def ask():
    [torch.ones(1 << 22) for _ in range(8)]  # 128 MiB at once
for _ in range(6):
    ask()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
ask()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def page_faults(*, keep: bool) -> int:
    """Of the same allocations a second time, in a process of its own."""
    program = _FAULTS.format(keep=keep)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    return int(done.stdout)


def test_what_was_freed_is_not_fetched_again() -> None:
    if not keep_freed_memory():
        pytest.skip("this C library has no mallopt")
    pages = (128 << 20) // resource.getpagesize()
    assert page_faults(keep=True) < 0.3 * pages
    assert page_faults(keep=False) > 0.9 * pages
