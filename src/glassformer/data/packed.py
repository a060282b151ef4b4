"""The corpus as token ids on disk, packed once and mapped into memory.

A packed corpus is one directory. Each side has two raw little-endian files: ``source.ids``, all
ids of all sentences in one row, and ``source.offsets``, where each sentence begins (``int64``, one
more than there are sentences); so sentence ``i`` is ``ids[offsets[i]:offsets[i + 1]]``. Nothing is
read before it is used, so a hundred million pairs cost no memory.

``meta.json`` is written last, into a directory that gets its name only when it is whole: what has
a name can be trusted. ``content_hash`` says which data a training saw.
"""

import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from glassformer.data.corpus import Pair
from glassformer.data.tokenizer import Tokenizer
from glassformer.errors import InputError

__all__ = ["Packed", "PackedMeta", "Sentences", "pack"]

FORMAT_VERSION = 1
_CHUNK = 20_000  # pairs that are encoded at once
_HASH_BLOCK = 1 << 22  # bytes that are read at once
_OFFSET = np.dtype("<i8")
_SIDES = ("source", "target")
_FILES = tuple(f"{side}.{part}" for side in _SIDES for part in ("ids", "offsets"))


@dataclass(frozen=True)
class PackedMeta:
    """What ``meta.json`` says of a packed corpus.

    ``dropped_empty`` and ``dropped_long`` count the pairs left out because a side was blank, or
    had more than ``max_tokens`` subwords. ``symbols`` holds the ids that a batch adds: ``source``
    and ``target`` each with ``pad``, ``bos``, ``eos``. ``tokenizers`` holds their fingerprints.
    """

    format_version: int
    pairs: int
    dropped_empty: int
    dropped_long: int
    max_tokens: int
    dropout: float
    seed: int
    dtype: dict[str, str]
    tokens: dict[str, int]
    symbols: dict[str, dict[str, int]]
    tokenizers: dict[str, str]
    content_hash: str


