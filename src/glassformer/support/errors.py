"""The errors that a person reads, each with a message of one line.

A message names the file, line or option, the value, the expected value and the way out. The command
line prints a message without a traceback and exits with 1 (:class:`InputError`) or 2
(:class:`UsageError`).
"""

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence

__all__ = [
    "ChecksumError",
    "InputError",
    "UsageError",
    "check_choice",
    "check_kind",
    "check_texts",
    "counted",
    "expected_words",
    "missing_extra",
    "nearest",
]

_WORDS = {
    r"^Value error, ": "",
    r"^Field required": "it is missing",
    r"^Extra inputs are not permitted": "no such name",
    r"^JSON decode error": "expected JSON",
    r"^Input should be greater than or equal to ": "expected at least ",
    r"^Input should be less than or equal to ": "expected at most ",
    r"^Input should be greater than ": "expected more than ",
    r"^Input should be less than ": "expected less than ",
    r"^Input should be ": "expected ",
    r"^Input is not a valid path.*": "expected a path",
    r"^value is not a valid IPv4 or .*": "expected an address, or a network as 10.0.0.0/8",
    r"^Tuple should have (at \w+ \d+) items? after validation": r"expected \1 values",
    r"^\w+ should have (at \w+ \d+ \w+).*": r"expected \1",
    r"a valid string": "text",
    r"a valid dictionary.*": "an object",
    r"a valid array": "a list",
    r"a valid integer.*": "a whole number",
    r"a valid (\w+), unable to .*": r"a \1",
    r"a valid ": "a ",
}


class InputError(ValueError):
    """The program cannot work with an input; the message says why and what to do."""


class ChecksumError(InputError):
    """A file differs from its checksum, because somebody changed or damaged the file."""


class UsageError(InputError):
    """The call itself is wrong, because of an unknown option or a value out of its range.

    ``argument`` names the argument at fault, with which the message begins. The command line prints
    the option's name instead of the argument's.
    """

    def __init__(self, message: str, *, argument: str = "") -> None:
        super().__init__(f"{argument} {message}" if argument else message)
        self.argument = argument


def counted(number: int, noun: str) -> str:
    """A number with its noun, for a message.

    >>> counted(1, "pair"), counted(29_000, "pair")
    ('1 pair', '29,000 pairs')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint that names the known word closest to ``name``; empty if none is close.

    >>> nearest("dropuot", ["dropout", "d_model"])
    " (did you mean 'dropout'?)"
    """
    close = difflib.get_close_matches(str(name), list(known), n=1, cutoff=0.65)
    return f" (did you mean '{close[0]}'?)" if close else ""


def check_choice(option: str, value: str, known: Iterable[str]) -> None:
    """Raise UsageError for a value that is none of the known ones.

    >>> check_choice("kind", "bpf", ["bpe", "unigram"])
    Traceback (most recent call last):
    glassformer.support.errors.UsageError: kind 'bpf': expected bpe, unigram (did you mean 'bpe'?)
    """
    choices = list(known)
    if value not in choices:
        given = repr(value).replace("\n", " ")  # of a tensor
        raise UsageError(
            f"{option} {given}: expected {', '.join(choices)}{nearest(value, choices)}"
        )


def check_kind(value: object, kind: type, *, wants: str) -> None:
    """Raise TypeError for an argument of another kind; ``wants`` names the call and the remedy."""
    if not isinstance(value, kind):
        raise TypeError(f"{wants}, got {type(value).__name__}")


def check_texts(name: str, texts: Iterable[str]) -> None:
    """Raise TypeError for one text, or for an item of a list that is no text."""
    if isinstance(texts, str | Mapping):
        kind = "one text" if isinstance(texts, str) else type(texts).__name__
        raise TypeError(f"{name} must be a list of texts, not {kind}")
    for place, text in enumerate(texts if isinstance(texts, Sequence) else ()):
        if not isinstance(text, str):
            raise TypeError(f"{name}[{place}] is {text!r}: expected a text")


def expected_words(message: str) -> str:
    """A message of pydantic, in the words of this program.

    >>> expected_words("String should have at most 40 characters")
    'expected at most 40 characters'
    >>> expected_words("Input should be a valid dictionary or instance of Changes")
    'expected an object'
    """
    for pattern, words in _WORDS.items():
        message = re.sub(pattern, words, message)
    return message


def missing_extra(package: str, extra: str) -> InputError:
    """The error for an optional package that is not installed."""
    return InputError(f"this needs {package}: pip install 'glassformer[{extra}]'")
