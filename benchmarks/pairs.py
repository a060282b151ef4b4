"""Two programs timed in turn, A B B A: what slows the machine down for a while slows both.

Each run is a process of its own. A pair gives a ratio; the median of the ratios is the figure,
the smallest and the largest are its spread.
"""

import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

__all__ = ["Contender", "Failed", "Spread", "paired", "rounds", "run", "spread"]

ROOT = Path(__file__).resolve().parents[1]


# Warnings of other people's libraries would hide the one line that says why a run failed.
_QUIET = {"PYTHONWARNINGS": "ignore", "TF_CPP_MIN_LOG_LEVEL": "3"}


class Failed(Exception):  # noqa: N818  a peer that fails is a row of the table, no end
    """A run that ended without a report; the last line that it wrote says why."""


@dataclass(frozen=True)
class Contender:
    """A program with its job: ``BENCHMARK_JOB=job.json python -m benchmarks.peers.MODULE``."""

    name: str
    python: Path
    module: str
    job: dict[str, Any] = field(default_factory=dict)
    setting: str = ""

    def __str__(self) -> str:
        return f"{self.name} ({self.setting})" if self.setting else self.name


@dataclass(frozen=True)
class Spread:
    """A median between the smallest and the largest."""

    median: float
    low: float
    high: float


def spread(values: Sequence[float]) -> Spread:
    """
    >>> spread([2.0, 1.0, 4.0])
    Spread(median=2.0, low=1.0, high=4.0)
    """
    return Spread(median(values), min(values), max(values))


def run(contender: Contender, *, timeout: float = 3600.0) -> dict[str, Any]:
    """One run: the JSON object in the last line of its output."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(contender.job, file)
        file.flush()
        words = [str(contender.python), "-m", f"benchmarks.peers.{contender.module}"]
        try:
            done = subprocess.run(
                words,
                cwd=ROOT,
                env={**os.environ, **_QUIET, "BENCHMARK_JOB": file.name},
                capture_output=True,
                text=True,
                timeout=timeout,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise Failed(f"{contender} took longer than {timeout:.0f} s") from None
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        said = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise Failed(f"{contender} failed: {said[-1].strip()}")
    found: dict[str, Any] = json.loads(lines[-1])
    return found


def paired(
    first: Contender, second: Contender, *, pairs: int, timeout: float = 3600.0
) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """``pairs`` runs of both, in turn."""
    found = rounds([first, second], number=pairs, timeout=timeout)
    return [(one, other) for one, other in found]


def rounds(
    contenders: Sequence[Contender], *, number: int, timeout: float = 3600.0
) -> list[list[dict[str, Any]]]:
    """``number`` times all of them in turn, and every second time from last to first, so that none
    is always the one after another: one list of reports for each round, in the given order."""
    found = []
    for played in range(number):
        turn = -1 if played % 2 else 1
        found.append([run(one, timeout=timeout) for one in contenders[::turn]][::turn])
    return found
