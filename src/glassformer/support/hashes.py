"""SHA-256 of files, which shows damage and changes of a directory.

A hash proves no origin: a person who changes a file on purpose can change its hash too.

A directory that the program writes for itself has all hashes in its manifest, ``sha256.json``. A
bundle has all hashes in its ``config.json``.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from glassformer.support.errors import ChecksumError, InputError
from glassformer.support.strangers import opened, read_json

__all__ = ["MANIFEST", "check_hashes", "read_manifest", "sha256", "sha256_of_all", "write_manifest"]

MANIFEST = "sha256.json"


def sha256(content: Path | bytes) -> str:
    """The SHA-256 of a file or of bytes; InputError for an unreadable or irregular file.

    >>> sha256(b"abc")[:16]
    'ba7816bf8f01cfea'
    """
    if isinstance(content, bytes):
        return hashlib.sha256(content).hexdigest()
    with opened(content) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_of_all(files: Iterable[Path]) -> str:
    """The SHA-256 of the joined SHA-256 hashes of the files, in the order of ``files``."""
    return sha256(b"".join(bytes.fromhex(sha256(path)) for path in files))


def check_hashes(
    directory: Path, names: Iterable[str], hashes: Mapping[str, str], *, remedy: str
) -> None:
    """Compare the files ``names`` with their hashes; ChecksumError names the first that differs."""
    for name in names:
        if sha256(directory / name) != hashes.get(name):
            raise ChecksumError(
                f"{directory / name}: checksum mismatch: the file is changed or damaged: {remedy}"
            )


def write_manifest(directory: Path) -> None:
    """Write the hashes of all files in a directory into its ``sha256.json``."""
    hashes = {path.name: sha256(path) for path in sorted(directory.iterdir())}
    (directory / MANIFEST).write_text(json.dumps(hashes, indent=1) + "\n", "utf-8")


def read_manifest(directory: Path) -> dict[str, str]:
    """The hashes of the files in a directory; InputError for a missing or damaged manifest."""
    path = directory / MANIFEST
    hashes = read_json(path, dict[str, str])
    if any(Path(name).name != name for name in hashes):
        raise InputError(f"{path} names a file of another directory")
    return hashes
