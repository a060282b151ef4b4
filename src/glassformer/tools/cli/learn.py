"""``glassformer learn``: a person builds the Transformer, and checks name each mistake."""

import json
import sys
from abc import ABC, abstractmethod
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pydantic import Field, field_validator, model_validator
from rich.padding import Padding
from rich.text import Text

from glassformer.config import Options
from glassformer.support.consoles import new_console
from glassformer.support.errors import InputError, UsageError, counted
from glassformer.support.files import check_output
from glassformer.tools.cli.demo import DemoOptions, PhraseOptions
from glassformer.tools.learn.folder import Folder
from glassformer.tools.learn.lesson import EVERY, EXERCISES, Lesson, known_mistakes, lesson, lessons

__all__ = ["DEFAULT_KIND", "OPTIONS", "run"]

DEFAULT_KIND = "watch"
_FOLDER = Path("my-transformer")


class LearnOptions(Options, ABC):
    """The options of all kinds of ``learn``."""

    @abstractmethod
    def run(self) -> int:
        """Do the work; return the exit status."""


class FolderOptions(LearnOptions):
    """The options of all kinds that read a learner's folder."""

    folder: Path = Field(_FOLDER, title="FOLDER", validate_default=True)
    """The folder with your files."""

    @field_validator("folder")
    @classmethod
    def _or_this_one(cls, folder: Path) -> Path:
        """Inside a folder of lessons, the default is the current directory."""
        default = folder == _FOLDER and not folder.exists()
        return Path() if default and Folder(Path()).has_lessons() else folder


class LessonOptions(FolderOptions):
    """The options of all kinds that read one lesson."""

    lesson: str | None = Field(None, title="LESSON")
    """Name or number of a lesson or exercise. None means the first unlearned lesson."""

    @model_validator(mode="before")
    @classmethod
    def _of_one_word(cls, words: dict[str, Any]) -> dict[str, Any]:
        """A lesson's file stands for its folder and lesson, a lesson alone for the usual folder."""
        word = str(words.get("folder", ""))
        if words.get("lesson") is not None or Path(word).is_dir():
            return words
        if Path(word).is_file():
            folder, word = Path(word).parent, Path(word).stem.partition("_")[2]
            return words | {"folder": folder, "lesson": word}
        known = word in EVERY or word.isdecimal()
        return words | {"folder": _FOLDER, "lesson": word} if known else words

    def chosen(self) -> tuple[Folder, Lesson]:
        """The folder and the lesson."""
        folder = Folder(self.folder).checked()
        if self.lesson:
            return folder, lesson(self.lesson)
        return folder, folder.next_lesson() or next(lessons())


class WatchOptions(LessonOptions):
    """Make a folder of lessons, watch it, and check the current lesson at each save.

    'glassformer learn FOLDER' is the short form.
    """

    list: bool = False
    """Only list the lessons and the harder exercises, each with its subject."""

    notebook: Path | None = None
    """Only write the lessons as notebooks into this directory, a FOLDER for all other actions."""

    def run(self) -> int:
        if self.notebook:
            for file in Folder(self.notebook).make(".ipynb"):
                print(f"wrote {file}")
            return 0
        console = new_console()
        if self.list:
            for each in lessons(EVERY):
                if each.name == EXERCISES[0]:
                    print("\nHarder exercises, without hints")
                about = f"{each.place}, {each.minutes} minutes, {each.difficulty}"
                console.print(Text(f"{each.number:2}. {each.title} ({about})"))
                text = Text(f"Afterwards you know {each.understood}.")
                console.print(Padding.indent(text, 4))
            return 0
        from glassformer.tools.learn.watch import watch

        folder = Folder(self.folder)
        if written := folder.make():
            print(f"wrote {counted(len(written), 'file')} into {folder.path}")
        watch(folder, console, lesson(self.lesson) if self.lesson else None)
        return 0


class CheckOptions(LessonOptions):
    """Check a lesson once; exit status 0 if it is right.

    If FOLDER holds the folders of several learners, each learner gets a line.
    """

    json_: bool = Field(False, alias="json")
    """Print each verdict as one line of JSON."""
    own: bool = False
    """Also run the lesson with your own parts of earlier lessons; a wrong one is named first."""
    csv: bool = False
    """Print several learners as a table in CSV, with a column for each lesson."""

    @model_validator(mode="after")
    def _options_agree(self) -> "CheckOptions":
        if self.csv and self.json_:
            raise ValueError("--csv and --json: give one of them")
        return self

    def run(self) -> int:
        from glassformer.tools.learn.examine import checked_once
        from glassformer.tools.learn.messages import next_command, print_verdict

        if self.folder.is_dir() and not Folder(self.folder).has_lessons():
            return self._check_hand_ins()
        if self.csv:
            raise UsageError(f"--csv: {self.folder} is one learner's folder: give its parent")
        folder, chosen = self.chosen()
        if self.own:
            from glassformer.tools.learn.own_check import checked_with_own

            chosen, verdict = checked_with_own(folder, chosen)
        else:
            verdict = checked_once(folder, chosen)
        if self.json_:
            print(json.dumps(asdict(verdict), ensure_ascii=False))
        else:
            print_verdict(new_console(), chosen, verdict)
            if verdict.outcome == "right":
                print(f"Answers: {folder.command('solution', chosen.name)}")
                print(folder.onward(after=chosen))
            else:
                print(next_command(folder, chosen, 0))
        return 0 if verdict.outcome == "right" else 1

    def _check_hand_ins(self) -> int:
        import csv

        from glassformer.tools.learn.hand_ins import cells_of, check_hand_ins, folders_in, line_of

        folders = folders_in(self.folder) or [Folder(self.folder).checked()]
        if self.own:
            raise UsageError(f"--own: {self.folder} has several learners' folders: give one")
        table, right = csv.writer(sys.stdout, lineterminator="\n"), True
        if self.csv:
            table.writerow(["learner", *(each.name for each in lessons())])
        for learner, verdicts in check_hand_ins(folders):
            right = right and all(verdict.outcome == "right" for verdict in verdicts)
            if self.json_:
                for verdict in verdicts:
                    print(json.dumps({"learner": learner, **asdict(verdict)}, ensure_ascii=False))
            elif self.csv:
                table.writerow([learner, *cells_of(verdicts)])
            else:
                print(line_of(learner, verdicts))
            sys.stdout.flush()
        return 0 if right else 1


