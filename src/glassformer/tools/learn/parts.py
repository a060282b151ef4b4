"""A learner's parts, or known mistakes, as :class:`~glassformer.parts.Parts`.

Each hole of a lesson names a place in the package. :func:`own_parts` runs the files of the model
once more, in new modules. The new modules have the edits of mistakes, and the learner's parts in
the named places. The package's modules stay as they are. Each part counts its calls.
"""

import inspect
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial, wraps
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any

from glassformer.parts import FAST, PLAIN, Parts
from glassformer.support.errors import UsageError, nearest
from glassformer.tools.learn.adapters import ADAPTERS, UNUSED
from glassformer.tools.learn.edits import (
    FILES,
    EditError,
    executed,
    file_of,
    mistaken_texts,
    solution,
)
from glassformer.tools.learn.folder import Folder
from glassformer.tools.learn.lesson import Lesson, known_mistakes, lesson, lessons, part_of
from glassformer.tools.learn.source import load_module
from glassformer.tools.learn.uncached_search import NOT_IN_STEP, Uncached

__all__ = [
    "Part",
    "chosen_parts",
    "give_parts",
    "hole_of",
    "learned_parts",
    "mistaken_parts",
    "own_parts",
]


def hole_of(place: str) -> str:
    """A place without its file.

    >>> hole_of("model.blocks.FeedForward.forward"), hole_of("model.masks.padding_mask")
    ('FeedForward.forward', 'padding_mask')
    """
    return place.removeprefix(f"{file_of(place)}.")


@dataclass
class Part:
    """One function or method for a place of the package, such as ``model.masks.padding_mask``.

    ``mistakes`` are the ids of the mistakes in the part. A part without mistakes is the learner's,
    which a check has found right. A part without a ``function`` is an edited part of the package.
    ``helpers`` are other functions of the part's class, ``file`` has the names in the part's file.
    """

    place: str
    function: Callable[..., Any] | None
    lesson: str
    mistakes: tuple[str, ...] = ()
    helpers: dict[str, Any] = field(default_factory=dict)
    file: dict[str, Any] = field(default_factory=dict, repr=False)
    calls: int = 0

    @property
    def home(self) -> str:
        """The place in the package, which an adapter may change."""
        return ADAPTERS[self.place][0] if self.place in ADAPTERS else self.place

    @property
    def whose(self) -> str:
        return f"mistake {', '.join(self.mistakes)}" if self.mistakes else "yours"

    def counted(self, edited: Callable[..., Any] | None = None) -> Callable[..., Any]:
        """The part's function, or else ``edited``, in the form that fits the part's home.

        The result counts its calls, and drops arguments that the function does not take.
        """
        function = self.function or edited
        assert function is not None
        parameters = inspect.signature(function).parameters.values()
        takes_all = any(each.kind is each.VAR_KEYWORD for each in parameters)
        names = {each.name for each in parameters}

        def call(*arguments: Any, **options: Any) -> Any:
            self.calls += 1
            if not takes_all:  # such as device=, which a lesson leaves out
                options = {name: value for name, value in options.items() if name in names}
            return function(*arguments, **options)

        adapted = self.function is not None and self.place in ADAPTERS
        form = ADAPTERS[self.place][1](call) if adapted else call
        return wraps(part_of(self.home))(form)


def chosen_parts(folder: Folder | None, mistakes: Iterable[str]) -> list[Part]:
    """One part for each place; a part with a mistake replaces the learner's part."""
    parts = learned_parts(folder) if folder else []
    return list({part.place: part for part in [*parts, *mistaken_parts(mistakes)]}.values())


def learned_parts(folder: Folder) -> list[Part]:
    """Run the learner's files, and return the parts of the folder's learned lessons."""
    return parts_in({each.name: folder.file(each) for each in lessons() if folder.learned(each)})


def parts_in(files: Mapping[str, Path]) -> list[Part]:
    """Run a learner's files, and return the parts in them; ``files`` has a file for each lesson."""
    return [x for name, file in files.items() for x in _parts(lesson(name), load_module(file))]


def give_parts(module: ModuleType, files: Mapping[str, Path]) -> None:
    """Let a learner's module use the parts in other files, where it has imported the package's.

    Caches and memories stay the package's, because probes make them.
    """
    modules = _executed(parts_in(files))
    del modules["model.cache"]
    vars(module).update({name: _copied(value, modules) for name, value in vars(module).items()})


