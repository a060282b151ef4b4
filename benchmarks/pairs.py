"""Programs timed in turn, A B C C B A: a slow minute of the machine slows them all.

Each run is a process of its own. Each round gives a ratio of two programs. The median of the
ratios is the figure; the smallest and the largest are its spread.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.environments import Failed, interpreter

__all__ = ["Contender", "Spread", "fastest", "ratio", "rounds", "run", "spread"]

ROOT = Path(__file__).resolve().parents[1]


# Warnings of other libraries would hide the line with the reason of a failure.
_QUIET = {"PYTHONWARNINGS": "ignore", "TF_CPP_MIN_LOG_LEVEL": "3"}


@dataclass(frozen=True)
class Contender:
    """A program with its job: ``BENCHMARK_JOB=job.json python -m benchmarks.peers.MODULE``.

    ``environment``: the peer whose packages the program runs with.
    """

    name: str
    environment: str
    module: str
    job: dict[str, Any]
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


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> Spread:
    """Our speeds over theirs, round by round.

    >>> ratio([2.0, 6.0, 4.0], [1.0, 2.0, 4.0])
    Spread(median=2.0, low=1.0, high=3.0)
    """
    return spread([mine / other for mine, other in zip(ours, theirs, strict=True)])


def run(contender: Contender, *, timeout: float = 3600.0) -> dict[str, Any]:
    """The report of one run: the JSON object in the last line of its output."""
    python = interpreter(contender.environment, device=contender.job["device"])
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(contender.job, file)
        file.flush()
        words = [str(python), "-m", f"benchmarks.peers.{contender.module}"]
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
        print(process.stderr, file=sys.stderr)  # the table has its last line alone
        reasons = process.stderr.strip().splitlines() or [f"exit status {process.returncode}"]
        raise Failed(f"{contender} failed: {reasons[-1].strip()}")
    report: dict[str, Any] = json.loads(lines[-1])
    return report


def fastest(
    contenders: Sequence[Contender], speed: str, *, trial: Mapping[str, Any], timeout: float
) -> Contender:
    """The contender with the highest figure ``speed`` in a short run: its job with ``trial``.

    Raises Failed if none runs.
    """
    speeds: dict[float, Contender] = {}
    for contender in contenders:
        try:
            short = replace(contender, job={**contender.job, **trial})
            figure = run(short, timeout=timeout)[speed]
        except Failed as fault:
            reason = fault
            print(fault)
        else:
            print(f"{contender}: {figure:,.1f} {speed.replace('_', ' ')} in a trial")
            speeds[figure] = contender
    if not speeds:
        raise reason
    return speeds[max(speeds)]


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
