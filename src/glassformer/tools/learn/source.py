"""Finds functions and methods of a learner's file by name, as text."""

import ast
import codecs
import textwrap
from functools import lru_cache
from pathlib import Path
from typing import Any

from glassformer.support.strangers import read_bytes

__all__ = ["MOST_BYTES", "body_of", "definition", "lines_of", "read_source", "source_of"]

MOST_BYTES = 1 << 20
"""The greatest size of a learner's file."""

_parsed = lru_cache(maxsize=64)(ast.parse)  # hundreds of pairs of mistakes share a few texts


def read_source(file: Path) -> str:
    """The text of a learner's file, in UTF-8 or marked UTF-16; faulty bytes become �."""
    content = read_bytes(file, most_bytes=MOST_BYTES)
    wide = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    text = content.decode("utf-16" if wide else "utf-8-sig", errors="replace")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def lines_of(source: str, hole: str) -> range:
    """The lines of the body of a function, method or class, without the docstring."""
    node: Any = definition(source, hole)
    body = node.body[ast.get_docstring(node) is not None :] if node else []
    return range(body[0].lineno, body[-1].end_lineno + 1) if body else range(0)


def source_of(source: str, hole: str) -> str:
    """The text of a function or method in a file; empty if the file lacks it."""
    node = definition(source, hole)
    return "\n".join(source.splitlines()[node.lineno - 1 : node.end_lineno]) if node else ""


def body_of(source: str, hole: str) -> str:
    """The body of a function or method, without docstring and indent."""
    lines = source.splitlines()
    return textwrap.dedent("\n".join(lines[number - 1] for number in lines_of(source, hole)))


def definition(source: str, hole: str) -> ast.stmt | None:
    """The last function, method or class of a name in a file; None if the file lacks it."""
    node: Any = _parsed(source)
    for word in hole.split("."):
        body = reversed(getattr(node, "body", []))
        node = next((each for each in body if getattr(each, "name", None) == word), None)
    return node
