"""Messages of programs: gettext's .po and .pot files, which polib reads and writes.

A message without a translation gets one, and the flag fuzzy. polib writes the file anew: each line
of a text has one string, and the references of a message stand on one line.

polib ends a line where `str.splitlines` does, and knows a few escapes only. While it works,
noncharacters of Unicode stand for the other ends of lines, and for the backslash of other escapes.
"""

import ast
import re
from gettext import c2py

import polib

from glassformer.documents.files.content import FileContent, decoded
from glassformer.errors import InputError

__all__ = ["read_gettext"]

_BACKSLASH = "\ufdd1"
_ENDS = "\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
_STAND_INS = str.maketrans(_ENDS, "".join(map(chr, range(0xFDD2, 0xFDDB))))
_REAL = {stand_in: code for code, stand_in in _STAND_INS.items()} | {ord(_BACKSLASH): ord("\\")}
_CODES = re.compile(rf"(?:{_BACKSLASH}(?:a|[0-3]?[0-7]{{1,2}}|x[0-9A-Fa-f]{{2}}))+")
# In a translation: control characters that have no escape in polib, and stand-ins.
_ESCAPED = {code: f"{_BACKSLASH}{code:03o}" for code in (*range(8), *range(14, 32), 127)}
_ESCAPED |= dict.fromkeys(_REAL, "\ufffd")
_ESCAPE = re.compile(r'\\(?:[\\ntvbrf"]|(.))')  # the group: unknown to polib
_OLD = re.compile(r"^[^\S\n]*#~\|", re.MULTILINE)  # polib loses these lines, but writes them
_UNSPACED = re.compile(r"^([^\S\n]*#[.:,|~]?)(?![\s.:,|~])", re.MULTILINE)
_OBSOLETE = r"(?:#~\s++)?+"
_LINES = "{0,999}+"  # polib's time grows with the square of a message's lines
_STRING = r'"(?:[^"\\\n]|\\.)*+"\s*+'
_TEXT = rf"\s*+{_STRING}(?:{_OBSOLETE}{_STRING}){_LINES}{_OBSOLETE}"
_COMMENTS = rf'(?:#(?!~\s*+["m])[^\n]*+\s*+){_LINES}{_OBSOLETE}'
_FILE = re.compile(
    rf"\s*+(?:{_COMMENTS}(?:msgctxt{_TEXT})?+msgid{_TEXT}(?:msgid_plural{_TEXT})?+"
    rf"(?:msgstr(?:\[[0-9]\])?+{_TEXT})++)*+{_COMMENTS}"
)
_END = '\nmsgid "\0"\nmsgstr ""\n'  # with a zero, the text is never the name of a file
_PLURALS = re.compile(r"nplurals\s*=\s*([0-9]+)\s*;\s*plural\s*=([^;\n]+)")


class _Messages(polib.POFile):  # type: ignore[misc]
    """All messages. The header is one of them, because polib would lose parts of it."""

    def find(self, *_: object) -> None:
        """No header is found."""


def read_gettext(data: bytes) -> FileContent:
    """The messages without a translation; their translations are marked as fuzzy.

    Fuzzy is gettext's word for what a person has yet to check: programs do not show it.

    >>> content = read_gettext(b'#: a.c:1\\nmsgid "Open"\\nmsgstr ""\\n')
    >>> content.texts
    ['Open']
    >>> print(content.write(["Öffnen"]).decode())
    #: a.c:1
    #, fuzzy
    msgid "Open"
    msgstr "Öffnen"
    <BLANKLINE>
    """
    text, mark = decoded(data)
    line_end = "\r\n" if "\r\n" in text else "\n"
    messages = _messages(text.replace("\r\n", "\n"))
    headers = [m.msgstr for m in messages if not (m.msgid or m.msgctxt or m.obsolete)]
    count, singular = _plural_forms(headers[0] if headers else "")
    untranslated = [
        (message, texts)
        for message in messages[:-1]
        if not (message.obsolete or message.msgstr or any(message.msgstr_plural.values()))
        if (texts := [text for text in (message.msgid, message.msgid_plural) if text])
    ]

    def write(translations: list[str]) -> bytes:
        rest = (translation.translate(_ESCAPED) for translation in translations)
        for message, texts in untranslated:
            forms = [next(rest) for _ in texts]
            message.fuzzy = True
            if message.msgstr_plural:
                numbers = range(count or len(message.msgstr_plural))
                message.msgstr_plural = {n: forms[0 if n == singular else -1] for n in numbers}
            else:
                message.msgstr = forms[0]
        return mark + _written(messages).replace("\n", line_end).translate(_REAL).encode()

    return FileContent([_real(text) for _, texts in untranslated for text in texts], write)


def _messages(text: str) -> _Messages:
    """The messages of the file, and a last one that holds the comments after them."""
    text = _UNSPACED.sub(r"\1 ", _OLD.sub("#|", text)) + _END
    read = _ESCAPE.sub(lambda m: _BACKSLASH + m[1] if m[1] else m[0], text.translate(_STAND_INS))
    if stand_in := re.search("[\ufdd1-\ufdda]", text):
        line = text.count("\n", 0, stand_in.start()) + 1
        raise InputError(f"line {line:,}: U+{ord(stand_in[0]):X} is no character: remove it")
    place = _FILE.match(read).end()  # type: ignore[union-attr]
    line = read.count("\n", 0, place) + 1
    if place == len(read):
        try:
            messages: _Messages = polib.pofile(read, encoding="utf-8", klass=_Messages)
        except OSError as error:
            [line] = map(int, re.findall(r"\(line (\d+)\)", str(error)))
        else:
            if len(messages) > 1:
                return messages
            raise InputError("not a gettext file: it has no msgid with a msgstr")
    raise InputError(
        f"not a gettext file: line {line:,}: expected a comment, or msgid and msgstr with texts in"
        " double quotes; each has at most 999 lines"
    )


def _written(messages: _Messages) -> str:
    """The file, with stand-ins."""
    header = messages.header.split("\n") if messages.header else []
    comments = [f"# {line}".rstrip() for line in header]
    entries = [message.__unicode__(wrapwidth=0) for message in messages]
    return "\n".join([*comments, *entries]).removesuffix(_END[1:]).rstrip("\n") + "\n"


def _real(text: str) -> str:
    """The text with the characters in the place of their stand-ins and numbers."""

    def characters(codes: re.Match[str]) -> str:
        escapes = codes[0].replace(_BACKSLASH, "\\")
        return ast.literal_eval(f'b"{escapes}"').decode(errors="replace")

    return _CODES.sub(characters, text).translate(_REAL)


def _plural_forms(header: str) -> tuple[int | None, int]:
    """The number of plural forms, None if the header lacks it, and the form of one thing.

    Raises InputError if the file cannot take translations: for its charset, or its plural forms.
    """
    charset = re.search(r"charset=([^\s;]+)", header)
    if charset and charset[1].lower() not in ("utf-8", "utf8", "charset"):  # CHARSET: a template
        raise InputError(
            f"charset={charset[1][:40]}: expected UTF-8: convert it with msgconv --to-code=UTF-8"
        )
    plurals = _PLURALS.search(header)
    if not plurals:
        return None, 0
    try:
        count, singular = int(plurals[1]), c2py(plurals[2].strip())(1)
    except (ValueError, ArithmeticError):
        count, singular = 0, 0
    if not 0 <= singular < count < 10:
        raise InputError(
            f"Plural-Forms: {plurals[0][:60]}: expected at most 9 forms, and a formula such as"
            " n != 1 for their numbers"
        )
    return count, singular
