"""A learner's folder, with a file or notebook for each lesson, and notes of the right ones."""

import json
import os
import shlex
import subprocess
from contextlib import suppress
from pathlib import Path

from glassformer.support.errors import InputError
from glassformer.support.files import write_atomically
from glassformer.support.hashes import sha256
from glassformer.support.strangers import read_json
from glassformer.tools.learn.lesson import EVERY, Lesson, lessons
from glassformer.tools.learn.source import code_of, read_source

__all__ = ["Folder"]

_NOTES = ".learned.json"


class Folder:
    """The lessons' files or notebooks in a directory.

    A lesson is learned as long as the file has the code that a check has found right. The notes
    have an entry for each lesson, independent of other lessons.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def make(self, suffix: str = ".py") -> list[Path]:
        """Write the missing files or notebooks, and return their paths; all others stay."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except FileExistsError as error:
            raise InputError(f"{self.path} is a file: expected a folder") from error
        missing = [lesson for lesson in lessons(EVERY) if not self.file(lesson).exists()]
        for lesson in missing:
            self.reset(lesson, suffix)
        return [self.file(lesson) for lesson in missing]

    def checked(self) -> "Folder":
        """The folder itself; InputError if the folder does not exist, or holds no lesson."""
        if self.path.is_file():
            raise InputError(f"{self.path} is a file: expected a folder")
        if not self.has_lessons():
            raise InputError(f"{self.path} has no lessons; this makes them: {self.command()}")
        return self

    def has_lessons(self) -> bool:
        """Whether the folder has the file of at least one lesson."""
        return any(self.file(lesson).is_file() for lesson in lessons())

    def untouched(self, lesson: Lesson) -> bool:
        """Whether the lesson's file is missing, or its code is unchanged."""
        file, code, template = self.file(lesson), self.code(lesson).decode(), lesson.template
        if file.suffix == ".ipynb":  # its code has other blank lines
            return code.split() == code_of([template]).split()
        return not file.is_file() or code == template

    def command(self, action: str = "", *after: str) -> str:
        """The shell command for an action on this folder; without an action, for the watch."""
        words = ["glassformer", "learn", *action.split(), str(self.path), *after]
        return subprocess.list2cmdline(words) if os.name == "nt" else shlex.join(words)

    def file(self, lesson: Lesson) -> Path:
        """The lesson's file, or the notebook if the folder has only that."""
        file = self.path / lesson.file_name
        notebook = file.with_suffix(".ipynb")
        return notebook if notebook.is_file() and not file.exists() else file

    def code(self, lesson: Lesson) -> bytes:
        """The code of the lesson's file; empty if the file is missing or unreadable."""
        with suppress(InputError, LookupError, TypeError):  # a check says what is wrong
            return read_source(self.file(lesson)).encode()
        return b""

    def reset(self, lesson: Lesson, suffix: str = ".py") -> Path | None:
        """Write a lesson's file or notebook anew; return the path of the old one, if it differs."""
        file = self.file(lesson).with_suffix(suffix)
        old = file.with_name(file.name + ".old")
        new = (lesson.notebook if suffix == ".ipynb" else lesson.template).encode()
        if differs := file.exists() and sha256(file) != sha256(new):
            file.replace(old)
        write_atomically(file, new)
        return old if differs else None

    def learned(self, lesson: Lesson) -> bool:
        """Whether a check has found the code of the lesson's file right."""
        return sha256(self.code(lesson)) == self._notes().get(lesson.name)

    def note_right(self, lesson: Lesson, code: bytes) -> None:
        """Note that a check has found ``code``, that of the lesson's file, right."""
        notes = self._notes() | {lesson.name: sha256(code)}
        write_atomically(self.path / _NOTES, json.dumps(notes, indent=2).encode())

    def learned_names(self) -> set[str]:
        """The names of the learned lessons and exercises."""
        return {lesson.name for lesson in lessons(EVERY) if self.learned(lesson)}

    def next_lesson(self, after: Lesson | None = None) -> Lesson | None:
        """The next unlearned lesson, from the start again after the last; None if none is left."""
        every = list(lessons())
        begin = every.index(after) + 1 if after in every else 0
        waiting = (each for each in every[begin:] + every[:begin] if not self.learned(each))
        return next(waiting, None)

    def onward(self, after: Lesson | None = None) -> str:
        """The line that names the next unlearned lesson, or the training if all are learned."""
        lesson = self.next_lesson(after)
        if lesson is None:
            return f"All lessons are learned. Next: {self.command('train')}"
        return f"Next: lesson {lesson.number}, {lesson.title}: {self.file(lesson)}"

    def _notes(self) -> dict[str, str]:
        try:
            return read_json(self.path / _NOTES, dict[str, str])
        except InputError:  # the next check writes lost or damaged notes anew
            return {}
