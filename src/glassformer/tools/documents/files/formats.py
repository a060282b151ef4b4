"""The formats of files that a translator reads and writes."""

from collections.abc import Callable
from functools import partial
from typing import Unpack

from glassformer.support.errors import missing_extra
from glassformer.tools.documents.files.content import FileContent, decoded
from glassformer.tools.documents.files.gettext import read_gettext
from glassformer.tools.documents.files.subtitles import read_subtitles
from glassformer.tools.documents.html import translated_html
from glassformer.translator import TranslateSettings, Translator

__all__ = ["FORMATS", "read_file", "translated_file"]


def read_file(data: bytes, format: str) -> FileContent:
    """The texts of a file in one of the ``FORMATS``.

    Raises InputError if the file is damaged or has another format.

    >>> content = read_file(b"Hi, all.", "txt")
    >>> content.texts, content.write(["Hallo zusammen."])
    (['Hi, all.'], b'Hallo zusammen.')
    """
    return _READERS[format](data)


def translated_file(
    translator: Translator,
    data: bytes,
    format: str,
    *,
    language: str | None = None,
    **options: Unpack[TranslateSettings],
) -> bytes:
    """The file with translated texts in ``language``; the translator gets ``options``."""
    content = read_file(data, format)
    if content.html:
        texts = translated_html(translator, content.texts, language=language, **options)
    else:
        texts = [item.text for item in translator.translate(content.texts, **options)]
    return content.write(texts)


def _read_text(data: bytes, *, html: bool) -> FileContent:
    text, mark = decoded(data)
    return FileContent([text], lambda texts: mark + texts[0].encode(), html)


def _read_docx(data: bytes) -> FileContent:
    try:
        from glassformer.tools.documents.files.docx import read_docx
    except ModuleNotFoundError as error:
        raise missing_extra(error.name or "lxml", "documents") from error
    return read_docx(data)


_READERS: dict[str, Callable[[bytes], FileContent]] = {
    "txt": partial(_read_text, html=False),
    "html": partial(_read_text, html=True),
    "srt": partial(read_subtitles, escaped=False),
    "vtt": partial(read_subtitles, escaped=True),
    "po": read_gettext,
    "docx": _read_docx,
}
FORMATS = tuple(_READERS)
"""The names of the formats, which are the endings of file names."""
