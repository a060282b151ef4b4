"""The options of ``glassformer train`` and of :func:`glassformer.train`.

An option that is left open (None) is chosen from the data (:mod:`~.recipe`).
"""

import re
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import AliasChoices, Field, model_validator

from glassformer.config import (
    BEAM,
    MOST_BEAM,
    Activation,
    Norm,
    Options,
    PositionKind,
    Subwords,
    TextMetric,
    Tying,
    check_width,
    presets,
)
from glassformer.data.corpus import Limits
from glassformer.data.file_formats import Format
from glassformer.data.normaliser import Normalisation

__all__ = [
    "TEXT_SEED",
    "Decay",
    "Files",
    "LearningOptions",
    "LengthOptions",
    "MachineOptions",
    "OptimiserKind",
    "PairOptions",
    "Precision",
    "SizeOptions",
    "StartOptions",
    "TextOptions",
    "TrainConfig",
    "guess_languages",
]

TEXT_SEED = 1
"""The seed of all draws from the text: held-out, joined and marked pairs, subwords."""

Files = tuple[Path, ...]
Decay = Literal["inverse-root", "constant"]
OptimiserKind = Literal["adam", "muon"]
Precision = Literal["float32", "bf16"]
Preset = Literal[
    "tiny", "small", "base", "big", "tiny-deep-shallow", "small-deep-shallow", "base-deep-shallow"
]
_CODE = re.compile(r"\.([a-z]{2,3})(?:\.gz)?$")
_RECIPES: dict[str, dict[str, object]] = {
    "paper": {
        **{"norm": "post", "optimiser": "adam", "decay": "inverse-root", "rate_factor": 1.0},
        **{"anneal": 0.0, "clip": 0.0, "average": "last", "average_count": 5},
        **{"both_ways": 0.0, "joined_pairs": 0.0, "placeholders": 0.0},
    }
}
"""The options that each recipe sets, unless the caller sets them."""


def guess_languages(files: tuple[Path, ...]) -> tuple[str, str] | None:
    """The language codes that two file names end in, as in ``train.en train.de.gz``.

    >>> guess_languages((Path("train.en"), Path("train.de.gz")))
    ('en', 'de')
    """
    matches = [match.group(1) for path in files if (match := _CODE.search(path.name))]
    codes = [code for code in matches if code not in ("txt", "tsv", "src", "tgt", "raw")]
    return (codes[0], codes[1]) if len(codes) == 2 else None


class StartOptions(Options):
    """Where a training begins: fine-tuning goes on from a bundle."""

    parent: Path | None = Field(default=None, validation_alias=AliasChoices("from", "parent"))
    """Bundle to go on from, with other pairs: its sizes, subwords and normalisation stay."""
    general: Files = Field(default=(), max_length=2)
    """With --from, pairs of the parent's kind of text, whose scores show the child's forgetting."""
    replay: Path | None = None
    """With --from, text in the source language. The child also learns the parent's translations
    of this text, and forgets less. At most as many lines are used as there are pairs."""
    trim_vocabulary: bool = False
    """With --from, keep only the subwords of the training's texts: smaller and faster, if the
    parent knows many languages."""


class PairOptions(Options):
    """The files, and the pairs that training keeps."""

    pairs: Files = Field(min_length=1, max_length=2, title="SOURCE [TARGET]")
    """Training pairs: SOURCE TARGET, or one file that holds both sides."""
    valid: Files = Field(default=(), max_length=2)
    """Validation pairs; without them, some training pairs are held out."""
    test: Files = Field(default=(), max_length=2)
    """Test pairs, scored once at the end."""
    format: Format | None = None
    """Format of the files; None: by their names."""
    keys: tuple[str, str] = ("source", "target")
    """Names of the two sides in JSON lines."""
    max_chars: int = Field(default=Limits.max_chars, ge=1)
    """Most characters of a side; longer pairs are dropped."""
    max_ratio: float = Field(default=Limits.max_ratio, ge=1)
    """Greatest ratio of a pair's lengths, if one is over 20 characters; other pairs are dropped."""

    @property
    def limits(self) -> Limits:
        return Limits(max_chars=self.max_chars, max_ratio=self.max_ratio)