class HintOptions(LessonOptions):
    """Check a lesson; print a hint on the first hole with wrong code."""

    number: int = Field(1, ge=1, le=3)
    """Number of the hint: 1 gives the idea, 2 the shapes, 3 the code."""

    def run(self) -> int:
        from glassformer.tools.learn.examine import checked_once
        from glassformer.tools.learn.messages import hint_text, next_command

        folder, chosen = self.chosen()
        hole = checked_once(folder, chosen).hole if chosen.hints else ""
        new_console().print(Text(hint_text(chosen, hole, self.number)))
        print(next_command(folder, chosen, self.number))
        return 0


class SolutionOptions(LessonOptions):
    """Print the differences between your code and the package's, and the lesson's answers."""

    def run(self) -> int:
        from glassformer.tools.learn.messages import print_solution
        from glassformer.tools.learn.source import read_source

        folder, chosen = self.chosen()
        source, right = read_source(folder.file(chosen)), folder.learned(chosen)
        print_solution(new_console(), chosen, source, right=right)
        return 0


class StatusOptions(FolderOptions):
    """Print figure 1 with marks on your parts, and the learned lessons."""

    out: Path | None = None
    """Also draw figure 1 into this file: .svg or .png."""

    def run(self) -> int:
        from glassformer.tools.learn.status import own_boxes, print_status

        folder = Folder(self.folder).checked()
        print_status(new_console(), folder)
        if self.out:
            from glassformer.tools.inspection.plots.canvas import save
            from glassformer.tools.inspection.plots.figure1 import plot_boxes

            check_output("--out", self.out)
            feet = {"encoder": ("source", "one piece"), "decoder": ("target", "one piece")}
            save(plot_boxes(own_boxes(folder.learned_names()), feet), self.out)
            print(f"wrote {self.out}")
        return 0


class ResetOptions(LessonOptions):
    """Write a lesson's file anew, and keep your version as FILE.old."""

    def run(self) -> int:
        folder, chosen = self.chosen()
        file = folder.file(chosen)
        old = folder.reset(chosen, file.suffix)
        print(f"wrote {file}{f'; yours is {old}' if old else ''}")
        return 0


class TrainOptions(FolderOptions, PhraseOptions):
    """Train and score a translator of dates and amounts that runs your parts.

    Phrases and sizes are as in 'glassformer demo'; norm, label smoothing and dropout are as in the
    paper. All other parts run in plain form.
    """

    epochs: float = Field(2.0, gt=0)
    """Number of times that the training reads the phrases."""
    mistake: tuple[str, ...] = ()
    """Ids of known mistakes, each of which replaces a right part."""
    out: Path | None = None
    """Directory of the translator. None means FOLDER/translator, with the ids of the mistakes."""

    def run(self) -> int:
        from glassformer.tools.cli.own_translator import train_own

        folder = Folder(self.folder).checked()
        out = self.out or self.folder / "-".join(("translator", *self.mistake))
        options = DemoOptions(size=self.size, epochs=self.epochs, seed=self.seed)
        return train_own(folder, out, self.mistake, options)


class CompareOptions(LearnOptions):
    """Compare scores, translations, losses and attention of two translators of 'learn train'.

    Each translator runs with the mistakes of its own training.
    """

    first: Path = Field(title="A")
    """Directory of a translator."""
    second: Path = Field(title="B")
    """Directory of another translator, or the id of a mistake whose translator is beside A."""
    out: Path = Path("compared")
    """Directory of the two pictures."""
    parts: Path | None = None
    """Folder whose learned parts run. None means that the package's parts run."""

    def run(self) -> int:
        from glassformer.tools.cli.compare_translators import compare

        second = self.second
        if not second.exists() and str(second) in known_mistakes():
            second = self.first.parent / f"translator-{second}"
            if not second.exists():
                command = Folder(self.first.parent).command("train", "--mistake", str(self.second))
                raise InputError(f"{second} is not trained yet; this trains it: {command}")
        return compare((self.first, second), self.out, self.parts)


OPTIONS: dict[str, type[LearnOptions]] = {
    "watch": WatchOptions,
    "check": CheckOptions,
    "hint": HintOptions,
    "solution": SolutionOptions,
    "status": StatusOptions,
    "reset": ResetOptions,
    "train": TrainOptions,
    "compare": CompareOptions,
}


def run(options: LearnOptions) -> int:
    """Run one kind of ``learn``; return the exit status."""
    return options.run()
