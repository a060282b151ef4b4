"""The tokens of a model of others in the order of its ids, and the rows that it lacks.

Our decoder needs a start symbol and padding that no target holds. A missing one is appended: the
model gets a row more for it. Its bias takes its probability away.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from torch import Tensor

from glassformer.data.tokenizer import Tokenizer
from glassformer.errors import InputError
from glassformer.interchange.imported import NEVER
from glassformer.interchange.piece_order import tokenizer_in_order

__all__ = ["Tokens", "append_rows", "same_symbols", "tokens_of"]

_START, _PADDING = "<s>", "<pad>"
_PADDINGS = (_PADDING, "<blank>")  # OpenNMT's


@dataclass(frozen=True)
class Tokens:
    """The tokens of one side; ``size`` of them are the file's, the rest is appended.

    ``start``: the id whose row an appended start symbol copies; None: zeros.
    """

    texts: tuple[str, ...]
    size: int
    symbols: Mapping[str, str]
    start: int | None = None

    def id_of(self, symbol: str) -> int:
        """The id of unk, bos, eos or pad."""
        return self.texts.index(self.symbols[symbol])

    def without_end(self) -> "Tokens":
        """The same, with the end symbol as padding: it stands after a source, and is not read."""
        return replace(self, symbols={**self.symbols, "pad": self.symbols["eos"]})

    def tokenizer(self, path: Path, *, prefix: str = "") -> Tokenizer:
        """The tokenizer of the file ``path``; ``prefix``: a token before each text."""
        if prefix and prefix not in self.texts:
            raise InputError(
                f"{path.parent}: target_prefix {prefix!r}: the vocabulary has no such token"
            )
        renamed = {text for text in self.texts if text.startswith("<s ")}
        appended = {_PADDING, prefix, *self.texts[self.size :]}
        return tokenizer_in_order(
            self.texts,
            path,
            controls=appended | renamed,
            symbols=self.symbols,
            prefix=[prefix] if prefix else (),
        )


def tokens_of(
    texts: Sequence[str], path: Path, *, symbols: Mapping[str, str], begin: str | None
) -> Tokens:
    """The tokens in a vocabulary file ``path``; ``symbols``: the texts of unk and eos.

    ``begin``: the token with which their decoder starts; None: with zeros for an embedding.

    Raises InputError if the file lacks a special token, or has a token twice.
    """
    if len(set(texts)) < len(texts):
        double = next(text for text in texts if texts.count(text) > 1)
        raise InputError(f"{path}: it has the token {double!r} twice")
    for text in [*symbols.values(), *([] if begin is None else [begin])]:
        if text not in texts:
            raise InputError(f"{path}: it lacks the token {text}: copy the file anew")
    start = None if begin is None else texts.index(begin)
    padding = next((text for text in _PADDINGS if text in texts), None)
    names = [_PADDING if text == padding else text for text in texts]
    if padding is None:
        names.append(_PADDING)
    if begin is None or begin in (*symbols.values(), padding):
        names = [f"<s {index}>" if text == _START else text for index, text in enumerate(names)]
        names.append(_START)
        begin = _START
    return Tokens(tuple(names), len(texts), {**symbols, "pad": _PADDING, "bos": begin}, start)


def same_symbols(source: Tokens, target: Tokens, directory: Path) -> None:
    """Raise InputError if a symbol that our settings hold once has another id on each side."""
    for symbol in ("unk", "eos"):
        if source.id_of(symbol) != target.id_of(symbol):
            raise InputError(
                f"{directory}: {target.symbols[symbol]} is token {source.id_of(symbol)} of the"
                f" source and {target.id_of(symbol)} of the target: this program has one id for"
                " both"
            )


def append_rows(weights: Mapping[str, Tensor], source: Tokens, target: Tokens) -> None:
    """Fill the rows that the file lacks: a copy of the start's row, or zeros.

    ``weights``: ours by name; ``output.bias`` is the bias of the logits.
    """
    for module, tokens in (
        ("source_embedding", source),
        ("target_embedding", target),
        ("output", target),
    ):
        table = weights[f"{module}.weight"]
        table[tokens.size :] = 0.0
        bos = tokens.id_of("bos")
        if bos >= tokens.size and tokens.start is not None:
            table[bos] = table[tokens.start]
    if "output.bias" in weights:
        weights["output.bias"][target.size :] = NEVER
