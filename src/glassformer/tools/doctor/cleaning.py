"""Writes a corpus again, and mends the faults that a program can mend.

Text changes lose nothing: entities become characters, and the text gets the form of training's
default (:mod:`normaliser`). The training text loses repeats, pairs that training drops, and pairs
of the validation and test text. The validation and test text lose only blank pairs, so that old
and new scores compare.

The module reads the training text twice, so that memory holds only hashes, 16 bytes a pair.
"""

import html
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from html.entities import html5
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from glassformer.data.corpus import Filter, Limits, Pair, read_pairs
from glassformer.data.duplicates import NONE, hashes, pair_hashes, repeats
from glassformer.data.file_formats import file_format, join_record
from glassformer.data.normaliser import CONTROLS, FULLWIDTH, INVISIBLE, normalised
from glassformer.support.errors import UsageError
from glassformer.support.files import open_atomically
from glassformer.tools.doctor.report import CorpusFiles

__all__ = ["Cleaned", "check_folder", "write_clean"]

_AT_ONCE = 4_096  # pairs
#: The reasons for which a pair leaves the training text, by number; number 0 is no reason.
_REASONS = (
    "",
    "blank",
    "too long or of too unlike lengths",
    "also in the validation or test text",
    "repeats",
)
_BY_FILTER = {None: 0, "empty": 1, "long": 2, "ratio": 2}
_LEAKED, _REPEAT = 3, 4
_ENTITY = re.compile(r"&(?:([A-Za-z]\w{1,31});|#(?:\d{1,7}|[xX][0-9A-Fa-f]{1,6});)")


@dataclass
class Cleaned:
    """The numbers of written pairs by part, and of changed pairs by kind of change."""

    pairs: dict[str, int] = field(default_factory=dict)
    changes: Counter[str] = field(default_factory=Counter)


def check_folder(folder: Path, parts: Mapping[str, CorpusFiles]) -> None:
    """Raises an error, before the work, for a folder that cannot take the mended files."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file: expected a directory")
    written: dict[Path, Path] = {}
    for path in (path for files in parts.values() for path in files.paths):
        if path.exists() and not path.is_file():
            raise UsageError(f"{path} is no regular file, and is read twice: save it as a file")
        target = _target(folder, path)
        other = written.setdefault(target.resolve(), path)
        if other != path:
            raise UsageError(
                f"{folder}: {other} and {path} have one name: give them different names"
            )
        if target.exists() and target.samefile(path):
            raise UsageError(f"{folder} holds the corpus itself: name another directory")


def write_clean(
    folder: Path, parts: Mapping[str, CorpusFiles], *, limits: Limits | None = None
) -> Cleaned:
    """Writes each part's files into ``folder``, under the same names without ``.gz``.

    ``parts`` holds ``train``, and perhaps ``valid`` and ``test``. A file appears whole or never.

    Raises:
        InputError: a file is unreadable or has a fault that stops training, or no pair remains.
    """
    folder.mkdir(parents=True, exist_ok=True)
    cleaned = Cleaned()
    held_out = [np.array([], np.uint64)]  # hashes of pairs that are not blank
    for name in ("valid", "test"):
        if name in parts:
            pairs = _not_blank(_mended(parts[name], cleaned.changes), cleaned.changes)
            cleaned.pairs[name] = 0
            for block in _blocks(_written(folder, parts[name], pairs)):
                held_out.append(_hashes(block))
                cleaned.pairs[name] += len(block)
    train = parts["train"]
    reasons = _left_out(train, limits, held_out=np.concatenate(held_out))
    counts = dict(zip(_REASONS, np.bincount(reasons, minlength=len(_REASONS)), strict=True))
    cleaned.changes.update({f"dropped: {name}": int(n) for name, n in counts.items() if name})
    kept = (
        pair
        for pair, reason in zip(_mended(train, cleaned.changes), reasons, strict=True)
        if not reason
    )
    cleaned.pairs = {"train": sum(1 for _ in _written(folder, train, kept))} | cleaned.pairs
    return cleaned


def _left_out(
    train: CorpusFiles, limits: Limits | None, *, held_out: NDArray[np.uint64]
) -> NDArray[np.uint8]:
    """For each training pair, the number of the reason in ``_REASONS``."""
    keep = Filter(limits)
    blocks, hashes_of_kept = [], []
    for block in _blocks(_mended(train, Counter())):
        dropped = [keep.reason(len(pair.source), len(pair.target)) for pair in block]
        reasons = np.array([_BY_FILTER[reason] for reason in dropped], np.uint8)
        values = _hashes(block)
        reasons[(reasons == 0) & np.isin(values, held_out)] = _LEAKED
        blocks.append(reasons)
        hashes_of_kept.append(np.where(reasons, NONE, values))
    every = np.concatenate(blocks)
    every[repeats(np.concatenate(hashes_of_kept))] = _REPEAT
    return every


def _hashes(pairs: list[Pair]) -> NDArray[np.uint64]:
    return pair_hashes(*(hashes(side) for side in zip(*pairs, strict=True)))


def _blocks(pairs: Iterator[Pair]) -> Iterator[list[Pair]]:
    while block := list(islice(pairs, _AT_ONCE)):
        yield block


def _written(folder: Path, files: CorpusFiles, pairs: Iterable[Pair]) -> Iterator[Pair]:
    """Writes the pairs in the format of the files, and yields each pair."""
    kind = file_format(files.source, files.target, format=files.format)
    with ExitStack() as stack:
        outputs = [
            stack.enter_context(open_atomically(_target(folder, path))) for path in files.paths
        ]
        for pair in pairs:
            texts = pair if kind == "lines" else (join_record(*pair, kind, keys=files.keys),)
            for output, text in zip(outputs, texts, strict=True):
                output.write(f"{text}\n".encode())
            yield pair


def _target(folder: Path, path: Path) -> Path:
    return folder / path.name.removesuffix(".gz")


def _mended(files: CorpusFiles, changes: Counter[str]) -> Iterator[Pair]:
    """The mended pairs of the files; ``changes`` counts the changed pairs."""
    for pair in read_pairs(files.source, files.target, format=files.format, keys=files.keys):
        mended = Pair(*(normalised(_decoded(text)) for text in pair))
        if mended != pair:
            changes.update(_changes(pair))
        yield mended


def _not_blank(pairs: Iterable[Pair], changes: Counter[str]) -> Iterator[Pair]:
    for pair in pairs:
        if all(pair):
            yield pair
        else:
            changes["dropped: blank"] += 1


def _decoded(text: str) -> str:
    """The text with decoded entities; an unknown entity stays."""
    return _ENTITY.sub(
        lambda match: (
            match[0] if match[1] and f"{match[1]};" not in html5 else html.unescape(match[0])
        ),
        text,
    )


#: The steps that mend a text; all steps together do :func:`_decoded` and :func:`normalised`.
_STEPS: dict[str, Callable[[str], str]] = {
    "entities decoded": _decoded,
    "control characters taken out": lambda text: text.translate(dict.fromkeys(CONTROLS)),
    "invisible characters taken out": partial(re.sub, INVISIBLE, ""),
    "fullwidth letters and digits made ASCII": lambda text: text.translate(FULLWIDTH),
    "made NFC": partial(unicodedata.normalize, "NFC"),
    "white space made one space": lambda text: " ".join(text.split()),
}


def _changes(pair: Pair) -> Iterator[str]:
    """The names of the steps that change a pair."""
    for change, step in _STEPS.items():
        before, pair = pair, Pair(*map(step, pair))
        if pair != before:
            yield f"changed: {change}"
