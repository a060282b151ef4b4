"""Takes out of a tokenizer the subwords that a corpus does not need.

A pretrained model of 200 languages has 256,000 subwords. A corpus of one language pair needs a
tenth of the model's subwords. Every other subword costs a row of the embeddings, and a logit.
"""

from collections.abc import Iterable
from itertools import islice

from glassformer.data.scripts import script
from glassformer.data.sentencepiece_model import Piece, PieceType, SentencePieceModel
from glassformer.data.tokenizer import SPACE, Tokenizer

__all__ = ["trim_tokenizer"]

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
    model = SentencePieceModel.parse(tokenizer.serialized)
    pieces = list(model.pieces)
    if tokenizer.pad_id == len(pieces):  # the model lacks padding
        pieces.append(Piece("<pad>", type=PieceType.CONTROL))
    vocabulary = pieces[: tokenizer.vocab_size]
    needed, scripts = _needed(tokenizer, texts)
    needed |= {place for place, piece in enumerate(vocabulary) if _stays(piece, scripts)}
    # Both sides of a model have one id for the end symbol, and one for the unknown symbol.
    first = (tokenizer.pad_id, tokenizer.unk_id, tokenizer.bos_id, tokenizer.eos_id)
    kept = sorted(needed, key=lambda index: (index not in first, index))
    rest = [
        # BPE also merges to an unused piece, and cuts an unused piece that is left over.
        Piece(piece.text, piece.score, PieceType.UNUSED)
        for index, piece in enumerate(vocabulary)
        if index not in needed
    ]
    arranged = [*(vocabulary[index] for index in kept), *rest, *pieces[len(vocabulary) :]]
    trimmed = Tokenizer(
        model.with_pieces(arranged, {"pad": vocabulary[tokenizer.pad_id].text}).serialized(),
        prefix=tokenizer.prefix,
        known=len(kept),
    )
    return trimmed, kept


def _needed(tokenizer: Tokenizer, texts: Iterable[str]) -> tuple[set[int], set[str | None]]:
    """The ids of the texts and of the special symbols, and the scripts of the texts."""
    needed = {tokenizer.unk_id, *tokenizer.symbols, *tokenizer.prefix_ids}
    letters: set[str] = set()
    remaining = iter(texts)
    while window := list(islice(remaining, _AT_ONCE)):
        needed.update(*tokenizer.encode_batch(window))
        letters.update(*window)
    return needed, {None, *map(script, letters)}  # digits and signs have None


def _stays(piece: Piece, scripts: set[str | None]) -> bool:
    """Whether a piece stays, because it is a symbol, a byte, or one character of ``scripts``."""
    text = piece.text.replace(SPACE, "")
    if piece.type is not PieceType.NORMAL:
        return piece.type is not PieceType.UNUSED
    return len(text) < 2 and scripts.issuperset(map(script, text))
