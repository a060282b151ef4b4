"""The options of ``glassformer train`` and of :func:`glassformer.train`.

The data decide an open option, whose value is None (:mod:`~.recipe`).
"""

import re
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import AliasChoices, Field, field_validator, model_validator

from glassformer.config import (
    BEAM,
    MOST_BEAM,
    Activation,
    AnyPrecision,
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
    "SizeOptions",
    "StartOptions",
    "TextOptions",
    "TrainConfig",
    "guess_languages",
]

TEXT_SEED = 1
"""The seed of all random choices of training data and subwords, such as of the held-out pairs."""

Files = tuple[Path, ...]
Decay = Literal["inverse-root", "constant"]
OptimiserKind = Literal["adam", "muon"]
Preset = Literal[
    "tiny", "small", "base", "big", "tiny-deep-shallow", "small-deep-shallow", "base-deep-shallow"
]
_CODE = re.compile(r"\.([a-z]{2,3})(?:\.gz)?$")
_RECIPES: dict[str, dict[str, object]] = {
    "paper": {
        **{"norm": "post", "optimiser": "adam", "decay": "inverse-root", "rate_factor": 1.0},
        **{"anneal": 0.0, "clip": 0.0, "average": "last", "average_count": 5},
        **{"both_ways": 0.0, "joined_pairs": 0.0},
    }
}
"""The options that each recipe sets, unless the caller sets an option."""


def guess_languages(files: tuple[Path, ...]) -> tuple[str, str] | None:
    """The language codes that two file names end in, as in ``train.en train.de.gz``.

    >>> guess_languages((Path("train.en"), Path("train.de.gz")))
    ('en', 'de')
    """
    matches = [match.group(1) for path in files if (match := _CODE.search(path.name))]
    codes = [code for code in matches if code not in ("txt", "tsv", "src", "tgt", "raw")]
    return (codes[0], codes[1]) if len(codes) == 2 else None


class StartOptions(Options):
    """The start of a training; fine-tuning starts from a bundle."""

    parent: Path | None = Field(default=None, validation_alias=AliasChoices("parent", "from"))
    """Bundle to fine-tune on other pairs; the sizes, subwords and normalisation stay."""
    general: Files = Field(default=(), max_length=2)
    """With --from, pairs like the parent's pairs, whose scores show how much the child forgets."""
    replay: Path | None = None
    """Text in the source language, with --from. The child forgets less, because it also learns the
    parent's translations of the text. Training reads at most one line of the text for each pair."""
    trim_vocabulary: bool = False
    """With --from, keep only the subwords that the training texts need. The child of a multilingual
    parent becomes smaller and faster."""


class PairOptions(Options):
    """The files, and the pairs that training keeps."""

    pairs: Files = Field(min_length=1, max_length=2, title="SOURCE [TARGET]")
    """Training pairs, in two files SOURCE TARGET or in one file of both sides."""
    valid: Files = Field(default=(), max_length=2)
    """Validation pairs; without --valid, the run holds out some training pairs."""
    test: Files = Field(default=(), max_length=2)
    """Test pairs, which the run scores once at the end."""
    format: Format | None = None
    """Format of the files; None means that the names of the files decide."""
    keys: tuple[str, str] = ("source", "target")
    """Names of the fields of source and target in JSON lines."""
    max_chars: int = Field(default=Limits.max_chars, ge=1)
    """Greatest number of characters of a side; training drops longer pairs."""
    max_ratio: float = Field(default=Limits.max_ratio, ge=1)
    """Greatest ratio of the longer side's length to the shorter side's. Training drops a pair of a
    greater ratio if the longer side has over 20 characters."""

    @property
    def limits(self) -> Limits:
        return Limits(max_chars=self.max_chars, max_ratio=self.max_ratio)


