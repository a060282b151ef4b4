"""Python's regular expressions in JavaScript's form, which a page runs."""

import re
from collections.abc import Iterator

__all__ = ["js_pattern"]

# Python's letters, digits and white space, without the brackets around a class.
_CLASSES = {
    "w": r"\p{L}\p{N}_",
    "d": r"\p{Nd}",
    "s": r"\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000",
}
_FORMS = {
    "(?P<": "(?<",
    r"[^\W\d_]": r"[\p{L}\p{Nl}\p{No}]",
    r"[^\W\d]": r"[\p{L}\p{Nl}\p{No}_]",
    r"[^\W_]": r"[\p{L}\p{N}]",
    r"\b": r"(?!\w)",  # the package's patterns have it at the end of a word
    r"\Z": "$",
}
_SYNTAX = "^$\\.*+?()[]{}|/-"  # JavaScript refuses a backslash before other signs


def js_pattern(pattern: str) -> str:
    r"""The pattern for JavaScript's flag ``u``; it knows the syntax of the package's patterns.

    >>> print(js_pattern(r"(?P<tick>`+)[^\W\d_]{2}[\w\"-]\d(?P=tick)\b"))
    (?<tick>`+)[\p{L}\p{Nl}\p{No}]{2}[\p{L}\p{N}_"-][\p{Nd}]\k<tick>(?![\p{L}\p{N}_])
    """
    for python, script in _FORMS.items():
        pattern = pattern.replace(python, script)
    pattern = re.sub(r"\(\?P=(\w+)\)", r"\\k<\1>", pattern)
    pattern = re.sub(r"(?<=[}*+])\+", "", pattern)  # a possessive quantifier is only quicker
    pattern = re.sub(r"\\U0*([\dA-Fa-f]+)", r"\\u{\1}", pattern)
    return "".join(_signs(pattern))


def _signs(pattern: str) -> Iterator[str]:
    """The signs of the pattern, with JavaScript's classes and escapes."""
    inside = False  # whether a class is open
    for match in re.finditer(r"\\.|.", pattern, re.DOTALL):
        sign = match.group()
        if sign in "[]":
            inside = sign == "["
        escaped = sign[1:]
        if escaped in _CLASSES:
            yield _CLASSES[escaped] if inside else f"[{_CLASSES[escaped]}]"
        elif escaped and escaped.lower() in _CLASSES:
            yield f"[^{_CLASSES[escaped.lower()]}]"
        elif escaped and not (escaped.isalnum() or escaped in _SYNTAX):
            yield escaped
        else:
            yield sign
