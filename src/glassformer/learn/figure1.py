"""The paper's figure 1 with the parts that are already the learner's, as text and as SVG."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import escape
from itertools import zip_longest
from typing import Literal

__all__ = ["COLUMNS", "Box", "figure_svg", "figure_text"]

Learned = Callable[[str], bool]
"""Whether the lesson of this name is learned."""
Mark = Literal["yours", "partly yours", ""]

_WIDTH = 48  # letters of a box
_BOX, _GAP, _LEFT, _COLUMN = 34, 12, 40, 340  # in the SVG, in pixels


@dataclass(frozen=True)
class Box:
    """A box of figure 1, and the lessons that build it. ``title`` "" is a gap between boxes."""

    title: str
    lessons: tuple[str, ...] = ()

    def mark(self, learned: Learned) -> Mark:
        """Whether all, some or none of its lessons are learned."""
        states = [learned(lesson) for lesson in self.lessons]
        return "yours" if states and all(states) else "partly yours" if any(states) else ""


_GAP_BOX = Box("")
_NORM = Box("Add & Norm", ("blocks",))
_FEED_FORWARD = Box("Feed Forward", ("blocks",))
_POSITIONS = Box("Positional Encoding", ("positions",))

# From the bottom to the top, as the data goes.
COLUMNS: dict[str, tuple[Box, ...]] = {
    "encoder": (
        Box("Input Embedding", ("embeddings",)),
        _POSITIONS,
        _GAP_BOX,
        Box("Multi-Head Attention", ("attention", "padding", "heads")),
        _NORM,
        _FEED_FORWARD,
        _NORM,
        _GAP_BOX,
        Box("N encoder blocks", ("encoder",)),
    ),
    "decoder": (
        Box("Output Embedding, shifted", ("embeddings", "causal")),
        _POSITIONS,
        _GAP_BOX,
        Box("Masked Multi-Head Attention", ("attention", "causal", "heads")),
        _NORM,
        Box("Multi-Head Attention", ("attention", "padding", "heads")),
        _NORM,
        _FEED_FORWARD,
        _NORM,
        _GAP_BOX,
        Box("N decoder blocks", ("decoder",)),
        Box("Linear and Softmax", ("embeddings", "whole")),
    ),
    "around it": (
        Box("Subwords", ("subwords",)),
        Box("Loss", ("loss",)),
        Box("Learning rate and Adam", ("schedule",)),
        Box("Greedy search, cache", ("greedy",)),
        Box("Beam search", ("beam",)),
    ),
}


def figure_text(learned: Learned) -> Iterator[tuple[str, Mark]]:
    """The figure as pieces of text with their marks, line by line; a line ends with "\\n".

    >>> text = "".join(piece for piece, _ in figure_text(lambda lesson: lesson == "blocks"))
    >>> text.splitlines()[-1].split()
    ['[', 'Input', 'Embedding', ']', '[', 'Output', 'Embedding,', 'shifted', ']']
    """
    encoder, decoder = COLUMNS["encoder"], COLUMNS["decoder"]
    rows = list(zip_longest(encoder, decoder, fillvalue=_GAP_BOX))
    for row in reversed(rows):
        for box in row:
            mark = box.mark(learned)
            words = f"{box.title} ({mark})" if mark else box.title
            yield (f"[ {words} ]" if words else "").ljust(_WIDTH), mark
        yield "\n", ""


def figure_svg(learned: Learned) -> str:
    """The figure as an SVG picture: filled boxes are the learner's."""
    height = max(map(len, COLUMNS.values())) * (_BOX + _GAP) + 60
    parts = [
        part
        for number, name in enumerate(COLUMNS)
        for part in _column(number, name, learned, height)
    ]
    width = _LEFT + len(COLUMNS) * _COLUMN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"'
        f' width="{width}" height="{height}" font-family="sans-serif" font-size="14">'
        f'<rect width="100%" height="100%" fill="white"/>{"".join(parts)}</svg>\n'
    )


def _column(number: int, name: str, learned: Learned, height: int) -> Iterator[str]:
    left = _LEFT + number * _COLUMN
    yield f'<text x="{left}" y="{height - 18}" fill="#555">{escape(name)}</text>'
    for place, box in enumerate(COLUMNS[name]):
        if not box.title:
            continue
        top = height - 50 - (place + 1) * (_BOX + _GAP) + _GAP
        mark = box.mark(learned)
        fill = {"yours": "#a1d99b", "partly yours": "#e5f5e0", "": "#f1f3f5"}[mark]
        text = f"{box.title} ({mark})" if mark else box.title
        yield (
            f'<rect x="{left}" y="{top}" width="{_COLUMN - 50}" height="{_BOX}" rx="6"'
            f' fill="{fill}" stroke="#888"/>'
            f'<text x="{left + 10}" y="{top + 22}" fill="#222">{escape(text)}</text>'
        )