class TextOptions(PairOptions):
    """The text options, with pairs, languages, further pairs and subwords."""

    languages: tuple[str, str] | None = None
    """Codes of the two languages, as in "en de"; None means codes from the file names' endings."""
    normalisation: Normalisation | None = None
    """text means NFC, single spaces and no invisible characters, in training and translation.
    none leaves texts unchanged. The default is text, or the parent bundle's normalisation."""
    also: Files = Field(default=(), max_length=2)
    """Further pairs, such as pairs of 'glassformer backtranslate', only for training."""
    also_weight: float = Field(default=1.0, gt=0, le=100)
    """Number of readings of each further pair in an epoch; 0.5 takes a random half of the pairs."""
    also_tag: str = ""
    """Word before the source of each further pair, such as <BT> (Caswell et al. 2019)."""
    joined_pairs: float | None = Field(default=None, ge=0, le=1)
    """Share of the pairs that training reads a second time, joined to units of two to five random
    pairs."""
    tokenizer: Files = Field(default=(), max_length=2)
    """SentencePiece models to use, as one file for both sides or as two files."""
    subwords: Subwords = "bpe"
    """Kind of subword model."""
    joint: bool = True
    """One vocabulary for both sides."""
    vocab_size: int | None = Field(default=None, ge=1, le=1_000_000)
    """Number of subwords of a vocabulary."""
    max_tokens: int = Field(default=250, ge=1)
    """Greatest number of subwords of a side; training drops and counts longer pairs."""

    @property
    def language_pair(self) -> tuple[str, str] | None:
        """The given languages, or the languages in the files' names."""
        return self.languages or guess_languages(self.pairs)


class SizeOptions(Options):
    """The size of the model, and its variants."""

    preset: Preset | None = None
    """Size of the model; deep-shallow has twice the encoder blocks, and one decoder block."""
    d_model: int | None = Field(default=None, ge=2)
    """Width of the model, in place of the preset's width."""
    num_heads: int | None = Field(default=None, ge=1)
    """Number of attention heads, in place of the preset's number."""
    d_ff: int | None = Field(default=None, ge=1)
    """Inner width of the feed-forward networks, in place of the preset's width."""
    num_encoder_layers: int | None = Field(default=None, ge=1)
    """Number of encoder blocks, in place of the preset's number."""
    num_decoder_layers: int | None = Field(default=None, ge=1)
    """Number of decoder blocks, in place of the preset's number."""
    norm: Norm | None = None
    """LayerNorm after each residual sum (post, as in the paper) or before each sublayer (pre)."""
    tying: Tying | None = None
    """Embeddings that share weights; None means three-way with one vocabulary, else target."""
    positions: PositionKind = "sinusoidal"
    """Kind of positional encoding: fixed sines and cosines (section 3.5), or a learned table."""
    activation: Activation = "relu"
    """Activation of the feed-forward networks."""


class LengthOptions(Options):
    """Length of a training, its validations and its checkpoints."""

    minutes: float | None = Field(default=None, gt=0)
    """Time for everything, from reading to the last score. The time decides the number of updates
    and, on a machine too slow for the usual size, the size. More minutes, epochs or updates
    continue a finished run."""
    epochs: float | None = Field(default=None, gt=0)
    """Number of passes over the data."""
    updates: int | None = Field(default=None, ge=1)
    """Number of updates, in place of epochs."""
    validations: int = Field(default=25, ge=1)
    """Number of validations; each validation translates and scores the validation pairs."""
    metric: TextMetric | Literal["loss"] | None = None
    """Score that ranks the checkpoints, ends training early and chooses the length penalty. None
    means bleu, or chrf (chrF++) if hardly any validation reference has four words."""
    patience: int = Field(default=8, ge=0)
    """Number of validations without a better score that end the training; 0 means no such end."""
    average: Literal["last", "best", "none"] = "best"
    """Checkpoints to average, which are the last (section 6.1) or the best. If the best checkpoint
    scores better than the mean, the run delivers the best. none delivers the last checkpoint."""
    average_count: int = Field(default=3, ge=1)
    """Number of checkpoints to average."""
    checkpoint_minutes: float = Field(default=5.0, gt=0)
    """Minutes between checkpoints, or 3 % of ``minutes`` if less. Each validation saves one too."""


