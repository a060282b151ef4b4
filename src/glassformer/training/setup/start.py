"""The start of a training, with random weights or with the weights of a parent.

Both classes of starts have equal methods. After :func:`start_of`, only the final scores of parent
and child depend on the class.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from glassformer.bundle import Bundle, load_bundle
from glassformer.config import ModelConfig
from glassformer.data.corpus import Pair, read_lines, read_pairs, write_pairs
from glassformer.data.normaliser import Normalisation, normaliser
from glassformer.data.subword_training import train_tokenizer
from glassformer.data.tokenizer import Tokenizer
from glassformer.data.trimming import trim_tokenizer, trim_tokenizers
from glassformer.decoding.engine import SearchOptions
from glassformer.model.transformer import Transformer
from glassformer.parts import Parts
from glassformer.support.devices import free_memory
from glassformer.support.errors import UsageError
from glassformer.support.progress import working
from glassformer.support.tensors import load_weights, unfilled, weights
from glassformer.text_engine import TextEngine
from glassformer.training.setup.augmentation import settle_joined_pairs
from glassformer.training.setup.kept_pairs import KeptPairs, even_sample
from glassformer.training.setup.machine import machine_speed
from glassformer.training.setup.memory import tokens_that_fit
from glassformer.training.setup.options import (
    TEXT_SEED,
    LearningOptions,
    SizeOptions,
    StartOptions,
    TextOptions,
    TrainConfig,
)
from glassformer.training.setup.recipe import (
    Choices,
    choose_in_time,
    estimated_tokens,
    model_config,
    settled,
    useful_updates,
)
from glassformer.training.setup.run_directory import RunDirectory

__all__ = ["Parent", "Scratch", "Start", "start_of"]

_OF_THE_PARENT = (*SizeOptions.model_fields, "vocab_size", "tokenizer", "subwords", "joint")
# The highest learning rates for width 128; as in the paper, rates fall with the width's root.
_RATE, _RATE_WITH_REPLAY, _WIDTH = 3e-4, 1e-3, 128
_LACKING, _SHOWN = 0.05, 8  # share of a side's subwords, and letters in the warning
_WARMUP, _EPOCHS, _BATCH_TOKENS = 50, 10.0, 2_048


@dataclass(frozen=True)
class Scratch:
    """The start of a training with random weights, and with given or learnt subwords."""

    parts: Parts
    device: torch.device
    normalisation: Normalisation = "text"
    languages: None = None  # a Parent has the languages of its bundle
    parent: None = None

    def settled(self, config: TrainConfig, kept: KeptPairs) -> tuple[TrainConfig, list[str]]:
        """The options of a run with a value for each open option, and the reasons."""
        pairs, tokens = kept.filter.kept, estimated_tokens(kept.filter.characters)
        speed = machine_speed(config, self.device, self.parts) if config.minutes else None
        if "optimiser" in self.parts.own and config.optimiser is None:  # it excludes Muon
            config = config.model_copy(update={"optimiser": "adam"})
        chosen, reasons = choose_in_time(config, pairs=pairs, tokens=tokens, speed=speed)
        room = tokens_that_fit(chosen, free_memory(self.device))
        if config.batch_tokens is None and room < (chosen.batch_tokens or 0):
            config = config.model_copy(update={"batch_tokens": room})
            chosen, reasons = choose_in_time(config, pairs=pairs, tokens=tokens, speed=speed)
            reasons.append(f"batch tokens {room:,}: the GPU's free memory holds no more")
        shares, further = settle_joined_pairs(chosen, kept.source_lengths)
        return chosen.model_copy(update=shares), [*reasons, *further]

    def most_updates(self, pairs: int, per_epoch: float) -> int:
        """The most updates of a run of minutes; an epoch has ``per_epoch`` updates."""
        return useful_updates(pairs, per_epoch)

    def with_subwords(
        self, text: TextOptions, kept: KeptPairs
    ) -> tuple["Start", tuple[Tokenizer, Tokenizer], list[str]]:
        """The start with a run's subwords, the run's tokenizers, and lines about the tokenizers."""
        files = text.tokenizer or _learnt(text, kept.run)
        tokenizers = Tokenizer.load(files[0]), Tokenizer.load(files[-1])
        wanted = text.vocab_size or 0
        sizes = () if text.tokenizer else (tokenizer.vocab_size for tokenizer in tokenizers)
        notes = [
            f"vocabulary: {size:,} subwords, because the text gives no more; {wanted:,} were wanted"
            " (option vocab_size)"
            for size in dict.fromkeys(sizes)
            if size < wanted
        ]
        return self, tokenizers, notes

    def parent_anew(self) -> Bundle | None:
        """The parent as its directory has it; None without a parent."""
        return None

    def model(self, config: TrainConfig, tokenizers: tuple[Tokenizer, Tokenizer]) -> Transformer:
        """The model before the first update."""
        settings = model_config(config, _vocabulary_settings(*tokenizers))
        return self.parts.build(settings)


@dataclass(frozen=True)
class Parent:
    """The start of a fine-tuning: the weights and the subwords of another bundle.

    The child keeps the parent's model, subwords and normalisation. The child learns with Adam at
    a constant low rate, which falls to zero at the end. The methods are those of :class:`Scratch`.
    The child's weights take the memory of ``parent``, and ``parent_anew`` reads the parent again.
    """

    parent: Bundle
    parts: Parts
    options: StartOptions
    read: Callable[[], Bundle]

    @property
    def normalisation(self) -> Normalisation:
        return self.parent.normalisation

    @property
    def languages(self) -> tuple[str, str] | None:
        return self.parent.languages

    def settled(self, config: TrainConfig, _kept: KeptPairs) -> tuple[TrainConfig, list[str]]:
        model = self.parent.model.config
        warmup = config.warmup or _WARMUP
        rate = _RATE_WITH_REPLAY if config.replay else _RATE
        factor = rate * (_WIDTH * warmup) ** 0.5
        highest = rate * (_WIDTH / model.d_model) ** 0.5
        reason = "replay keeps the parent" if config.replay else "a higher one forgets the parent"
        choices: Choices = {
            "dropout": (model.dropout, "the parent's"),
            "batch_tokens": (_BATCH_TOKENS, "small batches: the pairs are few"),
            "warmup": (_WARMUP, "the weights are good already"),
            "rate_factor": (round(factor, 4), f"a highest rate of {highest:.2g}: {reason}"),
            "decay": ("constant", "it falls to zero at the end"),
            "optimiser": ("adam", "the paper's"),
            "both_ways": (0.0, ""),
            "joined_pairs": (0.0, ""),
        }
        if config.minutes is None and config.updates is None:
            choices["epochs"] = (_EPOCHS, "more would forget the parent")
        child, reasons = settled(config, choices)
        return child, [f"from {config.parent}: its model, subwords and normalisation", *reasons]

    def most_updates(self, _pairs: int, per_epoch: float) -> int:
        return max(1, round(_EPOCHS * per_epoch))

    def with_subwords(
        self, _text: TextOptions, kept: KeptPairs
    ) -> tuple["Parent", tuple[Tokenizer, Tokenizer], list[str]]:
        """Write the pairs of ``replay``, then act as :meth:`Scratch.with_subwords`."""
        if self.options.replay and not kept.run.replay.exists():
            self._write_replay(self.options.replay, kept)
        notes = _lacking(self.parent.tokenizers, kept)
        if not self.options.trim_vocabulary:
            return self, self.parent.tokenizers, notes
        trimmed = partial(_trimmed, run=kept.run, parts=self.parts)
        read = self.read  # the start with the whole parent goes
        start = replace(self, parent=trimmed(self.parent), read=lambda: trimmed(read()))
        sizes = dict.fromkeys(each.vocab_size for each in start.parent.tokenizers)
        count = sum(weight.numel() for weight in start.parent.model.parameters())
        vocabularies = " and ".join(f"{size:,}" for size in sizes)
        note = f"vocabulary trimmed to {vocabularies} subwords: {count:,} parameters"
        return start, start.parent.tokenizers, [*notes, note]

    def _write_replay(self, file: Path, kept: KeptPairs) -> None:
        """Write the parent's translations of a text, found by greedy search."""
        lines = [line for line in read_lines(file) if line.strip()]
        count = min(len(lines), kept.trained)
        sources = random.Random(TEXT_SEED).sample(lines, count)
        parent, normalise = self.parent, normaliser(self.normalisation)
        translator = TextEngine.of(
            parent.model, parent.tokenizers, self.parts, preprocessing=parent.preprocessing
        )
        with working("translating the replay text"):
            translations = translator.translate(sources, SearchOptions(beam=1))
        texts = [translation.text for translation in translations]
        write_pairs(kept.run.replay, map(Pair, map(normalise, sources), texts))

    def parent_anew(self) -> Bundle | None:
        return self.read()

    def model(
        self, learning: LearningOptions, _tokenizers: tuple[Tokenizer, Tokenizer]
    ) -> Transformer:
        names = ("dropout", "attention_dropout", "activation_dropout")
        changes = {name: getattr(learning, name) for name in names}
        settings = self.parent.model.config.model_copy(update=changes)
        return _filled(self.parts, settings, weights(self.parent.model).items())


