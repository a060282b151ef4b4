"""Takes out of a tokenizer the subwords that a corpus does not need.

A pretrained model of 200 languages has 256,000 subwords. A corpus of one language pair needs a
tenth of the model's subwords. Every other subword costs a row of the embeddings, and a logit.
"""

from collections.abc import Iterable, Sequence
from itertools import islice

from glassformer.data.scripts import script
from glassformer.data.sentencepiece_model import Piece, PieceType, SentencePieceModel
from glassformer.data.tokenizer import SPACE, Tokenizer

__all__ = ["trim_tokenizer", "trim_tokenizers"]

_AT_ONCE = 1_024  # texts


def trim_tokenizer(tokenizer: Tokenizer, texts: Iterable[str]) -> tuple[Tokenizer, list[int]]:
    """The tokenizer with the subwords of ``texts``, and the old id of each subword that stays.

    The letters of the texts' scripts stay, and so do digits, bytes and special symbols. The
    segmentation of ``texts`` stays. In other texts, a missing subword becomes several smaller
    subwords.

    >>> from glassformer.data.subword_training import train_tokenizer
    >>> tokenizer = train_tokenizer(["a cat sat", "ein Hund", "ein Hut"] * 9, vocab_size=320)
    >>> trimmed, ids = trim_tokenizer(tokenizer, ["ein Hut"])
    >>> trimmed.vocab_size < tokenizer.vocab_size, trimmed.subwords("ein Hut")
    (True, ['▁ein', '▁Hut'])
    >>> tokenizer.subwords("a cat"), trimmed.subwords("a cat")
    (['▁a', '▁cat'], ['▁a', '▁c', 'a', 't'])
    """
    [trimmed], kept = trim_tokenizers([tokenizer], [texts])
    return trimmed, kept


def trim_tokenizers(
    tokenizers: Sequence[Tokenizer], texts: Sequence[Iterable[str]]
) -> tuple[list[Tokenizer], list[int]]:
    """Tokenizers of one vocabulary, with the subwords that the texts of any of them need.

    Also returns the old id of each subword that stays.
    """
    needed = set[int]().union(*map(_needed, tokenizers, texts))
    # Both sides of a model have one id for the end symbol, and one for the unknown symbol.
    first = {i for t in tokenizers for i in (t.pad_id, t.unk_id, t.bos_id, t.eos_id)}
    kept = sorted(needed, key=lambda index: (index not in first, index))
    return [_with_only(tokenizer, kept) for tokenizer in tokenizers], kept


def _with_only(tokenizer: Tokenizer, kept: list[int]) -> Tokenizer:
    """The tokenizer with these subwords first, and the others unused."""
    model, pieces = SentencePieceModel.parse(tokenizer.serialized), _pieces(tokenizer)
    vocabulary, needed = pieces[: tokenizer.vocab_size], set(kept)
    rest = [
        # BPE also merges to an unused piece, and cuts an unused piece that is left over.
        Piece(piece.text, piece.score, PieceType.UNUSED)
        for index, piece in enumerate(vocabulary)
        if index not in needed
    ]
    arranged = [*(vocabulary[index] for index in kept), *rest, *pieces[len(vocabulary) :]]
    return Tokenizer(
        model.with_pieces(arranged, {"pad": vocabulary[tokenizer.pad_id].text}).serialized(),
        prefix=tokenizer.prefix,
        known=len(kept),
    )


def _pieces(tokenizer: Tokenizer) -> list[Piece]:
    """The model's pieces, with padding if the model lacks it."""
    pieces = list(SentencePieceModel.parse(tokenizer.serialized).pieces)
    lacking = tokenizer.pad_id == len(pieces)
    return [*pieces, Piece("<pad>", type=PieceType.CONTROL)] if lacking else pieces


def _needed(tokenizer: Tokenizer, texts: Iterable[str]) -> set[int]:
    """The ids of the texts, of the special symbols, and of the letters of the texts' scripts."""
    needed = {tokenizer.unk_id, *tokenizer.symbols, *tokenizer.prefix_ids}
    letters: set[str] = set()
    remaining = iter(texts)
    while window := list(islice(remaining, _AT_ONCE)):
        needed.update(*tokenizer.encode_batch(window))
        letters.update(*window)
    scripts = {None, *map(script, letters)}  # digits and signs have None
    vocabulary = _pieces(tokenizer)[: tokenizer.vocab_size]
    return needed | {place for place, piece in enumerate(vocabulary) if _stays(piece, scripts)}


def _stays(piece: Piece, scripts: set[str | None]) -> bool:
    """Whether a piece stays, because it is a symbol, a byte, or one character of ``scripts``."""
    text = piece.text.replace(SPACE, "")
    if piece.type is not PieceType.NORMAL:
        return piece.type is not PieceType.UNUSED
    return len(text) < 2 and scripts.issuperset(map(script, text))
