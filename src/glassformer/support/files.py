"""Writes files so that a kill at any moment leaves the old file or the new file, whole."""

import os
import shutil
import sys
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
    "private_cache",
    "refuse_full_directory",
    "remove_directory",
    "remove_leftovers",
    "whole_directory",
    "write_atomically",
]

_CACHES = {"darwin": "Library/Caches", "win32": "AppData/Local"}


def check_output(option: str, path: Path) -> None:
    """Before the work, refuse an output file that nobody could write after the work."""
    if path.is_dir():
        raise InputError(f"{option} {path} is a directory, expected a file: name a file in it")
    if not path.resolve().parent.is_dir():
        raise InputError(f"{option} {path}: there is no directory {path.resolve().parent}: make it")


def write_atomically(path: Path, content: bytes) -> None:
    """Write a whole file at once, as :func:`open_atomically` does."""
    with open_atomically(path) as file:
        file.write(content)


@contextmanager
def open_atomically(path: Path) -> Iterator[BinaryIO]:
    """Open a new file for writing, which replaces ``path`` when the block ends well.

    If ``path`` is a link, the new file replaces the file behind the link. If ``path`` is a device
    or a pipe, the block writes to ``path`` directly. An ``OSError`` names ``path``.
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
        error.filename = str(path)  # a full disk's error names no file, others the partial file
        raise


def flush(path: Path) -> None:
    """Wait until a file's content, or a directory's names, are on the disk."""
    if os.name == "nt":  # Windows opens no directory, and flushes no file that is open for reading
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
    """If an ``OSError`` names no file, for instance on a full disk, let it name ``path``."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


def refuse_full_directory(directory: Path) -> None:
    """Raise UsageError for a file, or for a directory that holds anything."""
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise UsageError(f"{directory} exists and is not an empty directory: give a new directory")


@contextmanager
def new_directory(directory: Path) -> Iterator[Path]:
    """An empty directory that becomes ``directory`` when the block ends well.

    A link to an empty directory stays a link. Raises UsageError for a directory in use.
    """
    refuse_full_directory(directory)
    place = directory.resolve()
    place.parent.mkdir(parents=True, exist_ok=True)
    with naming(directory), whole_directory(place) as unfinished:
        try:
            yield unfinished
        except OSError as error:
            error.filename = str(error.filename or place).replace(str(unfinished), str(directory))
            raise


@contextmanager
def whole_directory(directory: Path) -> Iterator[Path]:
    """An empty directory that becomes ``directory``, on the disk, when the block ends well.

    ``directory`` must be missing or empty, and its parent must exist. A kill leaves a hidden
    directory beside it, for :func:`remove_leftovers`.
    """
    with _hidden(directory) as hidden:
        unfinished = hidden / "new"
        unfinished.mkdir()
        yield unfinished
        flush_directory(unfinished)
        if directory.exists():
            directory.rmdir()
        unfinished.rename(directory)
        flush(directory.parent)


def private_cache(name: str) -> Path:
    """The directory ``glassformer/NAME`` in ``XDG_CACHE_HOME``, or in the system's usual cache.

    Raises InputError if another user can write there, and OSError if this user cannot.
    """
    folder = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not folder.is_absolute():
        folder = Path.home() / _CACHES.get(sys.platform, ".cache")
    for part in ("glassformer", name):
        folder /= part
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        users = {folder.lstat().st_uid, folder.stat().st_uid}  # a link may be another user's
        if os.name != "nt" and (users != {os.geteuid()} or folder.stat().st_mode & 0o022):
            raise InputError(f"{folder}: another user can write there: name your own cache")
    return folder


def remove_directory(directory: Path) -> None:
    """Remove a directory, after a change of its name, so that a kill leaves no half directory."""
    with _hidden(directory) as hidden:
        directory.rename(hidden / "old")


def remove_leftovers(parent: Path) -> None:
    """Remove the hidden directories of killed processes; no other process may use ``parent``."""
    for leftover in parent.glob(".*.partial"):
        shutil.rmtree(leftover, ignore_errors=True)


@contextmanager
def _hidden(directory: Path) -> Iterator[Path]:
    """A hidden directory beside ``directory``, which disappears when the block ends."""
    prefix, suffix = f".{directory.name}-", ".partial"
    hidden = Path(tempfile.mkdtemp(prefix=prefix, suffix=suffix, dir=directory.parent))
    try:
        yield hidden
    finally:
        shutil.rmtree(hidden, ignore_errors=True)
