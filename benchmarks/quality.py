"""Time to quality: the default ``glassformer train`` from text files to a bundle, by the clock.

The clock starts with the command: reading, subwords, packing, validations and the final scores
all count. BLEU on the way is that of the validation pairs (greedy, cased sacreBLEU), by the minutes
of training alone. The command itself scores the test set once, at the end.
"""

import argparse
import json
import subprocess
import sys
import time

from benchmarks.environments import Failed
from benchmarks.machine import facts
from benchmarks.prepared import corpus_file
from benchmarks.report import save, table
from glassformer.support.errors import InputError

__all__ = ["command", "main"]

_MARKS = (20.0, 25.0, 30.0, 35.0, 38.0, 40.0)  # BLEU scores in the table


def main(options: argparse.Namespace) -> None:
    metrics = options.run / "metrics.jsonl"
    if metrics.exists():
        raise InputError(
            f"{options.run}: holds a run; the clock needs a new one: give another --run"
        )
    words = command(options)
    start = time.monotonic()
    status = subprocess.run(words, check=False).returncode
    minutes = (time.monotonic() - start) / 60
    if status:
        raise Failed(f"{' '.join(words)} ended with status {status}")
    records = map(json.loads, metrics.read_text("utf-8").splitlines())
    validations = [record for record in records if record["kind"] == "validation"]
    about = json.loads((options.run / "config.json").read_text("utf-8"))["about"]
    rows = []
    for mark in _MARKS:
        reached = [record["seconds"] / 60 for record in validations if record["bleu"] >= mark]
        shown = f"{min(reached):.1f} of training" if reached else "never"
        rows.append([f"validation BLEU {mark:.0f}", shown])
    rows.append([f"bundle, test {about.get('test', 'not scored')}", f"{minutes:.1f} in all"])
    print(f"\n{table('Time to quality', ['reached', 'minutes'], rows)}\n")
    figures = {
        "facts": facts(threads=options.threads),
        "command": words,
        "minutes": minutes,
        "about": about,
        "validations": validations,
    }
    save(options.out / "quality.json", figures)


def command(options: argparse.Namespace) -> list[str]:
    """The default command with its files, threads and, if asked for, minutes."""

    def pair(*names: str) -> list[str]:
        return [str(corpus_file(options.data, names, code)) for code in options.languages]

    words = [sys.executable, "-m", "glassformer", "train", *pair("train")]
    words += ["--valid", *pair("val", "valid"), "--test", *pair("test_2016_flickr", "test")]
    words += ["--run", str(options.run), "--threads", str(options.threads)]
    return words + (["--minutes", str(options.minutes)] if options.minutes else [])
