"""From words and a YAML file to a command's options, every fault said in one line.

A command's options are a class: its fields' types, defaults and docs make the ``--help`` (by tyro)
and the checks (by pydantic). In between stands this file: it splits the command line into values by
field, lays them over those of ``--config FILE``, and says which of the two a wrong value is from.
"""

import dataclasses
import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import tyro
import yaml
from pydantic import BaseModel, TypeAdapter, ValidationError

from glassformer.errors import InputError, UsageError, nearest

__all__ = ["choose_kind", "first_fault", "parse_options", "print_help"]

# What begins an option; "-3" and "- Yes, he said." are values.
_FLAG = re.compile(r"--?[A-Za-z][\w-]*(=.*)?", re.DOTALL)
_SHOWN = 60  # characters of a wrong value
_WORDS = {
    r"^Input should be (?=greater|less)": "expected a number ",
    r"^Input should be ": "expected ",
    r"^Input is not a valid path.*": "expected a path",
    r"^Tuple should have (at \w+ \d+) items? after validation": r"expected \1 values",
    r"a valid integer.*": "a whole number",
    r"a valid (\w+), unable to .*": r"a \1",
}


@dataclasses.dataclass(frozen=True)
class _Option:
    """A field, and how it stands on the command line: ``--d-model``, or a place such as BUNDLE."""

    field: str
    type: Any  # without None
    optional: bool
    place: str | None  # the name of its place where it has no flag
    flag: str  # its name on the command line, without the dashes
    aliases: tuple[str, ...] = ()  # other names that are accepted, with their dashes

    @property
    def name(self) -> str:
        return self.place or "--" + self.flag

    @property
    def count(self) -> int | None:
        """How many words follow; None: any number from 1."""
        if self.type is bool:
            return 0
        if get_origin(self.type) is not tuple:
            return 1
        items = get_args(self.type)
        return None if items[-1] is Ellipsis else len(items)

    def value(self, words: Sequence[str]) -> Any:
        if self.optional and list(words) == ["None"]:
            return None
        return list(words) if get_origin(self.type) is tuple else words[0]


def choose_kind(options: Any, words: list[str], command: str) -> tuple[Any, list[str], str]:
    """Where a command has several kinds: the options of the one that ``words`` begin with.

    ``options`` is then a union of ``Annotated[Class, tyro.conf.subcommand("kind")]``. Returned are
    the class, the words after the kind, and the whole command.
    """
    kinds = {
        marker.name: get_args(member)[0]
        for member in get_args(options)
        for marker in getattr(member, "__metadata__", ())
    }
    if not kinds or words[:1] in (["-h"], ["--help"]):
        return options, words, command
    if not words or words[0] not in kinds:
        found = f"unknown kind {words[0]!r}{nearest(words[0], kinds)}: " if words else ""
        raise UsageError(f"{command}: {found}expected one of {', '.join(kinds)}")
    return kinds[words[0]], words[1:], f"{command} {words[0]}"


def print_help(options: Any, command: str) -> None:
    """Every option with its doc and its default."""
    try:
        tyro.cli(options, args=["--help"], prog=command, config=(tyro.conf.OmitArgPrefixes,))
    except SystemExit:  # tyro ends the program after the help
        return


def parse_options(options: type, words: Sequence[str]) -> Any:
    """The options that ``words`` say, checked.

    ``--config FILE`` stands for what that file says; what is on the line as well wins.

    Raises:
        UsageError: an option is unknown, missing, given twice, or of a wrong type or range.
        InputError: the file cannot be read, or is no mapping in YAML.
    """
    known = {option.field: option for option in _options_of(options)}
    rest, path = _take_config(list(words))
    said = _split(rest, known)
    stored = {} if path is None else _from_file(path, known)
    try:
        return TypeAdapter(options).validate_python({**stored, **said})
    except ValidationError as error:
        names = {field: option.name for field, option in known.items()}
        names |= {field: f"{path}: {field}" for field in stored.keys() - said.keys()}
        raise UsageError(first_fault(error, names)) from error


def first_fault(error: ValidationError, names: Mapping[str, str] | None = None) -> str:
    """The first thing that pydantic found wrong, as one line; ``names`` says what to call fields.

    >>> try: TypeAdapter(int).validate_python("many")
    ... except ValidationError as error: first_fault(error, {})
    "'many': expected a whole number"
    """
    fault, *others = error.errors()
    where = [str(part) for part in fault["loc"]]
    name = (names or {}).get(where[0], where[0]) if where else ""
    if fault["type"] == "missing":
        return f"{name} is missing" if len(where) == 1 else f"{name}: too few values"
    if fault["type"] == "value_error":  # of a validator: it says all that there is to say
        return f"{name} {fault['ctx']['error']}".strip()
    # A value that fits none of several types has a fault for each: (field, type).
    union = len(where) > 1 and isinstance(fault["loc"][1], str)
    same = [other for other in others if union and other["loc"][0] == where[0]]
    first, *more = dict.fromkeys(_expected(one["msg"]) for one in (fault, *same))
    hint = ""
    if fault["type"] == "literal_error":
        hint = nearest(str(fault["input"]), re.findall(r"'([^']+)'", fault["ctx"]["expected"]))
    expected = " or ".join([first, *(text.removeprefix("expected ") for text in more)])
    return f"{name} {_shown(fault['input'])}: {expected}{hint}".strip()


