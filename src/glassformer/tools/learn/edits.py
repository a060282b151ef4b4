"""Applies known mistakes, which are edits of the right solution, and runs the edited files.

The right solution of a hole is a function or method of the package. Its file runs once more, in a
module of its own, with the text of the edit in it. So one record names a mistake, shows its line,
and trains a translator with it.
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
]

FILES = (
    "data.batches",
    *("model.masks", "model.attention", "model.positions", "model.embeddings", "model.blocks"),
    *("model.forms", "model.cache", "model.encoder", "model.decoder", "model.transformer"),
    *("decoding.greedy", "decoding.beam"),
    *("training.loss", "training.schedule", "training.optimiser"),
)
"""The files that hold the places of all parts; each imports those before it."""


class EditError(ValueError):
    """An edit does not fit: its text does not stand once in its hole."""


@cache
def solution(lesson: Lesson, *mistakes: str) -> Solution:
    """The right solution of a lesson's holes, with these known mistakes; made once.

    :class:`EditError` if two of them change the same text.
    """
    names = {hole.partition(".")[0]: file_of(place) for hole, place in lesson.holes.items()}
    known = filter(set(names.values()).__contains__, FILES)
    files = list(dict.fromkeys((*known, *sorted(names.values()))))
    texts = mistaken_texts({lesson: mistakes})
    first = next((place for place, file in enumerate(files) if file in texts), len(files))
    modules = {file: import_module(f"glassformer.{file}") for file in files[:first]}
    modules |= executed(files[first:], texts)
    return SimpleNamespace(**{name: vars(modules[file])[name] for name, file in names.items()})


def mistaken_texts(mistakes: Mapping[Lesson, Iterable[str]]) -> dict[str, str]:
    """The texts of the files that these mistakes of the lessons change, by the files' names."""
    texts: dict[str, str] = {}
    for lesson, names in mistakes.items():
        for name in names:
            mistake = lesson.mistakes[name]
            file = file_of(lesson.place_of(mistake.hole))
            text = texts.get(file) or _text(file)
            if mistake.body and source_of(text, mistake.hole) not in _text(file):
                raise EditError(f"{name}: {mistake.hole} has another mistake already")
            texts[file] = edited(text, mistake)
    return texts


def edited(text: str, mistake: KnownMistake) -> str:
    """The text of a file with a mistake in it.

    Lines of an edit after the first are indented as the body of the hole is.
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
    text = _text(file_of(lesson.place_of(known.hole)))
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
    """Files of the package once more, some with another text; by the names of the files.

    Each file that imports an earlier one gets the earlier one's new module. ``put`` may change a
    module before the others import it.
    """
    modules: dict[str, ModuleType] = {}

    def importing(name: str, *rest: Any) -> Any:
        """``import`` of such a file: it finds the files that ran before it."""
        names = (rest[2] if len(rest) > 2 else None) or ()  # None: import without from
        if name in modules:
            return modules[name]
        found = builtins.__import__(name, *rest)
        inside = {each: modules[f"{name}.{each}"] for each in names if f"{name}.{each}" in modules}
        if not inside:
            return found
        package = ModuleType(name)
        vars(package).update(vars(found) | inside)
        return package

    for file in files:
        module = ModuleType(f"glassformer.{file}")
        vars(module)["__builtins__"] = {**vars(builtins), "__import__": importing}
        exec(_compiled(file, texts.get(file) or _text(file)), vars(module))
        put(file, module)
        modules[module.__name__] = module
    return {name.removeprefix("glassformer."): module for name, module in modules.items()}


def file_of(place: str) -> str:
    """The file of a place: classes alone begin with a capital letter.

    >>> file_of("model.blocks.FeedForward.forward"), file_of("model.masks.padding_mask")
    ('model.blocks', 'model.masks')
    """
    file, *_ = place.rpartition(".")
    owner = file.rpartition(".")[2]
    return file.rpartition(".")[0] if owner[0].isupper() else file


def _path(file: str) -> Path:
    """The path of a file; the module is imported, as the dataclasses of its new module want it."""
    return Path(str(import_module(f"glassformer.{file}").__file__))


@cache
def _text(file: str) -> str:
    return _path(file).read_text(encoding="utf-8")


@lru_cache(maxsize=64)
def _compiled(file: str, text: str) -> CodeType:
    return compile(text, str(_path(file)), "exec")
