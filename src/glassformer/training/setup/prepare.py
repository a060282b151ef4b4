"""Prepares a run once: reads files, chooses options, learns subwords, packs ids."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import torch

from glassformer.config import TextMetric
from glassformer.data.corpus import Pair, read_pairs
from glassformer.data.normaliser import normaliser
from glassformer.data.parallel_lines import ruinous
from glassformer.data.preprocessing import Preprocessing
from glassformer.data.token_store import Packed, pack
from glassformer.data.tokenizer import Tokenizer
from glassformer.evaluation import metric_for
from glassformer.model.forms import check_record
from glassformer.model.transformer import Transformer
from glassformer.parts import FAST, PLAIN, Parts
from glassformer.support.devices import device_of
from glassformer.support.errors import InputError, UsageError, counted
from glassformer.support.progress import working
from glassformer.text_engine import TextEngine
from glassformer.training.setup.augmentation import write_augmented
from glassformer.training.setup.kept_pairs import KeptPairs, even_sample, keep_pairs
from glassformer.training.setup.machine import check_precision
from glassformer.training.setup.options import Files, MachineOptions, TextOptions, TrainConfig
from glassformer.training.setup.recipe import ranked
from glassformer.training.setup.resume import begun_config, check_inputs, record_options
from glassformer.training.setup.run_directory import RunDirectory
from glassformer.training.setup.start import Start, start_of

__all__ = ["Prepared", "prepare"]

_EXAMINED = 20_000  # pairs
_VALIDATION_PAIRS = 2_000  # more pairs would make a validation longer and its score hardly surer


@dataclass(frozen=True)
class Prepared:
    """All data that a training reads; ``config`` leaves no option open."""

    config: TrainConfig
    run: RunDirectory
    parts: Parts
    device: torch.device
    start: Start
    tokenizers: tuple[Tokenizer, Tokenizer]
    preprocessing: Preprocessing  # of the trained translator, and of each validation
    valid: list[Pair]
    packed_valid: Packed  # without blank and long pairs
    test: list[Pair]
    packed: Packed
    data_hash: str
    trigrams: tuple[str, str]
    general: Sequence[Pair] = ()

    @property
    def texts(self) -> dict[str, Sequence[Pair]]:
        """The pairs to score, under the names of the scores."""
        texts = {"validation": self.valid, "test": self.test, "general": self.general}
        return {name: pairs for name, pairs in texts.items() if pairs}

    def text_engine(self, model: Transformer) -> TextEngine:
        """The text engine of ``model``, in evaluation mode."""
        return TextEngine.of(model, self.tokenizers, self.parts, preprocessing=self.preprocessing)

    @property
    def metric(self) -> TextMetric:
        """The score of translations, which is BLEU or chrF++ even if the loss ranks checkpoints."""
        if self.config.metric and self.config.metric != "loss":
            return self.config.metric
        return metric_for([pair.target for pair in self.valid], self.target_language)

    @property
    def target_language(self) -> str | None:
        languages = self.preprocessing.languages
        return languages[1] if languages else None


def prepare(
    config: TrainConfig, parts: Parts | None = None, *, note: Callable[[str], None] = lambda _: None
) -> Prepared:
    """Settle the options, and make the training's data in the run's directory.

    The function uses files of an earlier call again. If a run has begun, other options or texts
    raise InputError. ``parts=None`` stands for the parts of ``config.plain``. ``note`` gets the
    reasons.
    """
    parts = _chosen(config, parts)
    check_precision(config.precision, parts)
    device = _device(config)
    run = RunDirectory(config.run)
    run.claim()
    data_hash = check_inputs(config.inputs, run, config.parent)
    settled = begun_config(config, run)
    start = start_of(settled or config, parts, device)
    if config.normalisation is None:
        config = config.model_copy(update={"normalisation": start.normalisation})
    kept = keep_pairs(settled or config, run)
    note(f"data: {kept.filter}")
    if fault := ruinous(list(islice(read_pairs(run.train), _EXAMINED))):
        note(f"warning: {fault} ('glassformer doctor' shows where)")
    longest, limit = _longest_side(settled or config, start)
    valid, origin = _validation_pairs(settled or config, kept)
    languages = (settled or config).language_pair or start.languages
    if settled is None:
        settled, reasons = ranked(*start.settled(config, kept), valid=valid, languages=languages)
        for reason in reasons:
            note(reason)
    record_options(settled, run)
    test, general_pairs = _read(settled, settled.test), _read(settled, settled.general)
    augmented = write_augmented(settled, run)
    start, tokenizers, vocabularies = start.with_subwords(settled, kept)
    for line in (origin, *augmented, *vocabularies):
        note(line)
    packed = _packed(run.packed("train"), run.pairs(), tokenizers, longest, text=settled)
    normalise = normaliser(settled.normalisation or "none")
    normalised = (Pair(*map(normalise, pair)) for pair in valid)
    packed_valid = _packed(run.packed("valid"), normalised, tokenizers, longest, text=settled)
    if long := packed.meta.dropped_long:
        note(f"{counted(long, 'pair')} dropped: {limit}")
    if left_out := len(valid) - len(packed_valid):
        note(f"validation: {counted(left_out, 'pair')} left out of its loss: blank, or {limit}")
    return Prepared(
        config=settled,
        run=run,
        parts=parts,
        device=device,
        start=start,
        tokenizers=tokenizers,
        preprocessing=_preprocessing(kept, start, settled, tokenizers[0]),
        valid=valid,
        packed_valid=packed_valid,
        test=test,
        packed=packed,
        data_hash=data_hash,
        general=general_pairs[:_VALIDATION_PAIRS],
        trigrams=kept.trigrams,
    )


def _preprocessing(
    kept: KeptPairs,
    start: Start,
    settled: TrainConfig,
    source_tokenizer: Tokenizer,
) -> Preprocessing:
    """The rules that cut texts for the child; it knows the texts of the parent too."""
    before = start.parent.preprocessing.known if start.parent else None
    known = kept.known.plus(before) if before else kept.known
    pairs = even_sample(read_pairs(kept.run.train), kept.trained)
    known = known.with_words(source_tokenizer, [pair.source for pair in pairs])
    languages = settled.language_pair or start.languages
    return Preprocessing(settled.normalisation or "none", languages, kept.source_lengths, known)


def _chosen(config: TrainConfig, parts: Parts | None) -> Parts:
    """The given parts, or else the parts of ``config.plain``."""
    if parts is None:
        return PLAIN if config.plain else FAST
    if config.plain:
        raise UsageError("parts are given too: leave one of the two out", argument="plain")
    check_record(parts)
    return parts


def _device(machine: MachineOptions) -> torch.device:
    device = device_of(machine.device)
    if machine.graph and device.type != "cuda":
        raise UsageError(f"needs a GPU, and the device is {device}: leave it out", argument="graph")
    return device


def _read(text: TextOptions, files: Files) -> list[Pair]:
    return list(read_pairs(*files, format=text.format, keys=text.keys)) if files else []


def _validation_pairs(text: TextOptions, kept: KeptPairs) -> tuple[list[Pair], str]:
    """The validation pairs, and a line about their origin."""
    if text.valid:
        pairs = _read(text, text.valid)
        if len(pairs) > _VALIDATION_PAIRS:
            note = f"validation: the first {_VALIDATION_PAIRS:,} of {len(pairs):,} pairs"
            return pairs[:_VALIDATION_PAIRS], note
        return pairs, f"validation: {counted(len(pairs), 'pair')}"
    if kept.held_out:
        held_out = counted(kept.held_out, "training pair")
        note = f"validation: {held_out} held out (no others were given)"
        if kept.left_out:
            note += f"; {kept.left_out:,} more have the same sources, and are left out"
        return list(read_pairs(kept.run.valid)), note
    return list(islice(read_pairs(kept.run.train), 100)), (
        "validation: on training pairs, because there are too few to hold some out;"
        " its scores say nothing about other text"
    )


def _longest_side(text: TextOptions, start: Start) -> tuple[int, str]:
    """The greatest number of subwords of a side, and the words for a longer side."""
    longest, reason = text.max_tokens, "option max_tokens"
    if start.parent is not None and (most := start.parent.model.config.longest_pair) < longest:
        longest, reason = most, "the parent's positions"
    return longest, f"more than {longest} subwords on a side ({reason})"


def _packed(
    directory: Path,
    pairs: Iterable[Pair],
    tokenizers: tuple[Tokenizer, Tokenizer],
    longest: int,
    *,
    text: TextOptions,
) -> Packed:
    """The pairs as ids in a directory, which an earlier call or this call has packed."""
    if (directory / "meta.json").exists():
        packed = Packed.open(directory)
        fingerprints = [tokenizer.fingerprint for tokenizer in tokenizers]
        if list(packed.meta.tokenizers.values()) == fingerprints:
            packed.verify()
            return packed
    try:
        with working("packing the pairs"):
            return pack(pairs, *tokenizers, directory, max_tokens=longest)
    except InputError as error:
        files = (text.valid if directory.name == "valid" else ()) or text.pairs
        raise InputError(f"{' and '.join(map(str, files))}: {error}") from error