def _expected(message: str) -> str:
    """Pydantic's message in this program's words."""
    for pattern, words in _WORDS.items():
        message = re.sub(pattern, words, message)
    return message


def _shown(value: Any) -> str:
    text = " ".join(map(str, value)) if isinstance(value, list) else repr(value)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


def _options_of(options: Any) -> Iterator[_Option]:
    """The fields of a pydantic model or a dataclass."""
    hints = get_type_hints(options, include_extras=True)
    if issubclass(options, BaseModel):
        fields = list(options.model_fields)
    else:
        fields = [field.name for field in dataclasses.fields(options)]
    marks: tuple[Any, ...]
    for field in fields:
        hint, marks = hints[field], ()
        if get_origin(hint) is Annotated:
            hint, marks = hint.__origin__, hint.__metadata__
        members = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
        real = [member for member in members if member is not NoneType]
        place = None
        if any(mark is tyro.conf.Positional for mark in marks):
            metavars = [getattr(mark, "metavar", None) for mark in marks]
            place = next(filter(None, metavars), field.upper())
        names = [mark.name for mark in marks if getattr(mark, "name", None)]
        aliases = [name for mark in marks for name in getattr(mark, "aliases", None) or ()]
        yield _Option(
            field,
            real[0] if len(real) == 1 else hint,
            NoneType in members,
            place,
            next(iter(names), field.replace("_", "-")),
            tuple(aliases),
        )


def _split(words: Sequence[str], known: Mapping[str, _Option]) -> dict[str, Any]:
    """The values on the line, by field, still as words."""
    flags = {option.name: option for option in known.values() if option.place is None}
    aliases = {name: option for option in known.values() for name in option.aliases}
    negated = {f"--no-{name[2:]}": flag for name, flag in flags.items() if flag.count == 0}
    said: dict[str, Any] = {}
    loose: list[str] = []
    rest = deque(words)
    while rest:
        word = rest.popleft()
        if word == "--":
            loose += rest
            break
        if not _FLAG.fullmatch(word):
            loose.append(word)
            continue
        flag, equals, value = word.partition("=")
        flag = flag.replace("_", "-")
        option = flags.get(flag) or aliases.get(flag) or negated.get(flag)
        if option is None:
            raise UsageError(f"unknown option {flag}{nearest(flag, [*flags, '--config'])}")
        if option.field in said:
            raise UsageError(f"{flag} is given twice")
        if option.count == 0:
            if equals:
                raise UsageError(f"{flag} takes no value, got {value!r}")
            said[option.field] = flag in flags
        else:
            said[option.field] = option.value([value] if equals else _following(option, rest))
    return {**said, **_placed(loose, known)}


def _following(option: _Option, rest: deque[str]) -> list[str]:
    """Take the words that belong to an option."""
    taken: list[str] = []
    while rest and not _FLAG.fullmatch(rest[0]) and rest[0] != "--" and len(taken) != option.count:
        taken.append(rest.popleft())
    if len(taken) < (option.count or 1):
        wanted = {None: "at least one value", 1: "a value"}.get(
            option.count, f"{option.count} values"
        )
        got = f", got {' '.join(taken)}" if taken else ""
        raise UsageError(f"{option.name} needs {wanted}{got}")
    return taken


def _placed(loose: list[str], known: Mapping[str, _Option]) -> dict[str, Any]:
    """Words without a flag go to the places, in their order."""
    places = [option for option in known.values() if option.place is not None]
    said: dict[str, Any] = {}
    for option in places:
        taken = loose[: option.count] if option.count else loose
        if taken:
            said[option.field] = option.value(taken)
        loose = loose[len(taken) :]
    if loose:
        wanted = f"only {' '.join(place.name for place in places)} and options" if places else ""
        raise UsageError(f"unexpected {loose[0]!r}: expected {wanted or 'options'}")
    return said


def _take_config(words: list[str]) -> tuple[list[str], Path | None]:
    """The words without ``--config FILE``, and the file."""
    if sum(word == "--config" or word.startswith("--config=") for word in words) > 1:
        raise UsageError("--config is given twice")
    for place, word in enumerate(words):
        if word == "--config":
            if place + 1 == len(words):
                raise UsageError("--config needs a file")
            return words[:place] + words[place + 2 :], Path(words[place + 1])
        if word.startswith("--config="):
            return words[:place] + words[place + 1 :], Path(word.removeprefix("--config="))
    return words, None


def _from_file(path: Path, known: Mapping[str, _Option]) -> dict[str, Any]:
    """What the file says, by field; null leaves an option to its default."""
    stored: dict[str, Any] = {}
    for name, value in _read(path).items():
        field = str(name).replace("-", "_")
        if field not in known:
            raise UsageError(f"{path}: unknown option {name!r}{nearest(field, known)}")
        option = known[field]
        values = value if isinstance(value, list) else [value]
        if option.type is not bool and any(isinstance(item, bool) for item in values):
            raise UsageError(
                f"{path}: {name} holds a truth value; a word such as no, yes, on or off must stand"
                " in quotes in YAML"
            )
        if value is not None:
            stored[field] = values if option.count is None else value
    return stored


def _read(path: Path) -> dict[Any, Any]:
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # a date that is none, say
        reason = " ".join(str(error).split())
        raise InputError(f"{path}: not YAML ({reason})") from error
    if not isinstance(content, dict):
        raise InputError(f"{path}: expected a mapping of options to values, one a line")
    return content