class TextOptions(PairOptions):
    """The text: its pairs, their languages, the further pairs made of them, and the subwords."""

    languages: tuple[str, str] | None = None
    """Codes of the two languages, as in "en de"; None: from file names that end in codes."""
    normalisation: Normalisation | None = None
    """text: NFC, single spaces, no invisible characters, here and in every later translation;
    none: the texts stay unchanged. Left out: text, or the normalisation of the parent bundle."""
    also: Files = Field(default=(), max_length=2)
    """Further training pairs, such as those of 'glassformer backtranslate'; none is held out."""
    also_weight: float = Field(default=1.0, gt=0, le=100)
    """Readings of each further pair in an epoch; 0.5: a random half of these pairs."""
    also_tag: str = ""
    """Word before the sources of the further pairs, such as <BT> (Caswell et al. 2019)."""
    joined_pairs: float | None = Field(default=None, ge=0, le=1)
    """Share of the pairs that training reads once more, joined at random to units of two to five
    sentences."""
    placeholders: float | None = Field(default=None, ge=0, le=1)
    """Share of the pairs that training reads once more, with placeholders, tags, addresses and
    emoji on both sides."""
    tokenizer: Files = Field(default=(), max_length=2)
    """SentencePiece model to use: one for both sides, or two."""
    subwords: Subwords = "bpe"
    """Kind of subword model."""
    joint: bool = True
    """One vocabulary for both sides."""
    vocab_size: int | None = Field(default=None, ge=1, le=1_000_000)
    """Number of subwords of a vocabulary."""
    max_tokens: int = Field(default=250, ge=1)
    """Most subwords of a side; longer pairs are dropped, and counted."""

    @property
    def language_pair(self) -> tuple[str, str] | None:
        """The given languages, or those of the files' names."""
        return self.languages or guess_languages(self.pairs)


class SizeOptions(Options):
    """The size of the model, and its variants."""

    preset: Preset | None = None
    """Size of the model; deep-shallow: twice the encoder blocks, one decoder block."""
    d_model: int | None = Field(default=None, ge=2)
    """Instead of the preset's width."""
    num_heads: int | None = Field(default=None, ge=1)
    """Instead of the preset's heads."""
    d_ff: int | None = Field(default=None, ge=1)
    """Instead of the preset's inner width."""
    num_encoder_layers: int | None = Field(default=None, ge=1)
    """Instead of the preset's encoder blocks."""
    num_decoder_layers: int | None = Field(default=None, ge=1)
    """Instead of the preset's decoder blocks."""
    norm: Norm | None = None
    """LayerNorm after each residual sum (the paper) or before each sublayer."""
    tying: Tying | None = None
    """Which embeddings share their weights; None: three-way with one vocabulary, else target."""
    positions: PositionKind = "sinusoidal"
    """Fixed sines and cosines (section 3.5), or a learned table."""
    activation: Activation = "relu"
    """Activation of the feed-forward networks."""


class LengthOptions(Options):
    """Length of a training, its validations and its checkpoints."""

    minutes: float | None = Field(default=None, gt=0)
    """Time for everything, from reading to the last score. It decides the number of updates and, if
    this machine is too slow for the usual size, the size. More minutes, epochs or updates continue
    a finished run."""
    epochs: float | None = Field(default=None, gt=0)
    """Passes over the data."""
    updates: int | None = Field(default=None, ge=1)
    """Number of updates; instead of epochs."""
    validations: int = Field(default=25, ge=1)
    """Number of validations; each translates and scores the validation pairs."""
    metric: TextMetric | Literal["loss"] | None = None
    """Score that ranks the checkpoints, ends training early and chooses the length penalty. None:
    bleu; chrf (chrF++) if hardly any validation reference has four words."""
    patience: int = Field(default=8, ge=0)
    """Training ends after so many validations without a better score; 0: never."""
    average: Literal["last", "best", "none"] = "best"
    """Checkpoints that are averaged: the last (section 6.1) or the best ones. If the best of them
    scores better than their mean, it is delivered alone. none: the last checkpoint."""
    average_count: int = Field(default=3, ge=1)
    """Number of checkpoints that are averaged."""
    checkpoint_minutes: float = Field(default=5.0, gt=0)
    """Minutes between checkpoints, or 3 % of ``minutes``; each validation saves one, too."""


class LearningOptions(Options):
    """Batches, optimiser, learning rate, loss and dropout."""

    batch_tokens: int | None = Field(default=None, ge=16)
    """Tokens of a batch, source + target with padding."""
    accumulate: int = Field(default=1, ge=1)
    """Batches whose gradients are added up for one update."""
    both_ways: float | None = Field(default=None, ge=0, le=1)
    """For this first share of the run, every other update learns backwards (Ding et al. 2021)."""
    optimiser: OptimiserKind | None = None
    """adam: the paper's; muon (Jordan et al. 2024): for the blocks' matrices, adam for the rest."""
    warmup: int | None = Field(default=None, ge=1)
    """Updates during which the learning rate rises (section 5.3)."""
    rate_factor: float | None = Field(default=None, gt=0)
    """Factor on the paper's schedule."""
    decay: Decay | None = None
    """Learning rate after the warm-up: inverse-root (the paper) or constant. None: inverse-root;
    with --from, constant."""
    anneal: float = Field(default=0.3, ge=0, le=1)
    """For this last share of the updates, the rate falls to zero; 0: the paper's schedule."""
    label_smoothing: float = Field(default=0.1, ge=0, lt=1)
    """Share of each target's probability that goes to all tokens (section 5.4)."""
    clip: float = Field(default=1.0, ge=0)
    """Greatest norm of the gradient; 0: no limit, as in the paper."""
    dropout: float | None = Field(default=None, ge=0, lt=1)
    """Instead of the preset's dropout."""
    attention_dropout: float = Field(default=0.0, ge=0, lt=1)
    """Share of attention weights that is dropped; the paper drops none."""
    activation_dropout: float = Field(default=0.0, ge=0, lt=1)
    """Share dropped inside the feed-forward networks; the paper drops none."""


