"""From files to packed ids: read, choose the options, learn subwords, pack. Done once a run."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from glassformer.data.corpus import Pair, read_pairs
from glassformer.data.token_store import Packed, pack
from glassformer.data.tokenizer import Tokenizer, train_tokenizer
from glassformer.devices import device_of
from glassformer.errors import InputError
from glassformer.training.fast.mixed_precision import precision_for, product_speed
from glassformer.training.setup.kept_pairs import KeptPairs, keep_pairs
from glassformer.training.setup.options import TrainConfig
from glassformer.training.setup.recipe import choose, estimated_tokens, size_in_time
from glassformer.training.setup.resume import begun_config, bind_text, claim, record_options

__all__ = ["Prepared", "guess_languages", "prepare"]

_VALIDATION_PAIRS = 2_000  # more would make a validation long and its score hardly surer
_CODE = re.compile(r"\.([a-z]{2,3})(?:\.gz)?$")


@dataclass(frozen=True)
class Prepared:
    """Everything a training reads; ``config`` leaves nothing open."""

    config: TrainConfig
    tokenizers: tuple[Tokenizer, Tokenizer]
    languages: tuple[str, str] | None
    valid: list[Pair]
    test: list[Pair]
    packed: Packed
    data_hash: str
    notes: tuple[str, ...]


def prepare(config: TrainConfig) -> Prepared:
    """Settle the options, and make the data of the training under ``config.run / "data"``.

    What an earlier call made is used again. A run that has begun keeps its options and its text:
    others are an error.
    """
    claim(config.run)
    data_hash = bind_text(config)
    settled = begun_config(config)
    kept = keep_pairs(settled or config)
    notes = [f"data: {kept.filter}"]
    if settled is None:
        settled, reasons = _settled(config, kept)
        record_options(settled)
        notes += reasons
    valid, note = _validation_pairs(settled, kept)
    tokenizers = _tokenizers(settled, kept)
    packed = _packed(settled, kept, tokenizers)
    notes.append(note)
    if long := packed.meta.dropped_long:
        limit = f"more than {settled.max_tokens} subwords on a side (option max_tokens)"
        notes.append(f"{long:,} pairs dropped: {limit}")
    return Prepared(
        config=settled,
        tokenizers=tokenizers,
        languages=settled.languages or guess_languages(settled.pairs),
        valid=valid,
        test=_read(settled, settled.test) if settled.test else [],
        packed=packed,
        data_hash=data_hash,
        notes=tuple(notes),
    )


def _settled(config: TrainConfig, kept: KeptPairs) -> tuple[TrainConfig, list[str]]:
    """The options with nothing left open, and why."""
    pairs, size = kept.filter.kept, None
    device = device_of(config.device)
    if config.minutes and device.type == "cpu":
        precision = precision_for(device) if config.precision == "auto" else config.precision
        size = size_in_time(config, pairs=pairs, speed=product_speed(precision))
    tokens = estimated_tokens(kept.filter.characters)
    return choose(config, pairs=pairs, tokens=tokens, size=size)


def guess_languages(files: tuple[Path, ...]) -> tuple[str, str] | None:
    """The language codes that two file names end in, as in ``train.en train.de.gz``.

    >>> guess_languages((Path("train.en"), Path("train.de.gz")))
    ('en', 'de')
    """
    matches = [match.group(1) for path in files if (match := _CODE.search(path.name))]
    codes = [code for code in matches if code not in ("txt", "tsv", "src", "tgt", "raw")]
    return (codes[0], codes[1]) if len(codes) == 2 else None


def _read(config: TrainConfig, files: tuple[Path, ...]) -> list[Pair]:
    return list(read_pairs(*files, format=config.format, keys=config.keys))


def _validation_pairs(config: TrainConfig, kept: KeptPairs) -> tuple[list[Pair], str]:
    """The pairs to validate on, and a line that says where they come from."""
    if config.valid:
        pairs = _read(config, config.valid)
        if len(pairs) > _VALIDATION_PAIRS:
            note = f"validation: the first {_VALIDATION_PAIRS:,} of {len(pairs):,} pairs"
            return pairs[:_VALIDATION_PAIRS], note
        return pairs, f"validation: {len(pairs):,} pairs"
    if kept.held_out:
        note = f"validation: {kept.held_out:,} training pairs held out (no --valid was given)"
        return list(kept.valid()), note
    return list(islice(kept.train(), 100)), (
        "validation: on training pairs, for there are too few to hold some out;"
        " its scores say nothing about other text"
    )


def _packed(
    config: TrainConfig, kept: KeptPairs, tokenizers: tuple[Tokenizer, Tokenizer]
) -> Packed:
    """The training pairs as ids, packed by an earlier call or now."""
    directory = config.run / "data" / "train"
    if (directory / "meta.json").exists():
        packed = Packed.open(directory)
        fingerprints = [tokenizer.fingerprint for tokenizer in tokenizers]
        if list(packed.meta.tokenizers.values()) == fingerprints:
            return packed
    return pack(kept.train(), *tokenizers, directory, max_tokens=config.max_tokens)


def _tokenizers(config: TrainConfig, kept: KeptPairs) -> tuple[Tokenizer, Tokenizer]:
    """The tokenizers of both sides: given, learnt by an earlier call, or learnt now."""
    if config.tokenizer:
        return _given_tokenizers(config.tokenizer)
    if config.joint:
        both = _learnt(config, "both", (text for pair in kept.train() for text in pair))
        return both, both
    source = _learnt(config, "source", (pair.source for pair in kept.train()))
    return source, _learnt(config, "target", (pair.target for pair in kept.train()))


def _given_tokenizers(paths: tuple[Path, ...]) -> tuple[Tokenizer, Tokenizer]:
    source, target = Tokenizer.load(paths[0]), Tokenizer.load(paths[-1])
    if source.pad_id != target.pad_id:
        raise InputError(
            f"tokenizer {paths[0]} pads with id {source.pad_id} and {paths[-1]} with"
            f" {target.pad_id}: a model has one padding id; bring tokenizers that agree, or one"
        )
    return source, target


def _learnt(config: TrainConfig, name: str, texts: Iterator[str]) -> Tokenizer:
    """The tokenizer that the run keeps under this name; learnt from the texts if it has none."""
    path = config.run / "data" / f"{name}.model"
    if path.exists():
        return Tokenizer.load(path)
    tokenizer = train_tokenizer(
        texts, vocab_size=config.vocab_size or 8_000, kind=config.subwords, seed=config.seed
    )
    tokenizer.save(path)
    return tokenizer
