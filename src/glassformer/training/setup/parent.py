"""Fine-tuning: a run that begins with the weights of a bundle, its parent.

The child keeps the parent's model, subwords and normalisation. It learns with Adam at a constant
low rate, which falls to zero at the end.
"""

import random
from dataclasses import dataclass, replace
from itertools import chain

import torch

from glassformer.bundle import Bundle
from glassformer.data.corpus import Pair, read_lines, write_pairs
from glassformer.data.normaliser import Normalisation, normaliser
from glassformer.data.tokenizer import Tokenizer
from glassformer.data.trimming import trim_tokenizer
from glassformer.decoding.engine import SearchOptions
from glassformer.model.transformer import Transformer
from glassformer.parts import Parts, new_model
from glassformer.text_engine import TextEngine, torch_engine
from glassformer.training.setup.kept_pairs import KeptPairs
from glassformer.training.setup.options import (
    TEXT_SEED,
    LearningOptions,
    StartOptions,
    TextOptions,
    TrainConfig,
)
from glassformer.training.setup.run_directory import RunDirectory

__all__ = ["Parent", "vocabulary_settings"]

# The highest learning rates for a width of 128; as the paper's, they fall with the root of it.
_RATE, _RATE_WITH_REPLAY, _WIDTH = 3e-4, 1e-3, 128
_WARMUP, _EPOCHS, _BATCH_TOKENS = 50, 10.0, 2_048


@dataclass(frozen=True)
class Parent:
    """The start of a fine-tuning: the weights and the subwords of another bundle.

    Its methods are those of :class:`~glassformer.training.setup.start.Scratch`.
    """

    parent: Bundle
    parts: Parts
    options: StartOptions

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
        choices: dict[str, tuple[object, str]] = {
            "dropout": (model.dropout, "the parent's"),
            "batch_tokens": (_BATCH_TOKENS, "small batches: the pairs are few"),
            "warmup": (_WARMUP, "the weights are good already"),
            "rate_factor": (round(factor, 4), f"a highest rate of {highest:.2g}: {reason}"),
            "decay": ("constant", "it falls to zero at the end"),
            "optimiser": ("adam", "the paper's"),
            "both_ways": (0.0, ""),
            "joined_pairs": (0.0, ""),
            "placeholders": (0.0, ""),
        }
        if config.minutes is None and config.updates is None:
            choices["epochs"] = (_EPOCHS, "more would forget the parent")
        opened = {name: each for name, each in choices.items() if getattr(config, name) is None}
        reasons = [
            f"{name.replace('_', ' ')} {value}: {reason}"
            for name, (value, reason) in opened.items()
            if reason
        ]
        settled = config.model_copy(update={name: value for name, (value, _) in opened.items()})
        return settled, [f"from {config.parent}: its model, subwords and normalisation", *reasons]

    def most_updates(self, _pairs: int, per_epoch: float) -> int:
        return max(1, round(_EPOCHS * per_epoch))

    def write_further(self, kept: KeptPairs) -> None:
        """Write the parent's translations of the option ``replay``, found by greedy search."""
        path, replay = kept.run.replay, self.options.replay
        if replay is None or path.exists():
            return
        lines = [line for line in read_lines(replay) if line.strip()]
        count = min(len(lines), kept.filter.kept - kept.held_out)
        sources = random.Random(TEXT_SEED).sample(lines, count)
        parent, normalise = self.parent, normaliser(self.normalisation)
        translator = TextEngine.of(
            parent.model,
            parent.tokenizers,
            preprocessing=parent.preprocessing,
            engine=torch_engine(parent.model, parent.tokenizers, self.parts),
        )
        translations = translator.translate(sources, SearchOptions(beam=1))
        texts = [translation.text for translation in translations]
        write_pairs(path, map(Pair, map(normalise, sources), texts))

    def with_subwords(
        self, _text: TextOptions, run: RunDirectory
    ) -> tuple["Parent", tuple[Tokenizer, Tokenizer], list[str]]:
        if not self.options.trim_vocabulary:
            return self, self.parent.tokenizers, []
        start = replace(self, parent=_trimmed(self.parent, run, self.parts))
        sizes = dict.fromkeys(each.vocab_size for each in start.parent.tokenizers)
        count = sum(weight.numel() for weight in start.parent.model.parameters())
        vocabularies = " and ".join(f"{size:,}" for size in sizes)
        note = f"vocabulary trimmed to {vocabularies} subwords: {count:,} parameters"
        return start, start.parent.tokenizers, [note]

    def model(
        self, learning: LearningOptions, _tokenizers: tuple[Tokenizer, Tokenizer]
    ) -> Transformer:
        names = ("dropout", "attention_dropout", "activation_dropout")
        changes = {name: getattr(learning, name) for name in names}
        model = new_model(self.parent.model.config.model_copy(update=changes), self.parts)
        model.load_state_dict(self.parent.model.state_dict())
        return model


def _trimmed(parent: Bundle, run: RunDirectory, parts: Parts) -> Bundle:
    """The parent with the subwords of the run's pairs alone, and their rows of its weights."""
    source, target = parent.tokenizers
    if source.serialized == target.serialized:
        new_source, kept_source = trim_tokenizer(source, chain.from_iterable(run.pairs()))
        new_target = Tokenizer(
            new_source.serialized, prefix=target.prefix, known=new_source.vocab_size
        )
        kept_target = kept_source
    else:
        new_source, kept_source = trim_tokenizer(source, (pair.source for pair in run.pairs()))
        new_target, kept_target = trim_tokenizer(target, (pair.target for pair in run.pairs()))
    settings = vocabulary_settings(new_source, new_target)
    model = new_model(parent.model.config.model_copy(update=settings), parts)
    rows = {
        "source_embedding.weight": kept_source,
        "target_embedding.weight": kept_target,
        "output.weight": kept_target,
        "output_bias": kept_target,
    }
    weights = dict(parent.model.named_parameters())
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.copy_(weights[name][rows[name]] if name in rows else weights[name])
    model.to(parent.model.output_weight.device).eval().requires_grad_(False)
    return replace(parent, model=model, source_tokenizer=new_source, target_tokenizer=new_target)


def vocabulary_settings(source: Tokenizer, target: Tokenizer) -> dict[str, int | None]:
    """The sizes and the special symbols of both vocabularies, by the names in ModelConfig."""
    settings = {name: getattr(target, name) for name in ("pad_id", "unk_id", "bos_id", "eos_id")}
    settings["source_pad_id"] = source.pad_id if source.pad_id != target.pad_id else None
    return {
        "source_vocab_size": source.vocab_size,
        "target_vocab_size": target.vocab_size,
        **settings,
    }