class Sentences:
    """One side of a packed corpus: ``sentences[i]`` is an array of ids, without start and end."""

    def __init__(self, ids: NDArray[Any], offsets: NDArray[np.int64]) -> None:
        self.ids = ids
        self.offsets = offsets

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> NDArray[Any]:
        if not -len(self) <= index < len(self):
            raise IndexError(f"sentence {index}: expected 0 to {len(self) - 1}")
        index %= len(self)
        return np.asarray(self.ids[self.offsets[index] : self.offsets[index + 1]])

    @cached_property
    def lengths(self) -> NDArray[np.int32]:
        """The number of subwords of every sentence."""
        return np.diff(self.offsets).astype(np.int32)

    def gather(self, rows: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """The ids of these sentences one after the other, and the sentences' lengths."""
        starts = self.offsets[rows]
        lengths = self.offsets[rows + 1] - starts
        # Where each sentence begins in the result, subtracted, makes one arange serve all.
        begins = np.cumsum(lengths) - lengths
        places = np.arange(lengths.sum()) + np.repeat(starts - begins, lengths)
        return self.ids[places], lengths


class Packed:
    """A packed corpus that is open for reading; see :func:`pack` and :meth:`open`."""

    def __init__(self, directory: Path, meta: PackedMeta) -> None:
        self.directory = directory
        self.meta = meta
        self.source = _sentences(directory, "source", meta)
        self.target = _sentences(directory, "target", meta)

    @classmethod
    def open(cls, directory: str | Path) -> Self:
        """Open a packed corpus; :class:`InputError` where it is missing, cut off or damaged."""
        directory = Path(directory)
        meta = _read_meta(directory)
        for side in _SIDES:
            _check_size(directory / f"{side}.offsets", (meta.pairs + 1) * _OFFSET.itemsize)
            width = np.dtype(meta.dtype[side]).itemsize
            _check_size(directory / f"{side}.ids", meta.tokens[side] * width)
        return cls(directory, meta)

    def __len__(self) -> int:
        return self.meta.pairs

    @property
    def source_lengths(self) -> NDArray[np.int32]:
        """Subwords of every source sentence, without the end symbol."""
        return self.source.lengths

    @property
    def target_lengths(self) -> NDArray[np.int32]:
        """Subwords of every target sentence, without start and end symbols."""
        return self.target.lengths

    @property
    def content_hash(self) -> str:
        """SHA-256 over all ids and offsets: the same data have the same hash, wherever packed."""
        return self.meta.content_hash

    def verify(self) -> None:
        """Read everything and compare it with the hash; :class:`InputError` where it differs."""
        digests = []
        for name in _FILES:
            digest = hashlib.sha256()
            with (self.directory / name).open("rb") as file:
                while block := file.read(_HASH_BLOCK):
                    digest.update(block)
            digests.append(digest.hexdigest())
        if _combined(digests) != self.content_hash:
            raise InputError(
                f"{self.directory}: the packed data differ from their content hash, so they were "
                "changed or damaged; delete the directory to pack them again"
            )


def pack(
    pairs: Iterable[Pair],
    source_tokenizer: Tokenizer,
    target_tokenizer: Tokenizer,
    directory: str | Path,
    *,
    max_tokens: int,
    dropout: float = 0.0,
    seed: int = 0,
) -> Packed:
    """Encode ``pairs``, a chunk at a time, into ``directory``, which is replaced where it exists.

    Pairs with a blank side, or with more than ``max_tokens`` subwords on a side, are left out and
    counted in ``Packed.meta``. With ``dropout`` the segmentation is drawn anew for each ``seed``
    (see :meth:`Tokenizer.sample_batch`). A kill on the way leaves ``directory`` as it was, or
    missing, never half-written.
    """
    directory = Path(directory)
    tokenizers = {"source": source_tokenizer, "target": target_tokenizer}
    settings = {"max_tokens": max_tokens, "dropout": dropout, "seed": seed}
    partial = directory.with_name(directory.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        writers = {side: _Writer(partial, side, tokenizers[side].vocab_size) for side in _SIDES}
        dropped = Counter({"empty": 0, "long": 0})
        for number, chunk in enumerate(_chunks(pairs)):
            full = [pair for pair in chunk if pair.source.strip() and pair.target.strip()]
            rows = _encoded(full, tokenizers, dropout=dropout, seed=(seed, number))
            kept = [row for row in rows if max(map(len, row)) <= max_tokens]
            dropped["empty"] += len(chunk) - len(full)
            dropped["long"] += len(full) - len(kept)
            for place, side in enumerate(_SIDES):
                writers[side].write([row[place] for row in kept])
        for writer in writers.values():
            writer.close()
        meta = _meta(writers, tokenizers, dropped, settings)
        (partial / "meta.json").write_text(json.dumps(asdict(meta), indent=2) + "\n")
        _take_the_place_of(directory, partial)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return Packed.open(directory)


class _Writer:
    """Appends the sentences of one side to its two files, and hashes what it writes."""

    def __init__(self, directory: Path, side: str, vocab_size: int) -> None:
        self.dtype = np.dtype("<u2" if vocab_size <= 2**16 else "<u4")
        self.sentences = self.tokens = 0
        names = {part: f"{side}.{part}" for part in ("ids", "offsets")}
        self._files = {part: (directory / name).open("wb") for part, name in names.items()}
        self._digests = {part: hashlib.sha256() for part in names}
        self._append("offsets", np.zeros(1, _OFFSET))

    def write(self, sentences: Sequence[Sequence[int]]) -> None:
        lengths = np.fromiter(map(len, sentences), dtype=_OFFSET, count=len(sentences))
        count = int(lengths.sum())
        ids = np.fromiter(chain.from_iterable(sentences), dtype=self.dtype, count=count)
        self._append("ids", ids)
        self._append("offsets", self.tokens + np.cumsum(lengths, dtype=_OFFSET))
        self.tokens += count
        self.sentences += len(sentences)

    def close(self) -> None:
        for file in self._files.values():
            file.close()

    def digests(self) -> list[str]:
        return [self._digests[part].hexdigest() for part in ("ids", "offsets")]

    def _append(self, part: str, values: NDArray[Any]) -> None:
        written = values.tobytes()
        self._files[part].write(written)
        self._digests[part].update(written)


def _chunks(pairs: Iterable[Pair]) -> Iterator[list[Pair]]:
    remaining = iter(pairs)
    while chunk := list(islice(remaining, _CHUNK)):
        yield chunk


def _encoded(
    pairs: list[Pair],
    tokenizers: dict[str, Tokenizer],
    *,
    dropout: float,
    seed: tuple[int, int],
) -> Iterator[tuple[list[int], list[int]]]:
    # Every chunk and side has its own seed, so that none repeats another's choices.
    seeds = np.random.SeedSequence(seed).generate_state(2)
    source, target = (
        tokenizers[side].sample_batch([pair[place] for pair in pairs], dropout=dropout, seed=chance)
        for place, (side, chance) in enumerate(zip(_SIDES, seeds.tolist(), strict=True))
    )
    return zip(source, target, strict=True)


def _meta(
    writers: dict[str, _Writer],
    tokenizers: dict[str, Tokenizer],
    dropped: Counter[str],
    settings: dict[str, Any],
) -> PackedMeta:
    pairs = writers["source"].sentences
    if pairs == 0:
        raise InputError(
            f"no pair is left to pack: {dropped['empty']} have an empty side, {dropped['long']} "
            f"are longer than {settings['max_tokens']} subwords; check the text, or raise the limit"
        )
    return PackedMeta(
        format_version=FORMAT_VERSION,
        pairs=pairs,
        dropped_empty=dropped["empty"],
        dropped_long=dropped["long"],
        **settings,
        dtype={side: writers[side].dtype.str for side in _SIDES},
        tokens={side: writers[side].tokens for side in _SIDES},
        symbols={side: _symbols(tokenizers[side]) for side in _SIDES},
        tokenizers={side: tokenizers[side].fingerprint for side in _SIDES},
        content_hash=_combined(digest for side in _SIDES for digest in writers[side].digests()),
    )


def _symbols(tokenizer: Tokenizer) -> dict[str, int]:
    return {"pad": tokenizer.pad_id, "bos": tokenizer.bos_id, "eos": tokenizer.eos_id}


def _combined(digests: Iterable[str]) -> str:
    """One hash for all files, given theirs in the order of ``_FILES``."""
    return hashlib.sha256("\n".join(digests).encode()).hexdigest()


def _take_the_place_of(directory: Path, partial: Path) -> None:
    """Give ``partial`` the name ``directory``; a directory can only be renamed onto none."""
    if directory.exists():
        old = directory.with_name(directory.name + ".old")
        shutil.rmtree(old, ignore_errors=True)
        directory.rename(old)
        partial.rename(directory)
        shutil.rmtree(old)
    else:
        partial.rename(directory)


def _read_meta(directory: Path) -> PackedMeta:
    path = directory / "meta.json"
    try:
        fields = json.loads(path.read_text())
        version = fields["format_version"]
        if version != FORMAT_VERSION:
            raise InputError(
                f"{path}: format_version {version}: this program reads {FORMAT_VERSION}; "
                "delete the directory to pack the corpus again"
            )
        return PackedMeta(**fields)
    except OSError as error:
        raise InputError(
            f"{directory}: not a packed corpus (meta.json: {error.strerror}); pack it again"
        ) from None
    except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError):
        raise InputError(
            f"{path}: not the description of a packed corpus; delete the directory to pack it again"
        ) from None


def _check_size(path: Path, expected: int) -> None:
    size = path.stat().st_size if path.is_file() else 0
    if size != expected:
        raise InputError(
            f"{path}: {size} bytes, expected {expected}: the file is cut off or damaged; delete "
            "the directory to pack the corpus again"
        )


def _sentences(directory: Path, side: str, meta: PackedMeta) -> Sentences:
    ids = np.memmap(directory / f"{side}.ids", dtype=meta.dtype[side], mode="r")
    return Sentences(ids, np.memmap(directory / f"{side}.offsets", dtype=_OFFSET, mode="r"))
