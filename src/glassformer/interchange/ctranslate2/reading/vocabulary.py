"""The tokens of a CTranslate2 model: lists in the order of the ids, one for both sides or two."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from glassformer.errors import InputError
from glassformer.interchange.tokens import Tokens, same_symbols, tokens_of

__all__ = ["read_tokens"]


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
    same_symbols(source, target, directory)
    return source, target


def _file(directory: Path, name: str) -> Path | None:
    paths = (directory / f"{name}{ending}" for ending in (".json", ".txt"))
    return next((path for path in paths if path.is_file()), None)


def _tokens(path: Path, settings: Mapping[str, Any], start_is_zero: bool) -> Tokens:
    symbols = {symbol: str(settings[f"{symbol}_token"]) for symbol in ("unk", "eos")}
    begin = None if start_is_zero else str(settings["decoder_start_token"])
    return tokens_of(_texts(path), path, symbols=symbols, begin=begin)


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
    return texts
