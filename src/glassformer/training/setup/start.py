"""Where a training begins: random weights, or those of a parent.

Both starts have the same methods. After :func:`start_of`, nothing asks which one it is, but for the
scores of parent and child at the end.
"""

from dataclasses import dataclass
from pathlib import Path

import torch

from glassformer.bundle import load_bundle
from glassformer.data.corpus import read_pairs
from glassformer.data.normaliser import Normalisation
from glassformer.data.tokenizer import Tokenizer, train_tokenizer
from glassformer.errors import UsageError
from glassformer.model.transformer import Transformer
from glassformer.parts import FAST, Parts, new_model
from glassformer.training.mixed_precision import Precision, precision_for, product_speed
from glassformer.training.setup.augmentation import settle_shares
from glassformer.training.setup.kept_pairs import KeptPairs, even_sample
from glassformer.training.setup.options import TEXT_SEED, MachineOptions, TextOptions, TrainConfig
from glassformer.training.setup.parent import Parent, vocabulary_settings
from glassformer.training.setup.recipe import (
    choose_in_time,
    estimated_tokens,
    model_config,
    useful_updates,
)
from glassformer.training.setup.run_directory import RunDirectory

__all__ = ["Scratch", "Start", "chosen_precision", "machine_speed", "start_of"]

_SIZES = ("preset", "d_model", "num_heads", "d_ff", "num_encoder_layers", "num_decoder_layers")
_SUBWORDS = ("vocab_size", "tokenizer", "subwords", "joint")
_OF_THE_PARENT = (*_SIZES, "norm", "tying", "positions", "activation", *_SUBWORDS)


@dataclass(frozen=True)
class Scratch:
    """The start of a training with random weights; its subwords are given or learnt."""

    parts: Parts
    device: torch.device
    normalisation: Normalisation = "text"
    languages: None = None  # if the files' names do not tell
    parent: None = None

    def settled(self, config: TrainConfig, kept: KeptPairs) -> tuple[TrainConfig, list[str]]:
        """The options of a run with nothing left open, and the reasons."""
        pairs, tokens = kept.filter.kept, estimated_tokens(kept.filter.characters)
        speed = machine_speed(config, self.device, self.parts) if config.minutes else None
        settled, reasons = choose_in_time(config, pairs=pairs, tokens=tokens, speed=speed)
        sample = even_sample(read_pairs(kept.run.train), pairs - kept.held_out)
        shares, further = settle_shares(settled, sample, kept.source_lengths)
        return settled.model_copy(update=shares), [*reasons, *further]

    def most_updates(self, pairs: int, per_epoch: float) -> int:
        """The most updates of a run of minutes, if an epoch has ``per_epoch`` updates."""
        return useful_updates(pairs, per_epoch)

    def write_further(self, kept: KeptPairs) -> None:
        """Write the pairs that the start adds to the corpus: none."""

    def with_subwords(
        self, text: TextOptions, run: RunDirectory
    ) -> tuple["Start", tuple[Tokenizer, Tokenizer], list[str]]:
        """The start with the subwords of a run, its tokenizers, and lines about them."""
        files = text.tokenizer or _learnt(text, run)
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

    def model(self, config: TrainConfig, tokenizers: tuple[Tokenizer, Tokenizer]) -> Transformer:
        """The model before the first update."""
        return new_model(model_config(config, vocabulary_settings(*tokenizers)), self.parts)


Start = Scratch | Parent


def start_of(config: TrainConfig, parts: Parts, device: torch.device) -> Start:
    """The start that ``config.parent`` decides.

    Raises UsageError for an option that the parent decides.
    """
    if config.parent is None:
        return Scratch(parts, device)
    fields = TrainConfig.model_fields
    given = [name for name in _OF_THE_PARENT if getattr(config, name) != fields[name].default]
    if given:
        raise UsageError(
            f"{given[0].replace('_', ' ')}: the bundle of --from decides it: leave it out"
        )
    parent = load_bundle(config.parent, device=device, parts=parts)
    languages = config.language_pair
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
    return Parent(parent, parts, config)


def machine_speed(
    machine: MachineOptions, device: torch.device, parts: Parts = FAST
) -> float | None:
    """Matrix products of a CPU in the precision of the training, in operations a second."""
    if device.type != "cpu":
        return None
    return product_speed(chosen_precision(machine, device, parts))


def chosen_precision(machine: MachineOptions, device: torch.device, parts: Parts) -> Precision:
    """The precision of the option; "auto" measures the machine for the fast parts."""
    if machine.precision != "auto":
        return machine.precision
    return precision_for(device) if parts == FAST else "float32"


def _learnt(text: TextOptions, run: RunDirectory) -> list[Path]:
    """The run's own SentencePiece files, one or two; missing ones are learnt and saved."""
    sides: dict[Path, tuple[int, ...]] = {run.subwords("both"): (0, 1)}
    if not text.joint:
        sides = {run.subwords("source"): (0,), run.subwords("target"): (1,)}
    for file, columns in sides.items():
        if not file.exists():
            texts = (pair[column] for pair in run.pairs() for column in columns)
            train_tokenizer(
                texts, vocab_size=text.vocab_size or 8_000, kind=text.subwords, seed=TEXT_SEED
            ).save(file)
    return list(sides)