Start = Scratch | Parent


def start_of(config: TrainConfig, parts: Parts, device: torch.device) -> Start:
    """The start, which is a :class:`Parent` if ``config`` names one, or else :class:`Scratch`.

    Raises UsageError for an option that the parent decides.
    """
    if config.parent is None:
        return Scratch(parts, device)
    fields = TrainConfig.model_fields
    names = [name for name in _OF_THE_PARENT if getattr(config, name) != fields[name].default]
    if names:
        raise UsageError("comes from the parent bundle: leave it out", argument=names[0])
    directory = config.parent

    def parent_anew() -> Bundle:
        bundle = load_bundle(directory, device=device, build=parts.build, own=parts.own)
        pair = config.language_pair if bundle.language_tokens else None
        return bundle.between(*pair) if pair else bundle

    parent = parent_anew()
    if config.normalisation not in (None, parent.normalisation):
        raise UsageError(
            f"{config.normalisation}: the parent bundle has {parent.normalisation}: leave it out",
            argument="normalisation",
        )
    source, target = parent.tokenizers
    if config.both_ways and source.serialized != target.serialized:
        raise UsageError("needs one vocabulary; the parent bundle has two", argument="both_ways")
    return Parent(parent, parts, config, parent_anew)


def _learnt(text: TextOptions, run: RunDirectory) -> list[Path]:
    """The run's one or two SentencePiece files; the function learns and saves missing files."""
    sides: dict[Path, tuple[int, ...]] = {run.subwords("both"): (0, 1)}
    if not text.joint:
        sides = {run.subwords("source"): (0,), run.subwords("target"): (1,)}
    for file, columns in sides.items():
        if not file.exists():
            texts = (pair[column] for pair in run.pairs() for column in columns)
            size = text.vocab_size or 8_000
            with working("learning subwords"):
                train_tokenizer(texts, vocab_size=size, kind=text.subwords, seed=TEXT_SEED).save(
                    file
                )
    return list(sides)


