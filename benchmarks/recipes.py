"""Recipes for speed at equal quality: what each gives in BLEU and in sentences a second.

All are trained by the default command with the same minutes, one after the other. Then the test set
is translated through all in turn, A B C C B A, in bf16 where products are faster in it, each with
the length penalty of its bundle.

What a run has done is kept: the same command goes on with what is missing.
"""

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.environments import interpreter
from benchmarks.figure import bars
from benchmarks.machine import facts
from benchmarks.options import Options
from benchmarks.pairs import Contender, Failed, rounds, spread
from benchmarks.prepared import read_corpus
from benchmarks.report import save, shown, table
from benchmarks.time_to_quality import command
from benchmarks.training import matrix_peak
from glassformer.config import presets
from glassformer.errors import InputError
from glassformer.evaluation import corpus_scores
from glassformer.files import write_atomically

__all__ = ["main", "recipes_of"]


@dataclass(frozen=True)
class Recipe:
    """How a translator is trained, and whether it is asked with its shortlist."""

    name: str
    run: Path
    words: tuple[str, ...]
    shortlist: bool = False


def recipes_of(options: Options) -> list[Recipe]:
    """The first is what the others are compared with."""
    size, place = options.sizes[0], options.run
    even = ("--preset", size, "--shortlist")
    shallow = ("--preset", f"{size}-deep-shallow", "--shortlist")
    trained = [
        Recipe(size, place / "even", even),
        Recipe("deep encoder, shallow decoder", place / "shallow", shallow),
    ]
    return [
        one
        for recipe in trained
        for one in (recipe, replace(recipe, name=f"{recipe.name}, shortlist", shortlist=True))
    ]


def main(options: Options) -> None:
    if options.data is None:
        raise InputError("recipes needs --data DIR with train.en, val.en and test_2016_flickr.en")
    if f"{options.sizes[0]}-deep-shallow" not in presets:  # better now than after a training
        raise InputError(f"recipes: size {options.sizes[0]} has no preset with a shallow decoder")
    recipes = recipes_of(options)
    for recipe in recipes:
        if not recipe.shortlist:
            _train(command(replace(options, run=recipe.run), options.data) + list(recipe.words))
    corpus = read_corpus(options.data, options.languages)
    texts = corpus.sources[: options.sentences]
    sources = options.run / "sources.json"
    write_atomically(sources, json.dumps({"texts": texts}).encode())
    peak = matrix_peak(options)
    job: dict[str, Any] = {
        "sources": str(sources.resolve()),
        "engine": "torch",
        "compute": "bfloat16" if peak["bf16"] > peak["float32"] else "float32",
        "threads": options.threads,
        "device": options.device,
        "one": False,
        "length_penalty": None,
    }
    for beam in options.beams:
        contenders = [
            Contender(
                recipe.name,
                interpreter("ours"),
                "translate_ours",
                {**job, "beam": beam, "bundle": str(recipe.run), "shortlist": recipe.shortlist},
            )
            for recipe in recipes
        ]
        found = rounds(contenders, number=options.pairs, timeout=options.timeout)
        _show(options, recipes, found, corpus.references[: options.sentences], beam=beam)


def _train(words: Sequence[str]) -> None:
    if subprocess.run(words, check=False).returncode:
        raise Failed(f"{' '.join(words)} failed")


def _show(
    options: Options,
    recipes: Sequence[Recipe],
    found: list[list[dict[str, Any]]],
    references: list[str],
    *,
    beam: int,
) -> None:
    rows, speeds = [], {}
    for place, recipe in enumerate(recipes):
        mine = [one_round[place]["sentences_per_second"] for one_round in found]
        first = [one_round[0]["sentences_per_second"] for one_round in found]
        speeds[recipe.name] = spread(mine)
        ratios = spread([one / other for one, other in zip(mine, first, strict=True)])
        bleu = corpus_scores(found[0][place]["outputs"], references, quick=True).bleu
        rows.append([recipe.name, f"{bleu:.2f}", shown(speeds[recipe.name]), shown(ratios, ".2f")])
    length = f"{options.minutes:g} minutes each" if options.minutes else "full trainings"
    title = f"Recipes, {length}, {'greedy' if beam == 1 else f'beam {beam}'}"
    print(f"\n{table(title, ['', 'BLEU', 'sentences/s', 'times the first'], rows)}\n")
    path = options.out / f"recipes-beam{beam}"
    about = facts(threads=options.threads, device=options.device)
    seconds = [[report["seconds"] for report in one_round] for one_round in found]
    save(path.with_suffix(".json"), {"facts": about, "rows": rows, "seconds": seconds})
    bars(path.with_suffix(".png"), title, speeds, unit="sentences a second")
