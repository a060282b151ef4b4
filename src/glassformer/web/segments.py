"""Splits a text into segments, the units of translation, and joins their translations.

A segment is a line, or a part of a long line. The text between two segments (line breaks,
indentation) also stands between their translations.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from glassformer.data.splitting import split_long

__all__ = ["Segment", "SegmentedText", "segmented"]

_LINE = re.compile(r"[^\r\n]+")


@dataclass(frozen=True)
class Segment:
    """A segment, its first character in the text, the gap before it, its cost in subwords."""

    text: str
    start: int
    gap: str
    cost: int


@dataclass(frozen=True)
class SegmentedText:
    """A text's segments, and the text after the last one."""

    segments: tuple[Segment, ...]
    tail: str

    def joined(self, translations: Sequence[str]) -> str:
        """The text of the segments' translations."""
        pairs = zip(self.segments, translations, strict=True)
        return "".join(segment.gap + translation for segment, translation in pairs) + self.tail


def segmented(text: str, length: Callable[[str], int], *, limit: int) -> SegmentedText:
    """The lines of ``text``, without the space around them; long lines in several segments.

    The sentences of a line stay together, as in `Translator.translate`: "Dr. Who" and "7. Juni"
    contain no sentence end, and the model has learnt to read whole lines. ``length`` counts the
    subwords of a text; a segment has at most ``limit`` of them.

    >>> split = segmented("One two.\\n\\n - Three.\\n", len, limit=20)
    >>> [(segment.gap, segment.text, segment.start) for segment in split.segments], split.tail
    ([('', 'One two.', 0), ('\\n\\n ', '- Three.', 11)], '\\n')
    >>> split.joined(["Eins zwei.", "- Drei."])
    'Eins zwei.\\n\\n - Drei.\\n'
    """
    segments: list[Segment] = []
    end = 0
    for line in _LINE.finditer(text):
        if not (core := line.group().strip()):
            continue
        start = line.start() + line.group().index(core)
        gap = text[end:start]
        end = start + len(core)
        for part in split_long(core, length, limit=limit):
            if stripped := part.strip():
                place = start + part.index(stripped)
                segments.append(Segment(stripped, place, gap, length(stripped) + 1))
                gap = " "
            start += len(part)
    return SegmentedText(tuple(segments), text[end:])
