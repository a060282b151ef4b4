"""Signs at the edges of a text: the model reads the signs that it has learnt, the rest is layout.

A run of signs stands before the first letter or digit of a text, or after the last. A model has
learnt a run if several sources of its training begin or end with it. Protected spans are signs too.
Brackets, quotation marks and tags with a partner inside the text are text. All other signs keep
their places, and the model does not read them. So a text in brackets has the translation of the
text alone, in brackets. A run of signs between spaces that it has not learnt parts two texts.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice, pairwise, product

from glassformer.data.protected import ProtectedSpan, protected_spans
from glassformer.data.words import Span, has_letters, replaced

__all__ = ["BRACKETS", "USUAL", "Edges"]

BRACKETS = "([{（【「『"
"""Opening brackets."""

USUAL = " .,:;!?…。、！？؟।¿¡\"'“”„«»‘’‚‹›+-−#$€£¥%°"
"""The signs of learnt runs, if nobody has counted the runs and the model has subwords for them."""
_LEAST = 5  # sources with a run, from which a model learns the run; one of 1,000, if these are more
_MOST = 8  # signs of a learnt run
_DEEPEST = 100  # opening signs that wait for their partners
# The closing signs of each opening sign; some signs open and close.
_CLOSERS = dict(zip("([{<«‹「『（【“‘„‚", [*")]}>»›」』）】”’", "“”", "‘’"], strict=True))
# In the place of protected spans.
_SPAN, _JOINED, _OPENING, _CLOSING, _OPAQUE = ("\0", "\1", "\2", "\3", "\4")
_PARTS = _SPAN + _JOINED + _OPENING + _CLOSING + _OPAQUE
_SPANS = re.compile(f"[{_PARTS}]+")
_CLOSERS |= {_OPENING: _CLOSING}
_CLOSERS |= {sign: sign for sign in "\"'*_~|"} | {"`": "`'"}
_FLANKED = "\"'’*_~`|"  # a letter beside one says whether it opens or closes
_ENDS = frozenset("".join(_CLOSERS.values()))
_SIGN = re.compile(f"[{re.escape(''.join([*_CLOSERS, *_CLOSERS.values()]))}]")
_LETTER = re.compile(r"[^\W_]")
# A sign that may part texts; marks of sentences, quotes, brackets, money and emoji do not.
_PARTING = (
    r"(?:[★☆☐☑☒]|(?![.,!?…。、！？।¿¡'\"“”„«‘’‚‹()\[\]{}%‰°$€£¥\\\u231A-\u23FF\u2600-\u27BF"
    r"\u2B05-\u2B55\U0001F000-\U0001FAFF\uFE0F\u200D])[^\w\s])"
)
_MIDDLE = re.compile(rf"(?<=\s){_PARTING}+(?=\s)|(?<=[^\s:;])[:;]\s")
# The parting runs for a model whose sources nobody has counted.
_USUAL_PARTING = r"(?:[|¦·•›»>★☆☐☑☒✓✔\u2190-\u21FF\u2500-\u25FF]{1,2}|[-=]{1,2}>)"
_BLOCK = r"\{%|\{\{[#/]"  # the beginnings of a template's blocks, which join no word
_NUMBERS = ("unknown", "identifier", "reference", "version")  # kinds to which a number belongs


@dataclass(frozen=True)
class Edges:
    """The learnt runs at the starts and at the ends of sources; None if nobody has counted.

    A run of ``usual`` signs is learnt without counts. ``middles`` are the learnt runs between
    spaces, and the learnt colons behind a word, each with its space.

    >>> edges = Edges.of(["A man runs."] * 5)
    >>> edges
    Edges(starts=('',), ends=('.',), usual='', middles=())
    >>> texts = ("[A man runs.] –", "(A man) runs...", "***")
    >>> [text[slice(*edges.span(text, []))] for text in texts]
    ['A man runs.', '(A man) runs', '']
    """

    starts: tuple[str, ...] | None = None
    ends: tuple[str, ...] | None = None
    usual: str = USUAL
    middles: tuple[str, ...] | None = None

    @classmethod
    def of(cls, sources: Iterable[str]) -> "Edges":
        """The runs with which several of the sources begin or end, or which they have inside."""
        starts, ends, middles = Counter[str](), Counter[str](), Counter[str]()
        for source in map(str.strip, sources):
            bare = _bare(source, protected_spans(source))
            start, end = _core(bare, _pairs(bare), (0, len(bare)))
            starts[_SPANS.sub(_SPAN, bare[:start])] += 1
            ends[_SPANS.sub(_SPAN, bare[end:])] += 1
            middles.update({*_MIDDLE.findall(source)})
        least = max(_LEAST, starts.total() // 1_000)
        first, last, inner = (
            tuple(sorted(run for run in runs if runs[run] >= least))
            for runs in (starts, ends, middles)
        )
        return cls(first, last, "", inner)

    def plus(self, other: "Edges") -> "Edges":
        """The runs of both."""
        runs = (self.starts, other.starts), (self.ends, other.ends)
        starts, ends = (tuple(sorted({*(one or ()), *(two or ())})) for one, two in runs)
        counted = self.middles is not None and other.middles is not None
        middles = tuple(sorted({*(self.middles or ()), *(other.middles or ())}))
        return Edges(starts, ends, self.usual + other.usual, middles if counted else None)

    @property
    def parting(self) -> str:
        """The pattern of a run of signs that parts texts, between two spaces."""
        if self.middles is None:
            return rf"(?<=\s){_USUAL_PARTING}(?=\s)"
        learnt = "".join(rf"(?!{re.escape(run)}\s)" for run in self.middles)
        return rf"(?<=\s){learnt}{_PARTING}+(?=\s)"

    @property
    def colon(self) -> str:
        """The pattern of an unlearnt colon or semicolon behind a word, which parts texts."""
        if self.middles is None:
            return "(?!)"
        signs = "".join(sign for sign in ":;" if f"{sign} " not in self.middles)
        return rf"(?<=[^\s:;])[{signs}](?=\s)" if signs else "(?!)"

    def patterns(self) -> dict[str, object]:
        """The runs, tables and bounds, for a page that finds the same spans."""
        tables = {"closers": _CLOSERS, "flanked": _FLANKED, "most": _MOST, "deepest": _DEEPEST}
        tables |= {"numbered": _NUMBERS, "block": f"^(?:{_BLOCK})"}
        return asdict(self) | tables | {"colon": self.colon}

    def span(self, text: str, spans: Sequence[ProtectedSpan], *, numbers: bool = True) -> Span:
        """The span of a stripped text without the signs at its edges that nobody has learnt.

        ``spans`` are the text's spans. The answer is empty if the text has neither letters nor
        digits outside them. Without ``numbers``, numbers that an opaque span parts from all words
        are signs too.
        """
        bare = _bare(text, spans)
        stops = bare[-2:-1].isalnum() and self._learnt(bare[-1], self.ends)
        plain = bare[:1].isalnum() and (stops or bare[-1].isalnum())
        if plain and (numbers or _OPAQUE not in bare):
            return 0, len(text)  # most texts
        pairs = _pairs(bare)
        start, end = _core(bare, pairs, (0, len(bare)) if numbers else _beside_words(bare))
        firsts = [start - length for length in _lengths(bare[:start][::-1])]
        lasts = [end + length for length in _lengths(bare[end:])]
        firsts = [place for place in firsts if self._learnt(bare[place:start], self.starts)]
        lasts = [place for place in lasts if self._learnt(bare[end:place], self.ends)]
        choices = product([start, *firsts], [end, *lasts])
        whole = [span for span in choices if not any(_parted(pair, span) for pair in pairs)]
        return max(whole, key=lambda span: span[1] - span[0]) if start < end else (0, 0)

    @staticmethod
    def may_enclose(text: str) -> bool:
        """Whether an opening sign begins a text, or a closing sign ends it."""
        return text[:1] in _CLOSERS or text[-1:] in _ENDS

    @staticmethod
    def contents(text: str, spans: Sequence[ProtectedSpan], unknown: str = "") -> list[Span]:
        """The spans inside the outermost pairs of signs, such as brackets, that hold all words.

        If a word stands outside the pairs, the answer is empty, unless a pair of ``unknown``
        brackets stands at the beginning or end. Then the answer is that pair's content and the
        rest.
        """
        hidden = [x for x in spans if any(map(str.isalnum, x.text_of(text)))]
        bare = replaced(text, [((x.start, x.end), _SPAN * (x.end - x.start)) for x in hidden])
        outermost: list[Span] = []
        for start, end in sorted(_pairs(bare)):
            if not outermost or outermost[-1][1] < start:
                outermost.append((start, end))
        rest = replaced(bare, [((start, end + 1), "") for start, end in outermost])
        if has_letters(bare) and not has_letters(rest):
            return [(start + 1, end) for start, end in outermost]
        return _bracketed_ends(bare, outermost, unknown)

    def _learnt(self, run: str, runs: Sequence[str] | None) -> bool:
        run = _SPANS.sub(_SPAN, run)
        usual = bool(self.usual) and {*self.usual, _SPAN}.issuperset(run)
        return usual or run in (runs or ())


def _bare(text: str, spans: Sequence[ProtectedSpan]) -> str:
    """The text with signs of their own in the place of protected spans, but for numbers.

    An opening and a closing tag become a pair of brackets. A placeholder joins the letters beside
    it, as in "{count}th".
    """
    if not spans:
        return text
    bare = [*text]
    for span in spans:
        part = span.text_of(text)
        is_named = span.kind == "placeholder" and not re.match(_BLOCK, part)
        if span.kind == "measure":
            bare[span.start] = "0"  # a minus belongs to its number
            continue
        if is_named and re.fullmatch(r"\$\d", part):
            continue
        sign = _OPAQUE if span.kind in _NUMBERS else _SPAN
        bare[span.start : span.end] = (_JOINED if is_named else sign) * len(part)
        closes = span.kind == "emphasis" and not text[span.end : span.end + 1].isalnum()
        if part.startswith("</") or closes:
            bare[span.end - 1] = _CLOSING
        elif re.match(r"<[^\W_]|<#", part) or span.kind == "emphasis":
            bare[span.start] = _OPENING
    return "".join(bare)


def _lengths(signs: str) -> Iterator[int]:
    """The lengths of signs after which an edge may be: not in a run or span, nor at a space."""
    alike = [_SPAN if sign in _PARTS else sign for sign in signs] + [""]
    pairs = enumerate(pairwise(alike), start=1)
    cuts = (n for n, (sign, after) in pairs if sign != after and not sign.isspace())
    return islice(cuts, _MOST)


def _core(bare: str, pairs: Sequence[Span], within: Span) -> Span:
    """The span from the first letter or digit to the last, with all that belongs to both.

    Combining marks, placeholders beside a letter, and brackets with a partner belong to the span.
    """
    first, end = _LETTER.search(bare, *within), within[1]
    if first is None:
        return 0, 0
    start = first.start()
    while not bare[end - 1].isalnum():
        end -= 1
    while end < len(bare) and (bare[end] == _JOINED or unicodedata.category(bare[end])[0] == "M"):
        end += 1
    while bare.endswith(_JOINED, 0, start):
        start -= 1
    while parted := [pair for pair in pairs if _parted(pair, (start, end))]:
        start, end = min(start, parted[0][0]), max(end, parted[-1][1] + 1)
    return start, end


def _pairs(bare: str) -> list[Span]:
    """The places of each opening sign and of its closing sign, but of no apostrophe in a word."""
    pairs: list[Span] = []
    opened: list[tuple[str, int]] = []  # the closing signs and the place of an opening sign
    for match in _SIGN.finditer(bare):
        sign, place = match.group(), match.start()
        before, after = bare[place - 1 : place], bare[place + 1 : place + 2]
        closes = sign not in _FLANKED or not (before.isspace() or after.isalnum())
        opens = sign not in _FLANKED or not (after.isspace() or before.isalnum())
        del opened[:-_DEEPEST]
        fitting = [n for n, (closers, _) in enumerate(opened) if closes and sign in closers]
        if fitting:
            pairs.append((opened[fitting[-1]][1], place))
            del opened[fitting[-1] :]
        elif opens and sign in _CLOSERS:
            opened.append((_CLOSERS[sign], place))
    return pairs


def _bracketed_ends(bare: str, pairs: Sequence[Span], brackets: str) -> list[Span]:
    """The content of the first or last pair, if these brackets begin or end a text, and the rest.

    No letter stands beside the brackets, as in "call(x)".
    """
    for start, end in pairs[:1]:
        if bare[start] in brackets and not _LETTER.search(bare[:start] + bare[end + 1 : end + 2]):
            return [(start + 1, end), (end + 1, len(bare))]
    for start, end in pairs[-1:]:
        if bare[start] in brackets and not _LETTER.search(bare[:start][-1:] + bare[end:]):
            return [(0, start), (start + 1, end)]
    return []


def _beside_words(bare: str) -> Span:
    """The span between the last opaque span before all letters and the first one after them."""
    letters = [place for place, sign in enumerate(bare) if sign.isalpha()] or [0]
    end = bare.find(_OPAQUE, letters[-1])
    return bare.rfind(_OPAQUE, 0, letters[0]) + 1, end if end >= 0 else len(bare)


def _parted(pair: Span, span: Span) -> bool:
    """Whether one sign of the pair is in the span, and the other is not."""
    return (span[0] <= pair[0] < span[1]) != (span[0] <= pair[1] < span[1])
