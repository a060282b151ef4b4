"""From the command line and a YAML file to a command's options, with one-line errors.

A command's options are one pydantic class. The types, bounds, defaults and docstrings of its fields
make the argparse parser, the ``--help`` and the checks. A field with a ``title`` is positional.
Any other field is a flag, which an alias renames. The class
attribute ``groups`` names the headings of the help, and the first field under each heading.
"""

import argparse
import inspect
import re
import shutil
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NoReturn, TypeVar, Union, get_args, get_origin

from pydantic import AliasChoices, ValidationError
from pydantic.fields import FieldInfo

from glassformer.config import Options
from glassformer.support.errors import ChecksumError, UsageError
from glassformer.support.other_names import remedy
from glassformer.support.strangers import option_fault, read_yaml

__all__ = ["help_text", "naming_options", "parse_options"]

_Model = TypeVar("_Model", bound=Options)

# A word that begins an option; "-3" and "- Yes, he said." are values.
_FLAG = re.compile(r"(--?[A-Za-z][\w-]*)(=.*)?", re.DOTALL)
_LONGEST_METAVAR = 60  # so that a line of the help fits 80 columns
_CONFIG = "YAML file of options; an option on the line wins over it (default: none)"


@dataclass(frozen=True)
class _Option:
    """A field with its command-line form, ``--d-model`` or a positional such as BUNDLE."""

    field: str
    info: FieldInfo

    @property
    def keys(self) -> list[str]:
        """The option's names in YAML, the flag's first; pydantic names the last, a field's."""
        alias = self.info.validation_alias
        names = alias.choices[::-1] if isinstance(alias, AliasChoices) else [alias or self.field]
        return [str(name) for name in names]

    @property
    def types(self) -> list[Any]:
        """The alternatives of the field's type, with NoneType if the field allows None."""
        kind = self.info.annotation
        return list(get_args(kind)) if get_origin(kind) in (Union, UnionType) else [kind]

    @property
    def flags(self) -> list[str]:
        flags = ["--" + key.replace("_", "-") for key in self.keys]
        return [*flags, "--no-" + flags[0][2:]] if self.types == [bool] else flags

    @property
    def name(self) -> str:
        return self.info.title or self.flags[0]

    @property
    def nargs(self) -> int | str | None:
        """The number of words after the flag, in argparse's form."""
        if self.types == [bool]:
            return 0
        if get_origin(self.types[0]) is not tuple:
            return None
        items = get_args(self.types[0])
        return "+" if items[-1] is Ellipsis else len(items)

    @property
    def metavar(self) -> str:
        return "NAME" if len(self.choices) > _LONGEST_METAVAR else self.choices

    @property
    def choices(self) -> str:
        return "|".join(_metavar(kind) for kind in self.types if kind is not NoneType)

    @property
    def doc(self) -> str:
        default = self.info.default
        if isinstance(default, tuple):
            default = " ".join(map(str, default))
        if isinstance(default, bool):
            default = "yes" if default else "no"
        shown = "none" if default == "" else default
        end = "(required)" if self.info.is_required() else f"(default: {shown})"
        choices = f" NAME: {', '.join(self.choices.split('|'))}." if self.metavar == "NAME" else ""
        return f"{self.info.description} {end}{choices}".replace("%", "%%")


