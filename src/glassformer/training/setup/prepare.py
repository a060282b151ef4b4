"""From files to packed ids: read, choose the options, learn subwords, pack. Done once a run."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

import torch

from glassformer.bundle import Bundle
from glassformer.data.corpus import Pair, read_pairs
from glassformer.data.normaliser import normaliser
from glassformer.data.preprocessing import Preprocessing, SourceLengths
from glassformer.data.token_store import Packed, pack
from glassformer.data.tokenizer import Tokenizer, train_tokenizer
from glassformer.devices import device_of
from glassformer.errors import InputError, UsageError, counted
from glassformer.model.transformer import Transformer
from glassformer.parts import FAST, PLAIN, Parts, parts_of
from glassformer.text_engine import TextEngine, torch_engine
from glassformer.training.mixed_precision import precision_for, product_speed
from glassformer.training.setup.augmentation import augmented_files, settle_shares
from glassformer.training.setup.kept_pairs import (
    KeptPairs,
    even_sample,
    guess_languages,
    keep_pairs,
)
from glassformer.training.setup.options import TEXT_SEED, Precision, TrainConfig
from glassformer.training.setup.parent import (
    load_parent,
    replayed,
    settle_from_parent,
    trimmed,
)
from glassformer.training.setup.recipe import (
    choose,
    estimated_tokens,
    size_in_time,
    updates_in_time,
)
from glassformer.training.setup.resume import begun_config, check_inputs, record_options
from glassformer.training.setup.run_directory import PairsName, RunDirectory

__all__ = ["Prepared", "chosen_precision", "prepare", "settle"]

_VALIDATION_PAIRS = 2_000  # more would make a validation long and its score hardly surer


@dataclass(frozen=True)
class Prepared:
    """Everything a training reads; ``config`` leaves nothing open."""

    config: TrainConfig
    parts: Parts
    device: torch.device
    tokenizers: tuple[Tokenizer, Tokenizer]
    languages: tuple[str, str] | None
    valid: list[Pair]
    packed_valid: Packed  # without blank and long pairs
    test: list[Pair]
    packed: Packed
    data_hash: str
    notes: tuple[str, ...]
    source_lengths: SourceLengths
    parent: Bundle | None = None
    general: Sequence[Pair] = ()

    @property
    def preprocessing(self) -> Preprocessing:
        """How the trained translator reads texts, and each validation too."""
        normalisation = self.config.normalisation or "none"
        return Preprocessing(normalisation, self.languages, self.source_lengths)

    @property
    def texts(self) -> dict[str, Sequence[Pair]]:
        """The pairs that are scored, by the names of their scores."""
        texts = {"validation": self.valid, "test": self.test, "general": self.general}
        return {name: pairs for name, pairs in texts.items() if pairs}

    def text_engine(self, model: Transformer) -> TextEngine:
        """The text engine of ``model``, in evaluation mode."""
        engine = torch_engine(model, self.tokenizers, self.parts)
        return TextEngine.of(
            model, self.tokenizers, preprocessing=self.preprocessing, engine=engine
        )

    @property
    def target_language(self) -> str | None:
        return self.languages[1] if self.languages else None


def prepare(config: TrainConfig, parts: Parts | None = None) -> Prepared:
    """Settle the options, and make the data of the training, in the run's directory.

    It uses the files of an earlier call again. A run that has begun keeps its options and its text:
    others are an error. ``parts``: None takes those of ``config.plain``.
    """
    parts = _chosen_parts(config, parts)
    device = device_of(config.device)
    RunDirectory(config.run).claim()
    data_hash = check_inputs(config)
    settled = begun_config(config)
    parent = load_parent(config if settled is None else settled, parts)
    if config.normalisation is None:
        normalisation = parent.normalisation if parent else "text"
        config = config.model_copy(update={"normalisation": normalisation})
    kept = keep_pairs(settled or config)
    notes = [f"data: {kept.filter}"]
    if settled is None:
        settled, reasons = _settled(config, kept, parent, device, parts)
        record_options(settled)
        notes += reasons
    valid, origin = _validation_pairs(settled, kept)
    test = _read(settled, settled.test) if settled.test else []
    augmented, further = augmented_files(settled, kept)
    notes += further
    translated = replayed(settled, parent, kept, parts) if parent else []
    files = [kept.run.train, *augmented, *translated]
    if parent and settled.trim_vocabulary:
        parent = trimmed(parent, files, parts)
        notes.append(_trimmed_sizes(parent))
    tokenizers = parent.tokenizers if parent else _tokenizers(settled, files)
    packed = _packed(settled, "train", chain(*map(read_pairs, files)), tokenizers)
    normalise = normaliser(settled.normalisation or "none")
    normalised = (Pair(*map(normalise, pair)) for pair in valid)
    packed_valid = _packed(settled, "valid", normalised, tokenizers)
    notes += [origin, *([] if parent else _small_vocabularies(settled, tokenizers))]
    limit = f"more than {settled.max_tokens} subwords on a side"
    if long := packed.meta.dropped_long:
        notes.append(f"{counted(long, 'pair')} dropped: {limit} (option max_tokens)")
    if left_out := len(valid) - len(packed_valid):
        notes.append(
            f"validation: {counted(left_out, 'pair')} left out of its loss: blank, or {limit}"
        )
    return Prepared(
        config=settled,
        parts=parts,
        device=device,
        tokenizers=tokenizers,
        languages=_languages(settled, parent),
        valid=valid,
        packed_valid=packed_valid,
        test=test,
        packed=packed,
        data_hash=data_hash,
        notes=tuple(notes),
        source_lengths=kept.source_lengths,
        parent=parent,
        general=_read(settled, settled.general)[:_VALIDATION_PAIRS] if settled.general else [],
    )


def _chosen_parts(config: TrainConfig, parts: Parts | None) -> Parts:
    """The given parts, or those of ``config.plain``; UsageError if their losses have no bf16."""
    parts = parts or parts_of(plain=config.plain)
    if config.precision == "bf16" and parts.losses is PLAIN.losses:
        raise UsageError("precision bf16: the plain losses compute in float32: leave it out")
    return parts


def _settled(
    config: TrainConfig, kept: KeptPairs, parent: Bundle | None, device: torch.device, parts: Parts
) -> tuple[TrainConfig, list[str]]:
    """The options of a run with nothing left open, and the reasons."""
    if parent is not None:
        return settle_from_parent(config, parent)
    counts = {"pairs": kept.filter.kept, "characters": kept.filter.characters}
    settled, reasons = settle(config, device=device, parts=parts, **counts)
    sample = even_sample(read_pairs(kept.run.train), kept.filter.kept - kept.held_out)
    settled, further = settle_shares(settled, sample, kept.source_lengths)
    return settled, [*reasons, *further]


def settle(
    config: TrainConfig,
    *,
    pairs: int,
    characters: int,
    device: torch.device,
    parts: Parts = FAST,
) -> tuple[TrainConfig, list[str]]:
    """The options with nothing left open, and the reasons.

    With ``minutes`` on a CPU, the last reason estimates the number of updates.
    """
    tokens = estimated_tokens(characters)
    if not config.minutes or device.type != "cpu":
        return choose(config, pairs=pairs, tokens=tokens)
    speed = product_speed(chosen_precision(config, device, parts))
    size = size_in_time(config, pairs=pairs, speed=speed)
    settled, reasons = choose(config, pairs=pairs, tokens=tokens, size=size)
    most = updates_in_time(settled, pairs=pairs, tokens=tokens, speed=speed)
    reason = "validations and other programs take a part of the time"
    return settled, [*reasons, f"updates about {most // 2:,} to {most:,}: {reason}"]


def chosen_precision(config: TrainConfig, device: torch.device, parts: Parts) -> Precision:
    """The precision of the option; "auto" measures the machine for the fast parts."""
    if config.precision != "auto":
        return config.precision
    return precision_for(device) if parts == FAST else "float32"


def _languages(config: TrainConfig, parent: Bundle | None) -> tuple[str, str] | None:
    of_files = config.languages or guess_languages(config.pairs)
    return of_files or (parent.languages if parent else None)


def _read(config: TrainConfig, files: tuple[Path, ...]) -> list[Pair]:
    return list(read_pairs(*files, format=config.format, keys=config.keys))


def _validation_pairs(config: TrainConfig, kept: KeptPairs) -> tuple[list[Pair], str]:
    """The validation pairs, and a line about their origin."""
    if config.valid:
        pairs = _read(config, config.valid)
        if len(pairs) > _VALIDATION_PAIRS:
            note = f"validation: the first {_VALIDATION_PAIRS:,} of {len(pairs):,} pairs"
            return pairs[:_VALIDATION_PAIRS], note
        return pairs, f"validation: {len(pairs):,} pairs"
    if kept.held_out:
        note = f"validation: {kept.held_out:,} training pairs held out (no --valid was given)"
        return list(read_pairs(kept.run.valid)), note
    return list(islice(read_pairs(kept.run.train), 100)), (
        "validation: on training pairs, because there are too few to hold some out;"
        " its scores say nothing about other text"
    )


def _tokenizers(config: TrainConfig, corpus: Sequence[Path]) -> tuple[Tokenizer, Tokenizer]:
    """The tokenizers of both sides: given, or learnt by this run."""
    files = config.tokenizer or _learnt(config, corpus)
    return Tokenizer.load(files[0]), Tokenizer.load(files[-1])


def _small_vocabularies(config: TrainConfig, tokenizers: tuple[Tokenizer, Tokenizer]) -> list[str]:
    """A line for each learnt vocabulary that is smaller than the option: the text has no more."""
    wanted = config.vocab_size or 0
    sizes = () if config.tokenizer else (tokenizer.vocab_size for tokenizer in tokenizers)
    return [
        f"vocabulary: {size:,} subwords, because the text gives no more; {wanted:,} were wanted"
        " (option vocab_size)"
        for size in dict.fromkeys(sizes)
        if size < wanted
    ]


def _trimmed_sizes(parent: Bundle) -> str:
    """A line about the vocabularies that are left of the parent's."""
    sizes = dict.fromkeys(tokenizer.vocab_size for tokenizer in parent.tokenizers)
    count = sum(weight.numel() for weight in parent.model.parameters())
    vocabularies = " and ".join(f"{size:,}" for size in sizes)
    return f"vocabulary trimmed to {vocabularies} subwords: {count:,} parameters"


