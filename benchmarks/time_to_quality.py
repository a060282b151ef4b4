"""Time to quality: the default ``glassformer train`` from text files to a bundle, by the clock.

The clock starts with the command: reading, subwords, packing, validations and the final scores
all count. BLEU on the way is that of the validation pairs (greedy, cased sacreBLEU). The command
itself scores the test set once, at the end.
"""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.machine import facts
from benchmarks.options import Options
from benchmarks.pairs import Failed
from benchmarks.report import save, table
from glassformer.errors import InputError

__all__ = ["command", "main", "validations"]

_MARKS = (20.0, 25.0, 30.0, 35.0, 38.0, 40.0)  # BLEU scores in the table


def main(options: Options) -> None:
    if options.data is None:
        raise InputError("quality needs --data DIR with train.en, val.en and test_2016_flickr.en")
    if (options.run / "metrics.jsonl").exists():
        raise InputError(
            f"{options.run}: holds a run; the clock needs a new one: give another --run"
        )
    words = command(options, options.data)
    start = time.monotonic()
    process = subprocess.Popen(words)
    try:
        records = validations(options.run / "metrics.jsonl", process, start)
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait()
    minutes = (time.monotonic() - start) / 60
    if process.returncode:
        raise Failed(f"{' '.join(words)} ended with status {process.returncode}")
    _report(options, words, records, minutes)


def command(options: Options, data: Path) -> list[str]:
    """The default command with its files, threads and, if asked for, minutes."""
    source, target = options.languages

    def pair(*names: str) -> list[str]:
        present = [name for name in names if list(data.glob(f"{name}.{source}*"))]
        if not present:
            raise InputError(f"{data}: holds no {' or '.join(names)}.{source}")
        return [str(next(data.glob(f"{present[0]}.{code}*"))) for code in (source, target)]

    words = [sys.executable, "-m", "glassformer", "train", *pair("train")]
    words += ["--valid", *pair("val", "valid"), "--test", *pair("test_2016_flickr", "test")]
    words += ["--run", str(options.run), "--threads", str(options.threads)]
    return words + (["--minutes", str(options.minutes)] if options.minutes else [])


def validations(path: Path, process: Any, start: float) -> list[dict[str, Any]]:
    """The validations of a run, each with the minute at which the file first held it."""
    records: list[dict[str, Any]] = []
    ended = False
    while not ended:
        ended = process.poll() is not None  # after the end the file is read once more
        lines = path.read_text("utf-8").split("\n")[:-1] if path.exists() else []
        stored = [record for record in map(json.loads, lines) if record["kind"] == "validation"]
        minutes = (time.monotonic() - start) / 60
        records += [{**record, "minutes": minutes} for record in stored[len(records) :]]
        if not ended:
            time.sleep(0.5)
    return records


def _report(
    options: Options, words: list[str], records: list[dict[str, Any]], minutes: float
) -> None:
    about = json.loads((options.run / "config.json").read_text("utf-8"))["about"]
    rows = []
    for mark in _MARKS:
        reached = [record["minutes"] for record in records if record["bleu"] >= mark]
        rows.append([f"validation BLEU {mark:.0f}", f"{min(reached):.1f}" if reached else "never"])
    rows.append([f"bundle, test {about.get('test', 'not scored')}", f"{minutes:.1f}"])
    print(f"\n{table('Time to quality', ['reached', 'minutes'], rows)}\n")
    figures = {
        "facts": facts(threads=options.threads),
        "command": words,
        "minutes": minutes,
        "about": about,
        "validations": records,
    }
    save(options.out / "quality.json", figures)