def _metavar(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return "|".join(map(str, get_args(kind)))
    if get_origin(kind) in (tuple, Annotated):
        return _metavar(get_args(kind)[0])
    return {int: "N", float: "X", Path: "PATH"}.get(kind, "TEXT")


class _Store(argparse.Action):
    """Stores the words or the truth value of an option; refuses a second use of an option."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        flag = option_string or ""
        if hasattr(namespace, self.dest):
            parser.error(f"{flag} is given twice")
        setattr(namespace, self.dest, values if self.nargs != 0 else not flag.startswith("--no-"))


class _Parser(argparse.ArgumentParser):
    """A parser that raises errors, and reads words such as "-1e-3" as values."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(add_help=False, allow_abbrev=False, **settings)
        self._negative_number_matcher = re.compile(r"-(?![A-Za-z-])")

    def error(self, message: str) -> NoReturn:
        message = message.removeprefix("argument ")
        raise UsageError(message.replace("ignored explicit argument", "takes no value, got"))


class _Help(argparse.RawDescriptionHelpFormatter):
    """A formatter that breaks lines between words only: ``--api-key-file`` stays whole."""

    def _split_lines(self, text: str, width: int) -> list[str]:
        return textwrap.wrap(" ".join(text.split()), width, break_on_hyphens=False)


def help_text(options: type[Options], command: str) -> str:
    """Every option with its docstring and its default, in lines of the terminal's width."""
    known = _options_of(options)
    parser = _parser(known, options.groups)
    for option in known:
        if option.info.title:
            parser.add_argument(option.keys[0], metavar=option.name, help=option.doc)
    width = shutil.get_terminal_size().columns - 2
    paragraphs = inspect.cleandoc(options.__doc__ or "").split("\n\n")
    parser.description = "\n\n".join(
        textwrap.fill(text, width, break_on_hyphens=False) for text in paragraphs
    )
    parser.usage = " ".join([command, *_required(known), options.usage_end])
    return parser.format_help()


def parse_options(options: type[_Model], words: Sequence[str]) -> _Model:
    """The checked options of a command line.

    ``--config FILE`` reads options from FILE; an option on the command line wins over FILE.

    Raises:
        UsageError: an option is unknown, missing, given twice, or of a wrong type or range.
        InputError: the file is no mapping in YAML.
    """
    known = _options_of(options)
    line_values = _from_line(words, known, options)
    path = line_values.pop("config", None)
    file_values = {} if path is None else _from_file(Path(path), known)
    try:
        return options.model_validate({**file_values, **line_values})
    except ValidationError as error:
        names = {key: option.name for option in known for key in option.keys}
        names |= {key: f"{path}: {key}" for key in file_values.keys() - line_values.keys()}
        raise UsageError(option_fault(error, names)) from error


@contextmanager
def naming_options(options: type[Options]) -> Iterator[None]:
    """In an error that names an argument, put the option that holds the argument."""
    names = {option.field: option.name for option in _options_of(options)}
    try:
        yield
    except UsageError as error:
        if error.argument in names:
            text = str(error).removeprefix(error.argument)
            raise UsageError(names[error.argument] + text) from error
        raise
    except ChecksumError as error:
        if "verify" in names:
            raise ChecksumError(f"{error}; --no-verify loads it unchecked") from error
        raise


def _options_of(options: type[Options]) -> list[_Option]:
    """The options of a command: ``shown_first``, other own options, then shared options."""
    declared, first = inspect.get_annotations(options), options.shown_first

    def place(option: _Option) -> int:
        if option.field in first:
            return first.index(option.field)
        return len(first) + (not (option.info.title or option.field in declared))

    known = [_Option(field, info) for field, info in options.model_fields.items()]
    return sorted(known, key=place)


def _required(known: Iterable[_Option]) -> Iterator[str]:
    """The words of the usage line."""
    for option in known:
        if option.info.title:
            yield option.name if option.info.is_required() else f"[{option.name}]"
        elif option.info.is_required():
            yield f"{option.name} {option.metavar}"


def _parser(known: Iterable[_Option], groups: Mapping[str, str]) -> _Parser:
    """A parser of the flags, each group under its heading; ``_placed`` takes the positionals."""
    parser = _Parser(argument_default=argparse.SUPPRESS, formatter_class=_Help)
    group = parser.add_argument_group("options")
    for option in known:
        if option.field in groups:
            group = parser.add_argument_group(groups[option.field])
        if not option.info.title:
            group.add_argument(
                *option.flags,
                dest=option.keys[0],
                action=_Store,
                nargs=option.nargs,
                metavar=option.metavar,
                help=option.doc,
            )
    group.add_argument("--config", action=_Store, metavar="FILE", help=_CONFIG)
    return parser


def _from_line(
    words: Sequence[str], known: Sequence[_Option], options: type[Options]
) -> dict[str, Any]:
    """The values of the command line by key, as strings."""
    parser = _parser(known, options.groups)
    end = words.index("--") if "--" in words else len(words)
    namespace, rest = parser.parse_known_args([_dashed(word) for word in words[:end]])
    for word in rest:
        if match := _FLAG.fullmatch(word):
            raise UsageError(f"unknown option {match[1]}{_remedy(match[1], known)}")
    values = vars(namespace) | _placed([*rest, *words[end + 1 :]], known, options.usage_end)
    optional = {option.keys[0] for option in known if NoneType in option.types}
    return {k: None if k in optional and v == "None" else v for k, v in values.items()}


def _remedy(flag: str, known: Iterable[_Option]) -> str:
    """A hint that names the nearest option, or shows how to write a positional without a flag."""
    for option in known:
        if option.info.title and flag in option.flags:
            return f": write {option.name} without it"
    flags = [flag for option in known if not option.info.title for flag in option.flags]
    return remedy(flag, [*flags, "--config"])


def _dashed(word: str) -> str:
    """A flag with hyphens for underscores: ``--d-model=8`` for ``--d_model=8``."""
    match = _FLAG.fullmatch(word)
    return match[1].replace("_", "-") + (match[2] or "") if match else word


def _placed(words: list[str], known: Iterable[_Option], usage_end: str) -> dict[str, Any]:
    """The values of the positionals, in the order of the positionals."""
    positionals = [option for option in known if option.info.title]
    values: dict[str, Any] = {}
    for positional in positionals:
        if words and positional.nargs == "+":
            values[positional.keys[0]], words = words, []
        elif words:
            values[positional.keys[0]], *words = words
    if words:
        wanted = " ".join([*(positional.name for positional in positionals), usage_end])
        raise UsageError(f"unexpected {words[0]!r}: expected {wanted}")
    return values


def _from_file(path: Path, known: Iterable[_Option]) -> dict[str, Any]:
    """The values in the file by key; null leaves an option to its default."""
    by_key = {key: option for option in known for key in option.keys}
    by_option: dict[str, Any] = {}
    for name, value in read_yaml(path).items():
        key = str(name).replace("-", "_")
        if key not in by_key:
            raise UsageError(f"{path}: unknown option {name!r}{remedy(key, by_key)}")
        option = by_key[key]
        if option.keys[0] in by_option:
            raise UsageError(f"{path}: {' and '.join(option.keys)} name one option: give it once")
        values = value if isinstance(value, list) else [value]
        if option.nargs != 0 and any(isinstance(item, bool) for item in values):
            raise UsageError(
                f"{path}: {name} holds a truth value; a word such as no, yes, on or off must stand"
                " in quotes in YAML"
            )
        if value is not None:
            by_option[option.keys[0]] = values if option.nargs == "+" else value
    return by_option
