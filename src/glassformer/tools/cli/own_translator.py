"""A translator of own parts, for ``learn train`` and for ``--parts FOLDER`` of other commands."""

import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.text import Text

from glassformer.parts import Parts
from glassformer.support.consoles import new_console
from glassformer.support.errors import InputError
from glassformer.tools.cli.demo import DemoOptions, score_table, train_on_phrases
from glassformer.tools.learn.adapters import UNUSED
from glassformer.tools.learn.examine import checked_once
from glassformer.tools.learn.folder import Folder
from glassformer.tools.learn.lesson import lessons
from glassformer.tools.learn.parts import Part, chosen_parts, hole_of, own_parts
from glassformer.tools.learn.record import parts_for, read_record, write_record
from glassformer.tools.phrasebook.book import Phrase
from glassformer.translator import Translator

__all__ = ["running", "train_own", "with_parts"]

_ERRORS = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)

# With the paper's norm, label smoothing and dropout, every lesson's code runs.
_TRAINING = {"norm": "post", "label_smoothing": 0.1, "dropout": 0.1}
_BEAM, _SEARCHED = 4, 200
_MISTAKE = "causal-missing"  # its loss is low, and all of its translations are wrong


def train_own(folder: Folder, out: Path, mistakes: Sequence[str], options: DemoOptions) -> int:
    """Train the demo's translator with learned parts and mistakes; return the exit status."""
    for lesson in lessons():  # a notebook's own check makes no note in its folder
        if not folder.learned(lesson) and not folder.untouched(lesson):
            checked_once(folder, lesson)
    parts = chosen_parts(folder, mistakes)
    whose = {part.place: part.whose for part in parts}
    write_record(out, parts, folder)
    _print_parts(whose)
    forms = own_parts(parts)
    with running(parts):
        book, status = train_on_phrases(options, out, parts=forms, whose=whose, changes=_TRAINING)
        if status:
            return status
        translator = Translator.load(out, parts=forms)
        texts = _translated(translator, book.test, beam=1)
        searched = book.test[:_SEARCHED]
        right = _right(searched, _translated(translator, searched, beam=_BEAM))
    share = 100 * _right(book.test, texts) / len(book.test)
    learned = f"write {share:.1f} % of {len(book.test):,} phrases with years that it had not read"
    learned = f"From {len(book.train):,} pairs and no rule, this translator learned to {learned}."
    console = new_console()
    console.print(Text(f"{learned}\n{_ran(parts)}"))
    console.print(Text(_to_try(folder, out, mistakes)), soft_wrap=True)
    console.print(score_table("exact match on held-out years", book.test, {"right": texts}))
    print(f"beam search with {_BEAM}: {right} of {len(searched)} phrases are right")
    print(f"a translator: {out}")
    return 0


def _translated(translator: Translator, phrases: Sequence[Phrase], beam: int) -> list[str]:
    texts = [phrase.source for phrase in phrases]
    return [translation.text for translation in translator.translate(texts, beam=beam)]


def _right(phrases: Sequence[Phrase], texts: Sequence[str]) -> int:
    return sum(phrase.target == text for phrase, text in zip(phrases, texts, strict=True))


def _ran(parts: Sequence[Part]) -> str:
    """The sentence about the learner's parts that ran, and about those that no step called."""
    own = [part for part in parts if not part.mistakes]
    ran = ", ".join(dict.fromkeys(part.lesson for part in own if part.calls))
    unused = ", ".join(hole_of(part.place) for part in own if not part.calls)
    text = f"Your parts of these lessons ran in it: {ran}" if ran else "No part of yours ran in it"
    return f"{text}; nothing called {unused}." if unused else f"{text}."


def _to_try(folder: Folder, out: Path, mistakes: Sequence[str]) -> str:
    """The sentence about the next experiment, and a line for each of its commands."""
    right = Folder(folder.path / "translator")
    if not mistakes:
        train = folder.command("train", "--mistake", _MISTAKE)
        compare = Folder(out).command("compare", f"{right.path}-{_MISTAKE}")
        return f"To see the harm of a mistake, train with it and compare:\n{train}\n{compare}"
    train = "" if right.path.exists() else f"\n{folder.command('train')}"
    return f"To see the harm, compare:{train}\n{right.command('compare', str(out))}"


@contextmanager
def with_parts(bundle: Path, folder: Path | None, stock: Parts) -> Iterator[Parts]:
    """The parts of a folder of lessons, and the mistakes of the bundle's training.

    Without a folder and without mistakes, the function yields the ``stock`` parts.
    """
    if folder is None and not any(each.mistakes for each in read_record(bundle)):
        yield stock
        return
    parts = parts_for(bundle, folder)
    names = (f"{hole_of(x.place)} (a mistake)" if x.mistakes else x.lesson for x in parts)
    listed = ", ".join(dict.fromkeys(names)) or "none"
    print(f"parts of {folder or bundle}, by the plain path: {listed}", file=sys.stderr)
    with running(parts):
        yield own_parts(parts)


def _print_parts(whose: Mapping[str, str]) -> None:
    """Print each owner's lessons, and the names of mistaken parts and of unused parts."""
    owners: dict[str, list[str]] = {}
    for lesson in lessons():
        for place in lesson.holes.values():
            owner = whose.get(place, "the package's")
            if place in UNUSED:
                owner = f"never run, because {UNUSED[place]}"
            alone = place in UNUSED or owner.startswith("mistake")
            owners.setdefault(owner, []).append(hole_of(place) if alone else lesson.name)
    for owner, names in owners.items():
        new_console().print(Text(f"{owner}: {', '.join(dict.fromkeys(names))}"))


@contextmanager
def running(parts: Sequence[Part]) -> Iterator[None]:
    """Turn an error inside the parts into an InputError of one line."""
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
