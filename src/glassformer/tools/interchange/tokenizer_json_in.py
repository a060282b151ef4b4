"""Reads ``tokenizer.json``, the only tokenizer that transformers 5 saves for NLLB and mBART-50.

The module inverts :mod:`glassformer.tools.interchange.hugging_face.tokenizer_json`. The records
below are the steps that transformers writes for a SentencePiece model. Import refuses any other
step, because such a step could give other ids.
"""

from itertools import groupby
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Base64Bytes, BaseModel, Field

from glassformer.data.sentencepiece_model import Piece, PieceType, SentencePieceModel
from glassformer.data.tokenizer import SPACE
from glassformer.support.errors import InputError
from glassformer.support.strangers import MOST_JSON, read_json, shown

__all__ = ["read_tokenizer_json"]

_Off = Literal[False, ""] | None


class _Table(BaseModel):
    type: Literal["Precompiled"]
    precompiled_charsmap: Base64Bytes


class _SingleSpaces(BaseModel):
    type: Literal["Replace"]
    pattern: dict[Literal["Regex"], Literal[" {2,}"]]
    content: Literal[" "]


class _Normaliser(BaseModel):
    type: Literal["Sequence"]
    normalizers: tuple[_Table, _SingleSpaces] | tuple[_SingleSpaces]


class _Metaspace(BaseModel):
    type: Literal["Metaspace"]
    replacement: Literal["▁"]
    prepend_scheme: Literal["always"]
    split: Literal[True]


class _Model(BaseModel):
    type: Literal["BPE", "Unigram"]
    vocab: Annotated[list[tuple[str, float]], Field(fail_fast=True)] | dict[str, int]
    merges: Annotated[list[tuple[str, str]], Field(fail_fast=True)] = []
    fuse_unk: Literal[True] = True
    byte_fallback: _Off = None
    dropout: _Off = None
    continuing_subword_prefix: _Off = None
    end_of_word_suffix: _Off = None
    ignore_merges: _Off = None


class _Symbol(BaseModel):
    content: str
    special: bool


class _File(BaseModel):
    added_tokens: list[_Symbol]
    normalizer: _Normaliser
    pre_tokenizer: _Metaspace
    model: _Model


def read_tokenizer_json(path: Path) -> SentencePieceModel:
    """The SentencePiece model of a ``tokenizer.json``, with pieces in the order of ids.

    Raises InputError, which names the file, for a tokenizer of another kind.
    """
    try:
        file = read_json(path, _File, most_bytes=MOST_JSON)
        for token in file.added_tokens:
            if not token.special:  # it would cut texts before all other steps
                raise ValueError(f"the token {shown(token.content)} was added to SentencePiece's")
        scores = _scores(file.model)
    except ValueError as error:
        reason = str(error).removeprefix(f"{path}: ")
        raise InputError(
            f"{path}: {reason}: import reads only tokenizers that transformers has converted from"
            " SentencePiece; copy the SentencePiece model from the original"
        ) from error
    symbols = {token.content for token in file.added_tokens}
    lowest = min((score for score in scores.values() if score is not None), default=0.0)

    def piece(text: str, score: float | None) -> Piece:
        if text in symbols:
            return Piece(text, type=PieceType.CONTROL)
        if score is None or SPACE in text[1:]:  # a text is split before each space
            return Piece(text, lowest - 1, PieceType.UNUSED)
        return Piece(text, score)

    first = file.normalizer.normalizers[0]
    table = first.precompiled_charsmap if isinstance(first, _Table) else b""
    pieces = [piece(*each) for each in scores.items()]
    return SentencePieceModel.of(pieces, kind=file.model.type.lower(), table=table, name=str(path))


def _scores(model: _Model) -> dict[str, float | None]:
    """The score of each piece; None for a piece that cuts no text.

    The file lists BPE's joins, the best first; SentencePiece scores the pieces that joins form. So
    the joins of a piece must stand together in the file; otherwise the function raises ValueError.
    """
    if isinstance(model.vocab, list):
        if len(dict(model.vocab)) < len(model.vocab):
            raise ValueError("model.vocab has a piece twice")
        return dict(model.vocab)
    texts = sorted(model.vocab, key=model.vocab.__getitem__)
    if [model.vocab[text] for text in texts] != list(range(len(texts))):
        raise ValueError("the ids of model.vocab have gaps")
    formed = [piece for piece, _ in groupby(first + second for first, second in model.merges)]
    scores = {text: -float(len(formed)) for text in texts if len(text) == 1}
    scores |= {piece: -float(rank) for rank, piece in enumerate(formed)}
    listed = set(model.merges)
    cuts = ((piece[:place], piece[place:]) for piece in formed for place in range(1, len(piece)))
    lacking = any(scores.keys() >= {*cut} and cut not in listed for cut in cuts)
    if lacking or len({*formed}) < len(formed):
        raise ValueError("model.merges: not all joins of a piece stand together")
    return {text: scores.get(text) for text in texts}
