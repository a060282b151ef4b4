"""The corpus as token ids on disk, packed once and mapped into memory.

A packed corpus is one directory. Each side has two raw little-endian files. ``source.ids`` has all
ids in one row. ``source.offsets`` has the begin of each sentence and the end of the last
(``int64``). Sentence ``i`` is ``ids[offsets[i]:offsets[i + 1]]``. A program reads from disk only
the ids that it uses. The directory gets its name last, after ``meta.json`` is in the directory.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from glassformer.data.corpus import Pair
from glassformer.data.tokenizer import Tokenizer
from glassformer.support.errors import InputError
from glassformer.support.files import naming, remove_directory, whole_directory
from glassformer.support.hashes import sha256
from glassformer.support.strangers import read_json

__all__ = ["Packed", "Sentences", "pack"]

_CHUNK = 20_000  # number of pairs that :func:`pack` encodes at once
_OFFSET = np.dtype("<i8")
_SIDES, _PARTS = ("source", "target"), ("ids", "offsets")


@dataclass(frozen=True)
class PackedMeta:
    """The contents of ``meta.json``.

    ``dropped_empty`` counts the pairs with a blank side. ``dropped_long`` counts the pairs with
    more than ``max_tokens`` subwords on a side. ``symbols`` holds the ids of ``pad``, ``bos`` and
    ``eos``, which a batch adds, for ``source`` and for ``target``. ``tokenizers`` holds the
    fingerprint of each side's tokenizer.
    """

    format_version: Literal[1]
    pairs: int
    dropped_empty: int
    dropped_long: int
    max_tokens: int
    dtype: dict[str, str]
    tokens: dict[str, int]
    symbols: dict[str, dict[str, int]]
    tokenizers: dict[str, str]
    content_hash: str


class Sentences:
    """One side of a packed corpus: ``sentences[i]`` is an array of ids, without start and end."""

    def __init__(self, ids: NDArray[np.integer], offsets: NDArray[np.int64]) -> None:
        self.ids = ids
        self.offsets = offsets

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> NDArray[np.integer]:
        return np.asarray(self.ids[self.offsets[:-1][row] : self.offsets[1:][row]])

    @cached_property
    def lengths(self) -> NDArray[np.int32]:
        """The number of subwords of every sentence."""
        return np.diff(self.offsets).astype(np.int32)

    def gather(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.integer], NDArray[np.int64]]:
        """The ids of the sentences ``rows`` one after another, and the sentences' lengths."""
        starts = self.offsets[rows]
        lengths = self.offsets[rows + 1] - starts
        # One arange numbers all ids; ``begins`` has the number of each sentence's first id.
        begins = np.cumsum(lengths) - lengths
        places = np.arange(lengths.sum()) + np.repeat(starts - begins, lengths)
        return self.ids[places], lengths


class Packed:
    """A packed corpus that is open for reading; see :func:`pack` and :meth:`open`."""

    def __init__(self, directory: Path, meta: PackedMeta) -> None:
        self.directory = directory
        self.meta = meta
        self.source, self.target = map(self._side, _SIDES)

    @classmethod
    def open(cls, directory: str | Path) -> "Packed":
        """Open a packed corpus; :class:`InputError` for a missing, incomplete or damaged corpus."""
        path = Path(directory, "meta.json")
        try:
            meta = read_json(path, PackedMeta)
        except InputError as error:
            raise InputError(
                f"{path} is missing, or is no description of a packed corpus: delete the directory"
                " to pack the corpus again"
            ) from error
        return cls(Path(directory), meta)

    def _side(self, side: str) -> Sentences:
        meta, arrays = self.meta, []
        for part, kind, length in (
            ("ids", meta.dtype[side], meta.tokens[side]),
            ("offsets", _OFFSET, meta.pairs + 1),
        ):
            path = self.directory / f"{side}.{part}"
            try:
                arrays.append(np.memmap(path, kind, mode="r", shape=(length,)))
            except (OSError, ValueError) as error:
                raise InputError(
                    f"{path} is missing or cut off ({error}): delete the directory to pack the"
                    " corpus again"
                ) from error
        return Sentences(*arrays)

    def __len__(self) -> int:
        return self.meta.pairs

    def verify(self) -> None:
        """Compare the content of all files with its hash; a difference raises InputError."""
        if _content_hash(self.directory) != self.meta.content_hash:
            raise InputError(
                f"{self.directory}: the packed data differ from their content hash: delete the"
                " directory to pack them again"
            )


