"""The settings of a model, each with its type, default, range and one line of doc.

``presets`` names sizes of a model. This module also holds defaults and bounds of other packages.
"""

from itertools import combinations
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from glassformer.support.errors import UsageError
from glassformer.support.other_names import remedy
from glassformer.support.strangers import option_fault, shown

__all__ = [
    "BEAM",
    "EXTRA_LENGTH",
    "LARGE",
    "LENGTH_PENALTY",
    "MOST_BEAM",
    "MOST_LENGTH_PENALTY",
    "MOST_MIN_LENGTH",
    "MOST_NO_REPEAT_NGRAM",
    "MOST_REPETITION_PENALTY",
    "ModelConfig",
    "Options",
    "check_arguments",
    "check_heads",
    "check_width",
    "presets",
]

LARGE = 512
"""The smallest d_model of a model whose single sentences are faster on several threads."""
BEAM = 5
"""The number of hypotheses that beam search follows; the paper has 4 (section 6.1)."""
MOST_BEAM = 100
"""The widest beam that a person may ask for."""
LENGTH_PENALTY = 0.6
"""The paper's alpha (section 6.1), for a bundle that stores no alpha."""
MOST_LENGTH_PENALTY = 10.0
"""The greatest alpha; with a greater alpha, a long target wins at any probability."""
MOST_REPETITION_PENALTY = 10.0
"""The greatest repetition penalty; people give 1.1 to 2."""
MOST_NO_REPEAT_NGRAM = 100
"""The longest n-gram whose repetition a search can forbid; people give 2 to 5."""
MOST_MIN_LENGTH = 500
"""The greatest minimum length of a target."""
EXTRA_LENGTH = 50
"""The number of tokens by which a target may exceed its source (section 6.1)."""

Activation = Literal["relu", "gelu", "swish"]
Norm = Literal["post", "pre"]
Tying = Literal["none", "target", "embeddings", "three-way"]
PositionKind = Literal["sinusoidal", "learned"]
Layout = Literal["interleaved", "halves"]
Frequencies = Literal["paper", "tensor2tensor"]
Subwords = Literal["bpe", "unigram"]
TextMetric = Literal["bleu", "chrf"]
EngineName = Literal["auto", "torch", "ctranslate2"]
Precision = Literal["float32", "bfloat16"]
AnyPrecision = Literal["float32", "float16", "bfloat16"]
Markup = Literal["html", "srt", "vtt", "po", "docx"]  # the formats of files that hold markup

# The greatest sizes of a model. A larger size in a stranger's config would take all memory.
_MOST_BLOCKS = 1_000
_MOST_WIDTH = 1 << 16
_MOST_INNER_WIDTH = 1 << 20
_MOST_TOKENS = 1 << 24
_MOST_POSITIONS = 1 << 20
_MOST_TABLE = 1 << 25  # numbers in a table of positions, which take 128 MiB


class Options(BaseModel):
    """Options, each with a type, a default, bounds and a docstring; an unknown option fails."""

    # protected_namespaces keeps pydantic's default, as no field's name begins with "model_".
    model_config = ConfigDict(
        frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False
    )
    groups: ClassVar[dict[str, str]] = {}
    """The headings of ``--help``; the key of a heading is the first option under the heading."""
    shown_first: ClassVar[tuple[str, ...]] = ()
    """The options that ``--help`` shows first."""
    usage_end: ClassVar[str] = "[OPTIONS]"
    """The words after the positionals in the usage line."""

    def __init__(self, **options: Any) -> None:
        try:
            super().__init__(**options)
        except ValidationError as error:
            raise UsageError(option_fault(error)) from None  # one line

    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]  # no other validation

    @model_validator(mode="before")
    @classmethod
    def _answer_unknown_names(cls, options: dict[str, object]) -> dict[str, object]:
        aliases = [field.validation_alias or name for name, field in cls.model_fields.items()]
        known = {name for alias in aliases for name in getattr(alias, "choices", [alias])}
        if unknown := [name for name in options if name not in known]:
            raise ValueError(f"{unknown[0]} is no option{remedy(unknown[0], known)}")
        return options


def _default_tying(sizes: dict[str, object]) -> Tying:
    alike = sizes.get("source_vocab_size") == sizes.get("target_vocab_size")
    return "three-way" if alike else "target"


