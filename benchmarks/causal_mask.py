"""What training without the causal mask does: the loss collapses, and free running breaks.

Run it as ``python -m benchmarks.causal_mask``. Two translators of the phrasebook are trained on
the same batches from the same weights, one of them with a decoder that sees all of its target:
what it is to write next stands before it. It learns to copy that, and when it has to write by
itself, one word after another, there is nothing to copy.
"""

import argparse
import json
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest import mock

from benchmarks.report import save, table
from glassformer.cli.demo import DemoOptions, config_of, write_phrases
from glassformer.data.phrasebook.book import phrasebook
from glassformer.model import masks
from glassformer.training.train import train

__all__ = ["main", "measure"]


def main(words: list[str] | None = None) -> int:
    """Print the table, write a JSON where asked to."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.causal_mask", description=__doc__)
    parser.add_argument("--size", type=int, default=12_000, help="phrases that are made")
    parser.add_argument("--phrases", type=int, default=300, help="held out, to be translated")
    parser.add_argument("--updates", type=int, default=2_000)
    parser.add_argument("--validations", type=int, default=8)
    parser.add_argument("--threads", type=int, default=0, help="of each training; 0: all")
    parser.add_argument("--out", type=Path, help="a JSON file for the figures")
    options = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as directory:
        found = measure(Path(directory), options)
    rows = [
        [
            f"{one['update']:,}",
            *(f"{run['perplexity']:.2f}" for run in (one, other)),
            *(f"{run['exact_match']:.1f} %" for run in (one, other)),
        ]
        for one, other in zip(found["with"], found["without"], strict=True)
    ]
    columns = ["update", "perplexity", "without mask", "exact match", "without mask"]
    print(table(f"{options.phrases} held-out phrases, the causal mask there or not", columns, rows))
    if options.out:
        save(options.out, found)
    return 0


def measure(directory: Path, options: argparse.Namespace) -> dict[str, Any]:
    """The validations of both trainings: perplexity is of the given target, exact match of what
    the model writes by itself."""
    demo = DemoOptions(size=options.size)
    book = phrasebook(seed=demo.seed, size=demo.size)
    watched = book.validation[: options.phrases]
    files = {
        name: write_phrases(directory / f"{name}.tsv", phrases)
        for name, phrases in (("train", book.train), ("valid", watched))
    }
    shorter = {
        "optimiser": "adam",  # the paper's
        "batch_tokens": 512,
        "epochs": None,
        "updates": options.updates,
        "warmup": min(300, options.updates // 2),
        "validations": options.validations,
        "threads": options.threads,
        "workers": 1,  # the mask is removed in this process
    }
    blind = mock.patch.object(masks, "target_mask", masks.padding_mask)
    found = {}
    for name, seen in (("with", nullcontext()), ("without", blind)):
        with seen:
            train(config_of(demo, directory / name, files).model_copy(update=shorter))
        found[name] = _validations(directory / name)
    return found


def _validations(run: Path) -> list[dict[str, Any]]:
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [record for record in map(json.loads, lines) if record["kind"] == "validation"]


if __name__ == "__main__":
    sys.exit(main())
