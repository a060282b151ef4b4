"""Writes the pairs of a corpus that are left without the faults that a program can mend.

Text changes only in ways that lose nothing: entities become characters, and the rest is the form
that training gives texts by default (:mod:`normaliser`). The training text loses its repeats, the
pairs that training drops, and the pairs of the validation and test text. Those lose only header
rows and blank pairs, so that their scores still compare.

The training text is read twice, so that only hashes are kept: 16 bytes a pair.
"""

import html
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from html.entities import html5
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from glassformer.data.corpus import Filter, Limits, Pair, read_pairs
from glassformer.data.doctor.duplicates import folded, hashes, pair_hashes, repeats
from glassformer.data.doctor.headers import is_header
from glassformer.data.doctor.report import CorpusFiles
from glassformer.data.file_formats import file_format, join_record
from glassformer.data.normaliser import CONTROLS, FULLWIDTH, INVISIBLE, normalised
from glassformer.errors import UsageError
from glassformer.files import open_atomically

__all__ = ["Cleaned", "check_folder", "write_clean"]

_AT_ONCE = 4_096  # pairs
_ENTITY = re.compile(r"&(?:([A-Za-z]\w{1,31});|#(?:\d{1,7}|[xX][0-9A-Fa-f]{1,6});)")
_SPACES = re.compile(r"\s+")
_INVISIBLE, _FULLWIDTH, _CONTROL = (
    re.compile(f"[{re.escape(''.join(map(chr, codes)))}]")
    for codes in (INVISIBLE, FULLWIDTH, CONTROLS)
)


@dataclass
class Cleaned:
    """The pairs written of each part, and how many pairs changed, by the kind of change."""

    pairs: dict[str, int] = field(default_factory=dict)
    changes: Counter[str] = field(default_factory=Counter)


