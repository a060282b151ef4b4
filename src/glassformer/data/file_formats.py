"""The formats of one file that holds both sides of a corpus: a pair on each line.

==============  ===========================================================================
``tsv``         source, a tab, target; quotes are ordinary characters
``tsv-quoted``  tsv, but a field may stand in ``"quotes"``; inside, ``""`` stands for a quote
``jsonl``       one JSON object, e.g. ``{"source": "Hallo", "target": "Hello"}``
==============  ===========================================================================

The fourth format, ``lines``, is two files with a sentence on each line. Errors of this module
describe the fault of a line; the caller adds the file and the line's number.
"""

import json
import re
from pathlib import Path
from typing import Literal, cast, get_args

from glassformer.support.errors import InputError, UsageError, check_choice, counted

__all__ = ["Format", "file_format", "join_record", "split_record"]

Format = Literal["lines", "tsv", "tsv-quoted", "jsonl"]

_SUFFIXES: dict[str, Format] = {
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
}
#: A field with or without quotes; a quote that opens and does not close gives no match.
_FIELD = re.compile(r'"([^"]*(?:""[^"]*)*)"|([^"\t][^\t]*|(?=\t|\Z))')


def file_format(
    source: Path | str, target: Path | str | None = None, *, format: str | None = None
) -> Format:
    """The format of a corpus: ``format`` if the caller gives it, else from the files' names.

    >>> file_format("train.de", "train.en"), file_format("train.tsv.gz")
    ('lines', 'tsv')
    """
    if format is not None:
        check_choice("format", format, get_args(Format))
    kind = cast("Format | None", format)
    if target is not None:
        if kind not in (None, "lines"):
            raise UsageError(
                f"{source}, {target}: format {format!r} is for one file with both sides: give one "
                "file, or leave the format out"
            )
        return "lines"
    if kind == "lines":
        raise UsageError(f"{source}: format 'lines' needs two files, source and target")
    suffix = Path(str(source).removesuffix(".gz")).suffix.lower()
    kind = kind or _SUFFIXES.get(suffix)
    if kind is None:
        raise UsageError(
            f"{source}: the name of this one file shows no format: give the target file too, or a "
            "format (tsv, tsv-quoted or jsonl)"
        )
    return kind


def split_record(
    line: str, format: Format, *, keys: tuple[str, str] = ("source", "target")
) -> tuple[str, str]:
    """The pair of one line; an :class:`InputError` names the fault of any other line.

    A key may stand in the JSON object, or be a dotted path. A key may also stand inside
    ``"translation"``, where data sets of Hugging Face keep both sides by language.

    >>> split_record("Hallo\\tHello", "tsv")
    ('Hallo', 'Hello')
    >>> split_record('{"translation": {"de": "Hallo", "en": "Hello"}}', "jsonl", keys=("de", "en"))
    ('Hallo', 'Hello')
    """
    if format == "jsonl":
        return _parse_json(line, keys)
    columns = line.split("\t") if format == "tsv" else _parse_quoted(line)
    if len(columns) != 2:
        cure = ": keep these two, as with cut -f1,2" if len(columns) > 2 else ""
        raise InputError(
            f"{counted(len(columns), 'column')}: expected source, one tab, target{cure}"
        )
    return columns[0], columns[1]


def join_record(
    source: str, target: str, format: Format, *, keys: tuple[str, str] = ("source", "target")
) -> str:
    """The line of a pair, from which :func:`split_record` gives the pair back.

    A text with a line feed fits only into JSON lines; a text with a tab does not fit into ``tsv``.

    >>> join_record("Hallo", "Hello", "jsonl", keys=("de", "en"))
    '{"de": "Hallo", "en": "Hello"}'
    """
    if format == "jsonl":
        return json.dumps(dict(zip(keys, (source, target), strict=True)), ensure_ascii=False)
    if format == "tsv-quoted":
        source, target = (
            '"' + text.replace('"', '""') + '"' if text.startswith('"') or "\t" in text else text
            for text in (source, target)
        )
    return f"{source}\t{target}"


def _parse_quoted(line: str) -> list[str]:
    """The fields between tabs, with or without quotes.

    This function does not use the csv module, which takes a bare CR for a line end.
    """
    columns: list[str] = []
    place = 0
    while True:
        field = _FIELD.match(line, place)
        if field is None:
            raise InputError(
                f"the quote that opens column {len(columns) + 1} is not closed on this line, and a "
                "sentence cannot hold a line end: close it, or read quotes as text with format tsv"
            )
        quoted, plain = field.groups()
        columns.append(plain if quoted is None else quoted.replace('""', '"'))
        place = field.end()
        if place == len(line):
            return columns
        if line[place] != "\t":
            raise InputError(
                f"text after the closing quote of column {len(columns)}: expected a tab: "
                'write a quote inside quotes as "", or read quotes as text with format tsv'
            )
        place += 1


def _parse_json(line: str, keys: tuple[str, str]) -> tuple[str, str]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"not JSON ({error}): expected one JSON object") from error
    if not isinstance(record, dict):
        raise InputError(f"a JSON {_json_type(record)}: expected one JSON object")
    return (_look_up(record, keys[0]), _look_up(record, keys[1]))


def _look_up(record: dict[str, object], key: str) -> str:
    for path in ([key], key.split("."), ["translation", key]):
        value: object = record
        for step in path:
            value = value.get(step) if isinstance(value, dict) else None
        if value is not None:
            break
    if value is None:
        inner = record.get("translation")
        known = ", ".join(repr(name) for name in (inner if isinstance(inner, dict) else record))
        raise InputError(
            f"no key {key!r}, only {known or 'an empty object'}: name the keys to read"
        )
    if not isinstance(value, str):
        raise InputError(f"{key!r} holds a JSON {_json_type(value)}: expected text")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"{key!r} holds half of a surrogate pair, which is no character"
        ) from error
    return value


def _json_type(value: object) -> str:
    names = {dict: "object", list: "array", str: "string", bool: "boolean", type(None): "null"}
    return names.get(type(value), "number")
