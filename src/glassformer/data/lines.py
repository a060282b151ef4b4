"""Reads the lines of text files.

LF is the only line end, because a sentence may hold any other character. U+2028, U+0085, a bare CR
and NUL never split a line, so that no file slips against its translation. This module removes one
CR before an LF, and a byte order mark at the start of a file. It knows a gzipped file by the
content, not by the name. It reads files as streams, in bounded memory.
"""

import gzip
import io
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

from glassformer.support.errors import InputError, nearest
from glassformer.support.progress import working

__all__ = ["BOM", "decode_line", "decoded", "raw_blocks", "read_lines", "utf16_name"]

#: A byte order mark, decoded.
BOM = "\ufeff"
#: The greatest size of a line: a file without line ends must not fill the memory.
MAX_LINE_BYTES = 16 * 1024 * 1024
#: A gzipped text may grow to so many times its file, and always to ``MAX_LINE_BYTES``. Text grows
#: to 3 to 10 times its file; a file of line feeds grows to a thousand times.
MAX_EXPANSION = 100
#: About the greatest number of blank lines in a row; a blank line costs memory too.
MAX_BLANK_LINES = 1_000_000

_BLOCK_BYTES = 1 << 18  # reading many lines at once is quicker
_GZIP = b"\x1f\x8b"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


def raw_blocks(path: Path | str) -> Iterator[bytes]:
    """Blocks of whole lines of a plain or gzipped file; ``block.split(b"\\n")`` gives the lines.

    Raises:
        InputError: the file is missing, a directory, unreadable, empty or a damaged gzip file; a
            line is longer than 16 MiB; a million lines in a row are blank; a gzip file grows beyond
            100 times its size.
    """
    path = Path(path)
    number = read = blank = 0
    try:
        size = path.stat().st_size if path.is_file() else None  # a pipe has none
        with path.open("rb") as plain, working(f"reading {path.name}", size) as advance:
            zipped = plain.peek(2).startswith(_GZIP)
            most = max(MAX_LINE_BYTES, MAX_EXPANSION * size) if zipped and size else sys.maxsize
            place = 0
            for block in _whole_lines(gzip.GzipFile(fileobj=plain) if zipped else plain):
                if plain.seekable():
                    advance(plain.tell() - place)
                    place = plain.tell()
                read += len(block)
                if read > most:
                    raise InputError(
                        f"{path}, line {number + 1}: the text has more than {MAX_EXPANSION}"
                        " times the size of its gzip file: unpack it and look at it"
                    )
                if len(block.split(b"\n", 1)[0]) > MAX_LINE_BYTES:
                    raise InputError(
                        f"{path}, line {number + 1}: the line is longer than"
                        f" {MAX_LINE_BYTES >> 20} MiB: end each sentence with a line feed"
                    )
                yield block
                lines = 1 + block.count(b"\n")
                number += lines
                blank = blank + lines if not block or block.isspace() else 0
                if blank > MAX_BLANK_LINES:
                    raise InputError(
                        f"{path}, line {number}: {blank:,} blank lines in a row, which text never"
                        " has: look at the file, and remove them"
                    )
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(
            f"{path}: the gzip file is cut short or changed after line {number}: copy or download"
            " the file again"
        ) from error
    except OSError as error:
        raise InputError(_why_unreadable(path, error)) from error
    if number == 0:
        raise InputError(f"{path}: the file is empty: expected one sentence on each line")


def _whole_lines(file: io.BufferedReader | gzip.GzipFile) -> Iterator[bytes]:
    """The blocks of the file, each up to its last line feed.

    No line of a block but the first can be longer than one read.
    """
    rest = b""
    while read := file.read1(min(_BLOCK_BYTES, MAX_LINE_BYTES)):
        end = read.rfind(b"\n")
        if end < 0:
            rest += read
            if len(rest) > MAX_LINE_BYTES:
                break
        else:
            yield rest + read[:end]
            rest = read[end + 1 :]
    if rest:
        yield rest


def _why_unreadable(path: Path, error: OSError) -> str:
    match error:
        case FileNotFoundError():
            siblings = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
            return f"{path}: no such file{nearest(path.name, siblings)}"
        case IsADirectoryError():
            return f"{path}: a directory: expected a text file: name a file in it"
        case _:
            return f"{path}: cannot be read: {error.strerror or error}"


def decode_line(raw: bytes, *, first: bool, errors: str = "strict") -> str:
    """The text of a raw UTF-8 line, without CR and, on the first line, byte order mark.

    >>> decode_line(b"\\xef\\xbb\\xbfGr\\xc3\\xbc\\xc3\\x9fe\\r", first=True)
    'Grüße'
    """
    text = raw.decode("utf-8", errors).removesuffix("\r")
    return text.removeprefix(BOM) if first else text


def read_lines(path: Path | str) -> Iterator[str]:
    """The lines of a UTF-8 text file, plain or gzipped, one by one.

    Raises:
        InputError: :func:`raw_blocks` raises it, or bytes are not UTF-8.
    """
    number = 0
    for block in raw_blocks(path):
        for lines in decoded(block, path, number):
            yield from lines
            number += len(lines)


def decoded(block: bytes, name: Path | str, before: int) -> Iterator[list[str]]:
    """All lines of a block as text, at once; ``before`` lines of the file precede the block.

    A line that is not UTF-8 raises InputError after all earlier lines; the error names ``name``.
    """
    try:
        text = block.decode()
    except UnicodeDecodeError:
        texts: list[str] = []
        for number, raw in enumerate(block.split(b"\n"), start=before + 1):
            try:
                texts.append(decode_line(raw, first=number == 1))
            except UnicodeDecodeError as error:
                yield texts
                raise InputError(_not_utf8(name, number, error)) from error
    lines = (text.removeprefix(BOM) if before == 0 else text).split("\n")
    yield [line.removesuffix("\r") for line in lines] if "\r" in text else lines


def _not_utf8(path: Path | str, number: int, error: UnicodeDecodeError) -> str:
    wrong = " ".join(f"0x{byte:02X}" for byte in error.object[error.start : error.end])
    return (
        f"{path}, line {number}: not UTF-8: {wrong} at byte offset {error.start} of the line: "
        f"convert the file, e.g. with 'iconv -f {_likely_encoding(error.object, number)} -t UTF-8'"
    )


def _likely_encoding(raw: bytes, number: int) -> str:
    """The probable encoding of raw line ``number``, which is not UTF-8."""
    if b"\0" not in raw and not raw.startswith(_UTF16_MARKS):
        return "LATIN1"
    return utf16_name(raw) if number == 1 else "UTF-16LE"


def utf16_name(first: bytes) -> str:
    """iconv's name for the encoding of a UTF-16 file whose first line is the bytes ``first``.

    A big-endian line feed is ``00 0A``, so a line that ends before the 0A has an odd length.

    >>> [utf16_name("né\\n".encode(code).split(b"\\n")[0]) for code in ("utf-16-le", "utf-16-be")]
    ['UTF-16LE', 'UTF-16BE']
    """
    if first.startswith(_UTF16_MARKS):
        return "UTF-16"
    return "UTF-16BE" if len(first) % 2 else "UTF-16LE"
