"""Reads, changes and writes SentencePiece models as lists of pieces (extra ``import``).

A ``.model`` file is one protobuf message, whose class comes with the package sentencepiece. An id
is a position in the list of pieces, and no segmentation depends on ids. So a model whose pieces
stand in another order segments as before, with other ids.

:mod:`glassformer.data.tokenizer` encodes and decodes without this module.
"""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from enum import IntEnum
from importlib import import_module
from typing import TYPE_CHECKING, Any

from glassformer.support.errors import InputError, missing_extra

if TYPE_CHECKING:
    from google.protobuf.message import Message

__all__ = ["Piece", "PieceType", "SentencePieceModel"]

_KINDS = {1: "unigram", 2: "bpe", 3: "word", 4: "char"}


class PieceType(IntEnum):
    """The type of a piece, as SentencePiece numbers it."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    """A piece that no text holds and that decodes to no text: start, end, padding, languages."""
    USER_DEFINED = 4
    UNUSED = 5
    """A piece that encoding never gives and that decodes to its text."""
    BYTE = 6


@dataclass(frozen=True)
class Piece:
    """One subword."""

    text: str
    score: float = 0.0
    type: PieceType = PieceType.NORMAL


@dataclass(frozen=True)
class SentencePieceModel:
    """The pieces of a model; ``rest`` is the message without pieces, and errors name ``name``.

    >>> from glassformer.data.subword_training import train_tokenizer
    >>> from glassformer.data.tokenizer import Tokenizer
    >>> tokenizer = train_tokenizer(["a cat"] * 3, vocab_size=300)
    >>> model = SentencePieceModel.parse(tokenizer.serialized)
    >>> turned = Tokenizer(model.with_pieces(model.pieces[::-1], {}).serialized())
    >>> turned.subwords("a cat") == tokenizer.subwords("a cat")
    True
    >>> turned.encode("a cat")[0] == tokenizer.vocab_size - 1 - tokenizer.encode("a cat")[0]
    True
    """

    pieces: tuple[Piece, ...]
    rest: "Message"
    name: str = "tokenizer model"

    @classmethod
    def parse(cls, serialized: bytes, *, name: str = "tokenizer model") -> "SentencePieceModel":
        """The model in the bytes ``serialized``; an InputError for other bytes names ``name``."""
        kind = _message_class()
        from google.protobuf.message import DecodeError

        try:
            message = kind.FromString(serialized)
            if not message.pieces or any(isinstance(p.piece, bytes) for p in message.pieces):
                raise ValueError("no piece, or a text that is no UTF-8")
        except (DecodeError, ValueError) as error:
            raise InputError(
                f"{name}: not a SentencePiece model, or cut short: copy the file anew"
            ) from error
        pieces = tuple(Piece(p.piece, p.score, PieceType(p.type)) for p in message.pieces)
        # This method leaves out the self-test, which other pieces would fail.
        specifications = ("trainer_spec", "normalizer_spec", "denormalizer_spec")
        rest = kind(**{each: getattr(message, each) for each in specifications})
        return cls(pieces, rest, name)

    @classmethod
    def of(
        cls, pieces: Sequence[Piece], *, kind: str, table: bytes, name: str
    ) -> "SentencePieceModel":
        """A model of the given pieces; ``table`` maps characters to their replacements."""
        rest = _message_class()()
        rest.trainer_spec.model_type = next(n for n, name in _KINDS.items() if name == kind)
        rest.normalizer_spec.precompiled_charsmap = table
        return cls(tuple(pieces), rest, name)

    def with_pieces(
        self, pieces: Sequence[Piece], symbols: Mapping[str, str]
    ) -> "SentencePieceModel":
        """The model with other pieces; ``symbols`` names the pieces of unk, bos, eos and pad."""
        rest = deepcopy(self.rest)
        for symbol, text in symbols.items():
            setattr(rest.trainer_spec, f"{symbol}_piece", text)
        return replace(self, pieces=tuple(pieces), rest=rest)

    @property
    def kind(self) -> str:
        """The rule by which the model cuts a text: unigram, bpe, word or char."""
        return _KINDS[self.rest.trainer_spec.model_type]

    def serialized(self) -> bytes:
        """The bytes of a ``.model`` file."""
        message = deepcopy(self.rest)
        for piece in self.pieces:
            message.pieces.add(piece=piece.text, score=piece.score, type=int(piece.type))
        return bytes(message.SerializeToString(deterministic=True))


def _message_class() -> Any:
    """The class of the protobuf message; an InputError names the extra to install."""
    try:
        return import_module("sentencepiece.sentencepiece_model_pb2").ModelProto
    except Exception as error:  # protobuf is missing, or older than sentencepiece's code wants
        raise missing_extra("protobuf", "import") from error
