"""A learner's parts, or known mistakes, as :class:`~glassformer.parts.Parts`.

Each hole of a lesson names its place in the package. :func:`own_parts` runs the files of the model
once more, in modules of their own, and puts the parts in their places. The package's modules stay
as they are. Each part counts its calls.
"""

import builtins
import inspect
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import wraps
from importlib.util import find_spec, module_from_spec
from operator import attrgetter
from types import ModuleType
from typing import Any

from glassformer.errors import UsageError, nearest
from glassformer.learn.adapters import ADAPTERS, IN_CONSTRUCTORS, UNUSED
from glassformer.learn.check import Solution, check_of
from glassformer.learn.folder import Folder
from glassformer.learn.judge import Judge, same
from glassformer.learn.lesson import Lesson, known_mistakes, lessons, part_of
from glassformer.learn.uncached_search import NOT_IN_STEP, Uncached
from glassformer.learn.worker import load_module
from glassformer.parts import PLAIN, Parts

__all__ = ["Part", "chosen_parts", "hole_of", "learned_parts", "mistaken_parts", "own_parts"]

_FILES = (
    "data.batches",
    *("model.masks", "model.attention", "model.positions", "model.embeddings", "model.blocks"),
    *("model.cache", "model.encoder", "model.decoder", "model.variants", "model.transformer"),
    *("decoding.greedy", "decoding.beam"),
    *("training.loss", "training.schedule", "training.optimiser"),
)
"""The files that hold the places of all parts; each imports those before it."""
_FIELDS = {
    "attention": "model.attention.scaled_dot_product_attention",
    "model": "model.transformer.Transformer",
    "greedy": "decoding.greedy.greedy",
    "beam_search": "decoding.beam.beam_search",
    "shift": "data.batches.shift",
    "losses": "training.loss.batch_losses",
    "adam": "training.optimiser.adam_of",
    "schedule": "training.schedule.noam_schedule",
}
"""The fields of the record of parts, and the place of each."""


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

    ``mistakes`` are the ids of the faults in it: a part without any is the learner's, whose check
    found it equal to the package's. ``helpers`` are the other functions of its class, ``file`` the
    names in its file.
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
    def whose(self) -> str:
        return f"mistake {', '.join(self.mistakes)}" if self.mistakes else "yours"

    def counted(self) -> Callable[..., Any]:
        """The function in the form that fits its home.

        It counts its calls, and leaves out arguments that it does not take.
        """
        parameters = inspect.signature(self.function).parameters.values()
        takes_all = any(each.kind is each.VAR_KEYWORD for each in parameters)
        names = {each.name for each in parameters}

        def call(*arguments: Any, **options: Any) -> Any:
            self.calls += 1
            if not takes_all:  # such as device=, which a lesson leaves out
                options = {name: value for name, value in options.items() if name in names}
            return self.function(*arguments, **options)

        form = ADAPTERS[self.place][1](call) if self.place in ADAPTERS else call
        return wraps(part_of(self.home))(form)


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
        owner = hole.rpartition(".")[0]
        members = vars(getattr(solution, owner)) if owner else {}
        yield Part(
            lesson.holes[hole],
            attrgetter(hole)(solution),
            lesson.name,
            helpers={key: value for key, value in members.items() if inspect.isfunction(value)},
            file=solution.__dict__,
        )


def own_parts(parts: Sequence[Part]) -> Parts:
    """The plain forms with these parts in their places, each of another place.

    If a mistake is in a place that the cached search does not call, targets are found without it.
    """
    modules = _executed(parts)
    own: dict[str, Any] = {}
    for each, place in _FIELDS.items():
        file, _, name = place.rpartition(".")
        own[each] = getattr(modules[f"glassformer.{file}"], name)
    if mistakes := ", ".join(dict.fromkeys(each for part in parts for each in part.mistakes)):
        own["model"].__qualname__ += f" with {mistakes}"
    if any(part.mistakes and part.place in NOT_IN_STEP for part in parts):
        own["decoder"] = Uncached
    return replace(PLAIN, **own)


def _executed(parts: Sequence[Part]) -> dict[str, ModuleType]:
    """The files of the package once more, with the parts in them; by their names."""
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

    for file in _FILES:
        name = f"glassformer.{file}"
        spec = find_spec(name)
        assert spec is not None
        assert spec.loader is not None
        module = module_from_spec(spec)
        vars(module)["__builtins__"] = {**vars(builtins), "__import__": importing}
        spec.loader.exec_module(module)
        for part in parts:
            if part.home.startswith(f"{file}."):
                _put(part, module, part.home.removeprefix(f"{file}."))
        modules[name] = module
    for part in parts:  # a learner's file imports the package's parts and files: it gets these
        for name, value in list(part.file.items()):
            if isinstance(value, ModuleType):
                part.file[name] = modules.get(value.__name__, value)
                continue
            place = modules.get(getattr(value, "__module__", ""))
            if place is not None and value is part_of(f"{value.__module__[12:]}.{name}"):
                part.file[name] = vars(place)[name]
    return modules


def _put(part: Part, module: ModuleType, name: str) -> None:
    """Put the part in its place; a method comes with the helpers that its class lacks."""
    owner: Any = module
    if "." in name:
        owner_name, name = name.split(".")
        owner = getattr(module, owner_name)
        for helper, value in part.helpers.items():
            if not hasattr(owner, helper):
                setattr(owner, helper, value)
    setattr(owner, name, part.counted())
