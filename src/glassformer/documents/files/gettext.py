"""Messages of programs: gettext's .po and .pot files, read and written by Babel."""

from io import BytesIO
from typing import Any

from babel.core import Locale, UnknownLocaleError
from babel.messages.catalog import Message
from babel.messages.pofile import PoFileError, read_po, write_po

from glassformer.documents.files.content import FileContent
from glassformer.errors import InputError

__all__ = ["read_gettext"]

_MOST_PLURALS = 10  # more than any language has; a header may name billions

_GUESSED = (
    "python-format",
    "python-brace-format",
)  # flags that Babel adds to messages with % and {


def read_gettext(data: bytes, language: str) -> FileContent:
    """The messages without a translation. Translations into ``language`` are marked as fuzzy.

    A translation that is there stays. Fuzzy is gettext's word for what a person has yet to check:
    programs do not show it. Babel wraps long lines anew.

    >>> content = read_gettext(b'msgid "Open"\\nmsgstr ""\\n', "de")
    >>> content.texts
    ['Open']
    >>> print(content.write(["Öffnen"]).decode().partition("#, fuzzy\\nmsgid \\"O")[2])
    pen"
    msgstr "Öffnen"
    <BLANKLINE>
    <BLANKLINE>
    """
    try:
        catalog = read_po(BytesIO(data), locale=_locale(language), abort_invalid=True)
        for message in catalog:
            message.flags -= {flag for flag in _GUESSED if flag.encode() not in data}
        messages = [message for message in catalog if message.id and not _translated(message)]
        if not 1 <= catalog.num_plurals <= _MOST_PLURALS:
            raise ValueError(f"{catalog.num_plurals} plural forms")
    except (PoFileError, UnknownLocaleError, ValueError, LookupError) as error:
        reason = str(error).strip().splitlines()[:1] or ["faulty"]
        raise InputError(f"not a gettext file that Babel reads: {reason[0]!a}") from None
    texts = [text for message in messages for text in _forms(message)]

    def write(translations: list[str]) -> bytes:
        rest = iter(translations)
        for message in messages:
            forms = [next(rest) for _ in _forms(message)]
            if isinstance(message.id, str):
                message.string = forms[0]
            else:
                plurals = [forms[-1]] * (catalog.num_plurals - 1)
                message.string = (forms[0], *plurals)
            message.flags.add("fuzzy")
        written = BytesIO()
        write_po(written, catalog)
        return written.getvalue()

    return FileContent(texts, write)


def _locale(language: str) -> Locale | None:
    """Babel's locale, which knows the number of plural forms; None if it has none."""
    try:
        return Locale.parse(language, sep="-")
    except (UnknownLocaleError, ValueError):
        return None


def _forms(message: Message) -> tuple[str, ...]:
    """The message, or its singular and its plural."""
    return (message.id,) if isinstance(message.id, str) else tuple(message.id)


def _translated(message: Any) -> bool:
    strings = [message.string] if isinstance(message.string, str) else message.string
    return any(strings or ())
