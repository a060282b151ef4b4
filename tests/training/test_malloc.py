"""Memory that is freed is kept: the next update asks the system for none."""

import resource
import subprocess
import sys

import pytest

from glassformer.training.malloc import keep_freed_memory

_PAGE_FAULTS = """
import resource
from glassformer.training.malloc import keep_freed_memory
keep_freed_memory()
def ask():
    [b"x" * (1 << 24) for _ in range(8)]  # 128 MiB at once
for _ in range(6):
    ask()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
ask()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def test_what_was_freed_is_not_fetched_again() -> None:
    if not keep_freed_memory():
        pytest.skip("this C library has no mallopt")
    program = [sys.executable, "-c", _PAGE_FAULTS]
    done = subprocess.run(program, capture_output=True, check=True)
    assert int(done.stdout) < 0.1 * (128 << 20) / resource.getpagesize()
