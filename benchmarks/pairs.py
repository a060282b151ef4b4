"""Two programs timed in turn, A B B A: a slow minute of the machine slows both.

Each run is a process of its own. A pair gives a ratio. The median of the ratios is the figure;
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


# Warnings of other libraries would hide the line with the reason of a failure.
_QUIET = {"PYTHONWARNINGS": "ignore", "TF_CPP_MIN_LOG_LEVEL": "3"}


class Failed(Exception):  # noqa: N818  a failed peer is a row of the table
    """A run that ended without a report; its last line gives the reason."""


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
    """A median, with the smallest and the largest value."""

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
    """The report of one run: the JSON object in the last line of its output."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(contender.job, file)
        file.flush()
        words = [str(contender.python), "-m", f"benchmarks.peers.{contender.module}"]
        try:
            process = subprocess.run(
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
    lines = process.stdout.strip().splitlines()
    if process.returncode or not lines:
        reasons = process.stderr.strip().splitlines() or [f"exit status {process.returncode}"]
        raise Failed(f"{contender} failed: {reasons[-1].strip()}")
    report: dict[str, Any] = json.loads(lines[-1])
    return report


def paired(
    first: Contender, second: Contender, *, pairs: int, timeout: float = 3600.0
) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """``pairs`` runs of both, in turn."""
    reports = rounds([first, second], number=pairs, timeout=timeout)
    return [(of_first, of_second) for of_first, of_second in reports]


def rounds(
    contenders: Sequence[Contender], *, number: int, timeout: float = 3600.0
) -> list[list[dict[str, Any]]]:
    """The reports of ``number`` rounds, each in the order of the contenders.

    Every second round runs from last to first, so that no contender always follows the same one.
    """
    reports = []
    for number_of_round in range(number):
        turn = -1 if number_of_round % 2 else 1
        runs = [run(contender, timeout=timeout) for contender in contenders[::turn]]
        reports.append(runs[::turn])
    return reports
