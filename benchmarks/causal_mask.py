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
from glassformer.config import TrainConfig
from glassformer.data.phrasebook import Phrase, phrasebook
from glassformer.model import masks
from glassformer.training.run import train

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
    book = phrasebook(seed=1, size=options.size)
    train_file = _written(directory / "train.tsv", book.train)
    valid_file = _written(directory / "valid.tsv", book.validation[: options.phrases])
    blind = mock.patch.object(masks, "target_mask", masks.padding_mask)
    found = {}
    for name, seen in (("with", nullcontext()), ("without", blind)):
        config = TrainConfig(
            pairs=(train_file,),
            valid=(valid_file,),
            run=directory / name,
            languages=("en", "de"),
            vocab_size=700,
            preset="tiny",
            d_model=64,
            d_ff=256,
            num_encoder_layers=2,
            num_decoder_layers=2,
            norm="pre",
            dropout=0.0,
            label_smoothing=0.0,
            updates=options.updates,
            batch_tokens=512,
            optimiser="adam",
            warmup=min(300, options.updates // 2),
            rate_factor=0.8,
            validations=options.validations,
            patience=0,
            average="none",
            beam=1,
            threads=options.threads,
            workers=1,  # the mask is removed in this process
        )
        with seen:
            train(config)
        found[name] = _validations(directory / name)
    return found


def _written(path: Path, phrases: list[Phrase]) -> Path:
    lines = [f"{phrase.source}\t{phrase.target}\n" for phrase in phrases]
    path.write_text("".join(lines), encoding="utf-8", newline="\n")
    return path


def _validations(run: Path) -> list[dict[str, Any]]:
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [record for record in map(json.loads, lines) if record["kind"] == "validation"]


if __name__ == "__main__":
    sys.exit(main())
