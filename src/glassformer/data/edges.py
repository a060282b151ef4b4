"""Signs at the edges of a text: the model reads the signs that it has learnt, the rest is layout.

A run of signs stands before the first letter or digit of a text, or after the last. A model has
learnt a run if several sources of its training begin or end with it. Brackets and quotation marks
with a partner inside the text are text too. All other signs keep their places, and the model does
not read them. So a text in brackets has the translation of the text alone, in brackets.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import product

from glassformer.data.protected import SPANS, protected_spans
from glassformer.data.words import Span

__all__ = ["USUAL", "Edges"]

USUAL = " .,:;!?…。、！？؟।¿¡\"'“”„«»‘’‚‹›+-−#$€£¥%°"
"""The signs of learnt runs, if nobody has counted the runs and the model has subwords for them."""
_LEAST = 5  # sources that begin or end with a run, from which a model learns the run
_LONGEST = 8  # signs of a learnt run
_DEEPEST = 100  # opening signs that wait for their partners
# The closing signs of each opening sign; some signs open and close.
_CLOSERS = dict(zip("([{<«‹「『（【“‘„‚", [*")]}>»›」』）】”’", "“”", "‘’"], strict=True))
_CLOSERS |= {sign: sign for sign in "\"'*_~`|"}
_FLANKED = "\"'’*_~`|"  # a letter beside one says whether it opens or closes
_SIGN = re.compile(f"[{re.escape(''.join([*_CLOSERS, *_CLOSERS.values()]))}]")
_LETTER = re.compile(r"[^\W_]")


@dataclass(frozen=True)
class Edges:
    """The learnt runs at the starts and at the ends of sources; None if nobody has counted.

    >>> edges = Edges.of(["A man runs."] * 5)
    >>> edges
    Edges(starts=('',), ends=('.',), usual='')
    >>> [text[slice(*edges.span(text))] for text in ("[A man runs.] –", "(A man) runs...", "***")]
    ['A man runs.', '(A man) runs', '']
    """

    starts: Sequence[str] | None = None
    ends: Sequence[str] | None = None
    usual: str = USUAL

    @classmethod
    def of(cls, sources: Iterable[str]) -> "Edges":
        """The runs with which several of the sources begin or end."""
        starts, ends = Counter[str](), Counter[str]()
        for source in map(str.strip, sources):
            start, end = _core(source, _pairs(source))
            starts[source[:start]] += 1
            ends[source[end:]] += 1
        learnt = [
            tuple(sorted(run for run in runs if runs[run] >= _LEAST)) for runs in (starts, ends)
        ]
        return cls(learnt[0], learnt[1], "")

    def patterns(self) -> dict[str, object]:
        """The runs, tables and bounds, for a page that finds the same spans."""
        return {
            **asdict(self),
            "spans": SPANS,
            "closers": _CLOSERS,
            "flanked": _FLANKED,
            "longest": _LONGEST,
            "deepest": _DEEPEST,
        }

    def span(self, text: str) -> Span:
        """The span of a stripped text without the signs at its edges that nobody has learnt.

        The span is empty if the text has neither letters nor digits.
        """
        stops = text[-2:-1].isalnum() and self._learnt(text[-1], self.ends)
        if text[:1].isalnum() and (stops or text[-1].isalnum()):
            return 0, len(text)  # most texts
        pairs = _pairs(text)
        start, end = _core(text, pairs)
        if start == end:
            return start, end
        firsts = [
            place
            for place in range(max(0, start - _LONGEST), start)
            if _cuts(text[place], text[place - 1 : place])
            and self._learnt(text[place:start], self.starts)
        ]
        lasts = [
            place
            for place in range(min(len(text), end + _LONGEST), end, -1)
            if _cuts(text[place - 1], text[place : place + 1])
            and self._learnt(text[end:place], self.ends)
        ]
        spans = product([*firsts, start], [*lasts, end])
        whole = [span for span in spans if not any(_parted(pair, span) for pair in pairs)]
        return max(whole, key=lambda span: span[1] - span[0])

    def _learnt(self, run: str, runs: Sequence[str] | None) -> bool:
        return {*self.usual}.issuperset(run) if runs is None else run in runs


def _cuts(inside: str, outside: str) -> bool:
    """Whether an edge may be between two signs: not in a run of one sign, such as "..."."""
    return inside != outside and not inside.isspace()


def _core(text: str, pairs: Sequence[Span]) -> Span:
    """The span from the first letter or digit to the last, with all that belongs to both.

    Combining marks, protected spans and brackets with a partner in the span belong to it.
    """
    first = _LETTER.search(text)
    if first is None:
        return 0, 0
    start, end = first.start(), len(text)
    while not text[end - 1].isalnum():
        end -= 1
    while end < len(text) and unicodedata.category(text[end])[0] == "M":
        end += 1
    if not start and end == len(text):
        return start, end
    for span in protected_spans(text):
        if span.kind != "emoji":
            start, end = min(start, span.start), max(end, span.end)
    while parted := [pair for pair in pairs if _parted(pair, (start, end))]:
        start, end = min(start, parted[0][0]), max(end, parted[-1][1] + 1)
    return start, end


def _pairs(text: str) -> list[Span]:
    """The places of each opening sign and of its closing sign, but of no apostrophe in a word."""
    pairs: list[Span] = []
    opened: list[tuple[str, int]] = []  # the closing signs and the place of an opening sign
    for match in _SIGN.finditer(text):
        sign, place = match.group(), match.start()
        before, after = text[place - 1 : place], text[place + 1 : place + 2]
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


def _parted(pair: Span, span: Span) -> bool:
    """Whether one sign of the pair is in the span, and the other is not."""
    return (span[0] <= pair[0] < span[1]) != (span[0] <= pair[1] < span[1])
