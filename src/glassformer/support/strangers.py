"""Reads the files of strangers; a file becomes checked values, or an error of one line.

A bundle, an import, a document, settings or a learner's file may be damaged or harmful. Each
function here reads one kind of content. It bounds size, depth and growth, and refuses a file that
is not regular. JSON becomes a record of the format's own type.

Other modules read texts (:mod:`glassformer.data.lines`) and bodies of requests.
"""

import lzma
import os
import re
import reprlib
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from io import BufferedReader
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

from pydantic import TypeAdapter, ValidationError

from glassformer.support.errors import InputError, expected_words, nearest

if TYPE_CHECKING:
    import torch
    from safetensors import safe_open
    from torch import Tensor

__all__ = [
    "MOST_JSON",
    "check_regular",
    "member_names",
    "opened",
    "option_fault",
    "parsed_json",
    "read_bytes",
    "read_json",
    "read_members",
    "read_tensors",
    "read_text",
    "read_yaml",
    "shown",
    "unpacked",
    "validated",
]

T = TypeVar("T")

# Building an adapter takes longer than reading a line.
_adapter: Callable[[Any], TypeAdapter[Any]] = cache(TypeAdapter)


_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFDIR: "a directory",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}
MOST_JSON = 64 << 20
"""The greatest size of a list of tokens; 256,000 tokens with their merges need half the size."""
_MOST_SETTINGS = 16 << 20
_MOST_VALUES = 4_000_000  # values of a JSON file, which may take far more memory than bytes
_MOST_YAML, _MOST_DEPTH = 64 << 10, 20  # bytes, and depth of lists; YAML's reader is slow
_MOST_UNPACKED = 16 << 30  # bytes of a zip file: the largest models have a few GB
_MOST_MEMBERS = 10_000
_MOST_GROWTH = 100  # growth of a zip file's member; text grows to 3 to 10 times its size
_PIECE = 1 << 20  # bytes to unpack at once
_NUMBERS = 4 << 20  # of a tensor that are read at once
_SMALL = 64 << 20  # bytes that any member may grow to
_SHOWN = 40  # characters of a value in a message
_SHORT = reprlib.Repr()  # a Repr looks only at the beginning of a value
_SHORT.maxstring = _SHORT.maxother = 3 * _SHOWN
_OF_VALUES = (ValueError, ArithmeticError, LookupError, TypeError, AttributeError)  # of YAML's tags
_DAMAGED = (  # the errors of the readers of zip files
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, NotImplementedError, RuntimeError, EOFError,
    OSError, ValueError, LookupError,
)  # fmt: skip


def check_regular(path: Path, *, most_bytes: int | None = None) -> None:
    """Before a program opens ``path``, refuse a pipe, a device or a directory.

    A pipe can wait for ever, and a device need not end. Nobody can read a pipe or a device twice. A
    link to a regular file is welcome: caches of models consist of links.

    Raises:
        InputError: no regular file, or larger than ``most_bytes``.
        OSError: there is no such file.
    """
    _check_status(path, path.stat(), most_bytes)


def _check_status(path: Path, status: os.stat_result, most_bytes: int | None) -> None:
    if not stat.S_ISREG(status.st_mode):
        kind = _KINDS.get(stat.S_IFMT(status.st_mode), "of an unknown kind")
        remedy = "name a file in it" if stat.S_ISDIR(status.st_mode) else "write it to a file first"
        raise InputError(f"{path} is {kind}, expected a regular file: {remedy}")
    if most_bytes is not None and status.st_size > most_bytes:
        raise InputError(
            f"{path}: the file has {status.st_size:,} bytes, expected at most {most_bytes:,}: it"
            " is damaged, or another file"
        )


@contextmanager
def opened(path: Path, *, most_bytes: int | None = None) -> Iterator[BufferedReader]:
    """A regular file of at most ``most_bytes`` bytes, to read; InputError names a faulty file."""
    try:
        check_regular(path, most_bytes=most_bytes)
        with open(path, "rb", opener=_open_at_once) as file:
            _check_status(path, os.fstat(file.fileno()), most_bytes)  # it may be another file now
            yield file
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error


def _open_at_once(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))  # a pipe would wait for a writer


