"""Labels that show subwords to a person, and the characters and words that subwords come from."""

from bisect import bisect_right
from collections.abc import Sequence

from glassformer.data.tokenizer import SPACE, Tokenizer
from glassformer.data.words import Span, subword_spans, words
from glassformer.support.errors import InputError
from glassformer.tools.inspection.trace.schema import Piece

__all__ = ["ended_ids", "label", "pieces_of", "text_of", "token_labels"]


def text_of(piece: str) -> str:
    """A piece without SentencePiece's ``▁``; a bare ``▁`` stays.

    >>> text_of("▁the"), text_of("▁")
    ('the', '▁')
    """
    return piece.lstrip(SPACE) or piece


def label(piece: str) -> str:
    """The text of a piece, with ``·`` before it if it continues a word.

    >>> [label(piece) for piece in ("▁Hun", "de", "</s>", "<0xE6>", "▁")]
    ['Hun', '·de', '</s>', '<0xE6>', '▁']
    """
    symbol = piece.startswith("<") and piece.endswith(">") and len(piece) > 2
    return text_of(piece) if symbol or piece.startswith(SPACE) else f"·{piece}"


def token_labels(tokenizer: Tokenizer, ids: Sequence[int]) -> list[str]:
    """The :func:`label` of each id."""
    return [label(tokenizer.subword(index)) for index in ids]


def ended_ids(tokenizer: Tokenizer, text: str, longest: int, *, name: str) -> list[int]:
    """The ids of a text and the end symbol; InputError if the model has no room for them."""
    ids = [*tokenizer.encode(text), tokenizer.eos_id]
    if len(ids) > longest:
        raise InputError(
            f"{name} has {len(ids):,} subwords, and this model has positions for {longest:,}:"
            " shorten it"
        )
    return ids


def pieces_of(tokenizer: Tokenizer, ids: Sequence[int], text: str) -> list[Piece]:
    """The pieces of ``text``, whose ids are ``ids``, with their characters and words.

    A piece of spaces alone belongs to the next word.

    >>> from glassformer.data.subword_training import train_tokenizer
    >>> tokenizer = train_tokenizer(["the cat sat.", "the dog sat."], vocab_size=400)
    >>> pieces = pieces_of(tokenizer, [*tokenizer.encode("the cog"), tokenizer.eos_id], "the cog")
    >>> [(piece.text, piece.start, piece.end, piece.word) for piece in pieces]
    [('the', 0, 3, 0), ('c', 4, 5, 1), ('og', 5, 7, 1), ('</s>', 7, 7, None)]
    """
    starts = [start for start, _ in words(text)]
    pieces = []
    for index, span in zip(ids, subword_spans(tokenizer, ids, text), strict=True):
        start, end = _trimmed(span, text)
        piece = tokenizer.subword(index)
        visible = start + len(text[start:]) - len(text[start:].lstrip())  # first visible character
        outside = index in tokenizer.symbols or not starts
        word = None if outside else max(bisect_right(starts, visible) - 1, 0)
        pieces.append(Piece(index, piece, text_of(piece), start, end, word))
    return pieces


def _trimmed(span: Span, text: str) -> Span:
    """The span without leading spaces; a span of spaces alone stays."""
    start, end = span
    visible = len(text[start:end].lstrip())
    return (end - visible, end) if visible else span
