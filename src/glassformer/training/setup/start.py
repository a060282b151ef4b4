"""Where a training begins: random weights, or those of a parent.

Both starts have the same methods. After :func:`start_of`, nothing asks which one it is, but for the
scores of parent and child at the end.
"""

from dataclasses import dataclass
from pathlib import Path

import torch

from glassformer.data.corpus import read_pairs
from glassformer.data.normaliser import Normalisation
from glassformer.data.tokenizer import Tokenizer, train_tokenizer
from glassformer.model.transformer import Transformer
from glassformer.parts import FAST, Parts, new_model
from glassformer.training.mixed_precision import Precision, precision_for, product_speed
from glassformer.training.setup.augmentation import settle_shares
from glassformer.training.setup.kept_pairs import KeptPairs, even_sample
from glassformer.training.setup.options import TEXT_SEED, TrainConfig
from glassformer.training.setup.parent import Parent, load_parent, vocabulary_settings
from glassformer.training.setup.recipe import (
    choose,
    estimated_tokens,
    model_config,
    size_in_time,
    updates_in_time,
    useful_updates,
)
from glassformer.training.setup.run_directory import RunDirectory

__all__ = ["Scratch", "Start", "chosen_precision", "settle", "start_of"]


@dataclass(frozen=True)
class Scratch:
    """The start of a training with random weights; its subwords are given or learnt."""

    parts: Parts
    device: torch.device
    normalisation: Normalisation = "text"
    parent: None = None

    def languages(self, of_files: tuple[str, str] | None) -> tuple[str, str] | None:
        """The languages of a run whose files have these."""
        return of_files

    def settled(self, config: TrainConfig, kept: KeptPairs) -> tuple[TrainConfig, list[str]]:
        """The options of a run with nothing left open, and the reasons."""
        counts = {"pairs": kept.filter.kept, "characters": kept.filter.characters}
        settled, reasons = settle(config, device=self.device, parts=self.parts, **counts)
        sample = even_sample(read_pairs(kept.run.train), kept.filter.kept - kept.held_out)
        settled, further = settle_shares(settled, sample, kept.source_lengths)
        return settled, [*reasons, *further]

    def most_updates(self, pairs: int, per_epoch: float) -> int:
        """The most updates of a run of minutes, if an epoch has ``per_epoch`` updates."""
        return useful_updates(pairs, per_epoch)

    def write_further(self, config: TrainConfig, kept: KeptPairs) -> None:
        """Write the pairs that the start adds to the corpus: none."""

    def with_subwords(
        self, config: TrainConfig, run: RunDirectory
    ) -> tuple["Start", tuple[Tokenizer, Tokenizer], list[str]]:
        """The start with the subwords of a run, its tokenizers, and lines about them."""
        files = config.tokenizer or _learnt(config, run)
        tokenizers = Tokenizer.load(files[0]), Tokenizer.load(files[-1])
        wanted = config.vocab_size or 0
        sizes = () if config.tokenizer else (tokenizer.vocab_size for tokenizer in tokenizers)
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
    """The start that ``config.parent`` decides."""
    if config.parent is None:
        return Scratch(parts, device)
    return load_parent(config.parent, config, parts, device)


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


def _learnt(config: TrainConfig, run: RunDirectory) -> list[Path]:
    """The run's own SentencePiece files, one or two; missing ones are learnt and saved."""
    sides: dict[Path, tuple[int, ...]] = {run.subwords("both"): (0, 1)}
    if not config.joint:
        sides = {run.subwords("source"): (0,), run.subwords("target"): (1,)}
    for file, columns in sides.items():
        if not file.exists():
            texts = (pair[column] for pair in run.pairs() for column in columns)
            train_tokenizer(
                texts, vocab_size=config.vocab_size or 8_000, kind=config.subwords, seed=TEXT_SEED
            ).save(file)
    return list(sides)
