"""The Transformer of *Attention Is All You Need*: to read, to draw, and to train with.

You can use the parts alone (``from glassformer import MultiHeadAttention``). For practical work
there are ``Translator``, ``train``, and the command ``glassformer``. ``Parts`` holds the forms that
``Translator`` and ``train`` run: ``FAST``, ``PLAIN``, or forms of your own.

``__init__.pyi`` names the module of each public name.
"""

import ast
import sys
from importlib import import_module
from opcode import opname
from pathlib import Path
from typing import Any

from glassformer.support.errors import nearest
from glassformer.support.other_names import remedy

__version__ = "0.1.0"

_TABLE = ast.parse(Path(__file__).with_suffix(".pyi").read_text("utf-8"))
_HOMES = {
    alias.name: str(statement.module)
    for statement in _TABLE.body
    if isinstance(statement, ast.ImportFrom)
    for alias in statement.names
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: torch loads in seconds, ``--help`` without it."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    hint = "" if name.startswith("_") else remedy(name, ()) or nearest(name, _HOMES)
    # `from glassformer import X` replaces the message of an AttributeError by its own.
    caller = sys._getframe(1)
    if opname[caller.f_code.co_code[caller.f_lasti]] == "IMPORT_FROM":
        raise ImportError(f"cannot import {name!r} from 'glassformer'{hint}", name=__name__)
    raise AttributeError(f"module 'glassformer' has no attribute {name!r}{hint}")


def __dir__() -> list[str]:
    return __all__
