"""The record of own parts and mistakes in a translator's directory, as text that nothing runs.

``parts/`` holds the learner's files that the translator was trained with, and ``parts.json``: the
place of each part, its mistakes, its file and the SHA-256 of that.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from glassformer.bundle import PARTS_RECORD
from glassformer.support.errors import InputError
from glassformer.support.files import write_atomically
from glassformer.support.hashes import sha256
from glassformer.support.strangers import read_bytes, read_json
from glassformer.tools.learn.folder import Folder
from glassformer.tools.learn.lesson import lesson
from glassformer.tools.learn.parts import Part, chosen_parts
from glassformer.tools.learn.source import MOST_BYTES

__all__ = ["Recorded", "parts_for", "read_record", "write_record"]


@dataclass(frozen=True)
class Recorded:
    """One part of a translator: the learner's with its file and hash, or a mistake's."""

    place: str
    mistakes: tuple[str, ...] = ()
    file: str | None = None
    sha256: str | None = None


def write_record(directory: Path, parts: Sequence[Part], folder: Folder) -> None:
    """Record the parts before the training; a directory of a training with others is an error.

    The learner's files are copied as text. The copies are a folder of learned lessons, too.
    """
    copies = Folder(directory / PARTS_RECORD.parent)
    records = []
    for part in parts:
        file = folder.file(lesson(part.lesson))
        own = () if part.mistakes else (file.name, sha256(file))
        records.append(Recorded(part.place, part.mistakes, *own))
    if (directory / "metrics.jsonl").exists() and read_record(directory) != records:
        raise InputError(f"{directory}: trained with other parts: give another --out, or remove it")
    copies.path.mkdir(parents=True, exist_ok=True)
    for name in {part.lesson for part in parts if not part.mistakes}:
        source = read_bytes(folder.file(lesson(name)), most_bytes=MOST_BYTES)
        write_atomically(copies.file(lesson(name)), source)
        copies.note_right(lesson(name), source)
    text = json.dumps([asdict(record) for record in records], indent=2) + "\n"
    write_atomically(directory / PARTS_RECORD, text.encode())


def read_record(directory: Path) -> list[Recorded]:
    """The parts of a translator; empty if all are the package's."""
    file = directory / PARTS_RECORD
    return read_json(file, list[Recorded]) if file.exists() else []


def parts_for(directory: Path, folder: Path | None) -> list[Part]:
    """The parts to run a translator with: the folder's learned ones, and its own mistakes.

    The mistakes come from the package. Nothing of the translator's directory runs.
    """
    mistakes = [mistake for each in read_record(directory) for mistake in each.mistakes]
    return chosen_parts(Folder(folder).checked() if folder else None, mistakes)