def read_bytes(path: Path, *, most_bytes: int) -> bytes:
    """The content of a file; :func:`opened` raises the errors."""
    with opened(path, most_bytes=most_bytes) as file:
        return file.read(most_bytes)


def read_text(path: Path, *, most_bytes: int) -> str:
    """The content of a file in UTF-8; :func:`opened` raises the errors."""
    try:
        return read_bytes(path, most_bytes=most_bytes).decode()
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text (byte {error.start:,}): copy it anew") from error


def read_json(path: Path, kind: type[T], *, most_bytes: int = _MOST_SETTINGS) -> T:
    """The content of a JSON file as a ``kind``; InputError names the first place that differs."""
    return parsed_json(read_bytes(path, most_bytes=most_bytes), kind, path)


def parsed_json(content: bytes, kind: type[T], origin: object) -> T:
    """JSON content, nested at most 200 deep, as a ``kind``; an InputError names ``origin``."""
    if (values := sum(map(content.count, (b"[", b"{", b",")))) > _MOST_VALUES:
        raise InputError(f"{origin}: {values:,} values: expected at most {_MOST_VALUES:,}")
    try:
        value: T = _adapter(kind).validate_json(content, strict=True)
    except ValidationError as error:
        raise InputError(f"{origin}: {first_fault(error)}") from error
    return value


def validated(values: object, kind: type[T], origin: object) -> T:
    """The ``values`` of JSON content as a ``kind``; an InputError names ``origin``."""
    try:
        value: T = _adapter(kind).validate_python(values)
    except ValidationError as error:
        raise InputError(f"{origin}: {first_fault(error)}") from error
    return value


def first_fault(error: ValidationError) -> str:
    """The first fault of a record: the fault's place, the value, and the expected value.

    >>> try: TypeAdapter(dict[str, int]).validate_python({"size": "many"})
    ... except ValidationError as error: first_fault(error)
    "size 'many': expected a whole number"
    """
    fault = error.errors(include_url=False, include_context=False)[0]
    words = expected_words(fault["msg"])
    if fault["type"] == "json_invalid":
        return f"not JSON, or cut short ({words.removeprefix('expected JSON: ')}): copy it anew"
    # The branches of a union are places too, whose names have brackets.
    place = ".".join(str(part)[:_SHOWN] for part in fault["loc"] if "[" not in str(part))
    if place and words.startswith("expected"):
        place += f" {shown(fault['input'])}"
    return f"{place}: {words}" if place else words


def option_fault(error: ValidationError, names: Mapping[str, str] | None = None) -> str:
    """The first error of pydantic as one line; ``names`` holds the name to print for a field.

    >>> from pydantic import TypeAdapter
    >>> try: TypeAdapter(int).validate_python("many")
    ... except ValidationError as error: option_fault(error, {})
    "'many': expected a whole number"
    """
    fault, *others = error.errors()
    where = [str(part) for part in fault["loc"]]
    name = (names or {}).get(where[0], where[0]) if where else ""
    if fault["type"] == "missing":
        return f"{name} is missing" if len(where) == 1 else f"{name}: too few values"
    if fault["type"] == "value_error":  # a validator's message is complete
        return f"{name} {fault['ctx']['error']}".strip()
    # If a value fits none of several types, pydantic has a fault at each (field, type).
    union = len(where) > 1 and isinstance(fault["loc"][1], str)
    alternatives = [other for other in others if union and other["loc"][0] == where[0]]
    first, *more = dict.fromkeys(expected_words(item["msg"]) for item in (fault, *alternatives))
    hint = ""
    if fault["type"] == "literal_error":
        hint = nearest(str(fault["input"]), re.findall(r"'([^']+)'", fault["ctx"]["expected"]))
    expected = " or ".join([first, *(text.removeprefix("expected ") for text in more)])
    words = fault["input"]  # of a command line
    text = " ".join(map(str, words))[:60] if isinstance(words, list) else shown(words)
    return f"{name} {text}: {expected}{hint}".strip()


