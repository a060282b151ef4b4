"""Options from a YAML file: the same names as on the command line, checked the same way."""

import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import Any, get_type_hints

import tyro
import yaml
from pydantic import BaseModel

from glassformer.errors import InputError, UsageError, nearest

__all__ = ["words_from_file"]


def words_from_file(options: Any, words: list[str]) -> list[str]:
    """``words`` with ``--config FILE`` replaced by what the file says; the others come later.

    The file is a mapping of option names to values; a name that the command does not have is an
    error that names the nearest. What is said on the line as well wins.
    """
    rest, path = _take_config(words)
    if path is None:
        return rest
    known = _fields(options)
    if not known:
        raise UsageError("this command has subcommands and takes no --config")
    said = {
        word.split("=")[0].removeprefix("--no-").removeprefix("--")
        for word in rest
        if word[:2] == "--"
    }
    positional: list[str] = []
    flags: list[str] = []
    for name, value in _read(path).items():
        field = str(name).replace("-", "_")
        if field not in known:
            raise UsageError(f"{path}: unknown option {name!r}{nearest(field, known)}")
        flag = field.replace("_", "-")
        if value is None or flag in said:
            continue
        values = [str(item) for item in value] if isinstance(value, list) else [str(value)]
        if known[field]:
            positional += values
        elif isinstance(value, bool):
            flags.append(f"--{flag}" if value else f"--no-{flag}")
        elif values:
            flags += [f"--{flag}", *values]
    own = any(not word.startswith("-") for word in rest[:1])  # files on the line come first
    return [*([] if own else positional), *rest, *flags]


def _take_config(words: list[str]) -> tuple[list[str], Path | None]:
    for place, word in enumerate(words):
        if word == "--config":
            if place + 1 == len(words):
                raise UsageError("--config needs a file")
            return words[:place] + words[place + 2 :], Path(words[place + 1])
        if word.startswith("--config="):
            return words[:place] + words[place + 1 :], Path(word.removeprefix("--config="))
    return words, None


def _read(path: Path) -> dict[Any, Any]:
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{path}: not YAML ({reason})") from error
    if not isinstance(content, dict):
        raise InputError(f"{path}: expected a mapping of options to values, one a line")
    return content


def _fields(options: Any) -> dict[str, bool]:
    """The names of a command's options, and whether each is positional."""
    names: Iterable[str]
    if isinstance(options, type) and issubclass(options, BaseModel):
        return {
            name: tyro.conf.Positional is not None and _is_positional(field.metadata)
            for name, field in options.model_fields.items()
        }
    if dataclasses.is_dataclass(options):
        names = [field.name for field in dataclasses.fields(options)]
        hints = get_type_hints(options, include_extras=True)
        return {name: _is_positional(getattr(hints[name], "__metadata__", ())) for name in names}
    return {}


def _is_positional(metadata: Iterable[Any]) -> bool:
    marker = tyro.conf.Positional[int].__metadata__[0]  # type: ignore[attr-defined]
    return any(item is marker for item in metadata)
