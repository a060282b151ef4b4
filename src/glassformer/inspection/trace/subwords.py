"""The subwords of a text as a trace shows them: what each stands for, and in which word."""

from bisect import bisect_right
from collections.abc import Sequence

from glassformer.data.tokenizer import Tokenizer
from glassformer.data.words import Span, piece_spans, words
from glassformer.inspection.trace.schema import Piece

__all__ = ["pieces_of", "readable"]

_SPACE = "\u2581"  # SentencePiece writes ▁ for a space


def pieces_of(tokenizer: Tokenizer, ids: Sequence[int], text: str) -> list[Piece]:
    """The pieces of ``ids``, which are those of ``text``, with its characters and words.

    A space that is a piece of its own belongs to the word behind it.

    >>> from glassformer.data.tokenizer import train_tokenizer
    >>> tokenizer = train_tokenizer(["the cat sat.", "the dog sat."], vocab_size=400)
    >>> found = pieces_of(tokenizer, [*tokenizer.encode("the cog"), tokenizer.eos_id], "the cog")
    >>> [(piece.text, piece.start, piece.end, piece.word) for piece in found]
    [('the', 0, 3, 0), ('c', 4, 5, 1), ('og', 5, 7, 1), ('</s>', 7, 7, None)]
    """
    special = {tokenizer.pad_id, tokenizer.bos_id, tokenizer.eos_id}
    found, begins = [], [start for start, _ in words(text)]
    for index, span in zip(ids, piece_spans(tokenizer, ids, text), strict=True):
        start, end = _trimmed(span, text)
        piece = tokenizer.id_to_piece(index)
        place = start + len(text[start:]) - len(text[start:].lstrip())  # its first that is visible
        silent = index in special or not begins
        word = None if silent else max(bisect_right(begins, place) - 1, 0)
        found.append(Piece(index, piece, readable(piece), start, end, word))
    return found


def readable(piece: str) -> str:
    """A piece without SentencePiece's mark; of nothing but marks, the marks.

    >>> readable("▁the"), readable("▁")
    ('the', '▁')
    """
    return piece.lstrip(_SPACE) or piece


def _trimmed(span: Span, text: str) -> Span:
    """Without the spaces before the word; a span of nothing but spaces stays."""
    start, end = span
    visible = len(text[start:end].lstrip())
    return (end - visible, end) if visible else span
