"""Puts the marks of a text back into its translation, with white space as in the source."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from glassformer.alignment.mark_placement import diagonal, is_spaced, places
from glassformer.data.bare_text import BareText, Node
from glassformer.data.words import Link, Span

__all__ = ["restored"]

_NO_SPACE_BEFORE = tuple(",.;:!?)]}…”»、。，！？")
_NO_SPACE_AFTER = tuple("([{„«‘")


def restored(
    bare: BareText,
    target: str,
    links: Sequence[Link] | None,
    *,
    write: Callable[[str], str] = str,
    least: int = 0,
) -> tuple[str, tuple[Link, ...]]:
    """The translation of ``bare.bare`` with marks, and its links to ``bare.text``.

    ``write`` changes all text outside marks. Without ``links``, the marks stand in proportion to
    the source, with spaces around points. No mark comes before the place ``least``.

    >>> from glassformer.data.bare_text import Mark
    >>> bare = BareText("Hi {n}, you", (Mark(3, 6),))
    >>> links = (Link((0, 2), (0, 5)), Link((2, 3), (5, 6)), Link((4, 7), (7, 9)))
    >>> restored(bare, "Hallo, du", links)[0]
    'Hallo {n}, du'
    """
    known = diagonal(bare.bare, target) if links is None else links
    spans = places(bare.nodes, (bare.bare, target), known, least=least)
    writer = _Writer(bare, target, write, spaces=links is None)
    writer.write(spans)
    return "".join(writer.parts), writer.moved(links or ())


@dataclass
class _Writer:
    """Writes target text and marks in turn, and records the place of each character."""

    bare: BareText
    target: str
    change: Callable[[str], str]
    spaces: bool = field(kw_only=True)
    parts: list[str] = field(default_factory=list)
    origins: list[tuple[str, int]] = field(default_factory=list)  # "target" or "source", and place
    last: str = ""  # the last visible character
    spaced: bool | None = None  # whether a space may follow the last point
    visible: int = 0  # the number of parts up to the last visible one

    def write(self, spans: Sequence[Span]) -> None:
        """Write the target with each node around the node's span."""
        children: dict[int, list[int]] = defaultdict(list)
        for number, node in enumerate(self.bare.nodes):
            children[node.parent].append(number)

        def inside(span: Span, numbers: Sequence[int]) -> None:
            place = span[0]
            for number in sorted(numbers, key=lambda number: spans[number]):
                self._text(place, spans[number][0])
                node = self.bare.nodes[number]
                if node.closing is None:
                    self._point(node)
                else:
                    self._mark(node.opening)
                    inside(spans[number], children[number])
                    self._mark(node.closing)
                place = spans[number][1]
            self._text(place, span[1])

        inside((0, len(self.target)), children[-1])

    def moved(self, links: Sequence[Link]) -> tuple[Link, ...]:
        """Links of the bare text as links of the whole text, with a link for each mark."""
        written: dict[tuple[str, int], int] = {}
        length = 0
        for part, (side, origin) in zip(self.parts, self.origins, strict=True):
            written |= {(side, origin + n): length + n for n in range(len(part))}
            length += len(part)
        kept = self.bare.kept
        moved = [
            Link(
                (kept[link.source[0]], kept[link.source[1] - 1] + 1),
                (written["target", link.target[0]], written["target", link.target[1] - 1] + 1),
                link.weight,
            )
            for link in links
        ]
        for mark in self.bare.marks:
            start = written["source", mark.start]
            moved.append(Link((mark.start, mark.end), (start, start + mark.end - mark.start)))
        return tuple(sorted(moved, key=lambda link: (link.target, link.source)))

    def _text(self, start: int, end: int) -> None:
        if text := self.target[start:end]:
            self._join(text[0])
            self._add(self.change(text), ("target", start))
            self.last, self.visible = text[-1], len(self.parts)

    def _point(self, node: Node) -> None:
        start, end = node.opening
        # A letter beside the point in the source allows no space.
        beside = self.bare.beside(node.opening)
        before, after = (self.spaces or not is_spaced(each) for each in beside)
        beside_point = self.spaced is not None  # another point, with letters between in the source
        self._join(self.bare.text[start], before=before or beside_point)
        self._mark(node.opening)
        self.last, self.visible = self.bare.text[end - 1], len(self.parts)
        self.spaced = after

    def _mark(self, span: Span) -> None:
        """Write a span of the source, with unchanged marks and with ``change`` for other text."""
        place, text = span[0], self.bare.text
        for mark in self.bare.marks_in(span):
            self._add(self.change(text[place : mark.start]), ("source", place))
            self._add(text[mark.start : mark.end], ("source", mark.start))
            place = mark.end
        self._add(self.change(text[place : span[1]]), ("source", place))

    def _add(self, part: str, origin: tuple[str, int]) -> None:
        if part:
            self.parts.append(part)
            self.origins.append(origin)

    def _join(self, first: str, *, before: bool = False) -> None:
        """Put a space between the last visible character and ``first``, beside a point."""
        last, after, self.spaced = self.last, self.spaced, None
        if not last or last.isspace() or first.isspace():
            return
        follows = after and (self.spaces or first not in _NO_SPACE_BEFORE)
        if follows or (before and (self.spaces or last not in _NO_SPACE_AFTER)):
            self.parts.insert(self.visible, " ")
            self.origins.insert(self.visible, ("", 0))
