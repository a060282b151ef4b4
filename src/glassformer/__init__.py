"""The Transformer of *Attention Is All You Need*: to read, to draw, and to train with.

You can use the parts alone (``from glassformer import MultiHeadAttention``). For practical work
there are ``Translator``, ``train``, and the command ``glassformer``. ``Parts`` holds the forms that
``Translator`` and ``train`` run: ``FAST``, ``PLAIN``, or forms of your own.

``__init__.pyi`` names the module of each public name.
"""

import ast
from importlib import import_module
from pathlib import Path
from typing import Any

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
    raise AttributeError(f"module 'glassformer' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
