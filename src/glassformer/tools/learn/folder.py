"""A learner's folder: a file for each lesson and exercise, and a note of those that are right."""

import json
import os
import shlex
import subprocess
from pathlib import Path

from glassformer.support.errors import InputError
from glassformer.support.files import write_atomically
from glassformer.support.hashes import sha256
from glassformer.support.strangers import read_bytes, read_json
from glassformer.tools.learn.lesson import EVERY, Lesson, lessons

__all__ = ["Folder"]

_NOTES = ".learned.json"


class Folder:
    """The lessons' files in a directory.

    A lesson is learned as long as its file is the one that a check has found right. Each lesson
    has its own entry in the notes: to lose or to edit one changes no other.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def make(self) -> list[Path]:
        """Write the files that are not there yet; no file is ever overwritten."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except FileExistsError as error:
            raise InputError(f"{self.path}: a file, expected a folder") from error
        missing = [lesson for lesson in lessons(EVERY) if not self.file(lesson).exists()]
        for lesson in missing:
            self.reset(lesson)
        return [self.file(lesson) for lesson in missing]

    def checked(self) -> "Folder":
        """This folder; InputError if it does not exist, or holds no lesson."""
        if not self.has_lessons():
            raise InputError(f"{self.path}: no lessons here; this makes them: {self.command()}")
        return self

    def has_lessons(self) -> bool:
        """Whether the file of at least one lesson is there."""
        return any(self.file(lesson).is_file() for lesson in lessons())

    def untouched(self, lesson: Lesson) -> bool:
        """Whether the lesson's file is missing, or as it was at first."""
        file, template = self.file(lesson), lesson.template.encode()
        if not file.is_file():
            return True
        same_size = file.stat().st_size == len(template)
        return same_size and read_bytes(file, most_bytes=len(template)) == template

    def command(self, action: str = "", *after: str) -> str:
        """The line that a shell takes for an action on this folder; without one, for the watch."""
        words = ["glassformer", "learn", *action.split(), str(self.path), *after]
        return subprocess.list2cmdline(words) if os.name == "nt" else shlex.join(words)

    def file(self, lesson: Lesson) -> Path:
        return self.path / lesson.file_name

    def reset(self, lesson: Lesson) -> None:
        """Write the lesson's file as it was at first."""
        write_atomically(self.file(lesson), lesson.template.encode())

    def learned(self, lesson: Lesson) -> bool:
        """Whether the lesson's file is one that a check has found right."""
        file = self.file(lesson)
        noted = self._notes().get(lesson.name)
        return file.is_file() and sha256(file) == noted

    def note_right(self, lesson: Lesson, source: bytes) -> None:
        """Note that a check has found this text of the lesson's file right."""
        notes = self._notes() | {lesson.name: sha256(source)}
        write_atomically(self.path / _NOTES, json.dumps(notes, indent=2).encode())

    def learned_names(self) -> set[str]:
        """The names of the learned lessons and exercises."""
        return {lesson.name for lesson in lessons(EVERY) if self.learned(lesson)}

    def next_lesson(self, after: Lesson | None = None) -> Lesson | None:
        """The next lesson that is not learned; after the last one, the first; None if all are."""
        every = list(lessons())
        begin = every.index(after) + 1 if after else 0
        waiting = (each for each in every[begin:] + every[:begin] if not self.learned(each))
        return next(waiting, None)

    def _notes(self) -> dict[str, str]:
        try:
            return read_json(self.path / _NOTES, dict[str, str])
        except InputError:  # lost or edited by hand: a check writes it anew
            return {}