def pack(
    pairs: Iterable[Pair],
    source_tokenizer: Tokenizer,
    target_tokenizer: Tokenizer,
    directory: str | Path,
    *,
    max_tokens: int,
) -> Packed:
    """Encode ``pairs``, a chunk at a time, into ``directory``, and replace the old files.

    The function drops pairs with a blank side or with more than ``max_tokens`` subwords on a side.
    ``Packed.meta`` counts dropped pairs. A killed process leaves ``directory`` unchanged or absent.
    """
    directory = Path(directory)
    tokenizers = {"source": source_tokenizer, "target": target_tokenizer}
    dropped = Counter({"empty": 0, "long": 0})
    directory.parent.mkdir(parents=True, exist_ok=True)
    with naming(directory), whole_directory(directory) as partial:
        with ExitStack() as files:
            writers = {
                side: _Writer(partial, side, tokenizers[side].vocab_size, files) for side in _SIDES
            }
            for chunk in _encoded_chunks(pairs, tokenizers, max_tokens, dropped):
                for place, side in enumerate(_SIDES):
                    writers[side].write([row[place] for row in chunk])
        meta = _meta(partial, writers, tokenizers, max_tokens, dropped)
        (partial / "meta.json").write_text(json.dumps(asdict(meta), indent=2) + "\n")
        if directory.exists():
            remove_directory(directory)
    return Packed.open(directory)


def _encoded_chunks(
    pairs: Iterable[Pair],
    tokenizers: dict[str, Tokenizer],
    max_tokens: int,
    dropped: Counter[str],
) -> Iterator[list[tuple[list[int], list[int]]]]:
    """The ids of the kept pairs, a chunk at a time; ``dropped`` counts the dropped pairs."""
    remaining = iter(pairs)
    while chunk := list(islice(remaining, _CHUNK)):
        full = [pair for pair in chunk if pair.source.strip() and pair.target.strip()]
        source, target = (
            tokenizers[side].encode_batch([pair[place] for pair in full])
            for place, side in enumerate(_SIDES)
        )
        rows = list(zip(source, target, strict=True))
        short = [row for row in rows if max(map(len, row)) <= max_tokens]
        # A foreign tokenizer may give no subwords for text, such as a lone U+200B.
        kept = [row for row in short if min(map(len, row)) > 0]
        long = len(rows) - len(short)
        dropped.update({"long": long, "empty": len(chunk) - len(kept) - long})
        yield kept


class _Writer:
    """Appends the sentences of one side to its two files."""

    def __init__(self, directory: Path, side: str, vocab_size: int, files: ExitStack) -> None:
        self.dtype = np.dtype("<u2" if vocab_size <= 2**16 else "<u4")
        self.sentences = self.tokens = 0
        self._ids, self._offsets = (
            files.enter_context((directory / f"{side}.{part}").open("wb")) for part in _PARTS
        )
        self._offsets.write(np.zeros(1, _OFFSET).tobytes())

    def write(self, sentences: Sequence[Sequence[int]]) -> None:
        lengths = np.fromiter(map(len, sentences), dtype=_OFFSET, count=len(sentences))
        tokens = int(lengths.sum())
        ids = np.fromiter(chain.from_iterable(sentences), dtype=self.dtype, count=tokens)
        self._ids.write(ids.tobytes())
        self._offsets.write((self.tokens + np.cumsum(lengths, dtype=_OFFSET)).tobytes())
        self.tokens += tokens
        self.sentences += len(sentences)


def _meta(
    directory: Path,
    writers: dict[str, _Writer],
    tokenizers: dict[str, Tokenizer],
    max_tokens: int,
    dropped: Counter[str],
) -> PackedMeta:
    pairs = writers["source"].sentences
    if pairs == 0:
        raise InputError(
            f"no pair is left to pack: {dropped['empty']} have an empty side, {dropped['long']} "
            f"are longer than {max_tokens} subwords; check the text, or raise the limit"
        )
    return PackedMeta(
        format_version=1,
        pairs=pairs,
        dropped_empty=dropped["empty"],
        dropped_long=dropped["long"],
        max_tokens=max_tokens,
        dtype={side: writer.dtype.str for side, writer in writers.items()},
        tokens={side: writer.tokens for side, writer in writers.items()},
        symbols={
            side: {"pad": tokenizer.pad_id, "bos": tokenizer.bos_id, "eos": tokenizer.eos_id}
            for side, tokenizer in tokenizers.items()
        },
        tokenizers={side: tokenizer.fingerprint for side, tokenizer in tokenizers.items()},
        content_hash=_content_hash(directory),
    )


def _content_hash(directory: Path) -> str:
    """The SHA-256 of all ids and offsets; equal data have one hash on every machine."""
    files = [directory / f"{side}.{part}" for side in _SIDES for part in _PARTS]
    return sha256("\n".join(map(sha256, files)).encode())
