"""A learner's parts, or known mistakes, in the place of the package's own.

Each hole of a lesson names its place in the package. :func:`in_place` puts a part there, for as
long as its block lasts, and counts the part's calls. Only the plain path calls the parts:
``train --plain``, and ``Translator.load(plain=True)``.
"""

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import Any

from glassformer.errors import UsageError, nearest
from glassformer.learn.adapters import ADAPTERS, IN_CONSTRUCTORS, UNUSED
from glassformer.learn.check import Solution, check_of
from glassformer.learn.folder import Folder
from glassformer.learn.judge import Judge, same
from glassformer.learn.lesson import Lesson, known_mistakes, lessons, part_of
from glassformer.learn.uncached_search import NOT_IN_STEP, uncached_search
from glassformer.learn.worker import load_module

__all__ = ["Part", "chosen_parts", "hole_of", "in_place", "learned_parts", "mistaken_parts"]


def hole_of(place: str) -> str:
    """A place without its modules: classes alone begin with a capital letter.

    >>> hole_of("model.blocks.FeedForward.forward"), hole_of("model.masks.padding_mask")
    ('FeedForward.forward', 'padding_mask')
    """
    *_, owner, name = place.split(".")
    return f"{owner}.{name}" if owner[0].isupper() else name


@dataclass
class Part:
    """One function or method for a place of the package, such as ``model.masks.padding_mask``.

    ``mistakes`` are the ids of the faults in it: a part without any is the learner's. ``helpers``
    are the other functions of its class, ``file`` the names in its file.
    """

    place: str
    function: Callable[..., Any]
    lesson: str
    mistakes: tuple[str, ...] = ()
    helpers: dict[str, Any] = field(default_factory=dict)
    file: dict[str, Any] = field(default_factory=dict, repr=False)
    calls: int = 0

    @property
    def home(self) -> str:
        """The place that the plain path calls; another one if an adapter is needed."""
        return ADAPTERS[self.place][0] if self.place in ADAPTERS else self.place

    @property
    def owner(self) -> Any:
        """The package's module or class that holds the home."""
        return part_of(self.home.rpartition(".")[0])

    @property
    def name(self) -> str:
        """The name at home."""
        return self.home.rpartition(".")[2]

    @property
    def hole(self) -> str:
        """The name in the learner's file, such as ``padding_mask`` or ``FeedForward.forward``."""
        return hole_of(self.place)

    @property
    def whose(self) -> str:
        return f"mistake {', '.join(self.mistakes)}" if self.mistakes else "yours"

    def counted(self) -> Callable[..., Any]:
        """The function in the form that fits its home.

        It counts its calls, and leaves out arguments that it does not take.
        """
        parameters = inspect.signature(self.function).parameters.values()
        takes_all = any(each.kind is each.VAR_KEYWORD for each in parameters)
        names = {each.name for each in parameters}

        @wraps(self.function)
        def call(*arguments: Any, **options: Any) -> Any:
            self.calls += 1
            if not takes_all:  # such as device=, which a lesson leaves out
                options = {name: value for name, value in options.items() if name in names}
            return self.function(*arguments, **options)

        return ADAPTERS[self.place][1](call) if self.place in ADAPTERS else call


def chosen_parts(folder: Folder | None, mistakes: Iterable[str]) -> list[Part]:
    """One part for each place: a mistake's, or the learner's of his learned lessons."""
    parts = learned_parts(folder) if folder else []
    return list({part.place: part for part in [*parts, *mistaken_parts(mistakes)]}.values())


def learned_parts(folder: Folder) -> list[Part]:
    """The parts of the folder's learned lessons. This runs the learner's files."""
    return [
        part
        for lesson in lessons()
        if folder.learned(lesson)
        for part in _parts(lesson, lesson.holes, load_module(folder.file(lesson)))
    ]


def mistaken_parts(mistakes: Iterable[str]) -> list[Part]:
    """The parts that make these known mistakes, and no other; mistakes of one lesson share one."""
    by_lesson: dict[str, list[str]] = {}
    for mistake in dict.fromkeys(mistakes):
        by_lesson.setdefault(_lesson_with(mistake).name, []).append(mistake)
    return [
        part
        for lesson in lessons()
        if lesson.name in by_lesson
        for part in _mistaken(lesson, by_lesson[lesson.name])
    ]