class MachineOptions(Options):
    """Device, precision, threads and seed; the beam of the final scores."""

    device: str = "auto"
    """cpu, cuda, or auto: cuda if there is one."""
    plain: bool = False
    """Train by the readable forms alone: ``Transformer.forward``, explicit attention, and
    ``label_smoothed_cross_entropy``; in float32 and slower."""
    precision: Literal["auto", Precision] = "auto"
    """auto: bf16 if this machine, by a measurement, multiplies faster in bf16."""
    threads: int = Field(default=0, ge=0)
    """CPU threads; 0: all."""
    seed: int = Field(default=1, ge=0, lt=2**32)
    """Seed of the first weights, of dropout, and of the order of the batches. Pairs and subwords
    are the same with any seed."""
    beam: int = Field(default=BEAM, ge=1, le=MOST_BEAM)
    """Beam of the final scores."""


# pydantic takes the fields of the last base first; --help shows them in that order.
class TrainConfig(
    MachineOptions, LearningOptions, LengthOptions, SizeOptions, TextOptions, StartOptions
):
    """Train a translator: SOURCE TARGET are two aligned text files, or one TSV or JSON-lines file.

    The same command again continues a stopped training. Options without a value (None) are chosen
    from the data, each with a printed reason.
    """

    groups: ClassVar[dict[str, str]] = {
        "run": "first options",
        "parent": "fine-tuning",
        "format": "data",
        "d_model": "size of the model",
        "epochs": "length, validation and checkpoints",
        "batch_tokens": "learning",
        "plain": "rarely needed",
    }
    shown_first: ClassVar[tuple[str, ...]] = (
        *("pairs", "run", "valid", "test", "languages", "minutes", "preset", "device", "recipe"),
    )

    run: Path = Field(validation_alias=AliasChoices("out", "run"))  # torchrun takes --run
    """Directory of this training: checkpoints, metrics, and the bundle."""
    recipe: Literal["paper"] | None = None
    """paper: train as the paper does: post-norm, Adam with equation 3 to the end, no clipping, no
    further pairs made of the given ones, the mean of the last five checkpoints. An option that
    is given beside it wins. None: the choices that learn most from the data."""

    @property
    def inputs(self) -> dict[str, Files]:
        """The files that a training reads, by the names of their options."""
        names = ("pairs", "also", "valid", "tokenizer", "test", "general")
        replay = (self.replay,) if self.replay else ()
        return {**{name: getattr(self, name) for name in names}, "replay": replay}

    @model_validator(mode="before")
    @classmethod
    def _follow_the_recipe(cls, options: dict[str, object]) -> dict[str, object]:
        return {**_RECIPES.get(str(options.get("recipe")), {}), **options}

    @model_validator(mode="after")
    def _options_agree(self) -> "TrainConfig":
        lengths = [n for n in ("minutes", "epochs", "updates") if getattr(self, n) is not None]
        if len(lengths) > 1:
            raise ValueError(f"give {lengths[0]} or {lengths[1]}, not both")
        for name in ("general", "replay", "trim_vocabulary"):
            if getattr(self, name) and self.parent is None:
                raise ValueError(f"{name} belongs to fine-tuning: give a parent bundle")
        if len(self.tokenizer) == 2 and self.joint:
            raise ValueError("two tokenizers are not joint: set joint to false")
        if self.both_ways and not self.joint:
            raise ValueError("both_ways needs one vocabulary: joint true, or both_ways 0")
        if self.tying in ("three-way", "embeddings") and not self.joint:
            raise ValueError(
                f"{self.tying} tying needs one vocabulary: joint true, or tying target"
            )
        # Without a preset the data choose it; the largest width is a multiple of the others.
        sizes = presets[self.preset] if self.preset else {"d_model": presets["big"]["d_model"]}
        check_width(self.d_model or sizes["d_model"], self.num_heads or sizes.get("num_heads", 1))
        return self
