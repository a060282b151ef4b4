"""The tokens of a CTranslate2 model in the order of ids, with tokens added for our decoder.

Our decoder needs a start symbol and padding that no target holds. Import appends a missing symbol,
and a row of the model whose bias gives the symbol the probability 0.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, RootModel

from glassformer.data.sentencepiece_model import PieceType, SentencePieceModel
from glassformer.data.tokenizer import Tokenizer
from glassformer.support.errors import InputError
from glassformer.support.strangers import MOST_JSON, read_json, read_text, shown
from glassformer.tools.interchange.piece_order import PieceOrder

__all__ = ["Settings", "Tokens", "read_tokens"]

_START, _PADDING = "<s>", "<pad>"
_PADDINGS = (_PADDING, "<blank>")  # OpenNMT writes <blank>


class Settings(BaseModel):
    """``config.json``; newer versions have more options."""

    model_config = ConfigDict(strict=True, extra="allow", frozen=True)

    unk_token: str = "<unk>"
    bos_token: str | None = "<s>"
    eos_token: str = "</s>"
    decoder_start_token: str | None = "<s>"
    add_source_bos: bool = False
    add_source_eos: bool = False
    layer_norm_epsilon: float | None = Field(None, gt=0, lt=1)


class _List(RootModel[Annotated[list[str], Field(fail_fast=True)]]):
    """A vocabulary file."""


@dataclass(frozen=True)
class Tokens:
    """The tokens of one side; the first ``size`` come from the file, and import appends the rest.

    ``inserted`` is the id of an end symbol that the file lacks, as OpenNMT-py's sources have none.
    ``symbols`` has the texts of unk, bos, eos and pad. ``start`` is the id whose row an appended
    start symbol copies; None means a row of zeros.
    """

    texts: tuple[str, ...]
    size: int
    symbols: Mapping[str, str]
    start: int | None = None
    inserted: int | None = None

    def id_of(self, symbol: str) -> int:
        """The id of unk, bos, eos or pad."""
        return self.texts.index(self.symbols[symbol])

    def without_end(self) -> "Tokens":
        """The tokens with the end symbol as padding, so that the model does not read the symbol."""
        return replace(self, symbols={**self.symbols, "pad": self.symbols["eos"]})

    def tokenizer(
        self, model: SentencePieceModel, *, prefix: str = "", languages: Collection[str] = ()
    ) -> Tokenizer:
        """The tokenizer of ``model`` with the tokens' ids; ``prefix`` stands before each text."""
        renamed = {text for text in self.texts if text.startswith("<s ")}
        controls = {_PADDING, prefix, *self.texts[self.size :], *renamed, *languages}
        order = PieceOrder(self.texts, controls, self.symbols)
        return order.tokenizer(model, [prefix] if prefix else ())

    def beside(self, models: Sequence[SentencePieceModel]) -> list[str]:
        """The tokens that are neither special symbols nor ordinary pieces of ``models``."""
        others = {PieceType.CONTROL, PieceType.USER_DEFINED, PieceType.UNUSED}
        pieces = {p.text for model in models for p in model.pieces if p.type not in others}
        pieces |= {_START, _PADDING, *self.symbols.values()}
        return [text for text in self.texts[: self.size] if text not in pieces]


def read_tokens(
    directory: Path, settings: Settings, *, start_is_zero: bool
) -> tuple[Tokens, Tokens]:
    """The tokens of both sides; one object if the sides share a vocabulary.

    ``start_is_zero`` says that the file's decoder starts with an embedding of zeros.

    Raises InputError for a file that is missing, faulty or without a special token.
    """
    shared = _file(directory, "shared_vocabulary")
    if shared is not None:
        tokens = _tokens(shared, settings, start_is_zero)
        return tokens, tokens
    sides: list[Tokens] = []
    for side in ("target", "source"):
        path = _file(directory, f"{side}_vocabulary")
        if path is None:
            raise InputError(
                f"{directory} holds neither shared_vocabulary.json nor"
                f" {side}_vocabulary.json: copy the whole directory anew"
            )
        end = sides[0].id_of("eos") if sides and not settings.add_source_eos else None
        sides.append(_tokens(path, settings, start_is_zero, end=end))
    target, source = sides
    for symbol in ("unk", "eos"):
        if source.id_of(symbol) != target.id_of(symbol):
            raise InputError(
                f"{directory}: {target.symbols[symbol]} is token {source.id_of(symbol)} of the"
                f" source and {target.id_of(symbol)} of the target: this program has one id for"
                " both"
            )
    return source, target


def _file(directory: Path, name: str) -> Path | None:
    paths = (directory / f"{name}{ending}" for ending in (".json", ".txt"))
    return next((path for path in paths if path.exists()), None)


def _tokens(
    path: Path, settings: Settings, start_is_zero: bool, *, end: int | None = None
) -> Tokens:
    """The tokens in a vocabulary file, and a start symbol and padding if the file lacks them.

    ``end`` is the id for an end symbol that the file of sources may lack.
    """
    symbols = {"unk": settings.unk_token, "eos": settings.eos_token}
    texts = [*_texts(path)]
    inserted = end if settings.eos_token not in texts else None
    if inserted is not None:
        texts.insert(inserted, settings.eos_token)
    begin = None if start_is_zero or inserted is not None else settings.decoder_start_token
    if len(set(texts)) < len(texts):
        [(double, _)] = Counter(texts).most_common(1)
        raise InputError(f"{path} has the token {shown(double)} twice")
    for text in [*symbols.values(), *([] if begin is None else [begin])]:
        if text not in texts:
            raise InputError(f"{path}: the token {shown(text)} is missing: copy the file anew")
    start = None if begin is None else texts.index(begin)
    padding = next((text for text in _PADDINGS if text in texts), None)
    names = [_PADDING if text == padding else text for text in texts]
    if padding is None:
        names.append(_PADDING)
    if begin is None or begin in (symbols["unk"], padding):
        names = [f"<s {index}>" if text == _START else text for index, text in enumerate(names)]
        names.append(_START)
        begin = _START
    return Tokens(
        tuple(names), len(texts), {**symbols, "pad": _PADDING, "bos": begin}, start, inserted
    )


def _texts(path: Path) -> Sequence[str]:
    """The tokens in a JSON list, or in the lines of an old text file."""
    if path.suffix == ".json":
        return read_json(path, _List, most_bytes=MOST_JSON).root
    return read_text(path, most_bytes=MOST_JSON).removesuffix("\n").split("\n")
