"""Compares the arguments of a message with the arguments of its translation, as gettext does.

A program fills arguments such as %s, %(name)s, %1 and {0} into the translation. Gettext's flags,
such as c-format, tell the language of a message's arguments.
"""

import re
from collections.abc import Iterable

__all__ = ["fits"]

_PERCENT = re.compile(
    r"%%|%(?:(?P<key>\d{1,3})\$|\((?P<name>[^()]*)\))?[-+ #0'I]*(?:\*|\d*)"
    r"(?:\.(?:\*|\d*))?(?P<type>(?:hh?|ll?|[Lqjzt])?[A-Za-z@]|<PRI\w+>)?"
)
_NUMBERED = re.compile(r"%(?P<type>L?)(?P<key>\d{1,2}|n)")
_BRACES = re.compile(r"\{\{|\}\}|\{(?P<key>\w*)(?P<type>[^{}]*)\}|(?P<name>[{}])")
_SHELL = re.compile(r"\$(?:\{(?P<name>\w+)\}|(?P<key>[A-Za-z_]\w*))?")
_TILDE = re.compile(r"~[\d,]*(?P<type>[A-Za-z])")
_LANGUAGES = {
    **dict.fromkeys(("qt", "qt-plural", "kde", "kde-kuit"), _NUMBERED),
    **dict.fromkeys(("python-brace", "perl-brace", "csharp", "java"), _BRACES),
    **dict.fromkeys(("scheme", "lisp", "librep"), _TILDE),
    "sh": _SHELL,
}


def fits(target: str, source: str, formats: Iterable[str], *, fewer: bool = False) -> bool:
    """Whether the translation has the arguments of the source in each of the ``formats``.

    Arguments with a number or name may change places. With ``fewer``, the translation may leave
    some out, because it speaks of exactly one thing.

    >>> fits("%2$s von %1$s", "%s of %s", ["c"]), fits("100 % der %s", "100%% of %s", ["c"])
    (True, False)
    >>> fits("Eine Datei", "%d files", ["c"], fewer=True), fits("{b} {a}", "{a}", ["python-brace"])
    (True, False)
    """
    for language in formats:
        pattern = _LANGUAGES.get(language, _PERCENT)
        wanted, there = _arguments(source, pattern), _arguments(target, pattern)
        if there != wanted and not (fewer and there.items() <= wanted.items()):
            return False
    return True


def _arguments(text: str, pattern: re.Pattern[str]) -> dict[str, str]:
    """The type of each argument by its name or number; a faulty "%" is an argument without type.

    Arguments without a number count from 1. Gettext forbids them beside arguments with a number.
    """
    arguments: dict[str, str] = {}
    count, numbered = 0, False
    for match in pattern.finditer(text):
        groups = {"key": "", "name": "", "type": ""} | match.groupdict("")
        if match[0] in ("%%", "{{", "}}") or groups["type"] == "m":  # %m: the system's last error
            continue
        key = groups["key"] or groups["name"]
        count, numbered = count + (not key), numbered or bool(key)
        arguments[key or str(count)] = "*" * match[0].count("*") + groups["type"]
    if count and numbered:
        arguments["mixed"] = ""
    return arguments
