"""Messages of programs, in gettext's .po and .pot files.

A message without a translation gets a translation and the flag fuzzy; every other byte stays. Babel
and polib would write the whole file anew, and lose parts of it. A message also stays if gettext
would refuse its translation.
"""

import re
from collections.abc import Iterator
from gettext import c2py
from typing import NamedTuple

from glassformer.data.accelerators import accelerator_sign, with_accelerator, without_accelerator
from glassformer.data.protected import protected_spans
from glassformer.data.words import Span, replaced
from glassformer.support.errors import InputError
from glassformer.tools.documents.files.content import FileContent, decoded
from glassformer.tools.documents.files.message_formats import fits

__all__ = ["read_gettext"]

_CHARACTERS = r'[^"\\\n]*+(?:\\.[^"\\\n]*+)*+'
_STRING = re.compile(f'"({_CHARACTERS})"')
_STRINGS = rf'(?:\s*+"{_CHARACTERS}")++'
_FORM = rf"msgstr(?:\[[0-9]\])?{_STRINGS}"
_MESSAGE = re.compile(
    rf"^[^\S\n]*+(?:msgctxt{_STRINGS}\s*+)?msgid(?P<id>{_STRINGS})\s*+"
    rf"(?:msgid_plural(?P<plural>{_STRINGS})\s*+)?(?P<forms>{_FORM}(?:\s*+{_FORM})*+)",
    re.MULTILINE,
)
_BETWEEN = re.compile(r"(?:[^\S\n]*+(?:#[^\n]*+)?+(?:\n|\Z))*+")  # comments and blank lines
_COMMENT = re.compile(r"^[^\S\n]*+#(?P<kind>[~,|])[^\n]*+", re.MULTILINE)
_PLURALS = re.compile(r"nplurals\s*=\s*([0-9]+)\s*;\s*plural\s*=([^;\n]+)")
_FORMAT = re.compile(r"(?<![\w-])(?!no-)([\w+-]+)-format(?![\w-])")
# In place of such a message, programs show the names and addresses of a translation's authors.
_CREDITS = re.compile(r"translator[-_]credits|Your (?:names|emails)")
_ESCAPE = re.compile(r"\\(?:[0-7]{3}|.)")
_ESCAPES = {code: f"\\{code:03o}" for code in (*range(32), 127)} | {
    ord(letter): f"\\{name}" for letter, name in zip('\a\b\t\n\v\f\r"\\', 'abtnvfr"\\', strict=True)
}
_LETTERS = {escape: chr(code) for code, escape in _ESCAPES.items()}


class _Message(NamedTuple):
    """A message with its text (or singular and plural), and all forms of its translation.

    `span` is the span of the forms. `flag` is the text that, at `place`, makes the message fuzzy.
    `formats` are the languages of the text's arguments, such as c.
    """

    texts: list[str]
    translation: str
    span: Span
    place: int
    flag: str
    formats: list[str]


class _Plurals(NamedTuple):
    """The number of plural forms, the place of the singular, and if it is for 1 thing only."""

    number: int = 2
    singular: int = 0
    only: bool = True


def read_gettext(data: bytes) -> FileContent:
    """The messages without a translation; ``write`` marks new translations as fuzzy.

    Gettext calls a translation fuzzy if a person must check it. Programs show no fuzzy translation.

    >>> content = read_gettext(b'#: a.c:1\\nmsgid "_Open"\\nmsgstr ""\\n')
    >>> content.texts
    ['Open']
    >>> print(content.write(["Öffnen"]).decode())
    #: a.c:1
    #, fuzzy
    msgid "_Open"
    msgstr "_Öffnen"
    <BLANKLINE>
    """
    text, mark = decoded(data)
    line_end = "\r\n" if "\r\n" in text else "\n"
    messages = list(_messages(text, line_end))
    header = next((m.translation for m in messages if not any(m.texts)), "")
    plurals = _plurals(header)
    sign = accelerator_sign(each for message in messages for each in message.texts)
    open_messages = [m for m in messages if any(m.texts) and not m.translation]
    untranslated = [m for m in open_messages if not _CREDITS.fullmatch(m.texts[0])]

    def write(translations: list[str]) -> bytes:
        rest = iter(translations)
        changes: list[tuple[Span, str]] = []
        for message in untranslated:
            new = [_finished(next(rest), source, sign) for source in message.texts]
            if forms := _forms(message, new, plurals):
                lines = [line for keyword, form in forms.items() for line in _lines(keyword, form)]
                changes.append(((message.place, message.place), message.flag))
                changes.append((message.span, line_end.join(lines)))
        return mark + replaced(text, changes).encode()

    texts = [without_accelerator(each, sign) for m in untranslated for each in m.texts]
    return FileContent(texts, write)


