"""The corpus of a run, which reads and filters the training files once, into its own files.

``data/train.jsonl`` holds the pairs that the run trains on, ``data/valid.jsonl`` the pairs that it
holds out for validation. ``data/counts.json`` counts the kept and the dropped pairs, and names the
options behind the counts. The run writes ``counts.json`` last, and without it makes all files anew.
"""

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter

from glassformer.data.corpus import Filter, Pair, read_pairs, write_pairs
from glassformer.data.duplicates import repeats
from glassformer.data.known import Known
from glassformer.data.normaliser import normaliser
from glassformer.data.preprocessing import SourceLengths
from glassformer.data.trigrams import profile_of
from glassformer.support.errors import InputError
from glassformer.support.files import open_atomically, write_atomically
from glassformer.support.progress import working
from glassformer.support.strangers import read_json
from glassformer.training.setup.options import TEXT_SEED, Files, TextOptions
from glassformer.training.setup.run_directory import RunDirectory

__all__ = ["KeptPairs", "even_sample", "keep_pairs", "normalised_pairs"]

_MEASURED, _COUNTED = 2_000, 100_000


@dataclass(frozen=True)
class KeptPairs:
    """The corpus in the directory of a run, and its numbers of pairs."""

    run: RunDirectory
    filter: Filter  # with counts of the kept and the dropped pairs
    held_out: int
    left_out: int  # other pairs with held-out sources
    source_lengths: SourceLengths
    known: Known
    trigrams: tuple[str, str]  # the profiles of both sides

    @property
    def trained(self) -> int:
        """The number of the pairs that the run trains on."""
        return self.filter.kept - self.held_out - self.left_out


def keep_pairs(text: TextOptions, run: RunDirectory) -> KeptPairs:
    """Read and filter the training files into files of the run, or use existing files.

    Without ``text.valid``, the function holds out 2 % of the pairs (:func:`_held_out`).
    """
    names = {"format", "keys", "languages", "max_chars", "max_ratio", "normalisation"}
    options = text.model_dump(mode="json", include=names) | {"hold_out": not text.valid}
    counts: dict[str, Any] = {}
    with suppress(InputError):  # there is no earlier call, or its file is damaged
        counts = read_json(run.counts, dict[str, Any])
    if counts.get("options") != options or "known" not in counts:
        counts = _read_once(text, run) | {"options": options}
        write_atomically(run.counts, (json.dumps(counts, indent=1) + "\n").encode())
    filtered = Filter()
    filtered.kept, filtered.characters = counts["pairs"], counts["characters"]
    filtered.counts, (source_profile, target_profile) = counts["dropped"], counts["trigrams"]
    return KeptPairs(
        run,
        filtered,
        counts["held_out"],
        counts["left_out"],
        SourceLengths(**counts["source_lengths"]),
        TypeAdapter(Known).validate_python(counts["known"]),
        (source_profile, target_profile),
    )


def normalised_pairs(
    files: Files, text: TextOptions, *, format: str | None = None
) -> Iterator[Pair]:
    """The pairs of training files, each side in the form of the run."""
    normalise = normaliser(text.normalisation or "none")
    pairs = read_pairs(*files, format=format, keys=text.keys)
    return (Pair(*map(normalise, pair)) for pair in pairs)


def _read_once(text: TextOptions, run: RunDirectory) -> dict[str, Any]:
    """Write the pairs that a filter keeps, one JSON object a line; return the counts."""
    pairs = normalised_pairs(text.pairs, text, format=text.format)
    keep = Filter(text.limits)
    with working("reading the pairs"):
        count = write_pairs(run.kept, keep(pairs))
    if not count:
        run.kept.unlink()
        files = " and ".join(map(str, text.pairs))
        raise InputError(f"{files}: no pair is left to train on ({keep})")
    held_out, left_out = _split(run, 0 if text.valid else count)
    trained = count - held_out - left_out
    sample = even_sample(read_pairs(run.train), trained)
    sources, targets = zip(*sample, strict=True)
    language, _ = text.language_pair or (None, None)
    return {
        "pairs": count,
        "characters": keep.characters,
        "dropped": keep.counts,
        "held_out": held_out,
        "left_out": left_out,
        "source_lengths": asdict(SourceLengths.of(sources, language)),
        "known": asdict(Known.of(even_sample(read_pairs(run.train), trained, _COUNTED))),
        "trigrams": (profile_of(sources), profile_of(targets)),
    }


def even_sample(pairs: Iterable[Pair], count: int, size: int = _MEASURED) -> list[Pair]:
    """About ``size`` of ``count`` pairs, at equal distances, or all pairs if there are fewer."""
    return list(islice(pairs, 0, None, max(1, count // size)))


def _held_out(sources: NDArray[np.uint64]) -> NDArray[np.intp]:
    """Places of the held-out pairs, with 2 % of the different sources, at most 1,000.

    A small corpus gives 10 %, at most 100, because a score on a handful of pairs is chance.
    """
    firsts = np.flatnonzero(~repeats(sources))
    size = min(1_000, max(len(firsts) // 50, min(100, len(firsts) // 10)))
    return np.random.default_rng(TEXT_SEED).permutation(firsts)[:size]


def _split(run: RunDirectory, count: int) -> tuple[int, int]:
    """Divide the kept pairs into training pairs and held-out validation pairs.

    ``count`` is the number of kept pairs, or 0 to hold out none. A pair with the source of a
    validation pair is in neither file, because with such pairs a validation would measure memory.
    Returns the numbers of held-out and of left-out pairs.
    """
    folded = (pair.source.casefold() for pair in islice(read_pairs(run.kept), count))
    sources = np.fromiter(map(hash, folded), np.int64, count).view(np.uint64)
    places = _held_out(sources)
    held_out = frozenset(places.tolist())
    left_out = frozenset(np.flatnonzero(np.isin(sources, sources[places])).tolist()) - held_out
    with (
        run.kept.open("rb") as lines,
        open_atomically(run.train) as train,
        open_atomically(run.valid) as valid,
    ):
        for place, line in enumerate(lines):
            if place not in left_out:
                (valid if place in held_out else train).write(line)
    run.kept.unlink()
    return len(held_out), len(left_out)
