"""What a trace tells of the model and of the search: the records that it is made of.

How they are read, and what a step is, stands in :mod:`glassformer.inspection.trace.schema`.
"""

from dataclasses import dataclass
from typing import Literal

from glassformer.inspection.trace.array_codec import Packed

__all__ = [
    "AttentionPart",
    "AttentionTrace",
    "BeamGraph",
    "BeamNode",
    "Candidate",
    "Masks",
    "Part",
    "Positions",
    "Step",
    "SublayerNorms",
]

AttentionPart = Literal["encoder", "decoder", "cross"]
"""Self-attention of the encoder, self-attention of the decoder, decoder to memory."""


@dataclass(frozen=True)
class Part:
    """One box of the paper's figure 1."""

    name: str
    """Its path in the model, such as ``encoder.blocks.0.self_attention``; where it has none, such
    as ``softmax``, a word."""
    title: str
    """As the figure writes it."""
    stack: Literal["encoder", "decoder", "output"]
    layer: int | None
    """The block that it belongs to."""
    section: str
    """Of the paper."""
    input_shape: list[int]
    """Of this sentence, without the batch: (src_len, d_model), say."""
    output_shape: list[int]
    inner_shape: list[int] | None
    """The heads' weights of an attention, the inner layer of a feed-forward network."""
    parameters: int
    """Numbers that are learnt here, LayerNorm included; 0 where they are another part's."""
    shared_with: str | None
    """The part whose numbers these are, where they are tied."""


@dataclass(frozen=True)
class Masks:
    """True = may attend."""

    source: list[bool]
    """For each source piece, whether anybody may attend to it."""
    target: list[list[bool]]
    """Row ``i``, column ``j``: whether step ``i`` may attend to what step ``j`` read."""


@dataclass(frozen=True)
class Positions:
    """The position vectors that are added to the embeddings."""

    kind: Literal["sinusoidal", "learned"]
    layout: Literal["interleaved", "halves"]
    frequencies: Literal["paper", "tensor2tensor"]
    offset: int
    embedding_factor: float
    """Embeddings are multiplied by this before a position is added (section 3.4)."""
    source: Packed
    """(src_len, d_model)"""
    target: Packed
    """(tgt_len, d_model); of learned positions another table than the source's."""


@dataclass(frozen=True)
class AttentionTrace:
    """One attention sublayer: all its heads."""

    name: str
    part: AttentionPart
    layer: int
    scores: Packed
    """(heads, q_len, k_len), 16 bits: query · key / sqrt(d_head), before the mask."""
    weights: Packed
    """(heads, q_len, k_len), 8 bits: after mask and softmax."""
    query: Packed | None
    """(heads, q_len, d_head), float32, as the product takes them: for the worked sum. None where
    there would be too many; the bounds then say so."""
    key: Packed | None
    """(heads, k_len, d_head)"""
    value: Packed | None
    """(heads, k_len, d_head)"""


@dataclass(frozen=True)
class SublayerNorms:
    """How long the vectors are at each position, in and around one residual block."""

    name: str
    stack: Literal["encoder", "decoder"]
    layer: int
    kind: Literal["self_attention", "cross_attention", "feed_forward"]
    input: list[float]
    """Of the stream that comes in, for each position."""
    added: list[float]
    """Of what the sublayer adds to it."""
    output: list[float]
    """Of the stream that goes out, residual connection and LayerNorm included."""


@dataclass(frozen=True)
class Candidate:
    """A piece that might come next."""

    id: int
    piece: str
    text: str
    probability: float
    log_probability: float


@dataclass(frozen=True)
class Step:
    """One step of decoding on the way of the answer."""

    step: int
    read: int
    """The id that it reads."""
    sees: list[int]
    """Indices in ``target.read`` that its self-attention may look at. Of the source it may look
    at all that ``masks.source`` allows."""
    written: Candidate
    rank: int
    """Place of what was written among all pieces by probability; 0 = the most probable."""
    forced: bool
    """Whether the prefix asked for it."""
    entropy: float
    """Of the distribution over the next piece, in nats."""
    candidates: list[Candidate]
    """The most probable pieces, best first."""
    lens: list[list[Candidate]]
    """For each decoder layer its state through the last LayerNorm and the output matrix: which
    pieces it would write. The last layer's are ``candidates``."""
    lens_rank: list[int]
    """For each decoder layer the place of what was written in the end."""


@dataclass(frozen=True)
class BeamNode:
    """One unfinished or finished target of the search."""

    id: int
    """Its index in ``nodes``; 0 is the start symbol."""
    parent: int | None
    step: int
    """The step that wrote its last piece; -1 for the start symbol."""
    token: int
    """The id of its last piece."""
    piece: str
    text: str
    step_log_probability: float
    """Of its last piece."""
    log_probability: float
    """Of all its pieces together."""
    score: float
    """``log_probability`` over the length penalty."""
    rank: int
    """Its place among all candidates of its step, by ``log_probability``; 0 = best."""
    status: Literal["alive", "finished", "pruned", "open"]
    """alive: it went on. finished: it ended here and was set aside. pruned: proposed, but there
    was no place. open: it would have gone on, but the search was done."""


@dataclass(frozen=True)
class BeamGraph:
    """The search as a tree: every candidate that was among the 2 * beam best of its step."""

    beam: int
    length_penalty: float
    nodes: list[BeamNode]
    best: list[int]
    """The answer's nodes, from the start symbol on."""
    finished: list[int]
    """The finished ones, best score first."""
