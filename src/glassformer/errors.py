"""The errors that a person reads: one line each.

The line names the file, line or option, the value, the expected value and the way out. The command
line prints it without a traceback and exits with 1 (:class:`InputError`) or 2
(:class:`UsageError`).
"""

import difflib
from collections.abc import Iterable

__all__ = ["InputError", "UsageError", "counted", "missing_extra", "nearest"]


class InputError(ValueError):
    """The work cannot be done with this input; the message says why and what to do."""


class UsageError(InputError):
    """The call itself was wrong: an unknown option, a value out of its range."""


def counted(number: int, noun: str) -> str:
    """A number with its noun, as a message says it.

    >>> counted(1, "pair"), counted(29_000, "pair")
    ('1 pair', '29,000 pairs')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint that names the known word closest to ``name``; empty if none is close.

    >>> nearest("dropuot", ["dropout", "d_model"])
    " (did you mean 'dropout'?)"
    """
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f" (did you mean '{close[0]}'?)" if close else ""


def missing_extra(package: str, extra: str) -> InputError:
    """The error for an optional package that is not installed."""
    return InputError(f"this needs {package}: pip install 'glassformer[{extra}]'")
