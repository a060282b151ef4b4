"""Every option's one home: its name, type, default, range and one line of doc.

``ModelConfig`` is what a model is; ``presets`` names sizes of it. ``TrainConfig`` is what a
person may say to ``glassformer train``; what it leaves open (None) is chosen from the data.
"""

from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from pydantic import BaseModel, ConfigDict, Field, model_validator

__all__ = [
    "BEAM",
    "EXTRA_LENGTH",
    "LENGTH_PENALTY",
    "MOST_BEAM",
    "MOST_LENGTH_PENALTY",
    "ModelConfig",
    "TrainConfig",
    "presets",
]

BEAM = 5
"""Hypotheses that beam search follows; the paper has 4 (section 6.1)."""
MOST_BEAM = 100
"""The widest beam that a person may ask for."""
LENGTH_PENALTY = 0.6
"""The paper's alpha (section 6.1), for a bundle that has none of its own."""
MOST_LENGTH_PENALTY = 10.0
"""The greatest alpha: beyond it a long target wins however improbable it is."""
EXTRA_LENGTH = 50
"""Tokens that a target may have more than its source (section 6.1)."""


class _Options(BaseModel):
    # protected_namespaces: no field here begins with pydantic's own "model_" methods' names.
    model_config = ConfigDict(
        frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False
    )


Tying = Literal["none", "target", "three-way"]


def _default_tying(sizes: dict[str, Any]) -> Tying:
    alike = sizes.get("source_vocab_size") == sizes.get("target_vocab_size")
    return "three-way" if alike else "target"