class ModelConfig(Options):
    """The settings of a Transformer. The defaults are the paper's base model (table 3).

    >>> ModelConfig(source_vocab_size=100, target_vocab_size=100, d_model=64, num_heads=4).d_ff
    2048
    """

    source_vocab_size: int = Field(ge=1, le=_MOST_TOKENS)
    """Number of source tokens."""
    target_vocab_size: int = Field(ge=1, le=_MOST_TOKENS)
    """Number of target tokens."""
    d_model: int = Field(default=512, ge=2, le=_MOST_WIDTH)
    """Width of the stream between the blocks; an even number."""
    num_heads: int = Field(default=8, ge=1, le=_MOST_WIDTH)
    """Number of heads of each attention; a divisor of d_model."""
    d_ff: int = Field(default=2048, ge=1, le=_MOST_INNER_WIDTH)
    """Inner width of the feed-forward networks."""
    num_encoder_layers: int = Field(default=6, ge=1, le=_MOST_BLOCKS)
    """Number of encoder blocks."""
    num_decoder_layers: int = Field(default=6, ge=1, le=_MOST_BLOCKS)
    """Number of decoder blocks."""
    dropout: float = Field(default=0.1, ge=0, lt=1)
    """Share of numbers dropped after each sublayer and after the embeddings (section 5.4)."""
    attention_dropout: float = Field(default=0.0, ge=0, lt=1)
    """Share of attention weights dropped; the paper drops none, tensor2tensor drops some."""
    activation_dropout: float = Field(default=0.0, ge=0, lt=1)
    """Share of numbers dropped inside the feed-forward networks; the paper drops none."""
    activation: Activation = "relu"
    """Activation of the feed-forward networks; the paper has relu."""
    norm: Norm = "post"
    """LayerNorm after each residual sum (post, as in the paper) or before each sublayer (pre)."""
    norm_epsilon: float = Field(default=1e-5, gt=0)
    """Number added to the variance in LayerNorm; tensor2tensor has 1e-6, torch has 1e-5."""
    tying: Tying = Field(default_factory=_default_tying)
    """Matrices that share weights. three-way ties source embedding, target embedding and output
    matrix (section 3.4). embeddings ties the two embeddings. target ties target embedding and
    output matrix. The default is three-way if both vocabularies have one size, else target."""
    output_bias: bool = False
    """Add a bias to the logits, as Marian does."""
    scale_embeddings: bool = True
    """Multiply embeddings by sqrt(d_model) (section 3.4); BART does not."""
    embedding_norm: bool = False
    """Apply a LayerNorm to the sum of embedding and position, as BART does."""
    positions: PositionKind = "sinusoidal"
    """Positional encoding: fixed sines and cosines (section 3.5), or a learned table."""
    position_layout: Layout = "interleaved"
    """Order of columns: sines and cosines in turn (the paper), or all sines first (Marian)."""
    position_frequencies: Frequencies = "paper"
    """Frequency i: 10000^(-2i/d_model), or tensor2tensor's 10000^(-i/(d_model/2-1))."""
    position_offset: int = Field(default=0, ge=0, le=_MOST_POSITIONS)
    """Position of the first token; BART's and fairseq's learned tables begin at 2."""
    max_length: int = Field(default=1024, ge=3, le=_MOST_POSITIONS)
    """Number of positions, which is the greatest length of a sequence in tokens."""
    source_max_length: int | None = Field(default=None, ge=2, le=_MOST_POSITIONS)
    """Number of source positions; None means max_length."""
    pad_id: int = Field(default=0, ge=0)
    """Id of padding, which fills up the shorter sentences of a batch."""
    source_pad_id: int | None = Field(default=None, ge=0)
    """Id of padding in sources; None means pad_id."""
    unk_id: int = Field(default=1, ge=0)
    """Id of the unknown symbol, for each character that the vocabulary lacks."""
    bos_id: int = Field(default=2, ge=0)
    """Id of the start symbol, which the decoder reads first."""
    eos_id: int = Field(default=3, ge=0)
    """Id of the end symbol, which follows each source and target."""

    @property
    def pad_of_source(self) -> int:
        """The id that fills up shorter sources."""
        return self.pad_id if self.source_pad_id is None else self.source_pad_id

    @property
    def max_length_of_source(self) -> int:
        """The greatest length of a source in tokens, end symbol included."""
        return self.max_length if self.source_max_length is None else self.source_max_length

    @property
    def longest_source(self) -> int:
        """The greatest length of a source in subwords whose longest translation fits too."""
        return min(self.max_length - self.extra_length, self.max_length_of_source - 1)

    @property
    def longest_pair(self) -> int:
        """The greatest length of a training pair's longer side in subwords, without symbols."""
        return min(self.max_length, self.max_length_of_source) - 1

    @property
    def extra_length(self) -> int:
        """The number of tokens by which a target may exceed its source within the positions."""
        return min(EXTRA_LENGTH, self.max_length // 2)

    @model_validator(mode="after")
    def _fits_together(self) -> "ModelConfig":
        check_width(self.d_model, self.num_heads)
        longest = max(self.max_length, self.max_length_of_source)
        if longest * self.d_model > _MOST_TABLE:
            raise ValueError(
                f"{longest} positions of {self.d_model} numbers: expected at most {_MOST_TABLE:,}"
                " numbers: give a smaller max_length"
            )
        one_table = self.tying in ("three-way", "embeddings")
        if one_table and self.source_vocab_size != self.target_vocab_size:
            raise ValueError(
                f"{self.tying} tying needs one vocabulary for both sides, got"
                f" {self.source_vocab_size} source and {self.target_vocab_size} target tokens;"
                " use tying 'target' or 'none'"
            )
        smallest = min(self.source_vocab_size, self.target_vocab_size)
        sizes = dict.fromkeys(("unk_id", "eos_id"), smallest)
        sizes["bos_id"] = self.target_vocab_size
        pad_size = smallest if self.source_pad_id is None else self.target_vocab_size
        sizes |= {"pad_id": pad_size, "source_pad_id": self.source_vocab_size}
        for name, size in sizes.items():
            if (getattr(self, name) or 0) >= size:
                raise ValueError(
                    f"{name} {getattr(self, name)} is outside the vocabulary of {size}"
                )
        # The end symbol may also be the start symbol, as in M2M100, or the padding of sources.
        pairs = combinations(("pad_id", "unk_id", "bos_id", "eos_id"), 2)
        for name, other in sorted({*pairs, ("source_pad_id", "unk_id")} - {("bos_id", "eos_id")}):
            if getattr(self, name) == getattr(self, other):
                raise ValueError(
                    f"{name} and {other} are both {getattr(self, name)}: give each symbol an id of"
                    " its own"
                )
        return self


def check_arguments(call: str, **arguments: Any) -> None:
    """Raise UsageError for an argument of a wrong kind or out of range.

    The name of an argument tells its kind: a share, a function, a class, a module, blocks, or else
    a size.
    """
    for name, value in arguments.items():
        if name in ("dropout", "smoothing"):
            wanted = "a number from 0 and below 1"
            right = isinstance(value, Real) and 0 <= float(value) < 1
        elif name == "attention":
            wanted = "a function (no module, which would have weights)"
            right = (
                callable(value) and not isinstance(value, type) and not hasattr(value, "forward")
            )
        elif name in ("new_dropout", "new_norm"):
            wanted = "a class or function (no instance)"
            right = callable(value) and (isinstance(value, type) or not hasattr(value, "forward"))
        elif name in ("sublayer", "final_norm"):
            wanted = "a module"
            right = callable(value) or (name == "final_norm" and value is None)
        elif name == "blocks":
            wanted = "a list of at least one block"
            right = hasattr(value, "__len__") and len(value) > 0 and all(map(callable, value))
        else:
            least = int(name not in ("offset", "length"))
            wanted = f"a whole number from {least}"
            whole = isinstance(value, Integral) and not isinstance(value, bool)
            right = whole and least <= value <= 10**9
        if not right:
            raise UsageError(f"{call} takes {wanted} as {name}, got {shown(value)}")


def check_width(d_model: int, num_heads: int = 1) -> None:
    """Refuse a width that sine-cosine pairs or ``num_heads`` do not divide."""
    if d_model < 2 or d_model % 2:
        raise ValueError(f"d_model must be even, as sine-cosine pairs are, got {d_model}")
    check_heads(d_model, num_heads)


def check_heads(d_model: int, num_heads: int) -> None:
    """Refuse a number of heads that does not divide the width."""
    if remainder := d_model % num_heads:
        order = ": their order is d_model, num_heads, d_ff" * (num_heads > d_model)
        reason = f"is not divisible by num_heads {num_heads} (remainder {remainder}){order}"
        raise ValueError(f"d_model {d_model} {reason}")


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
    # "tiny" suits tens of thousands of pairs. The Transformer-Tiny of Wu et al. 2021 has 4+4
    # blocks and a d_ff of 256.
    "tiny": _sizes(128, 4, 512, blocks=3, dropout=0.2),
    # "small" suits hundreds of thousands of pairs.
    "small": _sizes(256, 4, 1024, blocks=3, dropout=0.1),
    # The paper's base model has 63,082,496 parameters with a shared vocabulary of 37,000. A tied
    # weight counts once, and biases count too. The paper's table 3 prints 65e6.
    "base": _sizes(512, 8, 2048, blocks=6, dropout=0.1),
    # The paper's big model has 214,245,376 parameters by this count; table 3 prints 213e6.
    "big": _sizes(1024, 16, 4096, blocks=6, dropout=0.3),
}
# A "deep" preset has twice the encoder blocks and one decoder block (Kasai et al. 2021, "Deep
# Encoder, Shallow Decoder", arXiv 2006.10369). The encoder reads a sentence once; each token of a
# translation waits for all decoder blocks.
presets |= {
    f"{name}-deep-shallow": {
        **presets[name],
        "num_encoder_layers": 2 * presets[name]["num_encoder_layers"],
        "num_decoder_layers": 1,
    }
    for name in ("tiny", "small", "base")
}
