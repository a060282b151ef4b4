"""A learner's folder, with a file for each lesson and exercise, and notes of the right files."""

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

    A lesson is learned as long as the file has the text that a check has found right. The notes
    have an entry for each lesson, independent of other lessons.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def make(self) -> list[Path]:
        """Write the missing files, and return their paths; existing files stay unchanged."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except FileExistsError as error:
            raise InputError(f"{self.path} is a file: expected a folder") from error
        missing = [lesson for lesson in lessons(EVERY) if not self.file(lesson).exists()]
        for lesson in missing:
            self.reset(lesson)
        return [self.file(lesson) for lesson in missing]

    def checked(self) -> "Folder":
        """The folder itself; InputError if the folder does not exist, or holds no lesson."""
        if not self.has_lessons():
            raise InputError(f"{self.path} has no lessons; this makes them: {self.command()}")
        return self

    def has_lessons(self) -> bool:
        """Whether the folder has the file of at least one lesson."""
        return any(self.file(lesson).is_file() for lesson in lessons())

    def untouched(self, lesson: Lesson) -> bool:
        """Whether the lesson's file is missing or unchanged."""
        file, template = self.file(lesson), lesson.template.encode()
        if not file.is_file():
            return True
        same_size = file.stat().st_size == len(template)
        return same_size and read_bytes(file, most_bytes=len(template)) == template

    def command(self, action: str = "", *after: str) -> str:
        """The shell command for an action on this folder; without an action, for the watch."""
        words = ["glassformer", "learn", *action.split(), str(self.path), *after]
        return subprocess.list2cmdline(words) if os.name == "nt" else shlex.join(words)

    def file(self, lesson: Lesson) -> Path:
        return self.path / lesson.file_name

    def reset(self, lesson: Lesson) -> None:
        """Write the lesson's file anew."""
        write_atomically(self.file(lesson), lesson.template.encode())

    def learned(self, lesson: Lesson) -> bool:
        """Whether a check has found the text of the lesson's file right."""
        file = self.file(lesson)
        noted = self._notes().get(lesson.name)
        return file.is_file() and sha256(file) == noted

    def note_right(self, lesson: Lesson, source: bytes) -> None:
        """Note that a check has found ``source``, the lesson's file, right."""
        notes = self._notes() | {lesson.name: sha256(source)}
        write_atomically(self.path / _NOTES, json.dumps(notes, indent=2).encode())

    def learned_names(self) -> set[str]:
        """The names of the learned lessons and exercises."""
        return {lesson.name for lesson in lessons(EVERY) if self.learned(lesson)}

    def next_lesson(self, after: Lesson | None = None) -> Lesson | None:
        """The next unlearned lesson, from the start again after the last; None if none is left."""
        every = list(lessons())
        begin = every.index(after) + 1 if after else 0
        waiting = (each for each in every[begin:] + every[:begin] if not self.learned(each))
        return next(waiting, None)

    def _notes(self) -> dict[str, str]:
        try:
            return read_json(self.path / _NOTES, dict[str, str])
        except InputError:  # the next check writes lost or damaged notes anew
            return {}
