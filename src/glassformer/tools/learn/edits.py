"""Applies known mistakes, which are edits of the right solution, and runs the edited files.

The right solution of a hole is a function or method of the package. The file of that function runs
once more, in a new module, with the text of the edit. So one record names a mistake, shows the
changed line, and trains a translator with the mistake.
"""

import builtins
import difflib
import textwrap
from collections.abc import Callable, Iterable, Mapping
from functools import cache, lru_cache
from importlib import import_module
from pathlib import Path
from types import CodeType, ModuleType, SimpleNamespace
from typing import Any

from glassformer.tools.learn.check import Solution
from glassformer.tools.learn.lesson import KnownMistake, Lesson
from glassformer.tools.learn.source import lines_of, source_of

__all__ = [
    "FILES",
    "EditError",
    "changed_lines",
    "edited",
    "executed",
    "file_of",
    "mistaken_texts",
    "solution",
    "solution_of",
    "text_of",
]

FILES = (
    "data.batches",
    *("model.masks", "model.attention", "model.positions", "model.embeddings", "model.blocks"),
    *("model.forms", "model.cache", "model.encoder", "model.decoder", "model.transformer"),
    *("decoding.greedy", "decoding.beam"),
    *("training.loss", "training.schedule", "training.optimiser"),
)
"""The files that hold the places of all parts; a file imports only earlier files."""


class EditError(ValueError):
    """An edit has an old text that does not stand exactly once in the hole."""


@cache
def solution(lesson: Lesson, *mistakes: str) -> Solution:
    """The cached solution of a lesson's holes, right except for the known ``mistakes``.

    Raises :class:`EditError` if two mistakes change one text.
    """
    return solution_of(lesson, mistaken_texts({lesson: mistakes}))


def solution_of(lesson: Lesson, texts: Mapping[str, str]) -> Solution:
    """The package's solution of a lesson's holes, with other ``texts`` of some files."""
    names = {hole.partition(".")[0]: file_of(place) for hole, place in lesson.holes.items()}
    known = filter(set(names.values()).__contains__, FILES)
    files = list(dict.fromkeys((*known, *sorted(names.values()))))
    first = next((place for place, file in enumerate(files) if file in texts), len(files))
    modules = {file: import_module(f"glassformer.{file}") for file in files[:first]}
    modules |= executed(files[first:], texts)
    return SimpleNamespace(**{name: vars(modules[file])[name] for name, file in names.items()})


def mistaken_texts(mistakes: Mapping[Lesson, Iterable[str]]) -> dict[str, str]:
    """The new text of each file that a mistake changes, by the file's name."""
    texts: dict[str, str] = {}
    for lesson, names in mistakes.items():
        for name in names:
            mistake = lesson.mistakes[name]
            file = file_of(lesson.place_of(mistake.hole))
            text = texts.get(file) or text_of(file)
            if mistake.body and source_of(text, mistake.hole) not in text_of(file):
                raise EditError(f"{name}: {mistake.hole} has another mistake already")
            texts[file] = edited(text, mistake)
    return texts


def edited(text: str, mistake: KnownMistake) -> str:
    """The text of a file with a mistake in it.

    Later lines of an edit get the indent of the hole's body.
    """
    inside = lines_of(text, mistake.hole)
    if not inside:
        raise EditError(f"{mistake.hole}: no such function or class")
    lines = text.splitlines(keepends=True)
    code = "".join(lines[inside.start - 1 : inside.stop - 1])
    indent = code[: -len(code.lstrip())]
    if mistake.body:
        code = textwrap.indent(mistake.body.rstrip(), indent) + "\n"
    for old, new in mistake.edit.items():
        old, new = (part.replace("\n", f"\n{indent}") for part in (old, new))
        if code.count(old) != 1:
            raise EditError(f"{mistake.hole}: {old!r} stands {code.count(old)} times in it")
        code = code.replace(old, new)
    return "".join((*lines[: inside.start - 1], code, *lines[inside.stop - 1 :]))


def changed_lines(lesson: Lesson, mistake: str) -> str:
    """The lines of the right solution that a mistake changes, as a diff.

    >>> from glassformer.tools.learn.lesson import lesson
    >>> print(changed_lines(lesson("attention"), "mask-not-used"))
    - weights = masked_softmax(scores, mask)
    + weights = masked_softmax(scores)
    """
    known = lesson.mistakes[mistake]
    text = text_of(file_of(lesson.place_of(known.hole)))
    right, wrong = source_of(text, known.hole), source_of(edited(text, known), known.hole)
    compared = difflib.ndiff(right.splitlines(), wrong.splitlines())
    lines = [each for each in compared if each[0] in "-+"]
    indent = min(len(each) - len(each[2:].lstrip()) for each in lines if each[2:].strip()) - 2
    return "\n".join(f"{each[:2]}{each[2 + indent :]}".rstrip() for each in lines)


def executed(
    files: Iterable[str],
    texts: Mapping[str, str],
    put: Callable[[str, ModuleType], None] = lambda _, __: None,
) -> dict[str, ModuleType]:
    """New modules that run the package's ``files``, some with a changed text, by file name.

    A file that imports an earlier file gets the new module of that file. ``put`` may change a
    module before later files import it.
    """
    modules: dict[str, ModuleType] = {}

    def importing(name: str, *rest: Any) -> Any:
        """``import`` for the executed files, which finds the new modules of earlier files."""
        names = (rest[2] if len(rest) > 2 else None) or ()  # import without from has None
        if name in modules:
            return modules[name]
        imported = builtins.__import__(name, *rest)
        inside = {each: modules[f"{name}.{each}"] for each in names if f"{name}.{each}" in modules}
        if not inside:
            return imported
        package = ModuleType(name)
        vars(package).update(vars(imported) | inside)
        return package

    for file in files:
        module = ModuleType(f"glassformer.{file}")
        vars(module)["__builtins__"] = {**vars(builtins), "__import__": importing}
        exec(_compiled(file, texts.get(file) or text_of(file)), vars(module))
        put(file, module)
        modules[module.__name__] = module
    return {name.removeprefix("glassformer."): module for name, module in modules.items()}


def file_of(place: str) -> str:
    """The file of a place; a capital letter begins a class in the file.

    >>> file_of("model.blocks.FeedForward.forward"), file_of("model.masks.padding_mask")
    ('model.blocks', 'model.masks')
    """
    file, *_ = place.rpartition(".")
    owner = file.rpartition(".")[2]
    return file.rpartition(".")[0] if owner[0].isupper() else file


def _path(file: str) -> Path:
    """Import the module of a file, which new dataclasses need, and return the path of the file."""
    return Path(str(import_module(f"glassformer.{file}").__file__))


@cache
def text_of(file: str) -> str:
    """The text of the package's file."""
    return _path(file).read_text(encoding="utf-8")


@lru_cache(maxsize=64)
def _compiled(file: str, text: str) -> CodeType:
    return compile(text, str(_path(file)), "exec")