def mistaken_parts(mistakes: Iterable[str]) -> list[Part]:
    """The parts with known mistakes; mistakes in one place share a part."""
    known, by_lesson = known_mistakes(), defaultdict[str, list[str]](list)
    for mistake in dict.fromkeys(mistakes):
        if mistake not in known:
            raise UsageError(
                f"unknown mistake {mistake!r}{nearest(mistake, known)}: expected an id, such as"
                f" {next(iter(known))!r}"
            )
        by_lesson[known[mistake].name].append(mistake)
    return [
        part
        for lesson in lessons()
        if lesson.name in by_lesson
        for part in _mistaken(lesson, by_lesson[lesson.name])
    ]


def _mistaken(lesson: Lesson, mistakes: Sequence[str]) -> Iterator[Part]:
    """The parts of the package that the mistakes of a lesson edit."""
    try:
        wrong = solution(lesson, *mistakes)
    except EditError as error:
        raise UsageError(
            f"{' and '.join(mistakes)} exclude each other: give one of them"
        ) from error
    places: dict[str, list[str]] = {}
    for mistake in mistakes:
        place = lesson.place_of(lesson.mistakes[mistake].hole)
        if place not in ADAPTERS and file_of(place) not in FILES:
            reason = UNUSED.get(place, "only the lesson has its class")
            raise UsageError(f"mistake {mistake!r} changes no translator ({reason}): give another")
        places.setdefault(place, []).append(mistake)
    for place, names in places.items():
        adapted = file_of(place) not in FILES
        function = attrgetter(hole_of(place))(wrong) if adapted else None
        yield Part(place, function, lesson.name, tuple(names))


def _parts(lesson: Lesson, module: ModuleType) -> Iterator[Part]:
    for hole, place in lesson.holes.items():
        if place not in UNUSED:
            owner = hole.rpartition(".")[0]
            members = vars(getattr(module, owner)) if owner else {}
            helpers = {key: value for key, value in members.items() if inspect.isfunction(value)}
            function = attrgetter(hole)(module)
            yield Part(place, function, lesson.name, helpers=helpers, file=vars(module))


def own_parts(parts: Sequence[Part]) -> Parts:
    """The plain forms with ``parts`` in their places; each part has a different place.

    If a mistake is in a place that the cached search does not call, the search runs uncached.
    The searches are the fast forms, unless one of ``parts`` is in a search.
    """
    modules = _executed(parts)
    forms = {each.name: _copied(getattr(PLAIN, each.name), modules) for each in fields(PLAIN)}
    if not any(part.home.startswith("decoding.") for part in parts):
        forms |= {"greedy": FAST.greedy, "beam_search": FAST.beam_search}
    if mistakes := ", ".join(dict.fromkeys(each for part in parts for each in part.mistakes)):
        forms["model"].__qualname__ += f" with {mistakes}"
    if any(part.mistakes and part.place in NOT_IN_STEP for part in parts):
        forms["decoder"] = Uncached
    return replace(PLAIN, **forms | {"tried": not mistakes})


def _executed(parts: Sequence[Part]) -> dict[str, ModuleType]:
    """New modules of the package's files, with the parts in them, by the files' names."""
    edits: dict[Lesson, list[str]] = {}
    for part in parts:
        if part.function is None:
            edits.setdefault(lesson(part.lesson), []).extend(part.mistakes)
    modules = executed(FILES, mistaken_texts(edits), partial(_put, parts))
    for part in parts:  # give a learner's file the new modules' parts for all that it calls
        for hole, place in lesson(part.lesson).holes.items() if part.file else ():
            if hole in part.file and place not in ADAPTERS and file_of(place) in FILES:
                part.file[hole] = vars(modules[file_of(place)])[hole]
        part.file |= {name: _copied(value, modules) for name, value in part.file.items()}
    return modules


def _copied(value: Any, modules: Mapping[str, ModuleType]) -> Any:
    """The counterpart of a package's module, class or function in ``modules``, or the value."""
    if isinstance(value, ModuleType):
        return modules.get(value.__name__.removeprefix("glassformer."), value)
    module = modules.get(str(getattr(value, "__module__", "")).removeprefix("glassformer."))
    return getattr(module, getattr(value, "__name__", ""), value)


def _put(parts: Sequence[Part], file: str, module: ModuleType) -> None:
    """Put the parts of a file into its module, with the helpers that the module's class lacks."""
    for part in parts:
        if file_of(part.home) != file:
            continue
        owner_name, _, name = hole_of(part.home).rpartition(".")
        owner = getattr(module, owner_name) if owner_name else module
        for helper, value in part.helpers.items():
            if owner_name and not hasattr(owner, helper):
                setattr(owner, helper, value)
        if not name[0].isupper():  # a class has no calls to count
            setattr(owner, name, part.counted(getattr(owner, name, None)))
