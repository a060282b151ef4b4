"""The texts of a file, and a way to write the file with translated texts."""

from collections.abc import Callable
from dataclasses import dataclass

from glassformer.support.errors import InputError

__all__ = ["FileContent", "decoded"]


@dataclass(frozen=True)
class FileContent:
    """The texts of a file; ``write`` takes as many other texts and returns the changed file.

    With ``html``, each text is a fragment of HTML.
    """

    texts: list[str]
    write: Callable[[list[str]], bytes]
    html: bool = False


def decoded(data: bytes) -> tuple[str, bytes]:
    """The text of UTF-8 bytes, and the byte order mark before the text, or ``b""``.

    Raises InputError for other bytes.

    >>> decoded(b"\\xef\\xbb\\xbfHi")
    ('Hi', b'\\xef\\xbb\\xbf')
    """
    mark = b"\xef\xbb\xbf"
    mark = mark if data.startswith(mark) else b""
    try:
        return data[len(mark) :].decode(), mark
    except UnicodeDecodeError as error:
        raise InputError(
            f"not UTF-8 (byte offset {error.start + len(mark)}): save it as UTF-8"
        ) from None
