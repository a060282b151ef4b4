"""The same batches for all peers, and the sizes of the models.

The batches are Glassformer's own: subwords learnt on the training text, sentences of like length
together, padded. They are stored in one ``.npz`` file, which numpy alone can read.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from typing import Any

import numpy as np

from glassformer.data.batches import make_batch, plan_batches
from glassformer.data.corpus import Pair, read_pairs
from glassformer.data.subword_training import train_tokenizer
from glassformer.data.token_store import Packed, pack
from glassformer.support.errors import InputError
from glassformer.tools.phrasebook.book import phrasebook

__all__ = [
    "SIZES",
    "Corpus",
    "corpus_file",
    "model_of",
    "read_corpus",
    "training_batches",
    "write_batches",
]

SIZES: dict[str, dict[str, Any]] = {
    "tiny": {"d_model": 128, "num_heads": 4, "d_ff": 512, "layers": 3},
    "small": {"d_model": 256, "num_heads": 4, "d_ff": 1024, "layers": 3},
    "base": {"d_model": 512, "num_heads": 8, "d_ff": 2048, "layers": 6},
    "big": {"d_model": 1024, "num_heads": 16, "d_ff": 4096, "layers": 6},
}
VOCABULARY = 8_000
_MOST_TOKENS = 200  # of a side; longer pairs are left out
_PHRASES = 30_000


@dataclass(frozen=True)
class Corpus:
    """Training pairs, and the sources and references of the test set."""

    name: str
    train: list[Pair]
    sources: list[str]
    references: list[str]


def read_corpus(data: Path | None, languages: Sequence[str] = ("en", "de")) -> Corpus:
    """The corpus of a folder with Multi30k's file names; without a folder the phrasebook."""
    if data is None:
        book = phrasebook(source=languages[0], target=languages[1], seed=1, size=_PHRASES)
        pairs = [Pair(phrase.source, phrase.target) for phrase in book.train]
        test = book.test[:1000]
        sources = [phrase.source for phrase in test]
        references = [phrase.target for phrase in test]
        return Corpus("built-in phrasebook", pairs, sources, references)
    train = list(read_pairs(*(corpus_file(data, ("train",), code) for code in languages)))
    names = ("test_2016_flickr", "test")
    test = list(read_pairs(*(corpus_file(data, names, code) for code in languages)))
    return Corpus(data.name, train, [pair.source for pair in test], [pair.target for pair in test])


def corpus_file(data: Path, names: Sequence[str], language: str) -> Path:
    """The first file of a folder with one of the names, plain or gzip."""
    tried = [data / f"{name}.{language}{end}" for name in names for end in ("", ".gz")]
    for path in tried:
        if path.exists():
            return path
    raise InputError(f"{data}: holds none of {', '.join(path.name for path in tried)}")


def training_batches(corpus: Corpus, place: Path, *, tokens: int, number: int) -> Path:
    """A file of ``number`` batches of at most ``tokens`` tokens, padding included."""
    place.mkdir(parents=True, exist_ok=True)
    tokenizer = train_tokenizer(
        (side for pair in corpus.train for side in pair), vocab_size=VOCABULARY
    )
    packed = pack(corpus.train, tokenizer, tokenizer, place / "packed", max_tokens=_MOST_TOKENS)
    path = place / f"batches-{tokens}-{number}.npz"
    write_batches(path, islice(_endless(packed, tokens), number))
    return path


def _endless(packed: Packed, tokens: int) -> Iterator[tuple[Any, Any, Any]]:
    lengths = (packed.source.lengths, packed.target.lengths)
    for epoch in count():
        for rows in plan_batches(*lengths, tokens=tokens, seed=1, epoch=epoch):
            batch = make_batch(packed, rows)
            yield batch.source.numpy(), batch.target.numpy(), batch.labels.numpy()


def write_batches(path: Path, batches: Iterator[tuple[Any, Any, Any]]) -> None:
    """Store (source, target, labels) arrays as ``source_0``, ``target_0`` …"""
    arrays = {
        f"{name}_{number}": part.astype(np.int32)
        for number, batch in enumerate(batches)
        for name, part in zip(("source", "target", "labels"), batch, strict=True)
    }
    np.savez(path, **arrays)


def model_of(size: dict[str, Any], *, vocab_size: int = VOCABULARY) -> dict[str, Any]:
    """The job's model. The vocabulary has its full size even if the text fills less of it."""
    sizes = dict(size)
    layers = sizes.pop("layers")
    return {
        "vocab_size": vocab_size,
        "num_encoder_layers": layers,
        "num_decoder_layers": layers,
        "dropout": 0.1,
        "max_length": 1024,
        **{"pad_id": 0, "unk_id": 1, "bos_id": 2, "eos_id": 3},
        **sizes,
    }