def _learnt(config: TrainConfig, corpus: Sequence[Path]) -> list[Path]:
    """The run's own SentencePiece files, one or two; missing ones are learnt and saved."""
    run = RunDirectory(config.run)
    sides: dict[Path, tuple[int, ...]] = {run.subwords("both"): (0, 1)}
    if not config.joint:
        sides = {run.subwords("source"): (0,), run.subwords("target"): (1,)}
    for file, columns in sides.items():
        if not file.exists():
            pairs = chain(*map(read_pairs, corpus))
            texts = (pair[column] for pair in pairs for column in columns)
            train_tokenizer(
                texts, vocab_size=config.vocab_size or 8_000, kind=config.subwords, seed=TEXT_SEED
            ).save(file)
    return list(sides)


def _packed(
    config: TrainConfig,
    name: PairsName,
    pairs: Iterable[Pair],
    tokenizers: tuple[Tokenizer, Tokenizer],
) -> Packed:
    """The pairs as ids in the run's directory ``data/name``, packed by an earlier call or now."""
    directory = RunDirectory(config.run).packed(name)
    if (directory / "meta.json").exists():
        packed = Packed.open(directory)
        fingerprints = [tokenizer.fingerprint for tokenizer in tokenizers]
        if list(packed.meta.tokenizers.values()) == fingerprints:
            packed.verify()
            return packed
    try:
        return pack(pairs, *tokenizers, directory, max_tokens=config.max_tokens)
    except InputError as error:
        files = (config.valid if name == "valid" else ()) or config.pairs
        raise InputError(f"{' and '.join(map(str, files))}: {error}") from error
