"""What each known mistake costs: the demo's translator trained with it, and its exact match.

``python -m benchmarks.damage`` adds the scores that the package's table lacks. A mistake of a
search needs no training: the right translator searches with it.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path

from benchmarks.machine import cores
from glassformer.cli.demo import DemoOptions, config_of, write_phrases
from glassformer.data.phrasebook.book import Phrasebook, phrasebook
from glassformer.errors import UsageError
from glassformer.files import write_atomically
from glassformer.learn.damage import DAMAGE, EPOCHS, SIZE, damage
from glassformer.learn.lesson import known_mistakes
from glassformer.learn.parts import in_place, mistaken_parts
from glassformer.training.train import train
from glassformer.translator import Translator

__all__ = ["main"]

_BEAMS = {"greedy": 1, "beam": 5}  # of the lessons whose mistakes act in the search alone


def main(words: Sequence[str] | None = None) -> int:
    """Measure each mistake with each seed; the table is written after each."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.damage",
        description=__doc__,
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--mistakes", nargs="*", help="ids of mistakes; None: all")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2], help="of the training")
    parser.add_argument("--processes", type=int, default=cores(), help="trainings at once")
    options = parser.parse_args(words)
    table = {mistake: dict(scores) for mistake, scores in damage().items()}
    mistakes = known_mistakes() if options.mistakes is None else options.mistakes
    missing = [
        (mistake, seed)
        for seed in options.seeds
        for mistake in ("", *_acting(mistakes))
        if seed not in table.get(mistake, {})
    ]
    print(f"{len(missing)} scores to measure, {options.processes} at once", flush=True)
    with (
        tempfile.TemporaryDirectory() as work,
        ProcessPoolExecutor(options.processes, get_context("spawn")) as pool,
    ):
        list(pool.map(_train_right, options.seeds, repeat(Path(work))))
        running = {pool.submit(_score, *each, Path(work)): each for each in missing}
        for future in as_completed(running):
            mistake, seed = running[future]
            table.setdefault(mistake, {})[seed] = future.result()
            print(f"{mistake or 'right parts'}, seed {seed}: {future.result()}", flush=True)
            text = json.dumps(table, indent=1, sort_keys=True) + "\n"
            write_atomically(DAMAGE, text.encode())
    return 0


def _acting(mistakes: Iterable[str]) -> Iterator[str]:
    """The mistakes that change a translator."""
    for mistake in mistakes:
        try:
            mistaken_parts([mistake])
        except UsageError:
            continue
        yield mistake


def _train_right(seed: int, work: Path) -> None:
    """Train the translator of right parts: searches with mistakes need no other."""
    _train(seed, work / f"right-{seed}")


def _score(mistake: str, seed: int, work: Path) -> float | None:
    """The percentage of right translations; None if an error or NaN ends the training."""
    parts = mistaken_parts([mistake] if mistake else [])
    beam = _BEAMS.get(parts[0].lesson) if parts else 1
    directory = work / (f"right-{seed}" if beam else f"{mistake}-{seed}")
    test = _phrases(seed).test
    try:
        with in_place(parts):
            if beam is None:
                _train(seed, directory)
            translator = Translator.load(directory / "run", plain=True)
            translations = translator.translate([each.source for each in test], beam=beam or 1)
    except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
        print(f"{mistake}, seed {seed}: {type(error).__name__}: {error}", file=sys.stderr)
        return None
    finally:
        if beam is None:
            shutil.rmtree(directory)
    rights = [t.text == p.target for t, p in zip(translations, test, strict=True)]
    return round(100 * sum(rights) / len(rights), 1)


def _train(seed: int, directory: Path) -> None:
    """The demo's training, shorter, by the plain path in one thread."""
    book = _phrases(seed)
    files = {
        "train": write_phrases(directory / "train.tsv", book.train),
        "valid": write_phrases(directory / "valid.tsv", book.validation[:100]),
    }
    options = DemoOptions(size=SIZE, epochs=EPOCHS, seed=seed)
    config = config_of(options, directory / "run", files)
    quick = {"plain": True, "threads": 1, "validations": 1}
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        train(config.model_copy(update=quick))


@cache
def _phrases(seed: int) -> Phrasebook:
    return phrasebook(source="en", target="de", seed=seed, size=SIZE)


if __name__ == "__main__":
    sys.exit(main())
