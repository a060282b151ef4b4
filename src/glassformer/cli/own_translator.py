"""A translator of one's own parts: ``learn train``, and ``--parts FOLDER`` of other commands."""

import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from glassformer.cli.demo import DemoOptions, print_scores, train_on_phrases
from glassformer.errors import InputError
from glassformer.learn.folder import Folder
from glassformer.learn.lesson import lessons

if TYPE_CHECKING:
    from glassformer.learn.parts import Part
    from glassformer.parts import Parts

__all__ = ["running", "train_own", "with_parts"]

_ERRORS = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)


def train_own(folder: Folder, out: Path, mistakes: Sequence[str], options: DemoOptions) -> int:
    """Train the demo's translator with the learned parts and the mistakes; the exit status."""
    from glassformer.bundle import save_bundle
    from glassformer.learn.parts import chosen_parts, own_parts
    from glassformer.learn.record import write_record
    from glassformer.translator import Translator

    parts = chosen_parts(folder, mistakes)
    write_record(out, parts, folder)
    _print_parts(parts)
    own = own_parts(parts)
    with running(parts):
        book, status = train_on_phrases(options, out, parts=own)
        if status:
            return status
        translator = Translator.load(out, parts=own)
        print_scores(translator, book.test)
    whose = {part.place: part.whose for part in parts}
    about = {**translator.bundle.about, "parts": whose} if parts else translator.bundle.about
    save_bundle(replace(translator.bundle, about=about), out)
    calls = ", ".join(f"{part.hole} {part.calls:,}" for part in parts)
    print(f"calls of these parts: {calls}" if parts else "all parts were the package's")
    print(f"a translator: {out}")
    return 0


@contextmanager
def with_parts(bundle: Path, folder: Path | None, stock: "Parts") -> Iterator["Parts"]:
    """The parts of a folder of lessons, and the mistakes that the bundle was trained with.

    Without a folder and without mistakes, the ``stock`` parts.
    """
    from glassformer.learn.record import parts_for, read_record

    if folder is None and not any(each.mistakes for each in read_record(bundle)):
        yield stock
        return
    from glassformer.learn.parts import own_parts

    parts = parts_for(bundle, folder)
    names = ", ".join(part.hole + (" (a mistake)" if part.mistakes else "") for part in parts)
    print(f"parts of {folder or bundle}, by the plain path: {names or 'none'}", file=sys.stderr)
    with running(parts):
        yield own_parts(parts)


def _print_parts(parts: Sequence["Part"]) -> None:
    """A row for each hole of the lessons: its place, and the owner of its part."""
    from rich.console import Console
    from rich.table import Table

    from glassformer.learn.adapters import UNUSED

    whose = {part.place: part.whose for part in parts}
    table = Table(title="the parts of this translator", title_justify="left")
    table.add_column("part")
    table.add_column("whose")
    for place in [place for lesson in lessons() for place in lesson.holes.values()]:
        table.add_row(place, UNUSED.get(place) or whose.get(place, "the package's"))
    Console(highlight=False, width=120).print(table)  # names of parts are not cut


@contextmanager
def running(parts: Sequence["Part"]) -> Iterator[None]:
    """An error that these parts cause is one line."""
    try:
        yield
    except InputError:
        raise
    except _ERRORS as error:
        if not parts:
            raise
        frame = traceback.extract_tb(error.__traceback__)[-1]
        raise InputError(
            f"with these parts the translator fails: {type(error).__name__}: {error}"
            f" ({Path(frame.filename).name}, line {frame.lineno})"
        ) from error