class LearningOptions(Options):
    """Batches, optimiser, learning rate, loss and dropout."""

    batch_tokens: int | None = Field(default=None, ge=16)
    """Number of tokens of a batch, source + target with padding."""
    batches: Literal["padded", "packed"] = "padded"
    """Form of a batch. In padded batches sentences of similar length go together. Packed batches
    hold random sentences end to end, which suits a GPU. Ranks share the packed batches of an
    update."""
    accumulate: int = Field(default=1, ge=1)
    """Number of batches whose gradients add up to one update."""
    both_ways: float | None = Field(default=None, ge=0, le=1)
    """Share of the run, from its first update, in which each second update learns to translate from
    target to source (Ding et al. 2021)."""
    optimiser: OptimiserKind | None = None
    """Optimiser: the paper's adam, or muon (Jordan et al. 2024) on matrices and adam elsewhere."""
    warmup: int | None = Field(default=None, ge=1)
    """Number of updates in which the learning rate rises (section 5.3)."""
    rate_factor: float | None = Field(default=None, gt=0)
    """Factor on the learning rate of the paper's schedule."""
    decay: Decay | None = None
    """Learning rate after the warm-up: inverse-root (the paper) or constant. None means
    inverse-root, or constant with --from."""
    anneal: float = Field(default=0.3, ge=0, le=1)
    """Last share of the updates, in which the rate falls to zero; 0 gives the paper's schedule."""
    label_smoothing: float = Field(default=0.1, ge=0, lt=1)
    """Share of each target's probability that goes to all tokens (section 5.4)."""
    clip: float = Field(default=1.0, ge=0)
    """Greatest norm of the gradient; 0 means no limit, as in the paper."""
    dropout: float | None = Field(default=None, ge=0, lt=1)
    """Dropout of embeddings and sublayers, in place of the preset's dropout."""
    attention_dropout: float = Field(default=0.0, ge=0, lt=1)
    """Dropped share of the attention weights; the paper drops none."""
    activation_dropout: float = Field(default=0.0, ge=0, lt=1)
    """Dropped share of the feed-forward networks' inner values; the paper drops none."""


class MachineOptions(Options):
    """The device, precision, threads and seed, and the beam of the final scores."""

    device: str = "auto"
    """Device: cpu, cuda, or auto, which means cuda if the machine has a GPU."""
    plain: bool = False
    """Train only with readable forms, such as ``Transformer.forward``, explicit attention, and
    ``label_smoothed_cross_entropy``. Such training is in float32 and slower."""
    precision: Literal["auto", AnyPrecision] = "auto"
    """Precision. auto means bfloat16 if a GPU supports it, or if a CPU multiplies faster in it.
    With plain, and with some parts of your own, auto means float32. float16 is for a GPU without
    bfloat16, such as a T4; no GPU has tried it yet."""
    graph: bool = False
    """Compute the gradients of packed batches by one captured CUDA graph, which takes the GPU fewer
    launches."""
    threads: int = Field(default=0, ge=0)
    """Number of CPU threads; 0 means all threads."""
    seed: int = Field(default=1, ge=0, lt=2**32)
    """Seed of the first weights, of dropout, and of the order of the batches. No seed changes the
    pairs and subwords."""
    beam: int = Field(default=BEAM, ge=1, le=MOST_BEAM)
    """Number of hypotheses in the beam search of the final scores."""

    @field_validator("precision", mode="before")
    @classmethod
    def _take_the_former_name(cls, name: object) -> object:
        return "bfloat16" if name == "bf16" else name


# pydantic takes the fields of the last base first; --help shows them in that order.
class TrainConfig(
    MachineOptions, LearningOptions, LengthOptions, SizeOptions, TextOptions, StartOptions
):
    """Train a translator on SOURCE TARGET, two aligned text files, or one TSV or JSON-lines file.

    A second equal command continues a stopped training. The data decide each option without a
    value (None), and the run prints the reason.
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

    run: Path = Field(validation_alias=AliasChoices("run", "out"))  # torchrun takes --run
    """Directory of this training, with checkpoints, metrics and the bundle."""
    recipe: Literal["paper"] | None = None
    """Recipe paper trains as the paper does. The recipe has post-norm, Adam with equation 3 to the
    end, no clipping, no further pairs, and the mean of the last five checkpoints. Other given
    options win over the recipe. None means the choices that learn most from the data."""

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
        if self.graph and self.batches != "packed":
            raise ValueError("graph needs batches of one shape: set batches to packed")
        if len(self.tokenizer) == 2 and self.joint:
            raise ValueError("two tokenizers are not joint: set joint to false")
        if self.both_ways and not self.joint:
            raise ValueError("both_ways needs one vocabulary: set joint to true, or both_ways to 0")
        if self.tying in ("three-way", "embeddings") and not self.joint:
            raise ValueError(
                f"{self.tying} tying needs one vocabulary: set joint to true, or tying to target"
            )
        # Without a preset the data choose it; the largest width is a multiple of the others.
        sizes = presets[self.preset] if self.preset else {"d_model": presets["big"]["d_model"]}
        check_width(self.d_model or sizes["d_model"], self.num_heads or sizes.get("num_heads", 1))
        return self