def _lesson_with(mistake: str) -> Lesson:
    known = known_mistakes()
    if mistake not in known:
        raise UsageError(
            f"unknown mistake {mistake!r}{nearest(mistake, known)}: expected an id, such as"
            f" {next(iter(known))!r}"
        )
    return known[mistake]


def _mistaken(lesson: Lesson, mistakes: Sequence[str]) -> Iterator[Part]:
    """The lesson's holes that the mistakes change, from its reference."""
    faults = {lesson.faults[mistake].switch: mistake for mistake in mistakes}
    if len(faults) < len(mistakes):
        raise UsageError(f"{' and '.join(mistakes)} exclude each other: give one of them")
    reference = check_of(lesson.name).reference(faults)
    judges = {hole: Judge.of(lesson, hole) for hole in lesson.holes}
    for mistake in mistakes:
        if mistake in IN_CONSTRUCTORS:
            raise UsageError(
                f"mistake {mistake!r} is made where a model is built: give another one"
            )
        changed = [
            hole
            for hole, judge in judges.items()
            if not same(judge.right, judge.results((mistake,)))
        ]
        if all(lesson.holes[hole] in UNUSED for hole in changed):
            reasons = dict.fromkeys(UNUSED[lesson.holes[hole]] for hole in changed)
            raise UsageError(
                f"mistake {mistake!r} changes no translator ({', '.join(reasons)}): give another"
            )
        for part in _parts(lesson, changed, reference):
            yield replace(part, mistakes=tuple(mistakes), file={})


def _parts(lesson: Lesson, holes: Iterable[str], solution: Solution) -> Iterator[Part]:
    for hole in holes:
        if lesson.holes[hole] in UNUSED:
            continue
        *path, name = hole.split(".")
        owner = solution
        for word in path:
            owner = getattr(owner, word)
        functions = {key: value for key, value in vars(owner).items() if inspect.isfunction(value)}
        yield Part(
            lesson.holes[hole],
            getattr(owner, name),
            lesson.name,
            helpers=functions if path else {},
            file=vars(solution),
        )


@contextmanager
def in_place(parts: Sequence[Part]) -> Iterator[None]:
    """The parts, each of another place, take the places of the package's own in this block.

    If a mistake is in a place that the cached search does not call, targets are found without it.
    """
    with ExitStack() as stack:
        if any(part.mistakes and part.place in NOT_IN_STEP for part in parts):
            stack.enter_context(uncached_search())
        for part in parts:
            if inspect.isclass(part.owner):
                stack.enter_context(_as_method(part))
            else:
                stack.enter_context(_as_function(part, parts))
        yield


@contextmanager
def _as_method(part: Part) -> Iterator[None]:
    """The part as a method of the package's class, with the helpers that the class lacks."""
    owner = part.owner
    before = vars(owner)[part.name]
    helpers = {name: value for name, value in part.helpers.items() if not hasattr(owner, name)}
    for name, value in {**helpers, part.name: part.counted()}.items():
        setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, part.name, before)
        for name in helpers:
            delattr(owner, name)


@contextmanager
def _as_function(part: Part, parts: Sequence[Part]) -> Iterator[None]:
    """The part in each module that has the package's function, its home and other parts' too.

    Modules that are imported meanwhile take it from its home, and lose it again at the end.
    """
    before, counted = part_of(part.home), part.counted()
    files = [each.file for each in parts if each.file is not part.file]
    _exchange(before, counted, files)
    try:
        yield
    finally:
        _exchange(counted, before, files)


def _exchange(old: Any, new: Any, files: Iterable[dict[str, Any]]) -> None:
    for namespace in [*_package(), *files]:
        for name, value in list(namespace.items()):
            if value is old:
                namespace[name] = new


def _package() -> Iterator[dict[str, Any]]:
    """The package's namespaces, without ``learn``: its checks compare with the package's own."""
    for name, module in list(sys.modules.items()):
        if f"{name}.".startswith("glassformer.") and not name.startswith("glassformer.learn"):
            yield vars(module)