def read_yaml(path: Path) -> dict[str, object]:
    """The mapping in a YAML file without aliases: ten lines of aliases unfold to gigabytes."""
    import yaml

    text = read_text(path, most_bytes=_MOST_YAML)
    try:
        depth = 0
        for event in yaml.parse(text):
            if isinstance(event, yaml.AliasEvent):
                raise ValueError("the file has an alias: write the value out")
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > _MOST_DEPTH:  # YAML's reader takes seconds for thousands
                raise ValueError(f"the file is nested more than {_MOST_DEPTH} deep")
        content = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, *_OF_VALUES) as error:  # such as the date 2030-13-45
        raise InputError(f"{path}: not YAML ({' '.join(str(error).split())})") from error
    if not isinstance(content, dict):
        raise InputError(f"{path}: expected a mapping of names to values, one a line")
    return content


def read_tensors(
    path: Path, shapes: Mapping[str, Sequence[int] | None] | None = None, *, exact: bool = False
) -> Iterator[tuple[str, "Tensor"]]:
    """The name and the numbers of each tensor in a safetensors file, read one by one.

    The function first compares names and shapes in the header with ``shapes``, so that a foreign
    file costs no memory. It passes over a tensor with the shape None; without ``shapes``, it reads
    all tensors. With ``exact``, for a file of the program's own, each tensor keeps its type and its
    values.

    Another name or shape, or numbers that are not finite floating-point numbers, raise InputError.
    """
    import torch
    from safetensors import SafetensorError, safe_open

    try:
        check_regular(path)
        before = _version(path)
        with safe_open(path, framework="pt") as file:
            names = sorted(file.keys()) if shapes is None else _expected(path, file, shapes)
        file, left = None, 0
        for name in names:
            if file is None or left < 0:  # a mapping counts as memory of the process until it ends
                file, left = safe_open(path, framework="pt"), _NUMBERS
            tensor = _copied(path, file, name, None if exact else torch.get_default_dtype())
            left -= tensor.numel()
            if exact:
                yield name, tensor
                continue
            if tensor.numel() and not torch.isfinite(torch.stack(tensor.aminmax())).all():
                raise InputError(
                    f"{path}: {name} holds NaN or infinity: the file is damaged: copy it anew"
                )
            yield name, tensor
        if _version(path) != before:  # the tensors may come from two files
            raise InputError(f"{path} has changed while it was read: read it again")
    except (OSError, SafetensorError) as error:
        raise InputError(
            f"{path}: cannot be read as safetensors ({error}): copy it anew"
        ) from error


def _version(path: Path) -> tuple[int, int, int]:
    """Three numbers, one of which differs if the file is another, or has been written to."""
    status = path.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns


