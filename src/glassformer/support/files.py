"""Writing files: a kill at any moment leaves the old file or the new one, whole."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from glassformer.support.errors import InputError, UsageError

__all__ = [
    "check_output",
    "flush",
    "flush_directory",
    "naming",
    "new_directory",
    "open_atomically",
    "refuse_full_directory",
    "write_atomically",
]


def check_output(option: str, path: Path) -> None:
    """Refuse an output file before the work, if it cannot be made after it."""
    if path.is_dir():
        raise InputError(f"{option} {path}: a directory, expected a file: name a file in it")
    if not path.resolve().parent.is_dir():
        raise InputError(f"{option} {path}: no directory {path.resolve().parent}: make it first")


def write_atomically(path: Path, content: bytes) -> None:
    """Write a whole file at once, as :func:`open_atomically` does."""
    with open_atomically(path) as file:
        file.write(content)


@contextmanager
def open_atomically(path: Path) -> Iterator[BinaryIO]:
    """Open a file for writing; it takes the place of ``path`` when the block ends well.

    A link stays a link: the file behind it is replaced. A device or a pipe is written to
    directly, as the shell's ``>`` does. Errors: ``OSError`` that names ``path``.
    """
    try:
        if path.exists() and not path.is_file():
            with path.open("wb") as file:
                yield file
            return
        target = path.resolve()
        partial = target.with_name(f".{target.name}.partial")
        try:
            with partial.open("wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            partial.replace(target)
            flush(target.parent)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
    except OSError as error:
        error.filename = str(path)  # a full disk names no file, and the partial file is our own
        raise


def flush(path: Path) -> None:
    """Wait until a file's content, or a directory's names, are on the disk."""
    if os.name == "nt":  # it opens no directory, and no file for reading that it could flush
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def flush_directory(directory: Path) -> None:
    """Wait until the files of a directory and their names are on the disk."""
    for path in directory.iterdir():
        flush(path)
    flush(directory)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Let an ``OSError`` that names no file, such as a full disk's, name ``path``."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


def refuse_full_directory(directory: Path) -> None:
    """Raise UsageError for a file, or for a directory that holds anything."""
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise UsageError(
            f"{directory}: it exists and is not an empty directory; give a new directory"
        )


@contextmanager
def new_directory(directory: Path) -> Iterator[Path]:
    """An empty directory that becomes ``directory`` when the block ends well.

    A link to an empty directory stays a link. Raises UsageError for a directory in use.
    """
    refuse_full_directory(directory)
    place = directory.resolve()
    place.parent.mkdir(parents=True, exist_ok=True)
    with (
        naming(directory),
        tempfile.TemporaryDirectory(prefix=".new-", dir=place.parent) as temporary,
    ):
        unfinished = Path(temporary, "new")
        unfinished.mkdir()
        try:
            yield unfinished
        except OSError as error:
            error.filename = str(error.filename or place).replace(str(unfinished), str(directory))
            raise
        if place.exists():  # it is empty
            place.rmdir()
        unfinished.rename(place)
