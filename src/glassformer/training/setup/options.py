"""The options of ``glassformer train`` and of :func:`glassformer.train`.

An option that is left open (None) is chosen from the data (:mod:`~.recipe`).
"""

from pathlib import Path
from typing import ClassVar, Literal

from pydantic import AliasChoices, Field, model_validator

from glassformer.config import BEAM, MOST_BEAM, Options, check_width, presets

__all__ = ["TrainConfig"]

Files = tuple[Path, ...]


class TrainConfig(Options):
    """Train a translator: SOURCE TARGET are two aligned text files, or one TSV or JSON-lines file.

    The same command again continues where it was. What is left open (None) is chosen from the
    data, and the reason is printed.
    """

    groups: ClassVar[dict[str, str]] = {
        "run": "first options",
        "format": "data",
        "d_model": "size of the model",
        "epochs": "length, validation and checkpoints",
        "batch_tokens": "learning",
        "plain": "rarely needed",
    }

    pairs: Files = Field(min_length=1, max_length=2, title="SOURCE [TARGET]")
    """Training pairs: SOURCE TARGET, or one file that holds both sides."""
    run: Path = Field(validation_alias=AliasChoices("out", "run"))  # torchrun takes --run
    """Directory of this training: checkpoints, metrics, and the bundle."""
    valid: Files = Field((), max_length=2)
    """Validation pairs; without them, some training pairs are held out."""
    test: Files = Field((), max_length=2)
    """Test pairs, scored once at the end."""
    languages: tuple[str, str] | None = None
    """Codes of the two languages, as in "en de"; None: from file names that end in codes."""
    minutes: float | None = Field(None, gt=0)
    """Time for everything, from reading to the last score: the updates are fitted to it, and where
    this machine is too slow for the size that the pairs want, so is the size."""
    preset: (
        Literal[
            "tiny",
            "small",
            "base",
            "big",
            "tiny-deep-shallow",
            "small-deep-shallow",
            "base-deep-shallow",
        ]
        | None
    ) = None
    """Size of the model; deep-shallow: twice the encoder blocks, one decoder block."""
    device: str = "auto"
    """cpu, cuda, or auto: cuda where there is one."""

    format: Literal["lines", "tsv", "tsv-quoted", "jsonl"] | None = None
    """How the files hold pairs; None: told by their names."""
    keys: tuple[str, str] = ("source", "target")
    """Names of the two sides in JSON lines."""
    max_chars: int = Field(2000, ge=1)
    """Pairs with a side of more characters are dropped."""
    max_ratio: float = Field(9.0, ge=1)
    """Pairs with a side more than this many times as long as the other are dropped."""
    tokenizer: Files = Field((), max_length=2)
    """SentencePiece model to use instead of training one: one for both sides, or two."""
    subwords: Literal["bpe", "unigram"] = "bpe"
    """Kind of subword model."""
    joint: bool = True
    """One vocabulary for both sides."""
    vocab_size: int | None = Field(None, ge=1, le=1_000_000)
    """Subwords of a vocabulary."""
    max_tokens: int = Field(250, ge=1)
    """Pairs with more subwords on a side are dropped, and counted."""

    d_model: int | None = Field(None, ge=2)
    """Instead of the preset's width."""
    num_heads: int | None = Field(None, ge=1)
    """Instead of the preset's heads."""
    d_ff: int | None = Field(None, ge=1)
    """Instead of the preset's inner width."""
    num_encoder_layers: int | None = Field(None, ge=1)
    """Instead of the preset's encoder blocks."""
    num_decoder_layers: int | None = Field(None, ge=1)
    """Instead of the preset's decoder blocks."""
    norm: Literal["post", "pre"] | None = None
    """LayerNorm after each residual sum (the paper) or before each sublayer."""
    tying: Literal["none", "target", "three-way"] | None = None
    """Which embeddings are one; None: three-way with one vocabulary, else target."""
    positions: Literal["sinusoidal", "learned"] = "sinusoidal"
    """Kind of positions."""
    activation: Literal["relu", "gelu", "swish"] = "relu"
    """Of the feed-forward networks."""

    epochs: float | None = Field(None, gt=0)
    """How often the data are read."""
    updates: int | None = Field(None, ge=1)
    """How many updates; instead of epochs."""
    validations: int = Field(25, ge=1)
    """How many times the validation pairs are translated and scored on the way."""
    metric: Literal["bleu", "loss"] = "bleu"
    """What makes a checkpoint the best, and ends training early."""
    patience: int = Field(8, ge=0)
    """Validations without a better one after which training ends; 0: never."""
    average: Literal["last", "best", "none"] = "best"
    """Checkpoints whose mean the final weights are (section 6.1: the last); none: the last one."""
    average_count: int = Field(3, ge=1)
    """How many of them."""
    checkpoint_minutes: float = Field(5.0, gt=0)
    """Minutes between checkpoints, beside those of the validations."""

    batch_tokens: int | None = Field(None, ge=16)
    """Tokens of a batch, source + target with padding."""
    accumulate: int = Field(1, ge=1)
    """Batches whose gradients are added up for one update."""
    both_ways: float | None = Field(None, ge=0, le=1)
    """First share of the run where every other update learns backwards (Ding et al. 2021)."""
    optimiser: Literal["adam", "muon"] | None = None
    """adam: the paper's; muon: for the matrices of the blocks (Jordan et al. 2024), else adam."""
    warmup: int | None = Field(None, ge=1)
    """Updates during which the learning rate rises (section 5.3)."""
    rate_factor: float | None = Field(None, gt=0)
    """Factor on the paper's schedule."""
    anneal: float = Field(0.3, ge=0, le=1)
    """Last share of the updates, over which the rate goes to zero; 0: the paper's schedule."""
    label_smoothing: float = Field(0.1, ge=0, lt=1)
    """Section 5.4."""
    clip: float = Field(1.0, ge=0)
    """Longest gradient; 0: no limit, as in the paper."""
    dropout: float | None = Field(None, ge=0, lt=1)
    """Instead of the preset's dropout."""
    attention_dropout: float = Field(0.0, ge=0, lt=1)
    """Share of attention weights dropped; the paper drops none."""
    activation_dropout: float = Field(0.0, ge=0, lt=1)
    """Share dropped inside the feed-forward networks; the paper drops none."""

    plain: bool = False
    """Train by the readable forms alone: ``Transformer.forward``, explicit attention, and
    ``label_smoothed_cross_entropy``; in float32 and slower."""
    precision: Literal["auto", "float32", "bf16"] = "auto"
    """auto: bf16 where this machine multiplies faster in it, by measuring."""
    threads: int = Field(0, ge=0)
    """CPU threads; 0: all."""
    seed: int = Field(1, ge=0, lt=2**32)
    """Of everything that is drawn: weights, dropout, order, held-out pairs."""
    beam: int = Field(BEAM, ge=1, le=MOST_BEAM)
    """Beam of the final scores."""
    tensorboard: bool = False
    """Write TensorBoard's files too."""

    @model_validator(mode="after")
    def _options_agree(self) -> "TrainConfig":
        lengths = [n for n in ("minutes", "epochs", "updates") if getattr(self, n) is not None]
        if len(lengths) > 1:
            raise ValueError(f"give {lengths[0]} or {lengths[1]}, not both")
        if self.plain and self.precision == "bf16":
            raise ValueError("plain computes in float32: leave precision bf16 out")
        if len(self.tokenizer) == 2 and self.joint:
            raise ValueError("two tokenizers are not joint: add joint false (--no-joint)")
        if self.both_ways and not self.joint:
            raise ValueError("both_ways needs one vocabulary: joint true, or both_ways 0")
        if self.tying == "three-way" and not self.joint:
            raise ValueError("three-way tying needs one vocabulary: joint true, or tying target")
        sizes = presets.get(self.preset or "", {})  # without a preset the data choose the sizes
        if width := self.d_model or sizes.get("d_model"):
            check_width(width, self.num_heads or sizes.get("num_heads", 1))
        return self
