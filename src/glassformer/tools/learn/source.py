"""Reads a learner's file or notebook, finds functions by name, as text, and runs the file."""

import ast
import codecs
import re
import sys
import textwrap
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

from glassformer.support.strangers import MOST_JSON, read_bytes, read_json

__all__ = [
    "body_of",
    "code_of",
    "definition",
    "lines_of",
    "load_module",
    "read_source",
    "source_of",
]

_MOST_BYTES = 1 << 20  # the greatest size of a learner's file
# A line that notebooks run and Python does not, such as %pip install and !ls.
_MAGIC = re.compile(r"^([ \t]*)(?:%%?\w|!(?!=)).*", re.MULTILINE)
_DEFINED = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)

_parsed = lru_cache(maxsize=64)(ast.parse)  # hundreds of pairs of mistakes share a few texts


def read_source(file: Path) -> str:
    """The code of a notebook, or the text of a file: UTF-8 or marked UTF-16, � for faulty bytes."""
    if file.suffix == ".ipynb":
        cells = read_json(file, dict[str, Any], most_bytes=MOST_JSON)["cells"]
        return code_of("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    content = read_bytes(file, most_bytes=_MOST_BYTES)
    wide = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    text = content.decode("utf-16" if wide else "utf-8-sig", errors="replace")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def load_module(file: Path) -> ModuleType:
    """The learner's file as a module."""
    sys.path.insert(0, str(file.parent))
    module = ModuleType(file.stem)
    module.__file__ = str(file)
    sys.modules[file.stem] = module  # dataclasses and annotations look the module up
    exec(compile(read_source(file), str(file), "exec"), vars(module))
    return module


def code_of(cells: Iterable[str]) -> str:
    """The imports, functions, classes and constants of cells; the last of each name counts.

    A constant's name begins with a capital letter. All else is an experiment, which is left out;
    so is a cell that is not Python. A definition keeps its line in its cell, if that line is free.

    >>> code_of(["import math\\nmath.pi\\nHALF = 2", "HALF = 1 / 2", "%time 0", "half = HALF"])
    'import math\\nHALF = 1 / 2\\n'
    """
    texts, source = {}, ""
    for cell in cells:
        with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
            for node in ast.parse(_MAGIC.sub(r"\1pass", cell)).body:
                first = min(x.lineno for x in (node, *getattr(node, "decorator_list", ())))
                text = "\n".join(cell.split("\n")[first - 1 : node.end_lineno])
                constant = isinstance(node, ast.Assign | ast.AnnAssign) and text[0].isupper()
                if constant or isinstance(node, _DEFINED):
                    name = text.partition("=")[0] if constant else getattr(node, "name", text)
                    texts[name] = first, text
    for first, text in texts.values():
        source += "\n" * (first - 1 - source.count("\n")) + text + "\n"
    return source


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
