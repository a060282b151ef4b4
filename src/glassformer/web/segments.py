"""A text as the pieces that are translated by themselves, and back: lines, and parts of long ones.

What stands between the pieces (line breaks, indentation) stands between their translations too.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from glassformer.data.splitting import split_long

__all__ = ["Cut", "Piece", "cut"]

_LINE = re.compile(r"[^\r\n]+")


@dataclass(frozen=True)
class Piece:
    """Some of a text: from where on, what stands before its translation, how many subwords."""

    text: str
    start: int
    gap: str
    cost: int


@dataclass(frozen=True)
class Cut:
    """A text's pieces, and what stands after the last one."""

    pieces: tuple[Piece, ...]
    tail: str

    def joined(self, translations: Sequence[str]) -> str:
        """The text that the pieces' translations make."""
        said = zip(self.pieces, translations, strict=True)
        return "".join(piece.gap + text for piece, text in said) + self.tail


def cut(text: str, length: Callable[[str], int], *, limit: int) -> Cut:
    """The lines of ``text``, without the space around them; a long one as a translator cuts it.

    Sentences of a line stay together, as `Translator.translate` has it: the end of a sentence is
    not easily told from "Dr. Who" or "7. Juni", and what was learnt together is best read so.
    ``length`` measures a text in subwords; a piece has at most ``limit`` of them.

    >>> found = cut("One two.\\n\\n - Three.\\n", len, limit=20)
    >>> [(piece.gap, piece.text, piece.start) for piece in found.pieces], found.tail
    ([('', 'One two.', 0), ('\\n\\n ', '- Three.', 11)], '\\n')
    >>> found.joined(["Eins zwei.", "- Drei."])
    'Eins zwei.\\n\\n - Drei.\\n'
    """
    pieces: list[Piece] = []
    end = 0
    for line in _LINE.finditer(text):
        if not (core := line.group().strip()):
            continue
        start = line.start() + line.group().index(core)
        gap = text[end:start]
        end = start + len(core)
        for part in split_long(core, length, limit=limit):
            if own := part.strip():
                place = start + part.index(own)
                pieces.append(Piece(own, place, gap, length(own) + 1))
                gap = " "
            start += len(part)
    return Cut(tuple(pieces), text[end:])
