"""A text without marks, such as markup and placeholders, which the model does not read.

Marks are points, such as ``{name}`` or ``<img>``, or a pair of tags around words. Points without a
word between two points become one point, which includes the brackets around the points.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, groupby, pairwise
from typing import Literal

from glassformer.data.words import Span

__all__ = ["VOID", "BareText", "Mark", "Node"]

# The elements of HTML without content and without an end tag.
VOID = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track"}
)

_DEEPEST = 100  # pairs of tags around a place; deeper tags are points
_BRACKETS = {"(": ")", "[": "]", "{": "}", "“": "”", "„": "“", "«": "»", "‘": "’", '"': '"'}
_NO_SPACE_BEFORE = ",.;:!?)]}…”»"
# The model writes an end of sentence in any case, so tags around an end stay a pair.
_ENDS = frozenset(".!?…")


@dataclass(frozen=True)
class Mark:
    """A part that the bare text lacks, a point or the tag that opens or closes ``name``.

    Ordered points keep their order in the translation; other points may move. ``kind`` is the kind
    of a protected span.
    """

    start: int
    end: int
    role: Literal["point", "open", "close"] = "point"
    name: str = ""
    kind: str = ""
    ordered: bool = False


@dataclass(frozen=True)
class Node:
    """The spans and the bare place of a pair of tags, or of a point (``closing`` is None).

    ``parent`` is the number of the pair around the node, or -1 without a pair.
    """

    opening: Span
    closing: Span | None
    place: Span
    parent: int
    ordered: bool


@dataclass(frozen=True)
class BareText:
    """A text, with marks in the order of the text.

    >>> bare = BareText("Hi {n}, see <b>this</b>.", (Mark(3, 6), Mark(12, 15, "open", "b"),
    ...                                              Mark(19, 23, "close", "b")))
    >>> bare.bare
    'Hi, see this.'
    >>> [(node.opening, node.closing, node.place) for node in bare.nodes]
    [((3, 6), None, (2, 2)), ((12, 15), (19, 23), (8, 12))]
    """

    text: str
    marks: tuple[Mark, ...]

    @cached_property
    def bare(self) -> str:
        """The text without marks, and without the second space that a mark would leave."""
        return "".join(self.text[place] for place in self.kept)

    @cached_property
    def kept(self) -> list[int]:
        """The place in the text of each character of the bare text.

        If a mark with a space stands between two words, the space stays.
        """
        kept: list[int] = []
        space = -1  # the last space that goes
        gone = [False] * len(self.text)
        for opening, closing, _ in self._leaving:
            for start, end in filter(None, (opening, closing)):
                gone[start:end] = [True] * (end - start)
        for place, character in enumerate(self.text):
            if gone[place]:
                space = place if character.isspace() else space
                continue
            if place and gone[place - 1]:
                joins = character.isalnum() and kept and self.text[kept[-1]].isalnum()
                if joins and space > kept[-1]:
                    kept.append(space)
                after_space = not kept or self.text[kept[-1]].isspace()
                if character.isspace() and after_space:
                    continue
                if kept and after_space and character in _NO_SPACE_BEFORE:
                    kept.pop()
            kept.append(place)
        while kept and gone[-1] and self.text[kept[-1]].isspace():
            kept.pop()
        return kept

    @cached_property
    def nodes(self) -> list[Node]:
        """The points and pairs; an inner node comes after the pair around the node."""
        nodes: list[Node] = []
        around: list[int] = []
        for opening, closing, ordered in self._leaving:
            while around and (nodes[around[-1]].closing or opening)[0] <= opening[0]:
                around.pop()
            first = bisect_left(self.kept, opening[1])
            last = bisect_left(self.kept, closing[0]) if closing else first
            parent = around[-1] if around else -1
            if closing:
                around.append(len(nodes))
            nodes.append(Node(opening, closing, (first, last), parent, ordered))
        return nodes

    def beside(self, span: Span) -> tuple[str, str]:
        """The characters before and after a span and the neighbouring marks; "" at an end."""
        before, after = span[0] - 1, span[1]
        starts, ends = self._edges
        while (number := bisect_left(ends, before + 1)) < len(ends) and ends[number] == before + 1:
            before = starts[number] - 1
        while (number := bisect_left(starts, after)) < len(starts) and starts[number] == after:
            after = ends[number]
        return self.text[before] if before >= 0 else "", self.text[after : after + 1]

    def marks_in(self, span: Span) -> Sequence[Mark]:
        """The marks inside a span of the text."""
        return self.marks[slice(*(bisect_left(self._edges[0], place) for place in span))]

    @cached_property
    def _edges(self) -> tuple[list[int], list[int]]:
        return [mark.start for mark in self.marks], [mark.end for mark in self.marks]

    @cached_property
    def _letters(self) -> list[int]:
        """For each position in the text, the number of earlier letters and digits outside marks."""
        visible = [character.isalnum() for character in self.text]
        for mark in self.marks:
            visible[mark.start : mark.end] = [False] * (mark.end - mark.start)
        return list(accumulate(visible, initial=0))

    @cached_property
    def _pairs(self) -> list[tuple[Mark, Mark]]:
        """The pairs of opening and closing tag with words or a sentence's end between the tags."""
        pairs: list[tuple[Mark, Mark]] = []
        stack: list[Mark] = []
        for mark in self.marks:
            if mark.role == "open":
                stack.append(mark)
            elif mark.role == "close":
                names = [opening.name for opening in stack[-_DEEPEST:]]
                if mark.name not in names:
                    continue
                while (opening := stack.pop()).name != mark.name:
                    pass
                start, end = opening.end, mark.start
                ends = 0 < end - start < 4 and set(self.text[start:end]) <= _ENDS
                if len(stack) < _DEEPEST and (ends or self._letters[start] < self._letters[end]):
                    pairs.append((opening, mark))
        return pairs

    @cached_property
    def _leaving(self) -> list[tuple[Span, Span | None, bool]]:
        """The opening, closing and order of each pair and point, in the order of the text."""
        leaving: list[tuple[Span, Span | None, bool]] = [
            ((opening.start, opening.end), (closing.start, closing.end), False)
            for opening, closing in self._pairs
        ]
        paired = {mark.start for pair in self._pairs for mark in pair}
        for (is_tag, _), marks in groupby(
            self.marks, lambda mark: (mark.start in paired, self._letters[mark.start])
        ):
            if not is_tag:  # marks without words between become one point
                group = list(marks)
                ordered = any(mark.ordered for mark in group)
                leaving.append((self._with_brackets(group), None, ordered))
        return sorted(leaving, key=lambda item: item[0])

    def _with_brackets(self, group: Sequence[Mark]) -> Span:
        """The span of a group of marks, with the brackets and quotation marks around the group."""
        start, end = group[0].start, group[-1].end
        starts, ends = self._edges
        before, after = bisect_left(starts, start), bisect_left(starts, end)
        least = ends[before - 1] if before else 0
        most = starts[after] if after < len(starts) else len(self.text)
        while least < start and end < most:
            if _BRACKETS.get(self.text[start - 1]) != self.text[end]:
                break
            start, end = start - 1, end + 1
        between = "".join(self.text[a.end : b.start] for a, b in pairwise(group))
        for opener, closer in _BRACKETS.items():
            extra = between.count(opener) - between.count(closer)
            if extra > 0 and opener != closer and self.text[end:most].startswith(closer):
                end += 1
            elif extra < 0 and self.text[least:start].endswith(opener):
                start -= 1
        return start, end
