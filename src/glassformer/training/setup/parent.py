"""Fine-tuning: a run that begins with the weights of a bundle, its parent.

The child keeps the parent's model, subwords and normalisation. It learns with Adam at a constant
low rate, which falls to zero at the end.
"""

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

import torch

from glassformer.bundle import Bundle, check_bundle, load_bundle
from glassformer.data.corpus import Pair, read_lines, read_pairs, write_pairs
from glassformer.data.normaliser import normaliser
from glassformer.data.tokenizer import Tokenizer
from glassformer.data.trimming import trim_tokenizer
from glassformer.decoding.engine import SearchOptions
from glassformer.devices import device_of
from glassformer.errors import UsageError
from glassformer.model.transformer import Transformer
from glassformer.parts import Parts, new_model
from glassformer.text_engine import TextEngine, torch_engine
from glassformer.training.setup.kept_pairs import KeptPairs, guess_languages
from glassformer.training.setup.options import TEXT_SEED, TrainConfig

__all__ = [
    "load_parent",
    "model_of_child",
    "parent_files",
    "replayed",
    "settle_from_parent",
    "special_ids",
    "trimmed",
    "updates_of_child",
]

# The highest learning rates for a width of 128; as the paper's, they fall with the root of it.
_RATE, _RATE_WITH_REPLAY, _WIDTH = 3e-4, 1e-3, 128
_WARMUP, _EPOCHS, _BATCH_TOKENS = 50, 10.0, 2_048
_SIZES = ("preset", "d_model", "num_heads", "d_ff", "num_encoder_layers", "num_decoder_layers")
_SUBWORDS = ("vocab_size", "tokenizer", "subwords", "joint")
_OF_THE_PARENT = (*_SIZES, "norm", "tying", "positions", "activation", *_SUBWORDS)


def load_parent(config: TrainConfig, parts: Parts) -> Bundle | None:
    """The bundle of ``config.parent``; None without one.

    Raises UsageError for an option that the parent decides.
    """
    if config.parent is None:
        return None
    fields = TrainConfig.model_fields
    given = [name for name in _OF_THE_PARENT if getattr(config, name) != fields[name].default]
    if given:
        raise UsageError(
            f"{given[0].replace('_', ' ')}: the bundle of --from decides it: leave it out"
        )
    parent = load_bundle(config.parent, device=device_of(config.device), parts=parts)
    languages = config.languages or guess_languages(config.pairs)
    if parent.language_tokens and languages:
        parent = parent.between(*languages)
    if config.normalisation not in (None, parent.normalisation):
        raise UsageError(
            f"normalisation {config.normalisation}: the bundle of --from has"
            f" {parent.normalisation}: leave it out"
        )
    source, target = parent.tokenizers
    if config.both_ways and source.serialized != target.serialized:
        raise UsageError("both ways: it needs one vocabulary, and the bundle of --from has two")
    return parent


def parent_files(config: TrainConfig) -> tuple[Path, ...]:
    """The files of the parent that decide the run; InputError if it is no bundle."""
    if config.parent is None:
        return ()
    check_bundle(config.parent)
    return config.parent / "config.json", config.parent / "model.safetensors"


def replayed(config: TrainConfig, parent: Bundle, kept: KeptPairs, parts: Parts) -> list[Path]:
    """The file of the parent's translations of ``config.replay``; [] without that option.

    An earlier call made it, or it is made now, by greedy search.
    """
    path = kept.run.replay
    if config.replay is None or path.exists():
        return [path] if path.exists() else []
    lines = [line for line in read_lines(config.replay) if line.strip()]
    count = min(len(lines), kept.filter.kept - kept.held_out)
    sources = random.Random(TEXT_SEED).sample(lines, count)
    normalise = normaliser(parent.normalisation)
    translator = TextEngine.of(
        parent.model,
        parent.tokenizers,
        preprocessing=parent.preprocessing,
        engine=torch_engine(parent.model, parent.tokenizers, parts),
    )
    translations = translator.translate(sources, SearchOptions(beam=1))
    texts = [translation.text for translation in translations]
    write_pairs(path, map(Pair, map(normalise, sources), texts))
    return [path]


def trimmed(parent: Bundle, files: Sequence[Path], parts: Parts) -> Bundle:
    """The parent with the subwords of these files of pairs alone, and their rows of its weights."""
    source, target = parent.tokenizers
    if source.serialized == target.serialized:
        texts = chain.from_iterable(chain.from_iterable(map(read_pairs, files)))
        new_source, kept_source = trim_tokenizer(source, texts)
        new_target = Tokenizer(
            new_source.serialized, prefix=target.prefix, known=new_source.vocab_size
        )
        kept_target = kept_source
    else:
        sources = (pair.source for file in files for pair in read_pairs(file))
        targets = (pair.target for file in files for pair in read_pairs(file))
        new_source, kept_source = trim_tokenizer(source, sources)
        new_target, kept_target = trim_tokenizer(target, targets)
    sizes = {
        "source_vocab_size": new_source.vocab_size,
        "target_vocab_size": new_target.vocab_size,
    }
    config = parent.model.config.model_copy(update=sizes | special_ids(new_source, new_target))
    model = new_model(config, parts)
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


def special_ids(source: Tokenizer, target: Tokenizer) -> dict[str, int | None]:
    """The ids of the special symbols, by the names of their settings in ModelConfig."""
    ids = {name: getattr(target, name) for name in ("pad_id", "unk_id", "bos_id", "eos_id")}
    ids["source_pad_id"] = source.pad_id if source.pad_id != target.pad_id else None
    return ids


def settle_from_parent(config: TrainConfig, parent: Bundle) -> tuple[TrainConfig, list[str]]:
    """``config`` with nothing left open that the parent does not decide, and the reasons."""
    dropout = parent.model.config.dropout
    warmup = config.warmup or _WARMUP
    rate = _RATE_WITH_REPLAY if config.replay else _RATE
    factor = rate * (_WIDTH * warmup) ** 0.5
    highest = rate * (_WIDTH / parent.model.config.d_model) ** 0.5
    reason = "replay keeps the parent" if config.replay else "a higher one forgets the parent"
    choices: dict[str, tuple[object, str]] = {
        "dropout": (dropout, "the parent's"),
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


def updates_of_child(per_epoch: float) -> int:
    """The most updates of a run of minutes, if an epoch has ``per_epoch`` updates."""
    return max(1, round(_EPOCHS * per_epoch))


def model_of_child(config: TrainConfig, parent: Bundle, parts: Parts) -> Transformer:
    """A model with the parent's weights, and with the dropouts of ``config``."""
    names = ("dropout", "attention_dropout", "activation_dropout")
    changes = {name: getattr(config, name) for name in names}
    model = new_model(parent.model.config.model_copy(update=changes), parts)
    model.load_state_dict(parent.model.state_dict())
    return model
