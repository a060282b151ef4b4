"""Time to quality: the default ``glassformer train`` from text files to a bundle, by the clock.

The clock starts with the command: reading, subwords, packing, validations and the final scores
are all in it. BLEU on the way is that of the validation pairs (greedy, cased sacreBLEU); the test
set is scored once, at the end, by the command itself.
"""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.figure import Curve, curves
from benchmarks.machine import facts
from benchmarks.options import Options
from benchmarks.pairs import Failed
from benchmarks.report import save, table
from glassformer.errors import InputError

__all__ = ["command", "main", "watched"]

_MARKS = (20.0, 25.0, 30.0, 35.0, 38.0, 40.0)  # BLEU whose minute is told


def main(options: Options) -> None:
    if options.data is None:
        raise InputError("quality needs --data DIR with train.en, val.en and test_2016_flickr.en")
    if (options.run / "metrics.jsonl").exists():
        raise InputError(
            f"{options.run}: holds a run; the clock needs a new one: give another --run"
        )
    words = command(options, options.data)
    begin = time.monotonic()
    process = subprocess.Popen(words)
    try:
        seen = watched(options.run / "metrics.jsonl", process, begin)
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait()
    minutes = (time.monotonic() - begin) / 60
    if process.returncode:
        raise Failed(f"{' '.join(words)} ended with status {process.returncode}")
    _show(options, words, seen, minutes)


def command(options: Options, data: Path) -> list[str]:
    """The default command; only places, threads and, if asked for, the minutes are said."""
    source, target = options.languages

    def pair(*names: str) -> list[str]:
        ends = [name for name in names if list(data.glob(f"{name}.{source}*"))]
        if not ends:
            raise InputError(f"{data}: holds no {' or '.join(names)}.{source}")
        return [str(next(data.glob(f"{ends[0]}.{code}*"))) for code in (source, target)]

    words = [sys.executable, "-m", "glassformer", "train", *pair("train")]
    words += ["--valid", *pair("val", "valid"), "--test", *pair("test_2016_flickr", "test")]
    words += ["--run", str(options.run), "--threads", str(options.threads)]
    return words + (["--minutes", str(options.minutes)] if options.minutes else [])


def watched(path: Path, process: Any, begin: float) -> list[dict[str, Any]]:
    """The validations of a run, each with the minute at which it stood in the file."""
    seen: list[dict[str, Any]] = []
    ended = False
    while not ended:
        ended = process.poll() is not None  # read once more after the end
        lines = path.read_text("utf-8").split("\n")[:-1] if path.exists() else []
        records = [record for record in map(json.loads, lines) if record["kind"] == "validation"]
        minutes = (time.monotonic() - begin) / 60
        seen += [{**record, "minutes": minutes} for record in records[len(seen) :]]
        if not ended:
            time.sleep(0.5)
    return seen


def _show(options: Options, words: list[str], seen: list[dict[str, Any]], minutes: float) -> None:
    about = json.loads((options.run / "config.json").read_text("utf-8"))["about"]
    rows = []
    for mark in _MARKS:
        reached = [one["minutes"] for one in seen if one["bleu"] >= mark]
        rows.append([f"validation BLEU {mark:.0f}", f"{min(reached):.1f}" if reached else "never"])
    rows.append([f"bundle, test {about.get('test', 'not scored')}", f"{minutes:.1f}"])
    print(f"\n{table('Time to quality', ['reached', 'minutes'], rows)}\n")
    found = {
        "facts": facts(threads=options.threads),
        "command": words,
        "minutes": minutes,
        "about": about,
        "validations": seen,
    }
    path = options.out / "quality"
    save(path.with_suffix(".json"), found)
    line = Curve([one["minutes"] for one in seen], [one["bleu"] for one in seen])
    curves(
        path.with_suffix(".png"),
        f"glassformer train, {options.data.name if options.data else ''}: time to quality",
        {"validation": line},
        x="minutes since the command",
        y="BLEU, greedy, cased",
    )