def _copied(
    path: Path, file: "safe_open", name: str, dtype: "torch.dtype | None" = None
) -> "Tensor":
    """A tensor of a safetensors file, in a floating-point type, or by default in its own type.

    A copy has torch's alignment, which the file's mapping lacks. Each piece of a large tensor has a
    mapping of its own, so that no mapping is larger than a piece.
    """
    import torch
    from safetensors import safe_open

    whole = file.get_slice(name)
    shape = whole.get_shape()
    stored = whole[:0] if shape else file.get_tensor(name)
    if dtype and not stored.is_floating_point():
        raise InputError(f"{path}: {name} is of {stored.dtype}, expected floating-point numbers")
    if not shape:
        return stored.to(dtype or stored.dtype, copy=True)
    copied = torch.empty(shape, dtype=dtype or stored.dtype)
    rows = max(1, _NUMBERS * shape[0] // max(1, copied.numel()))
    for begin in range(0, shape[0], rows):
        part = whole if rows >= shape[0] else safe_open(path, framework="pt").get_slice(name)
        copied[begin : begin + rows] = part[begin : begin + rows]
    return copied


def _expected(
    path: Path, file: "safe_open", shapes: Mapping[str, Sequence[int] | None]
) -> list[str]:
    """The names of the tensors to read, after a check of the whole header."""
    names: list[str] = sorted(file.keys())
    if unknown := set(names) - shapes.keys():
        raise InputError(
            f"{path}: the weight {shown(min(unknown))} is unknown ({len(unknown)} unknown): this"
            " program cannot run such a model"
        )
    wanted = {name: tuple(shape) for name in names if (shape := shapes[name]) is not None}
    for name, shape in wanted.items():
        if (stored := tuple(file.get_slice(name).get_shape())) != shape:
            raise InputError(
                f"{path}: {name} has the shape {stored}, expected {shape}: copy all files from one"
                " model"
            )
    return list(wanted)


def read_members(
    source: Path | BinaryIO, origin: object, wanted: Callable[[str], bool], *, most_bytes: int
) -> Iterator[tuple[zipfile.ZipInfo, Iterator[bytes]]]:
    """Each ``wanted`` file of a zip file, and its content in pieces; errors name ``origin``.

    A damaged file, too much content, or a name that leads elsewhere raises InputError.
    """
    with _opened_zip(source, origin) as archive:
        members = [each for each in _members(archive, origin) if wanted(each.filename)]
        _check_growth(members, origin, most_bytes)
        for info in members:
            yield info, _pieces(archive, info, origin)


def _opened_zip(source: Path | BinaryIO, origin: object) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(source)
    except _DAMAGED as error:
        raise InputError(f"{origin}: no zip file, or cut short ({error}): copy it anew") from error


def _pieces(archive: zipfile.ZipFile, info: zipfile.ZipInfo, origin: object) -> Iterator[bytes]:
    """The content of a member, up to the size in the archive's list of members."""
    try:
        with archive.open(info) as content:
            while piece := content.read(_PIECE):
                yield piece
    except _DAMAGED as error:
        raise InputError(f"{origin}: {info.filename} is damaged ({error}): copy it anew") from error


def _members(archive: zipfile.ZipFile, origin: object) -> list[zipfile.ZipInfo]:
    """The files in an archive, none of which leads elsewhere."""
    members = archive.infolist()
    if len(members) > _MOST_MEMBERS:
        raise InputError(f"{origin}: {len(members):,} members: expected at most {_MOST_MEMBERS:,}")
    for info in members:
        name = PurePosixPath(info.filename)
        if name.is_absolute() or ".." in name.parts or "\\" in info.filename:
            raise InputError(
                f"{origin}: the member {shown(info.filename)} leads out of its directory"
            )
    return [info for info in members if not info.is_dir()]


def _check_growth(members: Sequence[zipfile.ZipInfo], origin: object, most_bytes: int) -> None:
    """Raise InputError if the members are too large, or far larger than their packed sizes."""
    if (size := sum(info.file_size for info in members)) > most_bytes:
        raise InputError(
            f"{origin}: {size >> 20:,} MiB unpacked: expected at most {most_bytes >> 20:,} MiB"
        )
    for info in members:
        if info.file_size > max(_SMALL, _MOST_GROWTH * info.compress_size):
            raise InputError(
                f"{origin}: {shown(info.filename)} grows to more than {_MOST_GROWTH} times its"
                " packed size, which no text and no weights do: look at it before you unpack it"
            )


def member_names(path: Path) -> list[str]:
    """The names in a zip file; an empty list if ``path`` is another file."""
    check_regular(path)
    if not zipfile.is_zipfile(path):
        return []
    with _opened_zip(path, path) as archive:
        return [info.filename for info in _members(archive, path)]


@contextmanager
def unpacked(path: Path, wanted: Callable[[str], bool]) -> Iterator[Path]:
    """A temporary directory with the ``wanted`` files of a zip file, from `read_members`."""
    with tempfile.TemporaryDirectory(prefix="glassformer-") as temporary:
        place = Path(temporary)
        for info, content in read_members(path, path, wanted, most_bytes=_MOST_UNPACKED):
            target = place / info.filename
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("wb") as file:
                file.writelines(content)
        try:
            yield place
        except InputError as error:  # a message names the zip file, not the temporary place
            message = str(error).replace(f"{place}/", f"{path}: ").replace(str(place), str(path))
            error.args = (message,)
            raise


def shown(value: object) -> str:
    """A stranger's value as short text on one line, for a message.

    >>> shown("a dog\\n"), shown([["a"]] * 99)
    ("'a dog\\\\n'", "[['a'], ['a'], ['a'], ['a'], ['a'], ['a'…")
    """
    try:
        text = _SHORT.repr(value).replace("\n", " ")  # of a tensor
    except ValueError:  # a whole number of thousands of digits
        text = "a long number"
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
