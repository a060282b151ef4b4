"""From files to packed ids: read, filter, hold out, learn subwords, pack. Done once a run."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from glassformer.data.corpus import Filter, Limits, Pair, read_pairs
from glassformer.data.token_store import Packed, pack
from glassformer.data.tokenizer import Tokenizer, train_tokenizer
from glassformer.devices import device_of
from glassformer.errors import InputError
from glassformer.training.fast.mixed_precision import precision_for, product_speed
from glassformer.training.setup.options import TrainConfig
from glassformer.training.setup.recipe import choose, estimated_tokens, size_begun, size_in_time
from glassformer.training.setup.resume import begun_options, bind, claim, input_hashes

__all__ = ["Prepared", "guess_languages", "prepare"]

_VALIDATION_PAIRS = 2_000  # more would make a validation long and its score hardly surer
_CODE = re.compile(r"\.([a-z]{2,3})(?:\.gz)?$")


@dataclass(frozen=True)
class Prepared:
    """What training reads: settled options, tokenizers, packed pairs, validation and test pairs."""

    config: TrainConfig
    tokenizers: tuple[Tokenizer, Tokenizer]
    languages: tuple[str, str] | None
    valid: list[Pair]
    test: list[Pair]
    held_out: frozenset[int]  # places of the pairs that are validated on, not trained on
    packed: Packed
    data_hash: str
    notes: tuple[str, ...]


def prepare(config: TrainConfig) -> Prepared:
    """Settle the options, and make what training reads under ``config.run / "data"``.

    What an earlier call made is used again; where the training text has changed since, that is
    an error, for a run goes on with the data that it began with.
    """
    claim(config.run)
    hashes = input_hashes(config)
    settled, kept, notes = _settled(config)
    bind(settled, hashes)
    held_out = frozenset() if config.valid else _held_out(config, kept)
    valid, note = _validation_pairs(settled, held_out)
    tokenizers = _tokenizers(settled, held_out)
    packed = _packed(settled, held_out, tokenizers)
    notes.append(note)
    if long := packed.meta.dropped_long:
        limit = f"more than {config.max_tokens} subwords on a side (option max_tokens)"
        notes.append(f"{long:,} pairs dropped: {limit}")
    return Prepared(
        config=settled,
        tokenizers=tokenizers,
        languages=config.languages or guess_languages(config.pairs),
        valid=valid,
        test=_read(settled, settled.test) if settled.test else [],
        held_out=held_out,
        packed=packed,
        data_hash=hashes["pairs"],
        notes=tuple(notes),
    )


def _settled(config: TrainConfig) -> tuple[TrainConfig, int, list[str]]:
    """The options with nothing left open, the number of pairs that are kept, and why."""
    keep = _filter(config)
    for _ in _kept_pairs(config, keep):
        pass
    if keep.kept == 0:
        files = " and ".join(map(str, config.pairs))
        raise InputError(f"{files}: no pair is left to train on ({keep})")
    tokens = estimated_tokens(keep.characters)
    settled, reasons = choose(config, pairs=keep.kept, tokens=tokens, size=_size(config, keep.kept))
    return settled, keep.kept, [f"data: {keep}", *reasons]


def _size(config: TrainConfig, pairs: int) -> str | None:
    """The size that the time is enough for on this machine; a run that has begun keeps its own."""
    device = device_of(config.device)
    if not config.minutes:
        return None
    if before := begun_options(config.run):
        return size_begun(config, before)
    if device.type != "cpu":
        return None
    precision = precision_for(device) if config.precision == "auto" else config.precision
    return size_in_time(config, pairs=pairs, speed=product_speed(precision))


def guess_languages(files: tuple[Path, ...]) -> tuple[str, str] | None:
    """The language codes that two file names end in, as in ``train.en train.de.gz``.

    >>> guess_languages((Path("train.en"), Path("train.de.gz")))
    ('en', 'de')
    """
    found = [match.group(1) for path in files if (match := _CODE.search(path.name))]
    known = [code for code in found if code not in ("txt", "tsv", "src", "tgt", "raw")]
    return (known[0], known[1]) if len(known) == 2 else None


def _read(config: TrainConfig, files: tuple[Path, ...]) -> list[Pair]:
    return list(read_pairs(*files, format=config.format, keys=config.keys))


def _held_out(config: TrainConfig, count: int) -> frozenset[int]:
    """Places among the kept pairs that are validated on, by the seed: 2 %, at most 1,000.

    Of a small corpus it is 10 %, up to 100: the score of a handful of pairs is chance.
    """
    size = min(1_000, max(count // 50, min(100, count // 10)))
    return frozenset(np.random.default_rng(config.seed).permutation(count)[:size].tolist())


def _validation_pairs(config: TrainConfig, held_out: frozenset[int]) -> tuple[list[Pair], str]:
    """What is translated on the way, and a line that says where it is from."""
    if config.valid:
        pairs = _read(config, config.valid)
        if len(pairs) > _VALIDATION_PAIRS:
            note = f"validation: the first {_VALIDATION_PAIRS:,} of {len(pairs):,} pairs"
            return pairs[:_VALIDATION_PAIRS], note
        return pairs, f"validation: {len(pairs):,} pairs"
    kept = _kept_pairs(config, _filter(config))
    if not held_out:
        return list(islice(kept, 100)), (
            "validation: on training pairs, for there are too few to hold some out;"
            " its scores say nothing about other text"
        )
    pairs = [pair for place, pair in enumerate(kept) if place in held_out]
    return pairs, f"validation: {len(pairs):,} training pairs held out (no --valid was given)"


def _filter(config: TrainConfig) -> Filter:
    return Filter(Limits(max_chars=config.max_chars, max_ratio=config.max_ratio))


def _kept_pairs(config: TrainConfig, keep: Filter) -> Iterator[Pair]:
    """The pairs of the training files that ``keep`` lets through."""
    return keep(read_pairs(*config.pairs, format=config.format, keys=config.keys))


def _training_pairs(config: TrainConfig, held_out: frozenset[int]) -> Iterator[Pair]:
    kept = _kept_pairs(config, _filter(config))
    return (pair for place, pair in enumerate(kept) if place not in held_out)


def _packed(
    config: TrainConfig, held_out: frozenset[int], tokenizers: tuple[Tokenizer, Tokenizer]
) -> Packed:
    """The training pairs as ids, packed by an earlier call or now."""
    directory = config.run / "data" / "train"
    if (directory / "meta.json").exists():
        packed = Packed.open(directory)
        fingerprints = [tokenizer.fingerprint for tokenizer in tokenizers]
        if list(packed.meta.tokenizers.values()) == fingerprints:
            return packed
    pairs = _training_pairs(config, held_out)
    return pack(pairs, *tokenizers, directory, max_tokens=config.max_tokens)


def _tokenizers(config: TrainConfig, held_out: frozenset[int]) -> tuple[Tokenizer, Tokenizer]:
    if config.tokenizer:
        loaded = [Tokenizer.load(path) for path in config.tokenizer]
        if loaded[0].pad_id != loaded[-1].pad_id:
            raise InputError(
                f"tokenizer {config.tokenizer[0]} pads with id {loaded[0].pad_id} and"
                f" {config.tokenizer[-1]} with {loaded[-1].pad_id}: a model has one padding id;"
                " bring tokenizers that agree, or one"
            )
        return loaded[0], loaded[-1]
    directory = config.run / "data"
    names = ["both", "both"] if config.joint else ["source", "target"]
    paths = [directory / f"{name}.model" for name in names]
    made: dict[str, Tokenizer] = {}
    for side, (name, path) in enumerate(zip(names, paths, strict=True)):
        if name in made:
            continue
        if path.exists():
            made[name] = Tokenizer.load(path)
            continue
        made[name] = train_tokenizer(
            (
                text
                for pair in _training_pairs(config, held_out)
                for text in (pair if config.joint else (pair[side],))
            ),
            vocab_size=config.vocab_size or 8_000,
            kind=config.subwords,
            seed=config.seed,
        )
        made[name].save(path)
    return made[names[0]], made[names[1]]
