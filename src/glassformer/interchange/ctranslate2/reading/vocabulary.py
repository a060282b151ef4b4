"""The tokens of a CTranslate2 model as tokenizers whose ids are the model's own.

A vocabulary is a list of tokens in the order of the ids. Our decoder needs a start symbol and
padding that no target holds. A missing one is appended: the model gets a row more for it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from glassformer.data.tokenizer import Tokenizer
from glassformer.errors import InputError
from glassformer.interchange.piece_order import tokenizer_in_order

__all__ = ["Tokens", "read_tokens"]

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
        controls = {_PADDING, _START, *self.texts[self.size :], *([prefix] if prefix else [])}
        return tokenizer_in_order(
            self.texts,
            path,
            controls=controls | {text for text in self.texts if text.startswith("<s ")},
            symbols=self.symbols,
            prefix=[prefix] if prefix else (),
        )


def read_tokens(
    directory: Path, settings: Mapping[str, Any], *, start_is_zero: bool
) -> tuple[Tokens, Tokens]:
    """The tokens of both sides; one object if they have one vocabulary.

    Raises InputError for a missing or faulty file, or one that lacks a special token.
    """
    shared = _file(directory, "shared_vocabulary")
    if shared is not None:
        tokens = _tokens(shared, settings, start_is_zero)
        return tokens, tokens
    sides = []
    for side in ("source", "target"):
        path = _file(directory, f"{side}_vocabulary")
        if path is None:
            raise InputError(
                f"{directory}: it holds neither shared_vocabulary.json nor"
                f" {side}_vocabulary.json: copy the whole directory anew"
            )
        sides.append(_tokens(path, settings, start_is_zero))
    source, target = sides
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
    return next((path for path in paths if path.is_file()), None)


def _tokens(path: Path, settings: Mapping[str, Any], start_is_zero: bool) -> Tokens:
    texts = _texts(path)
    size = len(texts)
    symbols = {symbol: str(settings[f"{symbol}_token"]) for symbol in ("unk", "eos")}
    begin = str(settings["decoder_start_token"])
    needed = [*symbols.values()] if start_is_zero else [*symbols.values(), begin]
    for text in needed:
        if text not in texts:
            raise InputError(f"{path}: it lacks the token {text}: copy the file anew")
    padding = next((text for text in _PADDINGS if text in texts), None)
    if padding is not None:
        texts[texts.index(padding)] = _PADDING
    start = None if start_is_zero else texts.index(begin if begin != padding else _PADDING)
    if start_is_zero or begin in (*symbols.values(), padding):
        texts = [f"<s {index}>" if text == _START else text for index, text in enumerate(texts)]
        texts.append(_START)
        symbols["bos"] = _START
    else:
        symbols["bos"] = begin
    if padding is None:
        texts.append(_PADDING)
    return Tokens(tuple(texts), size, {**symbols, "pad": _PADDING}, start)


def _texts(path: Path) -> list[str]:
    """The tokens in a JSON list, or in the lines of an old text file."""
    try:
        content = path.read_bytes().decode()
        if path.suffix == ".json":
            texts = json.loads(content)
        else:
            texts = content.removesuffix("\n").split("\n")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not a list of tokens, or cut short: copy it anew") from error
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise InputError(f"{path}: expected a list of tokens")
    if len(set(texts)) < len(texts):
        double = next(text for text in texts if texts.count(text) > 1)
        raise InputError(f"{path}: it has the token {double!r} twice")
    return texts
