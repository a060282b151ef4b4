"""Zip files of others: only wanted members are unpacked, and none outside its place."""

import lzma
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from glassformer.errors import InputError

__all__ = ["DAMAGED", "member_names", "unpacked"]

_MOST_BYTES = 16 * 2**30  # of all members: the largest models have a few GB
_MOST_MEMBERS = 10_000
DAMAGED = (  # the errors of the readers of zip files
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, NotImplementedError, RuntimeError, EOFError,
    OSError,
)  # fmt: skip


def member_names(path: Path) -> list[str]:
    """The names in a zip file; none if ``path`` is another file."""
    if not path.is_file() or not zipfile.is_zipfile(path):
        return []
    with _opened_members(path) as (_, members):
        return [info.filename for info in members]


@contextmanager
def unpacked(path: Path, wanted: Callable[[str], bool]) -> Iterator[Path]:
    """A temporary directory with the members of ``path`` whose names are ``wanted``.

    Raises InputError for a damaged file, too much content, or a name that leads elsewhere.
    """
    with (
        tempfile.TemporaryDirectory(prefix="glassformer-") as temporary,
        _opened_members(path) as (archive, all_members),
    ):
        place = Path(temporary)
        members = [info for info in all_members if wanted(info.filename)]
        if (size := sum(info.file_size for info in members)) > _MOST_BYTES:
            raise InputError(
                f"{path}: {size / 1e9:.1f} GB when unpacked: expected at most"
                f" {_MOST_BYTES / 1e9:.1f} GB; unpack it yourself, and give the directory"
            )
        try:
            for info in members:
                target = place / info.filename
                target.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(info) as packed, target.open("wb") as file:
                    shutil.copyfileobj(packed, file)  # it stops at the size that was summed up
        except DAMAGED as error:
            raise InputError(
                f"{path}: {info.filename} is damaged ({error}): copy it anew"
            ) from error
        try:
            yield place
        except InputError as error:  # a message names the zip file, not the temporary place
            message = str(error).replace(f"{place}/", f"{path}: ").replace(str(place), str(path))
            error.args = (message,)
            raise


@contextmanager
def _opened_members(path: Path) -> Iterator[tuple[zipfile.ZipFile, list[zipfile.ZipInfo]]]:
    """A zip file and its members that are files; InputError as in :func:`unpacked`."""
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError) as error:
        raise InputError(f"{path}: not a zip file, or cut short ({error}): copy it anew") from error
    with archive:
        members = archive.infolist()
        if len(members) > _MOST_MEMBERS:
            raise InputError(
                f"{path}: {len(members):,} members: expected at most {_MOST_MEMBERS:,}"
            )
        for info in members:
            name = PurePosixPath(info.filename)
            if name.is_absolute() or ".." in name.parts or "\\" in info.filename:
                raise InputError(f"{path}: the member {info.filename!r} leads out of its directory")
        yield archive, [info for info in members if not info.is_dir()]
