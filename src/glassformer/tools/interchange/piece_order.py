"""A SentencePiece model whose pieces stand in the order of another program's ids."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from glassformer.data.sentencepiece_model import Piece, PieceType, SentencePieceModel
from glassformer.data.tokenizer import MOST_BYTES, Tokenizer
from glassformer.support.strangers import read_bytes
from glassformer.tools.interchange.tokenizer_json_in import read_tokenizer_json

__all__ = ["PieceOrder", "read_sentencepiece"]


@dataclass(frozen=True)
class PieceOrder:
    """The text of each id; ``controls`` are the texts that no input holds.

    ``symbols`` has the texts of unk, bos, eos and pad.
    """

    texts: Sequence[str]
    controls: Collection[str]
    symbols: Mapping[str, str]

    def tokenizer(self, model: SentencePieceModel, prefix: Sequence[str] = ()) -> Tokenizer:
        """A tokenizer that cuts input into the pieces of ``model``, and gives the ids of ``texts``.

        No input has a text that the model lacks. A piece that ``texts`` lacks gets the id of unk.
        """
        of_model = {piece.text: piece for piece in model.pieces}
        lowest = min(piece.score for piece in model.pieces)  # BPE merges lower scores last
        unknown = self.symbols["unk"]
        never_read = {*self.controls, *self.symbols.values()} - {unknown}

        def piece(text: str) -> Piece:
            if text == unknown:
                return Piece(text, type=PieceType.UNKNOWN)
            if text in never_read:
                return Piece(text, type=PieceType.CONTROL)
            return of_model.get(text, Piece(text, lowest - 1, PieceType.UNUSED))

        pieces = [piece(text) for text in self.texts]
        special = (PieceType.UNKNOWN, PieceType.CONTROL)
        present = set(self.texts)
        rest = [p for p in model.pieces if p.text not in present and p.type not in special]
        arranged = model.with_pieces([*pieces, *rest], self.symbols)
        return Tokenizer(arranged.serialized(), name=model.name, prefix=prefix, known=len(pieces))


def read_sentencepiece(path: Path) -> SentencePieceModel:
    """The SentencePiece model in a file or a ``tokenizer.json``; InputError names the file."""
    if path.suffix == ".json":
        return read_tokenizer_json(path)
    return SentencePieceModel.parse(read_bytes(path, most_bytes=MOST_BYTES), name=str(path))
