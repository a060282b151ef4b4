"""Further training pairs, which are joined pairs and also-pairs.

A model that has read only single sentences writes one sentence for a line of two.
"""

import random
from collections.abc import Iterable, Iterator

from glassformer.data.corpus import Filter, Pair, read_pairs, write_pairs
from glassformer.data.preprocessing import SourceLengths
from glassformer.support.progress import working
from glassformer.training.setup.kept_pairs import normalised_pairs
from glassformer.training.setup.options import TEXT_SEED, TextOptions
from glassformer.training.setup.run_directory import RunDirectory

__all__ = [
    "joined_pairs",
    "settle_joined_pairs",
    "write_augmented",
]

_JOINED = 0.05  # share of the pairs
_LONGEST_UNIT = 5  # pairs
_STOPS_WITHOUT_SPACE = ("。", "！", "？", "」", "』")


def settle_joined_pairs(
    text: TextOptions, lengths: SourceLengths
) -> tuple[dict[str, float], list[str]]:
    """The share of joined pairs if ``text`` leaves it open, and a line about the choice.

    ``lengths`` are the lengths of the corpus's sources.

    >>> settle_joined_pairs(TextOptions(pairs=("a", "b")), SourceLengths.of(["A dog."], "en"))
    ({'joined_pairs': 0.05}, ['joined pairs 0.05: the sources are single sentences'])
    """
    if text.joined_pairs is not None:
        return {}, []
    if lengths.has_several:
        return {"joined_pairs": 0.0}, []
    reason = f"joined pairs {_JOINED:g}: the sources are single sentences"
    return {"joined_pairs": _JOINED}, [reason]


def write_augmented(text: TextOptions, run: RunDirectory) -> list[str]:
    """Write the further pairs of a run into one file, unless the file exists; return notes.

    ``text`` leaves no share open. Without further pairs, the function writes no file.
    """
    if run.augmented.exists():
        return []
    keep = Filter(text.limits)
    with working("making further pairs"):
        count = write_pairs(run.augmented, _further_pairs(text, run, keep))
    notes = [f"{' and '.join(map(str, text.also))}: {keep}"] if text.also else []
    if not count:
        run.augmented.unlink()
        return notes
    return [*notes, f"further pairs: {count:,}, in {run.augmented}"]


def _further_pairs(text: TextOptions, run: RunDirectory, keep: Filter) -> Iterator[Pair]:
    if text.also:
        yield from _also_pairs(text, keep)
    if share := text.joined_pairs:
        yield from joined_pairs(read_pairs(run.train), share, seed=TEXT_SEED)


def _also_pairs(text: TextOptions, keep: Filter) -> Iterator[Pair]:
    """The pairs of ``text.also`` that ``keep`` keeps, each as often as ``also_weight`` says."""
    rng = random.Random(TEXT_SEED)
    tag = f"{text.also_tag} " if text.also_tag else ""
    times, rest = divmod(text.also_weight, 1)
    for source, target in keep(normalised_pairs(text.also, text)):
        for _ in range(int(times) + (rng.random() < rest)):
            yield Pair(tag + source, target)


def joined_pairs(pairs: Iterable[Pair], share: float, *, seed: int) -> Iterator[Pair]:
    """A random ``share`` of the pairs, as units of two to five joined pairs.

    >>> pairs = [Pair("A dog.", "Ein Hund."), Pair("犬。", "Ein Hund."), Pair("Cats.", "Katzen.")]
    >>> list(joined_pairs(pairs, 1.0, seed=2))
    [Pair(source='A dog. 犬。', target='Ein Hund. Ein Hund.')]
    """
    rng = random.Random(seed)
    unit: list[Pair] = []
    size = rng.randint(2, _LONGEST_UNIT)
    for pair in pairs:
        if rng.random() >= share:
            continue
        unit.append(pair)
        if len(unit) == size:
            yield _joined(unit)
            unit, size = [], rng.randint(2, _LONGEST_UNIT)


def _joined(unit: list[Pair]) -> Pair:
    def text(sides: Iterable[str]) -> str:
        whole = ""
        for side in sides:
            spaced = whole and not whole.endswith(_STOPS_WITHOUT_SPACE)
            whole += (" " if spaced else "") + side
        return whole

    return Pair(text(p.source for p in unit), text(p.target for p in unit))
