"""Which characters of a text each subword stands for, and which word it belongs to."""

import re
import unicodedata
from collections.abc import Sequence

from glassformer.data.tokenizer import Tokenizer
from glassformer.inspection.trace_schema import Piece

__all__ = ["pieces_of", "readable", "spans_of", "word_spans"]

_SPACE = "\u2581"  # SentencePiece writes ▁ for a space
_BYTE = re.compile(r"<0x([0-9A-F]{2})>")
# A run of letters with what stands inside it (don't, 3.5), or a run of punctuation.
_WORD = re.compile(r"\w+(?:[^\w\s]+\w+)*|[^\w\s]+")
# Scripts that are written without spaces: there each piece counts as a word.
_UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR")
_FARTHEST = 16  # characters that a piece of a changed text is looked for


def pieces_of(tokenizer: Tokenizer, ids: Sequence[int], text: str) -> list[Piece]:
    """The pieces of ``ids``, which are those of ``text``, with its characters and words.

    >>> from glassformer.data.tokenizer import train_tokenizer
    >>> tokenizer = train_tokenizer(["the cat sat.", "the dog sat."], vocab_size=400)
    >>> found = pieces_of(tokenizer, [*tokenizer.encode("the cog"), tokenizer.eos_id], "the cog")
    >>> [(piece.text, piece.start, piece.end, piece.word) for piece in found]
    [('the', 0, 3, 0), ('c', 4, 5, 1), ('og', 5, 7, 1), ('</s>', 7, 7, None)]
    """
    special = {tokenizer.pad_id, tokenizer.bos_id, tokenizer.eos_id}
    names = [tokenizer.id_to_piece(index) for index in ids]
    spans = spans_of(
        ["" if one in special else name for one, name in zip(ids, names, strict=True)], text
    )
    words = _words(spans, text)
    found = []
    for index, name, (start, end), word in zip(ids, names, spans, words, strict=True):
        shown = name if index in special or _BYTE.fullmatch(name) else text[start:end].strip()
        number = None if index in special else word
        found.append(Piece(int(index), name, shown or name, start, end, number))
    return found


def readable(piece: str) -> str:
    """A piece without SentencePiece's mark; of nothing but marks, the marks.

    >>> readable("▁the"), readable("▁")
    ('the', '▁')
    """
    return piece.lstrip(_SPACE) or piece


def word_spans(pieces: Sequence[Piece]) -> list[tuple[int, int]]:
    """The characters of each word that ``pieces`` name, in the words' order."""
    found: dict[int, tuple[int, int]] = {}
    for piece in pieces:
        if piece.word is not None and piece.text.strip(_SPACE):
            start, _ = found.get(piece.word, (piece.start, 0))
            found[piece.word] = (start, piece.end)
    return [found[word] for word in sorted(found)]


def spans_of(pieces: Sequence[str], text: str) -> list[tuple[int, int]]:
    """For each piece (start, end) of its characters in ``text``, without a space before them.

    The bytes of one character share its span. Where the tokenizer changed the text (NFKC, an
    unknown character), a piece that is not found has what lies between those that are.

    >>> spans_of(["▁a", "<0xC3>", "<0xBC>", "b", "▁c"], "aüb c")
    [(0, 1), (1, 2), (1, 2), (2, 3), (4, 5)]
    """
    found: list[tuple[int, int] | None] = []
    place, lost = 0, False
    for surface, count in _surfaces(pieces):
        start = _find(surface, text, place, _FARTHEST if lost else 0)
        lost = start is None
        if start is not None:
            place = start + len(surface)
        found += [None if start is None else (start, place)] * count
    return _filled(found, text)


def _surfaces(pieces: Sequence[str]) -> list[tuple[str, int]]:
    """What each piece writes, the bytes of a character together; and of how many pieces it is."""
    surfaces: list[tuple[str, int]] = []
    waiting = b""
    for number, piece in enumerate(pieces):
        byte = _BYTE.fullmatch(piece)
        if byte is None:
            surfaces.append((_bare(piece), 1))
            continue
        waiting += bytes([int(byte[1], 16)])
        last = number + 1 == len(pieces) or not _BYTE.fullmatch(pieces[number + 1])
        try:
            surfaces.append((waiting.decode(), len(waiting)))
        except UnicodeDecodeError:
            if not last:
                continue
            surfaces.append(("\ufffd", len(waiting)))
        waiting = b""
    return surfaces


def _bare(piece: str) -> str:
    """Without the space that separates a word; a piece of nothing but spaces keeps them."""
    written = piece.replace(_SPACE, " ")
    return written.lstrip(" ") or written


def _find(surface: str, text: str, place: int, farthest: int) -> int | None:
    """Where ``surface`` begins: here, behind spaces, or up to ``farthest`` characters on."""
    if not surface.strip():
        return place if text.startswith(surface, place) and surface else None
    while not text.startswith(surface, place):
        if place >= len(text) or not (text[place].isspace() or farthest):
            return None
        farthest -= bool(farthest) and not text[place].isspace()
        place += 1
    return place


def _filled(found: list[tuple[int, int] | None], text: str) -> list[tuple[int, int]]:
    """Spans for those that have none: all between their neighbours, without outer spaces."""
    filled: list[tuple[int, int]] = []
    before = 0
    for number, span in enumerate(found):
        if span is None:
            after = next((one[0] for one in found[number:] if one is not None), len(text))
            gap = text[before:after]
            start = before + len(gap) - len(gap.lstrip())
            span = (start, max(start, before + len(gap.rstrip())))
        else:
            before = span[1]
        filled.append(span)
    return filled


def _words(spans: Sequence[tuple[int, int]], text: str) -> list[int]:
    """The word of each piece, counted as they come: that of its first character that is no space.

    A space that is a piece of its own so belongs to the word behind it.
    """
    begins = list(range(len(text) + 1))
    for match in _WORD.finditer(text):
        begins[match.start() : match.end()] = [match.start()] * len(match[0])
    numbers: list[int] = []
    before: int | None = None
    for start, _ in spans:
        place = next((i for i in range(start, len(text)) if not text[i].isspace()), len(text))
        unspaced = place < len(text) and _is_unspaced(text[place])
        key = place if unspaced else begins[place]
        numbers.append(numbers[-1] + (key != before) if numbers else 0)
        before = key
    return numbers


def _is_unspaced(character: str) -> bool:
    return unicodedata.name(character, "").startswith(_UNSPACED)