def _finished(translation: str, source: str, sign: str) -> str:
    """The translation with the accelerators of the source, and with its first and last line ends.

    Gettext refuses a catalogue if a message and its translation differ in these line ends.
    """
    start = len(source) - len(source.lstrip("\n"))
    end = max(start, len(source.rstrip("\n")))
    translation = source[:start] + translation.strip("\n") + source[end:]
    return with_accelerator(translation, source, sign)


def _forms(message: _Message, texts: list[str], plurals: _Plurals) -> dict[str, str]:
    """The keywords and forms of a translation; none if it is blank, or lacks or adds an argument.

    Tags count as arguments, and without a flag all placeholders. The plural's translation is the
    singular's too if the singular's does not fit.
    """
    source, translation = message.texts[-1], texts[-1]
    kinds = ["tag"] if message.formats else ["tag", "placeholder"]
    wanted = [_blank_and_spans(text, kinds) for text in message.texts]
    if [_blank_and_spans(text, kinds) for text in texts] != wanted:
        return {}
    if not fits(translation, source, message.formats):
        return {}
    if len(texts) == 1:
        return {"msgstr": translation}
    singular = texts[0]
    if not fits(singular, source, message.formats, fewer=plurals.only):
        singular = translation
    forms = [singular if n == plurals.singular else translation for n in range(plurals.number)]
    return {f"msgstr[{n}]": form for n, form in enumerate(forms)}


def _blank_and_spans(text: str, kinds: list[str]) -> tuple[bool, list[str]]:
    """Whether the text is blank, and its protected spans of the ``kinds``."""
    spans = [span for span in protected_spans(text) if span.kind in kinds]
    return not text.strip(), sorted(text[span.start : span.end] for span in spans)


def _messages(text: str, line_end: str) -> Iterator[_Message]:
    """All messages but the obsolete messages. Raises InputError if the file has another part."""
    end = 0
    for match in _MESSAGE.finditer(text):
        before, end = (end, match.start()), match.end()
        _check_between(text, *before)
        texts = [_text(match[name]) for name in ("id", "plural") if match[name]]
        flags = _flags(text, *before, line_end)
        yield _Message(texts, _text(match["forms"]), match.span("forms"), *flags)
    _check_between(text, end, len(text))
    if not end:
        raise InputError("not a gettext file: no msgid has a msgstr")


def _check_between(text: str, start: int, end: int) -> None:
    match = _BETWEEN.match(text, start, end)
    if match and match.end() < end:
        line = text.count("\n", 0, match.end()) + 1
        raise InputError(
            f"not a gettext file: line {line:,}: expected a comment, or msgid and msgstr with texts"
            " in double quotes"
        )


def _flags(text: str, start: int, end: int, line_end: str) -> tuple[int, str, list[str]]:
    """The place and text of the flag for a message with the comments ``text[start:end]``.

    The flag joins other flags, or stands on a line before the previous text (``#|``) or message.
    The list has the languages of flags such as c-format.
    """
    new = place, flag, formats = end, f"#, fuzzy{line_end}", list[str]()
    for comment in _COMMENT.finditer(text, start, end):
        if comment["kind"] == "~":  # an obsolete message, which has the flags before it
            place, flag, formats = new
        elif comment["kind"] == ",":
            place, flag = comment.end("kind"), "" if "fuzzy" in comment[0] else " fuzzy,"
            formats = formats + _FORMAT.findall(comment[0])
        elif place == end:
            place = comment.start()
    return place, flag, formats


def _plurals(header: str) -> _Plurals:
    """The plural forms of a catalogue; as in English by default.

    Raises InputError if the charset or the plural forms of the file are unknown.
    """
    charset = re.search(r"charset=([^\s;]+)", header)
    if charset and charset[1].lower() not in ("utf-8", "utf8", "charset"):  # CHARSET: a template
        raise InputError(
            f"charset={charset[1][:40]}: expected UTF-8: convert it with msgconv --to-code=UTF-8"
        )
    plurals = _PLURALS.search(header)
    if not plurals:
        return _Plurals()
    try:
        count, form = int(plurals[1]), c2py(plurals[2].strip())
        singular = form(1)
        only = singular not in map(form, (0, *range(2, 200)))
    except (ValueError, ArithmeticError):
        count, singular, only = 0, 0, False
    if not 0 <= singular < count < 10:
        raise InputError(
            f"Plural-Forms: {plurals[0][:60]}: expected at most 9 forms, and a formula such as"
            " n != 1 for their numbers"
        )
    return _Plurals(count, singular, only)


def _text(strings: str) -> str:
    """The joined text of quoted strings."""
    quoted = "".join(_STRING.findall(strings))
    return _ESCAPE.sub(lambda escape: _LETTERS.get(escape[0], escape[0]), quoted)


def _lines(keyword: str, text: str) -> list[str]:
    """The lines of a keyword and a text, with a quoted string for each line of the text."""
    strings = [f'"{line.translate(_ESCAPES)}"' for line in re.findall(r"[^\n]*\n|[^\n]+", text)]
    return [f"{keyword} {strings[0]}"] if len(strings) == 1 else [f'{keyword} ""', *strings]
