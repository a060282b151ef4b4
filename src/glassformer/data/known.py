"""A model's knowledge of texts, counted in the pairs of its training.

A model has learnt the characters of its training, the signs at the edges of its sources, and the
kinds of spans that its targets copy. The counts hold no words of the training's texts. A span with
other characters, or of a kind that nobody has taught the model to copy, is opaque: the model does
not read it.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import Literal, TypeAlias

from glassformer.data.corpus import Pair
from glassformer.data.digits import (
    LARGE,
    RAISED,
    joints_of,
    large_numbers,
    lost_numbers,
    number_shape,
    unknown_numbers,
)
from glassformer.data.edges import BRACKETS, USUAL, Edges
from glassformer.data.normaliser import Normalised
from glassformer.data.protected import SPANS, ProtectedSpan, lost_spans, protected_spans
from glassformer.data.tokenizer import SPACE, Tokenizer
from glassformer.data.words import (
    ALNUM,
    JOINED,
    JOINTS,
    LONE,
    NO_ENTITY,
    UNSPACED_CLASS,
    WORD,
    Span,
    has_letters,
    knows_no_word,
    torn_words,
)

__all__ = ["Known", "Reading", "kinds_of"]

Reading: TypeAlias = Literal["copied", "text", "opaque"]
"""A model copies a span, translates a span as text, or does not read a span."""

_LEAST = 5  # pairs that teach a character or a kind of span; one for each 100 pairs, if fewer
# Units that are also words or times, in some language.
_WORDS = frozenset(["h", "t", "l", "m", "g", "L", "V", "W", "ha", "min", "ms", "bar", "px"])
_DEEPEST = 5  # pairs of signs around a text
_TORN = 0.02  # the share of sources with torn words up to which a torn word is unknown
_DIGIT = re.compile(r"\d")
_TWINS = ("-‐‑−–—", "'’‘ʼ", '"“”„')  # a plain character and its typographic forms


@dataclass(frozen=True)
class Known:
    """Characters, edges and kinds of spans that a model knows.

    ``characters`` holds those of the sources and those of the targets; None if nobody has counted.
    ``spans`` has, for each kind, the pairs that keep such a span, and all pairs with such a span;
    the kind "number" has the numbers from 13 on.
    ``joints`` are the signs that sources have inside numbers, as in "0:0" for "15:30". ``shapes``
    are the shapes of sources without letters. ``letters`` stand alone in sources; None if the
    tokenizer tears the sources' own words, so that a torn word may be known.

    >>> known = Known.of([Pair("At 20 h in {n}.", "Um 20 Uhr in {n}.")] * 5)
    >>> known.spans
    {'measure h': (0, 5), 'number': (5, 5), 'placeholder {': (5, 5)}
    >>> [(span.kind, span.start) for span in known.spans_in("At 20 h é in {n} 2.0.")]
    [('measure', 3), ('unknown', 8), ('placeholder', 13), ('unknown', 17)]
    """

    characters: tuple[str, str] | None = None
    edges: Edges = field(default_factory=Edges)
    spans: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    joints: tuple[str, ...] | None = None
    shapes: tuple[str, ...] | None = None
    letters: str | None = None

    @classmethod
    def of(cls, pairs: Iterable[Pair]) -> "Known":
        """The counts of the pairs, each of which counts once for a character or a kind."""
        counts: tuple[Counter[str], Counter[str]] = Counter(), Counter()
        kept, seen, joints, shapes = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
        sources = []
        for pair in pairs:
            sources.append(pair.source)
            joints.update(joints_of(pair.source))
            shapes.update([] if has_letters(pair.source) else [number_shape(pair.source.strip())])
            for count, side in zip(counts, pair, strict=True):
                count.update({*side})
            for kind, lost in kinds_of(*pair).items():
                seen[kind] += 1
                kept[kind] += lost is None
            if large_numbers(pair.source):
                seen["number"] += 1
                kept["number"] += not lost_numbers(*pair, least=LARGE)
        least = min(_LEAST, 1 + len(sources) // 100)
        known = ("".join(sorted(x for x in count if count[x] >= least)) for count in counts)
        ratios = {kind: (kept[kind], seen[kind]) for kind in sorted(seen) if seen[kind] >= least}
        known_joints, known_shapes = (
            tuple(sorted(x for x in each if each[x] >= least)) for each in (joints, shapes)
        )
        return cls(
            (next(known), next(known)), Edges.of(sources), ratios, known_joints, known_shapes
        )

    @classmethod
    def of_tokenizers(cls, source: Tokenizer, target: Tokenizer) -> "Known":
        """The characters of the tokenizers' subwords, and the usual edges and kinds."""
        pieces = [map(x.subword, range(x.vocab_size)) for x in (source, target)]
        whole = [{*"".join(p for p in side if p[:1] + p[-1:] != "<>")} for side in pieces]
        sources, targets = ("".join(sorted(side - {SPACE})) for side in whole)
        usual = "".join(sign for sign in USUAL if sign in sources + " ")
        return cls((sources, targets), Edges(usual=usual))

    def plus(self, parent: "Known") -> "Known":
        """These counts, and the counts of the model that the training began with."""
        if self.characters is None or parent.characters is None:
            return self
        both = (
            "".join(sorted({*one, *other}))
            for one, other in zip(self.characters, parent.characters, strict=True)
        )
        spans = {**parent.spans}
        for kind, (kept, seen) in self.spans.items():
            before = spans.get(kind, (0, 0))
            spans[kind] = before[0] + kept, before[1] + seen
        joints, shapes = (
            None if one is None or two is None else tuple(sorted({*one, *two}))
            for one, two in ((self.joints, parent.joints), (self.shapes, parent.shapes))
        )  # a parent without counts may know all
        edges = self.edges.plus(parent.edges)
        return Known((next(both), next(both)), edges, spans, joints, shapes, parent.letters)

    def with_words(self, tokenizer: Tokenizer, sources: Sequence[str]) -> "Known":
        """The same knowledge, with the ``letters`` of the sources, if the tokenizer tears few."""
        counts = Counter[str]()
        for source in sources:
            counts.update(set(filter(str.isalpha, "".join(LONE.findall(source.lower())))))
        found = (x for x, count in counts.items() if count > 1 and count * 1_000 >= len(sources))
        letters = "".join(sorted({*found, *(self.letters or "")}))
        torn = sum(
            knows_no_word(tokenizer, source) or bool(torn_words(tokenizer, source, letters))
            for source in sources
        )
        keeps_words = tokenizer.cuts_subwords and torn <= _TORN * len(sources)
        return replace(self, letters=letters if keeps_words else None)

    @property
    def copies_numbers(self) -> bool:
        """Whether three of four targets of the training have the numbers of their sources."""
        kept, seen = self.spans.get("number", (0, 0))
        return 0 < 3 * seen <= 4 * kept

    def reads_number(self, text: str) -> bool:
        """Whether the training had sources of the shape of a text without letters."""
        return self.shapes is None or number_shape(text) in self.shapes

    def reads(self, text: str, span: ProtectedSpan) -> Reading:
        """How the model reads a span of ``text``."""
        kind = _kind(text, span)
        if re.fullmatch(r"\$\d", span.text_of(text)) and "$" in self._sources:
            return "text"  # an amount
        if kind in self.spans:
            kept, seen = self.spans[kind]
            return "copied" if 2 * kept >= seen else "opaque" if _is_code(kind) else "text"
        if span.kind == "measure" and self.edges.usual:  # nobody has counted
            return "text" if kind.removeprefix("measure ") in _WORDS else "copied"
        return "opaque"

    def spans_in(self, text: str) -> list[ProtectedSpan]:
        """The protected spans, and the words, signs and numbers that the model has not learnt."""
        counts_numbers = self.joints is not None and _DIGIT.search(text)
        if not (counts_numbers or self._unknown.search(text)):
            return protected_spans(text)
        spans = protected_spans(text, self._all)
        if self.characters is None or "1" in self._sources:
            return spans
        # Without digits no span is an amount, as "$5" may be.
        return [
            replace(span, kind="unknown") if re.fullmatch(r"\$\d", span.text_of(text)) else span
            for span in spans
        ]

    def contents(self, text: str, depth: int = _DEEPEST) -> list[Span]:
        """The spans inside the pairs of signs that hold all words of a text; mostly none.

        The search goes on inside each pair, to a ``depth``. Brackets that the model has not learnt
        hold a text of their own at the beginning or end of a text.
        """
        part = text.strip()
        if not (depth and Edges.may_enclose(part)):
            return []
        inside = Edges.contents(part, self.signs_in(part), self._brackets)
        lead = text.index(part)
        return [
            (lead + start + first, lead + start + last)
            for start, end in inside
            for first, last in self.contents(part[start:end], depth - 1) or [(0, end - start)]
        ]

    def signs_in(self, text: str) -> list[ProtectedSpan]:
        """The spans that the edges of a text know as signs: all but spans of text, and measures."""
        spans = self.spans_in(text)
        return [x for x in spans if x.kind == "measure" or self.reads(text, x) != "text"]

    @cached_property
    def pattern(self) -> str:
        """The pattern of all spans."""
        if self.characters is None:
            return SPANS
        odd = f"(?![ {self._class}])"  # before an unknown character
        note = rf"[{RAISED}]+(?![^\W_])"
        letter = rf"(?:(?!{note}|\d\uFE0F?\u20E3){ALNUM})"  # but not of a keycap
        word = rf"(?<!{ALNUM})(?={letter}*?{odd}{letter}){letter}+"
        word += rf"|(?<!{ALNUM}){letter}+(?:{NO_ENTITY}{odd}[{JOINTS}]{letter}+)+"
        word += f"|(?:{odd}[{UNSPACED_CLASS}])+"  # a character is a word there
        sign = rf"{odd}(?:[^\w\s]|_)"  # but not between letters, as in "end.Next"
        raised = f"(?:{odd}[{RAISED}])+"
        numbers = "" if self.joints is None else unknown_numbers(self.joints) + "|"
        unknown = rf"{numbers}{word}|{raised}|(?<![^\W_]){sign}|{sign}(?![^\W_])"
        return rf"{SPANS}|(?P<unknown>{unknown})"

    def patterns(self) -> dict[str, object]:
        """The patterns and tables of edges and spans, for a page that finds the same."""
        counts = self.spans.items()
        texts = [kind for kind, (kept, seen) in counts if 2 * kept < seen and not _is_code(kind)]
        found = {"spans": self.pattern, "texts": [*texts, "measure"], "twins": _TWINS}
        return {
            **self.edges.patterns(),
            **found,
            "letters": "".join(sorted(self._sources)),
            "shapes": self.shapes,
            "unknownBrackets": self._brackets,
            "deepestPairs": _DEEPEST,
            "torn": "" if self.letters is None else JOINED.pattern,
            "tornPart": WORD.pattern,
            "lone": LONE.pattern,
            "loneLetters": f"{self.letters}.-{JOINTS}",
        }

    def with_twins(self, line: Normalised) -> Normalised:
        """The line, with each unknown character in a form that the model knows, if there is one."""
        if self.characters is None or not self._unknown.search(line.text):
            return line
        forms = [self._twin(character) for character in line.text]
        places = [x for x, form in zip(line.places, forms, strict=False) for _ in form]
        return Normalised("".join(forms), [*places, line.places[-1]])

    def _twin(self, character: str) -> str:
        forms = [group[0] for group in _TWINS if character in group]
        if unicodedata.category(character) in ("Lu", "Ll", "Nd"):
            forms.append(unicodedata.normalize("NFKC", character))
        forms = [form for form in forms if set(form) <= self._sources]
        return character if character in self._sources else next(iter(forms), character)

    @cached_property
    def _sources(self) -> frozenset[str]:
        """The known characters of sources, in both cases."""
        sources = self.characters[0] if self.characters else ""
        return frozenset(chain(sources, sources.upper(), sources.lower()))

    @cached_property
    def _brackets(self) -> str:
        """The opening brackets that the model has not learnt."""
        return "" if self.characters is None else "".join(sorted({*BRACKETS} - self._sources))

    @cached_property
    def _class(self) -> str:
        """The known signs, for a class of a regular expression."""
        signs = "".join(sorted(sign for sign in self._sources if not sign.isspace()))
        return re.sub(r"[\\\]\[^&~|-]", r"\\\g<0>", signs)

    @cached_property
    def _all(self) -> re.Pattern[str]:
        return re.compile(self.pattern)

    @cached_property
    def _unknown(self) -> re.Pattern[str]:
        return re.compile(r"(?!)" if self.characters is None else rf"[^{self._class}\s]")


def kinds_of(source: str, target: str) -> dict[str, str | None]:
    """The kinds of a source's spans, each with a span that the target lacks, or None.

    >>> kinds_of("At 20 h in {n}.", "Um 20 Uhr in {n}.")
    {'measure h': '20 h', 'placeholder {': None}
    """
    kinds = {span.text_of(source): _kind(source, span) for span in protected_spans(source)}
    found: dict[str, str | None] = dict.fromkeys(kinds.values())
    lost = lost_spans(source, target) if kinds else []
    return found | {kinds[text]: text for text in lost}


def _is_code(kind: str) -> bool:
    """Whether programs read the kind, which no target translates, as targets may an entity."""
    return kind.startswith(("placeholder", "tag")) and "&" not in kind


def _kind(text: str, span: ProtectedSpan) -> str:
    """The kind of a span as the counts name it; a kind with its unit or its first sign."""
    part = span.text_of(text)
    if span.kind == "measure":
        return "measure " + part.lstrip("0123456789., \u00a0\u202f-−–")
    if span.kind in ("placeholder", "tag"):
        return f"{span.kind} {part if part[0] == '&' else part[0]}"  # an entity is like no other
    return span.kind