class ModelConfig(_Options):
    """What a Transformer is made of. The defaults are the paper's base model (table 3).

    >>> ModelConfig(source_vocab_size=100, target_vocab_size=100, d_model=64, num_heads=4).d_ff
    2048
    """

    source_vocab_size: int = Field(ge=1)
    """Number of source tokens."""
    target_vocab_size: int = Field(ge=1)
    """Number of target tokens."""
    d_model: int = Field(512, ge=2)
    """Width of the stream between the blocks; even."""
    num_heads: int = Field(8, ge=1)
    """Heads of each attention; a divisor of d_model."""
    d_ff: int = Field(2048, ge=1)
    """Inner width of the feed-forward networks."""
    num_encoder_layers: int = Field(6, ge=1)
    """Blocks of the encoder."""
    num_decoder_layers: int = Field(6, ge=1)
    """Blocks of the decoder."""
    dropout: float = Field(0.1, ge=0, lt=1)
    """Share dropped after each sublayer and after the embeddings (section 5.4)."""
    attention_dropout: float = Field(0.0, ge=0, lt=1)
    """Share of attention weights dropped; the paper drops none, tensor2tensor does."""
    activation_dropout: float = Field(0.0, ge=0, lt=1)
    """Share dropped inside the feed-forward networks; the paper drops none."""
    activation: Literal["relu", "gelu", "swish"] = "relu"
    """Of the feed-forward networks; the paper's is relu."""
    norm: Literal["post", "pre"] = "post"
    """LayerNorm after each residual sum (the paper) or before each sublayer."""
    norm_epsilon: float = Field(1e-5, gt=0)
    """Added to the variance in LayerNorm; tensor2tensor has 1e-6, torch 1e-5."""
    tying: Tying = Field(default_factory=_default_tying)
    """Output matrix = target embedding, and three-way = source embedding too (section 3.4).
    Default: three-way if both vocabularies have one size, else target."""
    output_bias: bool = False
    """A bias on the logits; Marian has one."""
    scale_embeddings: bool = True
    """Multiply embeddings by sqrt(d_model) (section 3.4); BART does not."""
    embedding_norm: bool = False
    """A LayerNorm after embedding and position, as in BART."""
    positions: Literal["sinusoidal", "learned"] = "sinusoidal"
    """Fixed sines and cosines (section 3.5), or a learned table."""
    position_layout: Literal["interleaved", "halves"] = "interleaved"
    """Sines and cosines in turn (the paper), or all sines first (tensor2tensor, Marian)."""
    position_frequencies: Literal["paper", "tensor2tensor"] = "paper"
    """10000^(-2i/d_model), or tensor2tensor's 10000^(-i/(d_model/2-1))."""
    position_offset: int = Field(0, ge=0)
    """Position of the first token; 2 in BART's and fairseq's learned tables."""
    max_length: int = Field(1024, ge=1)
    """Positions that exist: the longest sequence, in tokens."""
    pad_id: int = Field(0, ge=0)
    """Fills up shorter sentences of a batch; never attended to."""
    unk_id: int = Field(1, ge=0)
    """Stands for what the vocabulary lacks."""
    bos_id: int = Field(2, ge=0)
    """The start symbol, which the decoder reads first."""
    eos_id: int = Field(3, ge=0)
    """The end symbol, after each source and target."""

    @property
    def extra_length(self) -> int:
        """Tokens that a target may have more than its source, so that both have positions."""
        return min(EXTRA_LENGTH, self.max_length // 2)

    @model_validator(mode="after")
    def _fits_together(self) -> "ModelConfig":
        if self.d_model % 2:
            raise ValueError(f"d_model must be even, as sine-cosine pairs are, got {self.d_model}")
        if self.d_model % self.num_heads:
            raise ValueError(
                f"d_model {self.d_model} is not divisible by num_heads {self.num_heads}"
                f" (remainder {self.d_model % self.num_heads})"
            )
        if self.tying == "three-way" and self.source_vocab_size != self.target_vocab_size:
            raise ValueError(
                "three-way tying needs one vocabulary for both sides, got"
                f" {self.source_vocab_size} source and {self.target_vocab_size} target tokens;"
                " use tying 'target' or 'none'"
            )
        smallest = min(self.source_vocab_size, self.target_vocab_size)
        for name in ("pad_id", "unk_id", "bos_id", "eos_id"):
            if getattr(self, name) >= smallest:
                raise ValueError(
                    f"{name} {getattr(self, name)} is outside the vocabulary of {smallest}"
                )
        return self


def _sizes(d_model: int, num_heads: int, d_ff: int, blocks: int, dropout: float) -> dict[str, Any]:
    return {
        "d_model": d_model,
        "num_heads": num_heads,
        "d_ff": d_ff,
        "num_encoder_layers": blocks,
        "num_decoder_layers": blocks,
        "dropout": dropout,
    }


presets: dict[str, dict[str, Any]] = {
    # Tens of thousands of pairs: near the Transformer-Tiny of Wu et al. 2021, which has 4+4 blocks
    # and a d_ff of 256.
    "tiny": _sizes(128, 4, 512, blocks=3, dropout=0.2),
    # Hundreds of thousands of pairs.
    "small": _sizes(256, 4, 1024, blocks=3, dropout=0.1),
    # The paper's. With a shared vocabulary of 37,000: 63,082,496 parameters. Counted is each
    # weight once (embeddings and output matrix are one) with all biases; table 3 prints 65e6.
    "base": _sizes(512, 8, 2048, blocks=6, dropout=0.1),
    # The paper's; counted in the same way 214,245,376 parameters, where table 3 prints 213e6.
    "big": _sizes(1024, 16, 4096, blocks=6, dropout=0.3),
}
# Twice the encoder's blocks and one of the decoder (Kasai et al. 2021, "Deep Encoder, Shallow
# Decoder", arXiv 2006.10369: 12+1 for the paper's 6+6). The encoder reads a sentence once; the
# decoder's blocks are what each token of a translation has to wait for.
presets |= {
    f"{name}-deep-shallow": {
        **presets[name],
        "num_encoder_layers": 2 * presets[name]["num_encoder_layers"],
        "num_decoder_layers": 1,
    }
    for name in ("tiny", "small", "base")
}

Files = tuple[Path, ...]
_PAIRS = tyro.conf.arg(metavar="SOURCE [TARGET]", help_behavior_hint="(required)")
_NO_PAIRS = tyro.conf.arg(metavar="SOURCE [TARGET]", help_behavior_hint="(default: none)")
_NO_FILE = tyro.conf.arg(metavar="FILE [FILE]", help_behavior_hint="(default: none)")


class TrainConfig(_Options):
    """Train a translator: SOURCE TARGET are two aligned text files, or one TSV or JSON-lines file.

    The same command again continues where it was. What is left open (None) is chosen from the
    data, and the reason is printed.
    """

    pairs: Annotated[Files, tyro.conf.Positional, _PAIRS] = Field(min_length=1, max_length=2)
    """Training pairs: SOURCE TARGET, or one file that holds both sides."""
    run: Path
    """Directory of this training: checkpoints, metrics, and the bundle."""
    valid: Annotated[Files, _NO_PAIRS] = Field((), max_length=2)
    """Validation pairs; without them, some training pairs are held out."""
    test: Annotated[Files, _NO_PAIRS] = Field((), max_length=2)
    """Test pairs, scored once at the end."""
    format: Literal["lines", "tsv", "tsv-quoted", "jsonl"] | None = None
    """How the files hold pairs; None: told by their names."""
    keys: tuple[str, str] = ("source", "target")
    """Names of the two sides in JSON lines."""
    max_chars: int = Field(2000, ge=1)
    """Pairs with a side of more characters are dropped."""
    max_ratio: float = Field(9.0, ge=1)
    """Pairs with a side more than this many times as long as the other are dropped."""
    languages: tuple[str, str] | None = None
    """Codes of the two languages, as in "en de"; None: from file names that end in codes."""

    tokenizer: Annotated[Files, _NO_FILE] = Field((), max_length=2)
    """SentencePiece model to use instead of training one: one for both sides, or two."""
    subwords: Literal["bpe", "unigram"] = "bpe"
    """Kind of subword model."""
    joint: bool = True
    """One vocabulary for both sides."""
    vocab_size: int | None = Field(None, ge=1, le=1_000_000)
    """Subwords of a vocabulary."""
    max_tokens: int = Field(250, ge=1)
    """Pairs with more subwords on a side are dropped, and counted."""

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
    dropout: float | None = Field(None, ge=0, lt=1)
    """Instead of the preset's dropout."""
    attention_dropout: float = Field(0.0, ge=0, lt=1)
    """Share of attention weights dropped; the paper drops none."""
    activation_dropout: float = Field(0.0, ge=0, lt=1)
    """Share dropped inside the feed-forward networks; the paper drops none."""
    activation: Literal["relu", "gelu", "swish"] = "relu"
    """Of the feed-forward networks."""
    norm: Literal["post", "pre"] | None = None
    """LayerNorm after each residual sum (the paper) or before each sublayer."""
    tying: Literal["none", "target", "three-way"] | None = None
    """Which embeddings are one; None: three-way with one vocabulary, else target."""
    positions: Literal["sinusoidal", "learned"] = "sinusoidal"
    """Kind of positions."""

    minutes: float | None = Field(None, gt=0)
    """Time for everything, from reading to the last score: the updates are fitted to it, and where
    this machine is too slow for the size that the pairs want, so is the size."""
    epochs: float | None = Field(None, gt=0)
    """How often the data are read."""
    updates: int | None = Field(None, ge=1)
    """How many updates; instead of epochs."""
    batch_tokens: int | None = Field(None, ge=16)
    """Tokens of a batch, source + target with padding."""
    both_ways: float | None = Field(None, ge=0, le=1)
    """First share of the run where every other update learns backwards (Ding et al. 2021)."""
    accumulate: int = Field(1, ge=1)
    """Batches whose gradients are added up for one update."""
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
    precision: Literal["auto", "float32", "bf16"] = "auto"
    """auto: bf16 where this machine multiplies faster in it, by measuring."""
    device: str = "auto"
    """cpu, cuda, or auto: cuda where there is one."""
    threads: int = Field(0, ge=0)
    """CPU threads; 0: all."""
    workers: int = Field(0, ge=0)
    """Processes among which a CPU's threads are divided; 0: by measuring."""
    seed: int = Field(1, ge=0, lt=2**32)
    """Of everything that is drawn: weights, dropout, order, held-out pairs."""

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
    beam: int = Field(BEAM, ge=1, le=MOST_BEAM)
    """Beam of the final scores."""
    shortlist: bool = False
    """Give the bundle a list of each source token's likely translations, for quick decoding."""
    tensorboard: bool = False
    """Write TensorBoard's files too."""

    @model_validator(mode="after")
    def _options_agree(self) -> "TrainConfig":
        lengths = [n for n in ("minutes", "epochs", "updates") if getattr(self, n) is not None]
        if len(lengths) > 1:
            raise ValueError(f"give {lengths[0]} or {lengths[1]}, not both")
        if len(self.tokenizer) == 2 and self.joint:
            raise ValueError("two tokenizers are not joint: add joint false (--no-joint)")
        if self.both_ways and not self.joint:
            raise ValueError("both_ways needs one vocabulary: joint true, or both_ways 0")
        if self.tying == "three-way" and not self.joint:
            raise ValueError("three-way tying needs one vocabulary: joint true, or tying target")
        return self
