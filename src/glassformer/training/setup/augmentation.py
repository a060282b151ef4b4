"""Further training pairs, which are joined pairs, pairs with protected spans, and also-pairs.

A model that has read only single sentences writes one sentence for a line of two. A model that has
never read ``{name}`` or ``<b>`` writes words instead.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from operator import itemgetter

from glassformer.data.corpus import Filter, Pair, read_pairs, write_pairs
from glassformer.data.preprocessing import SourceLengths
from glassformer.data.protected import protected_spans
from glassformer.data.words import replaced, words
from glassformer.support.progress import working
from glassformer.training.setup.kept_pairs import normalised_pairs
from glassformer.training.setup.options import TEXT_SEED, TextOptions
from glassformer.training.setup.run_directory import RunDirectory

__all__ = [
    "joined_pairs",
    "lexicon",
    "placeholder_pairs",
    "settle_shares",
    "write_augmented",
]

_JOINED, _PLACEHOLDERS = 0.05, 0.02  # shares of the pairs
_FEW_MARKED = 0.005  # share of the sources with a placeholder or a tag
_LONGEST_UNIT = 5  # pairs
_STOPS_WITHOUT_SPACE = ("。", "！", "？", "」", "』")
_LEXICON_PAIRS = 20_000
_LEAST_COUNT, _LEAST_DICE, _MOST_SHARE = 5, 0.6, 0.02
_NAMES = ("name", "user", "file", "count", "title", "date", "price", "city", "order")
_TAGS = ("b", "i", "em", "strong", "a", "span", "u", "code", "sup", "h1", "li", "p")
_EMOJI = ("😀", "👍", "🎉", "❤️", "🚀", "🐕", "🌍", "✅", "🔥", "😂", "🙏", "📦", "👩‍💻", "🇫🇷")


def settle_shares(
    text: TextOptions, sample: Sequence[Pair], lengths: SourceLengths
) -> tuple[dict[str, float], list[str]]:
    """The shares of further pairs that ``text`` leaves open, and a line for each share.

    ``sample`` holds pairs of the corpus, and ``lengths`` the lengths of the corpus's sources.

    >>> text, sample = TextOptions(pairs=("a", "b")), [Pair("A dog.", "Ein Hund.")]
    >>> shares, reasons = settle_shares(text, sample, SourceLengths.of(["A dog."], "en"))
    >>> shares, len(reasons)
    ({'joined_pairs': 0.05, 'placeholders': 0.02}, 2)
    """
    chosen: dict[str, float] = {}
    reasons = []
    if text.joined_pairs is None:
        chosen["joined_pairs"] = 0.0 if lengths.has_several else _JOINED
        if not lengths.has_several:
            reasons.append(f"joined pairs {_JOINED:g}: the sources are single sentences")
    if text.placeholders is None:
        kinds = [{span.kind for span in protected_spans(pair.source)} for pair in sample]
        marked = sum(not kind.isdisjoint(("placeholder", "tag")) for kind in kinds)
        chosen["placeholders"] = 0.0 if marked > _FEW_MARKED * len(sample) else _PLACEHOLDERS
        if chosen["placeholders"]:
            reasons.append(f"placeholders {_PLACEHOLDERS:g}: the sources have hardly any")
    return chosen, reasons


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
    if share := text.placeholders:
        dictionary = lexicon(list(islice(read_pairs(run.train), _LEXICON_PAIRS)))
        yield from placeholder_pairs(read_pairs(run.train), share, dictionary, seed=TEXT_SEED)


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


def placeholder_pairs(
    pairs: Iterable[Pair], share: float, dictionary: dict[str, str], *, seed: int
) -> Iterator[Pair]:
    """A random ``share`` of the pairs, each with one to three protected spans on both sides.

    A span replaces a word and its translation in ``dictionary``, or two tags go around both
    words. In other pairs a span stands at an end, or tags go around the whole.

    >>> pairs = [Pair("A dog runs.", "Ein Hund rennt."), Pair("Go!", "Los!")]
    >>> for pair in placeholder_pairs(pairs, 1.0, {"dog": "Hund"}, seed=3):
    ...     print(*pair, sep=" | ")
    A 📦 runs. | Ein 📦 rennt.
    <li>Go!</li> | <li>Los!</li>
    """
    rng = random.Random(seed)
    for pair in pairs:
        if rng.random() < share and not any(protected_spans(side) for side in pair):
            yield _with_spans(pair, dictionary, rng)


def lexicon(pairs: Sequence[Pair]) -> dict[str, str]:
    """Source words, each with a target word that occurs in nearly the same pairs.

    By Dice's measure, the source word is the best for the target word, and the target word for the
    source word. The source word is neither rare nor in many sentences.

    >>> sides = [("a dog", "ein Hund"), ("a cat", "ein Kater"), ("a bird", "ein Vogel")]
    >>> lexicon([Pair(*side) for side in 5 * sides])
    {'bird': 'Vogel', 'cat': 'Kater', 'dog': 'Hund'}
    """
    sources: Counter[str] = Counter()
    targets: Counter[str] = Counter()
    together: Counter[tuple[str, str]] = Counter()
    for pair in pairs:
        source, target = (
            {side[slice(*span)] for span in words(side) if side[span[0]].isalnum()} for side in pair
        )
        sources.update(source)
        targets.update(target)
        together.update((left, right) for left in source for right in target)
    most = max(_LEAST_COUNT, int(_MOST_SHARE * len(pairs)))
    dice = {
        (left, right): 2 * count / (sources[left] + targets[right])
        for (left, right), count in together.items()
        if count >= _LEAST_COUNT and sources[left] <= most
    }
    ranked = sorted((value, *pair) for pair, value in dice.items() if value >= _LEAST_DICE)
    best_target = {left: right for _, left, right in ranked}
    best_source = {right: left for _, left, right in ranked}
    return {left: right for left, right in best_target.items() if best_source[right] == left}


def _joined(unit: list[Pair]) -> Pair:
    def text(sides: Iterable[str]) -> str:
        whole = ""
        for side in sides:
            spaced = whole and not whole.endswith(_STOPS_WITHOUT_SPACE)
            whole += (" " if spaced else "") + side
        return whole

    return Pair(text(p.source for p in unit), text(p.target for p in unit))


def _with_spans(pair: Pair, dictionary: dict[str, str], rng: random.Random) -> Pair:
    places = _translated_words(pair, dictionary)
    count = min(rng.choice((1, 1, 2, 3)), len(places))
    if not count:
        return _around(pair, rng)
    chosen = rng.sample(places, count)
    changes = [_change(rng) for _ in chosen]
    sides = []
    for side, *spans in zip(pair, *chosen, strict=True):
        ordered = sorted(zip(spans, changes, strict=True), key=itemgetter(0))
        sides.append(replaced(side, [(span, new(side[slice(*span)])) for span, new in ordered]))
    return Pair(*sides)


def _translated_words(
    pair: Pair, dictionary: dict[str, str]
) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """The places of each word and of its translation, if both words occur once."""
    once: list[dict[str, tuple[int, int]]] = []
    for side in pair:
        spans = words(side)
        counts = Counter(side[slice(*span)] for span in spans)
        once.append({w: span for span in spans if counts[w := side[slice(*span)]] == 1})
    source, target = once
    return [
        (place, target[translation])
        for word, place in source.items()
        if (translation := dictionary.get(word)) in target
    ]


def _change(rng: random.Random) -> Callable[[str], str]:
    """A function that replaces a word by a span, or puts tags around the word."""
    if rng.random() < 0.3:
        opening, closing = _tags(rng)
        return lambda word: f"{opening}{word}{closing}"
    span = _span(rng)
    return lambda _: span


def _around(pair: Pair, rng: random.Random) -> Pair:
    """The pair with tags around each side, or with a span before or after each side."""
    place = rng.randrange(3)
    if place == 0:
        opening, closing = _tags(rng)
        return Pair(*(f"{opening}{side}{closing}" for side in pair))
    span = _span(rng)
    return Pair(*(f"{span} {side}" if place == 1 else f"{side} {span}" for side in pair))


def _tags(rng: random.Random) -> tuple[str, str]:
    name = rng.choice(_TAGS)
    attribute = f' href="{_address(rng)}"' if name == "a" else ""
    return f"<{name}{attribute}>", f"</{name}>"


def _span(rng: random.Random) -> str:
    """A protected span of a random kind."""
    name, number = rng.choice(_NAMES), rng.randint(0, 99)
    other = rng.choice(_NAMES)
    return rng.choice(
        (
            f"{{{name}}}",
            f"{{{name}_{other}}}",
            f"{{{{{name}}}}}",
            f"{{{{ {name}.{other} }}}}",
            f"{{{number % 10}}}",
            f"${{{name}}}",
            f"${1 + number % 9}",
            f"%{1 + number % 9}$s",
            f"%({name})s",
            "%s",
            "%d",
            f"%{name.upper()}%",
            f"`{name}_{other}`",
            f"{name}{number}@{other}.com",
            _address(rng),
            rng.choice(_EMOJI),
            rng.choice(_EMOJI),
        )
    )


def _address(rng: random.Random) -> str:
    name, other, number = rng.choice(_NAMES), rng.choice(_NAMES), rng.randint(0, 999)
    start = rng.choice(("https://", "https://www.", "http://", "www."))
    return f"{start}{name}-{other}.{rng.choice(('org', 'com', 'de', 'io'))}/{other}/{number}"
