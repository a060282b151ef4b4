"""Marian's vocabulary: lines of a piece and its id, in YAML's notation.

A whole parser of YAML would read the pieces ``no`` and ``1.5`` as other things than text, and takes
minutes for some vocabularies; so the lines are read one by one.
"""

from pathlib import Path

import yaml

from glassformer.errors import InputError

__all__ = ["read_vocabulary"]

_MOST_TOKENS = 2_000_000


def read_vocabulary(path: Path) -> list[str]:
    """The piece of each id; InputError names the line at fault."""
    try:
        lines = path.read_bytes().decode().split("\n")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text: copy it anew") from error
    pieces: dict[int, str] = {}
    key = None  # of "? piece", a line before its id
    for number, line in enumerate(lines, start=1):
        line = line.rstrip("\r")
        if not line or line == "---":
            continue
        if line.startswith("? "):
            key = line[2:]
            continue
        before, _, index = line.rpartition(":")
        if not index.strip().isdecimal() or int(index) >= _MOST_TOKENS:
            raise InputError(f"{path}:{number}: {line!r}: expected a piece, a colon and its id")
        pieces[int(index)] = _text(before if key is None else key, path, number)
        key = None
    missing = next((index for index in range(len(pieces)) if index not in pieces), None)
    if missing is not None or not pieces:
        raise InputError(f"{path}: no piece has the id {missing or 0}: copy the file anew")
    return [pieces[index] for index in range(len(pieces))]


def _text(written: str, path: Path, number: int) -> str:
    """A piece without its quotes."""
    if not written.startswith(('"', "'")):
        return written
    try:
        return str(yaml.safe_load(written))
    except yaml.YAMLError as error:
        raise InputError(f"{path}:{number}: {written}: not a text in quotes") from error