def _trimmed(parent: Bundle, run: RunDirectory, parts: Parts) -> Bundle:
    """The parent with only the subwords of the run's pairs, and the subwords' rows of weights."""
    source, target = parent.tokenizers
    sources, targets = (pair.source for pair in run.pairs()), (pair.target for pair in run.pairs())
    shares_rows = parent.model.config.tying in ("three-way", "embeddings")
    if shares_rows or source.serialized == target.serialized:
        (new_source, new_target), kept_source = trim_tokenizers(
            [source, target], [sources, targets]
        )
        kept_target = kept_source
    else:
        new_source, kept_source = trim_tokenizer(source, sources)
        new_target, kept_target = trim_tokenizer(target, targets)
    changes = _vocabulary_settings(new_source, new_target)
    rows = {
        "source_embedding.weight": kept_source,
        "target_embedding.weight": kept_target,
        "output.weight": kept_target,
        "output_bias": kept_target,
    }
    settings = parent.model.config.model_copy(update=changes)
    kept = (
        (name, weight[rows[name]] if name in rows else weight)
        for name, weight in weights(parent.model).items()
    )
    model = _filled(parts, settings, kept).to(parent.model.output_weight.device)
    model.eval().requires_grad_(False)
    return replace(parent, model=model, source_tokenizer=new_source, target_tokenizer=new_target)


def _lacking(tokenizers: tuple[Tokenizer, Tokenizer], kept: KeptPairs) -> list[str]:
    """A warning for each side that the parent reads as bytes, or as the unknown symbol."""
    notes = []
    sample = even_sample(read_pairs(kept.run.train), kept.trained)
    for side, tokenizer in zip(Pair._fields, tokenizers, strict=True):
        text = " ".join(getattr(pair, side) for pair in sample)
        ids, odd = tokenizer.encode(text), {tokenizer.unk_id, *tokenizer.byte_ids}
        if (share := sum(index in odd for index in ids) / len(ids)) > _LACKING:
            letters = (letter for letter, _ in Counter(text).most_common())
            lacking = [letter for letter in letters if odd.intersection(tokenizer.encode(letter))]
            notes.append(
                f"warning: {share:.0%} of the {side}'s subwords are bytes or unknown, because the"
                f" parent lacks {' '.join(lacking[:_SHOWN])}. Such a child learns little: train"
                " without a parent, or from a parent of these languages"
            )
    return notes


def _filled(
    parts: Parts, settings: ModelConfig, stored: Iterable[tuple[str, Tensor]]
) -> Transformer:
    """A model that takes the memory of the stored weights, if its parts need none of their own."""
    model = unfilled(lambda: parts.build(settings))
    load_weights(model, stored, Path("the parent"))
    return model


def _vocabulary_settings(source: Tokenizer, target: Tokenizer) -> dict[str, int | None]:
    """The sizes and special symbols of both vocabularies, under the names of ModelConfig."""
    settings = {name: getattr(target, name) for name in ("pad_id", "unk_id", "bos_id", "eos_id")}
    settings["source_pad_id"] = source.pad_id if source.pad_id != target.pad_id else None
    return {
        "source_vocab_size": source.vocab_size,
        "target_vocab_size": target.vocab_size,
        **settings,
    }
