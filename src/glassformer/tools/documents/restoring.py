"""Puts the marks of a text back into its translation, with white space as in the source."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Literal

from glassformer.data.words import Link, Span, words
from glassformer.text_engine import Translation
from glassformer.tools.documents.bare_text import BareText, Node
from glassformer.tools.documents.placement import diagonal, places

__all__ = ["restored"]

_NO_SPACE_BEFORE = tuple(",.;:!?)]}…”»、。，！？")
_NO_SPACE_AFTER = tuple("([{„«‘")

_Joint = Literal["space", "glue", "free"]


def restored(
    bare: BareText,
    translation: Translation,
    *,
    write: Callable[[str], str] = str,
    aligned: bool = True,
    least: int = 0,
) -> Translation:
    """The translation of ``bare.bare`` with marks, and with an alignment to ``bare.text``.

    ``write`` changes all text outside marks. Without ``aligned``, the marks stand in
    proportion to the source, with spaces around points. No mark comes before the place ``least``.

    >>> from glassformer.tools.documents.bare_text import Mark
    >>> bare = BareText("Hi {n}, you", (Mark(3, 6),))
    >>> links = (Link((0, 2), (0, 5)), Link((2, 3), (5, 6)), Link((4, 7), (7, 9)))
    >>> restored(bare, Translation("Hallo, du", -1.0, alignment=links)).text
    'Hallo {n}, du'
    """
    links = translation.alignment if aligned else None
    if links is None:
        links = tuple(diagonal(bare.bare, translation.text))
    spans = places(bare.nodes, (bare.bare, translation.text), links, least=least)
    writer = _Writer(bare, translation.text, write, spaces=not aligned)
    writer.write(spans)
    alignment = None if translation.alignment is None else writer.moved(translation.alignment)
    return Translation(writer.text, translation.score, (), alignment)


class _Writer:
    """Writes target text and marks in turn, and records the origin of each part."""

    def __init__(
        self, bare: BareText, target: str, write: Callable[[str], str], *, spaces: bool
    ) -> None:
        self._bare = bare
        self._target = target
        self._write = write
        self._spaces = spaces
        self._parts: list[str] = []
        self._origins: list[tuple[str, int]] = []  # of parts: "target", "source" or "", and place
        self._last = ""  # the last visible character
        self._joint: _Joint | None = None  # the joint after the last point
        self._visible = 0  # the number of parts up to the last visible one

    @property
    def text(self) -> str:
        return "".join(self._parts)

    def write(self, spans: Sequence[Span]) -> None:
        """Write the target with each node around the node's span."""
        children: dict[int, list[int]] = defaultdict(list)
        for number, node in enumerate(self._bare.nodes):
            children[node.parent].append(number)

        def inside(span: Span, numbers: Sequence[int]) -> None:
            place = span[0]
            for number in sorted(numbers, key=lambda number: spans[number]):
                self._text(place, spans[number][0])
                node = self._bare.nodes[number]
                if node.closing is None:
                    self._point(node)
                else:
                    self._mark(node.opening)
                    inside(spans[number], children[number])
                    self._mark(node.closing)
                place = spans[number][1]
            self._text(place, span[1])

        inside((0, len(self._target)), children[-1])

    def moved(self, links: Sequence[Link]) -> tuple[Link, ...]:
        """Links of the bare text as links of the whole text, with a link for each mark."""
        written = 0
        places: dict[str, dict[int, int]] = {"target": {}, "source": {}, "": {}}
        for part, (side, origin) in zip(self._parts, self._origins, strict=True):
            places[side].update((origin + n, written + n) for n in range(len(part)))
            written += len(part)
        place, kept = places["target"], self._bare.kept
        moved = [
            Link(
                (kept[link.source[0]], kept[link.source[1] - 1] + 1),
                (place[link.target[0]], place[link.target[1] - 1] + 1),
                link.weight,
            )
            for link in links
        ]
        for mark in self._bare.marks:
            start = places["source"][mark.start]
            moved.append(Link((mark.start, mark.end), (start, start + mark.end - mark.start)))
        return tuple(sorted(moved, key=lambda link: (link.target, link.source)))

    def _text(self, start: int, end: int) -> None:
        if text := self._target[start:end]:
            self._join(text[0], None)
            self._add(self._write(text), ("target", start))
            self._last, self._visible = text[-1], len(self._parts)

    def _point(self, node: Node) -> None:
        start, end = node.opening
        before, after = map(self._joint_to, self._bare.beside(node.opening))
        beside_point = self._joint is not None  # another point, with letters between in the source
        self._join(self._bare.text[start], "space" if beside_point else before)
        self._mark(node.opening)
        self._last, self._visible = self._bare.text[end - 1], len(self._parts)
        self._joint = after

    def _joint_to(self, neighbour: str) -> _Joint:
        """The joint between a point and a source neighbour; a letter allows no space."""
        if self._spaces or not neighbour or neighbour.isspace():
            return "space"
        return "glue" if _spaced(neighbour) else "free"

    def _mark(self, span: Span) -> None:
        """Write a span of the source, with unchanged marks and with ``write`` for other text."""
        place = span[0]
        for mark in self._bare.marks_in(span):
            if place < mark.start:
                self._add(self._write(self._bare.text[place : mark.start]), ("source", place))
            self._add(self._bare.text[mark.start : mark.end], ("source", mark.start))
            place = mark.end
        if place < span[1]:
            self._add(self._write(self._bare.text[place : span[1]]), ("source", place))

    def _add(self, part: str, origin: tuple[str, int]) -> None:
        self._parts.append(part)
        self._origins.append(origin)

    def _join(self, first: str, before: _Joint | None) -> None:
        """Put a space between the last visible character and ``first`` if a joint needs it."""
        last, after, self._joint = self._last, self._joint, None
        if not last or last.isspace() or first.isspace():
            return
        needed = (
            (self._spaces and (after or before))
            or (after == "space" and first not in _NO_SPACE_BEFORE)
            or (before == "space" and last not in _NO_SPACE_AFTER)
        )
        if needed or (after == "free" and _spaced(first)) or (before == "free" and _spaced(last)):
            self._parts.insert(self._visible, " ")
            self._origins.insert(self._visible, ("", 0))


def _spaced(character: str) -> bool:
    """Whether the character is a letter or digit of a script that puts spaces between words."""
    return character.isalnum() and len(words(character + "x")) == 1