def check_folder(folder: Path, parts: Mapping[str, CorpusFiles]) -> None:
    """Refuses a folder, before the work, in which the files cannot be written or read again."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"--write {folder}: a file, expected a directory: name another")
    written: dict[Path, Path] = {}
    for path in (path for files in parts.values() for path in _paths(files)):
        if path.exists() and not path.is_file():
            raise UsageError(f"{path}: no regular file, and --write reads twice: save it first")
        target = _target(folder, path)
        other = written.setdefault(target.resolve(), path)
        if other != path:
            raise UsageError(
                f"--write {folder}: {other} and {path} have one name: give them different names"
            )
        if target.exists() and target.samefile(path):
            raise UsageError(f"--write {folder}: it holds the files themselves: name another")


def write_clean(
    folder: Path, parts: Mapping[str, CorpusFiles], *, limits: Limits | None = None
) -> Cleaned:
    """Writes each part's files into ``folder``, under their names, without the end ``.gz``.

    ``parts``: ``train``, and perhaps ``valid`` and ``test``. A file appears whole or not at all.

    Raises:
        InputError: a file cannot be read, has a fault that stops training, or no pair is left.
    """
    folder.mkdir(parents=True, exist_ok=True)
    cleaned = Cleaned()
    held_out = [np.array([], np.uint64)]  # folded hashes; no pair of them is blank
    for name in ("valid", "test"):
        if name in parts:
            pairs = _not_blank(_mended(parts[name], cleaned.changes), cleaned.changes)
            cleaned.pairs[name] = 0
            for block in _blocks(_written(folder, parts[name], pairs)):
                held_out.append(_folded_hashes(block))
                cleaned.pairs[name] += len(block)
    train = parts["train"]
    left_out = _left_out(train, limits, held_out=np.concatenate(held_out))
    cleaned.changes.update({name: int(rows.sum()) for name, rows in left_out.items()})
    dropped = np.logical_or.reduce(list(left_out.values()))
    kept = (
        pair
        for pair, drop in zip(_mended(train, cleaned.changes), dropped, strict=True)
        if not drop
    )
    cleaned.pairs = {"train": sum(1 for _ in _written(folder, train, kept))} | cleaned.pairs
    return cleaned


def _left_out(
    train: CorpusFiles, limits: Limits | None, *, held_out: NDArray[np.uint64]
) -> dict[str, NDArray[np.bool_]]:
    """For each reason, the pairs that leave the training text; each pair has one reason at most."""
    keep = Filter(limits)
    names = ("blank", "too long or of too unlike lengths", "also in the validation or test text")
    reasons: dict[str, list[NDArray[np.bool_]]] = {f"dropped: {name}": [] for name in names}
    values = []
    for block in _blocks(_mended(train, Counter())):
        why = [keep.reason(len(pair.source), len(pair.target)) for pair in block]
        blank = np.array([reason == "empty" for reason in why])
        dropped = np.array([reason is not None for reason in why])
        leaked = np.isin(_folded_hashes(block), held_out) & ~dropped
        for column, rows in zip(reasons.values(), (blank, dropped & ~blank, leaked), strict=True):
            column.append(rows)
        sources, targets = (list(side) for side in zip(*block, strict=True))
        pairs = pair_hashes(hashes(sources), hashes(targets))
        values.append(np.where(dropped | leaked, np.uint64(0), pairs))
    masks = {name: np.concatenate(column) for name, column in reasons.items()}
    return masks | {"dropped: repeats": repeats(np.concatenate(values))}


def _folded_hashes(pairs: list[Pair]) -> NDArray[np.uint64]:
    return pair_hashes(*(hashes([folded(pair[side]) for pair in pairs]) for side in (0, 1)))


def _blocks(pairs: Iterable[Pair]) -> Iterator[list[Pair]]:
    block: list[Pair] = []
    for pair in pairs:
        block.append(pair)
        if len(block) == _AT_ONCE:
            yield block
            block = []
    if block:
        yield block


def _written(folder: Path, files: CorpusFiles, pairs: Iterable[Pair]) -> Iterator[Pair]:
    """Writes the pairs in the format of the files, and gives each on."""
    kind = file_format(files.source, files.target, format=files.format)
    with ExitStack() as stack:
        outputs = [
            stack.enter_context(open_atomically(_target(folder, path))) for path in _paths(files)
        ]
        for pair in pairs:
            texts = pair if kind == "lines" else (join_record(*pair, kind, keys=files.keys),)
            for output, text in zip(outputs, texts, strict=True):
                output.write(f"{text}\n".encode())
            yield pair


def _paths(files: CorpusFiles) -> list[Path]:
    return [files.source] if files.target is None else [files.source, files.target]


def _target(folder: Path, path: Path) -> Path:
    return folder / path.name.removesuffix(".gz")


def _mended(files: CorpusFiles, changes: Counter[str]) -> Iterator[Pair]:
    """The pairs of the files, without a header row, mended; ``changes`` counts the pairs."""
    pairs = read_pairs(files.source, files.target, format=files.format, keys=files.keys)
    for number, pair in enumerate(pairs):
        if number == 0 and is_header(*pair):
            changes["dropped: header rows"] += 1
            continue
        decoded = Pair(*map(_decoded, pair))
        mended = Pair(*map(normalised, decoded))
        if mended != pair:
            changes.update(_changes(pair, decoded))
        yield mended


def _not_blank(pairs: Iterable[Pair], changes: Counter[str]) -> Iterator[Pair]:
    for pair in pairs:
        if all(pair):
            yield pair
        else:
            changes["dropped: blank"] += 1


def _decoded(text: str) -> str:
    """The text with the characters that its entities stand for; an unknown entity stays."""
    if "&" not in text:
        return text
    return _ENTITY.sub(
        lambda match: (
            match[0] if match[1] and f"{match[1]};" not in html5 else html.unescape(match[0])
        ),
        text,
    )


def _changes(pair: Pair, decoded: Pair) -> Iterator[str]:
    """The kinds of change that a pair needs."""
    if pair != decoded:
        yield "changed: entities decoded"
    if not all(unicodedata.is_normalized("NFC", text) for text in decoded):
        yield "changed: made NFC"
    if any(_INVISIBLE.search(text) for text in decoded):
        yield "changed: invisible characters taken out"
    if any(_CONTROL.search(text) for text in decoded):
        yield "changed: control characters taken out"
    if any(_FULLWIDTH.search(text) for text in decoded):
        yield "changed: fullwidth letters and digits made ASCII"
    if any(text != _SPACES.sub(" ", text).strip() for text in decoded):
        yield "changed: white space made one space"
