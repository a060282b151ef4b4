"""The record of own parts and mistakes in a translator's directory, as text that never runs.

``parts/`` holds copies of the learner's files. ``parts.json`` names the place, mistakes, file and
SHA-256 of each part.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from glassformer.bundle import PARTS_RECORD
from glassformer.support.errors import InputError
from glassformer.support.files import write_atomically
from glassformer.support.hashes import sha256
from glassformer.support.strangers import read_json
from glassformer.tools.learn.folder import Folder
from glassformer.tools.learn.lesson import lesson
from glassformer.tools.learn.parts import Part, chosen_parts

__all__ = ["Recorded", "parts_for", "read_record", "write_record"]


@dataclass(frozen=True)
class Recorded:
    """A part of a translator that a learner wrote (``file``, ``sha256``), or that has mistakes."""

    place: str
    mistakes: tuple[str, ...] = ()
    file: str | None = None
    sha256: str | None = None


def write_record(directory: Path, parts: Sequence[Part], folder: Folder) -> None:
    """Record the parts before the training; InputError if the directory has other parts.

    The copies of the learner's files are text, and form a folder of learned lessons.
    """
    copies = Folder(directory / PARTS_RECORD.parent)
    records = []
    for part in parts:
        own = lesson(part.lesson)
        origin = () if part.mistakes else (own.file_name, sha256(folder.code(own)))
        records.append(Recorded(part.place, part.mistakes, *origin))
    if (directory / "metrics.jsonl").exists() and read_record(directory) != records:
        raise InputError(f"{directory} has other parts: remove the directory, or name another")
    copies.path.mkdir(parents=True, exist_ok=True)
    for name in {part.lesson for part in parts if not part.mistakes}:
        code = folder.code(lesson(name))
        write_atomically(copies.file(lesson(name)), code)
        copies.note_right(lesson(name), code)
    text = json.dumps([asdict(record) for record in records], indent=2) + "\n"
    write_atomically(directory / PARTS_RECORD, text.encode())


def read_record(directory: Path) -> list[Recorded]:
    """The parts of a translator; empty if all are the package's."""
    file = directory / PARTS_RECORD
    return read_json(file, list[Recorded]) if file.exists() else []


def parts_for(directory: Path, folder: Path | None) -> list[Part]:
    """The parts that run a translator: learned parts of ``folder``, and the recorded mistakes.

    The code of mistakes comes from the package. No code in ``directory`` runs.
    """
    mistakes = [mistake for each in read_record(directory) for mistake in each.mistakes]
    return chosen_parts(Folder(folder).checked() if folder else None, mistakes)
