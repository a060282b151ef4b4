"""SentencePiece models as a list of pieces: read, change, write again.

A ``.model`` file is one protobuf message. Its field 1 repeats: a piece with its text (1), score (2)
and type (3). An id is a place in that list, and no segmentation depends on it. So a model whose
pieces stand in another order segments as before, with other ids. All other fields stay as they are,
byte for byte.

Source: ``sentencepiece_model.proto`` of SentencePiece, and protobuf's wire format.
"""

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from glassformer.errors import InputError

__all__ = ["Piece", "PieceType", "Segmentation", "SentencePieceModel"]

_PIECES, _TRAINER, _NORMALISER, _SELF_TEST = 1, 2, 3, 4  # fields of the model
_SEGMENTATION = {  # fields of the trainer's and the normaliser's specifications
    _TRAINER: {24: "space_as_suffix"},
    _NORMALISER: {2: "characters", 3: "dummy_prefix", 4: "single_spaces"},
}
_KIND = 3  # of the trainer's specification
_KINDS = {1: "unigram", 2: "bpe", 3: "word", 4: "char"}
_SYMBOL_FIELDS = {"unk": 45, "bos": 46, "eos": 47, "pad": 48}  # of the trainer's specification
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5  # wire types


class PieceType(IntEnum):
    """The type of a piece, as SentencePiece numbers it."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    """Never in a text, and no text when decoded: start, end, padding, languages."""
    USER_DEFINED = 4
    UNUSED = 5
    """Never the result of encoding, and decoded as its text."""
    BYTE = 6


@dataclass(frozen=True)
class Piece:
    """One subword."""

    text: str
    score: float = 0.0
    type: PieceType = PieceType.NORMAL


@dataclass(frozen=True)
class Segmentation:
    """How a model cuts a text, but for its pieces. The defaults are SentencePiece's."""

    kind: str = "unigram"
    """unigram, bpe, word or char."""
    characters: bytes = b""
    """SentencePiece's table of characters that others replace, such as NFKC's; empty: none."""
    dummy_prefix: bool = True
    """A text begins as if a space stood before it."""
    single_spaces: bool = True
    """Several spaces are read as one, and those around the text are left out."""
    space_as_suffix: bool = False
    """A space belongs to the word before it."""


@dataclass(frozen=True)
class SentencePieceModel:
    """The pieces of a model, and its other fields as bytes.

    >>> from glassformer.data.tokenizer import Tokenizer, train_tokenizer
    >>> tokenizer = train_tokenizer(["a cat"] * 3, vocab_size=300)
    >>> model = SentencePieceModel.parse(tokenizer.serialized)
    >>> turned = Tokenizer(model.with_pieces(model.pieces[::-1], {}).serialized())
    >>> turned.subwords("a cat") == tokenizer.subwords("a cat")
    True
    >>> turned.encode("a cat")[0] == tokenizer.vocab_size - 1 - tokenizer.encode("a cat")[0]
    True
    """

    pieces: tuple[Piece, ...]
    rest: bytes

    @classmethod
    def parse(cls, serialized: bytes, *, name: str = "tokenizer model") -> "SentencePieceModel":
        """The model of these bytes; InputError, which calls it ``name``, for other bytes."""
        pieces, rest = [], bytearray()
        try:
            for number, wire, value, raw in _fields(serialized):
                if number == _PIECES and wire == _BYTES:
                    pieces.append(_piece(value))
                elif number != _SELF_TEST:  # its expected ids are of the old order
                    rest += raw
            if not pieces:
                raise ValueError("it has no piece")
        except (IndexError, ValueError, struct.error) as error:
            raise InputError(
                f"{name}: not a SentencePiece model, or cut short: copy the file anew"
            ) from error
        return cls(tuple(pieces), bytes(rest))

    def with_pieces(
        self, pieces: Sequence[Piece], symbols: Mapping[str, str]
    ) -> "SentencePieceModel":
        """The model with other pieces; ``symbols`` names those of unk, bos, eos and pad.

        Of two messages for one field, protobuf takes the later one's values.
        """
        names = b"".join(
            _field(_SYMBOL_FIELDS[symbol], text.encode()) for symbol, text in symbols.items()
        )
        return SentencePieceModel(tuple(pieces), self.rest + _field(_TRAINER, names))

    @property
    def segmentation(self) -> Segmentation:
        """The options of segmentation, out of the trainer's and the normaliser's fields."""
        options: dict[str, Any] = {}
        for number, _, message, _ in _fields(self.rest):
            names = _SEGMENTATION.get(number, {})
            for field, wire, value, _ in _fields(message) if names else ():
                if field in names:
                    options[names[field]] = value if wire == _BYTES else bool(_varint(value, 0)[0])
                elif (number, field) == (_TRAINER, _KIND):
                    options["kind"] = _KINDS[_varint(value, 0)[0]]
        return Segmentation(**options)

    def serialized(self) -> bytes:
        """The bytes of a ``.model`` file."""
        return b"".join(_field(_PIECES, _message(piece)) for piece in self.pieces) + self.rest


def _fields(message: bytes) -> Iterator[tuple[int, int, bytes, bytes]]:
    """Number, wire type, content and all bytes of each field of a message."""
    place = 0
    while place < len(message):
        start = place
        key, place = _varint(message, place)
        wire = key & 7
        if wire == _BYTES:
            length, place = _varint(message, place)
            end = place + length
        elif wire == _VARINT:
            _, end = _varint(message, place)
        else:
            end = place + {_FIXED64: 8, _FIXED32: 4}.get(wire, len(message) + 1)
        if end > len(message):
            raise ValueError("the message ends inside a field")
        yield key >> 3, wire, message[place:end], message[start:end]
        place = end


def _varint(message: bytes, place: int) -> tuple[int, int]:
    """The number at ``place``, seven bits a byte, the lowest first; and the place after it."""
    number = shift = 0
    while True:
        byte = message[place]
        number |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            return number, place


def _piece(message: bytes) -> Piece:
    text, score, kind = "", 0.0, PieceType.NORMAL
    for number, _, value, _ in _fields(message):
        if number == 1:
            text = value.decode()
        elif number == 2:
            [score] = struct.unpack("<f", value)
        elif number == 3:
            kind = PieceType(_varint(value, 0)[0])
    return Piece(text, score, kind)


def _message(piece: Piece) -> bytes:
    score = _number(2 << 3 | _FIXED32) + struct.pack("<f", piece.score)
    return _field(1, piece.text.encode()) + score + _number(3 << 3) + _number(piece.type)


def _field(number: int, content: bytes) -> bytes:
    return _number(number << 3 | _BYTES) + _number(len(content)) + content


def _number(number: int) -> bytes:
    """A number as protobuf's varint."""
    written = bytearray()
    while number > 127:
        written.append(number & 127 | 128)
        number >>= 7
    return bytes([*written, number])
