"""The schema of a trace: one translation with all that the model computed for it, as dataclasses.

``Trace.to_json()`` writes the fields under their own names; pydantic's type adapter reads them.
Arrays are :class:`~glassformer.tools.inspection.trace.array_codec.EncodedArray`. Steps of decoding,
layers, heads, positions and ranks are indices and count from 0; page and pictures add 1. Step ``i``
reads ``target.read[i]``, writes ``target.pieces[i]``, and is row ``i`` of each decoder map.
Logarithms are natural.

Within one ``version`` fields are added; no field is renamed or changes its meaning.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from pydantic_core import to_json

from glassformer.config import BEAM, Frequencies, PositionKind
from glassformer.tools.inspection.trace.array_codec import EncodedArray

__all__ = [
    "ATTENTION_PATHS",
    "VERSION",
    "Answer",
    "AttentionPart",
    "AttentionTrace",
    "BeamGraph",
    "BeamNode",
    "Bounds",
    "Box",
    "Candidate",
    "Changes",
    "Erased",
    "Head",
    "Masks",
    "Piece",
    "Positions",
    "Query",
    "Reference",
    "Side",
    "Step",
    "SublayerNorms",
    "TermPlace",
    "Trace",
]

VERSION = 1

Stack = Literal["encoder", "decoder"]
Status = Literal["alive", "finished", "pruned", "open"]
Verdict = Literal["found", "search", "model"]
AttentionPart = Literal["encoder", "decoder", "cross"]
"""Self-attention of the encoder, self-attention of the decoder, decoder to memory."""

ATTENTION_PATHS: dict[AttentionPart, str] = {
    "encoder": "encoder.blocks.{}.self_attention",
    "decoder": "decoder.blocks.{}.self_attention",
    "cross": "decoder.blocks.{}.cross_attention",
}
"""The path of each attention sublayer in the model; ``{}`` is the layer's index."""


# The question


@dataclass(frozen=True)
class Head:
    """One attention head; both numbers are indices."""

    part: AttentionPart
    layer: int
    head: int


@dataclass(frozen=True)
class Changes:
    """Changes of the model or of the source before the trace; none by default."""

    heads_off: list[Head] = field(default_factory=list)
    """The outputs of these heads are zeros; the trace shows their weights all the same."""
    source_order: list[int] | None = None
    """Another order of the source pieces: ``pieces[i]`` is the ``source_order[i]``-th of the text.
    ``</s>`` stays last and has no entry."""
    positions_off: bool = False
    """The model adds no position to any embedding."""
    causal_off: bool = False
    """In the maps and steps each target position attends to all others. The search is unchanged:
    nothing follows its last position."""


@dataclass(frozen=True)
class Query:
    """The text, the options of the search, and the changes; a trace holds it with None filled in.

    >>> Query("A dog.", beam=1).top
    10
    """

    text: str
    """One source sentence; of several, the trace shows the first."""
    length_penalty: float | None = None
    """The paper's alpha (section 6.1); None: the bundle's."""
    forced_prefix: str | Sequence[int] = ()
    """The beginning of the answer, as text or as ids of pieces; a trace holds ids. To continue from
    another candidate of step ``i``, give the ids of the steps before it and the candidate's. The
    end symbol may be the last."""
    beam: int = BEAM
    """Hypotheses of the search."""
    top: int = 10
    """Candidates of each step."""
    reference: str | None = None
    """A correct translation, whose way through the search the trace records."""
    changes: Changes = field(default_factory=Changes)


# The texts


@dataclass(frozen=True)
class Piece:
    """One subword."""

    id: int
    piece: str
    """As the vocabulary writes it: ``▁`` where a word begins, ``<0xE6>`` for a byte."""
    text: str
    """The same for a reader, without ``▁`` before it."""
    start: int
    """Its characters are ``side.text[start:end]``; a symbol has none, and ``start == end``. The
    bytes of one character share that character's span."""
    end: int
    word: int | None
    """Index in the side's ``words``; None for the start and the end symbol."""


@dataclass(frozen=True)
class Side:
    """The text and the pieces of the source or of the target."""

    text: str
    pieces: list[Piece]
    """Source: all that the encoder reads, ``</s>`` at the end. Target: all that the decoder
    writes."""
    read: list[Piece]
    """Target: the piece that each step reads: ``<s>``, then the piece before. Source: as
    ``pieces``."""
    words: list[tuple[int, int]]
    """The characters of each word in ``text``; ``piece.word`` is an index of this list."""


@dataclass(frozen=True)
class Answer:
    """The best translation that the search found."""

    text: str
    log_probability: float
    score: float
    """``log_probability`` over the length penalty."""
    finished: bool
    """False if the search stopped at the greatest length."""


@dataclass(frozen=True)
class TermPlace:
    """A glossary term that stands in the text, and its place in the answer."""

    term: str
    forms: list[str]
    """The translation holds one of them."""
    pieces: list[int]
    """Indices in ``target.pieces``: of the form that the answer holds, or of the words whose place
    the form takes in the translation. Empty if the term has no place."""


@dataclass(frozen=True)
class Bounds:
    """Parts that the trace leaves out to stay small; the model read all of them."""

    source_pieces: int
    """All pieces of the source, in the trace or not."""
    target_pieces: int
    left_out: list[str]
    """One sentence for each part that is missing; empty if the trace is complete."""


# The model


@dataclass(frozen=True)
class Box:
    """One box of the paper's figure 1."""

    name: str
    """Its path in the model, such as ``encoder.blocks.0.self_attention``; a plain word for a box
    without a path, such as ``softmax``."""
    title: str
    """Its title in the figure."""
    stack: Literal[Stack, "output"]
    layer: int | None
    """The block that holds it."""
    section: str
    """The section of the paper."""
    input_shape: list[int]
    """For this sentence, without the batch, such as (src_len, d_model)."""
    output_shape: list[int]
    inner_shape: list[int] | None
    """The weights of an attention, or the inner layer of a feed-forward network."""
    parameters: int
    """Learned numbers, LayerNorm included; 0 if all of them belong to another box."""
    shared_with: str | None
    """The box whose parameters this one shares (tied embeddings)."""
    own: str | None = None
    """"yours" if a learner's own part runs in it, or the mistakes that a part there makes."""


@dataclass(frozen=True)
class Masks:
    """True = may attend."""

    source: list[bool]
    """For each source piece: may queries attend to it?"""
    target: list[list[bool]]
    """Row ``i``, column ``j``: may step ``i`` attend to the piece that step ``j`` read?"""


@dataclass(frozen=True)
class Positions:
    """The position vectors that the model adds to the embeddings."""

    kind: PositionKind
    frequencies: Frequencies
    source: EncodedArray
    """(src_len, d_model)"""
    target: EncodedArray
    """(tgt_len, d_model); learned positions have another table than the source's."""


@dataclass(frozen=True)
class AttentionTrace:
    """One attention sublayer with all its heads."""

    name: str
    part: AttentionPart
    layer: int
    scores: EncodedArray
    """(heads, q_len, k_len), 16 bits: query · key / sqrt(d_head), before the mask."""
    weights: EncodedArray
    """(heads, q_len, k_len), 8 bits: after mask and softmax."""
    query: EncodedArray | None
    """(heads, q_len, d_head), float32, as the product takes them. None if all queries, keys and
    values together are too many numbers; the bounds then say so."""
    key: EncodedArray | None
    """(heads, k_len, d_head)"""
    value: EncodedArray | None
    """(heads, k_len, d_head)"""


@dataclass(frozen=True)
class SublayerNorms:
    """The length of the vector at each position, in and around one residual block."""

    name: str
    """The path of the block, such as ``encoder.blocks.0.self_attention``."""
    input: list[float]
    """The stream that enters."""
    added: list[float]
    """The output of the sublayer."""
    output: list[float]
    """The stream that leaves, residual connection and LayerNorm included."""


# The search


@dataclass(frozen=True)
class Candidate:
    """A possible next piece."""

    id: int
    piece: str
    text: str
    probability: float
    log_probability: float


@dataclass(frozen=True)
class Step:
    """One step of decoding on the way to the answer."""

    step: int
    written: Candidate
    rank: int
    """Rank of the written piece among all pieces by probability; 0 = the most probable."""
    forced: bool
    """Whether the forced prefix asked for it."""
    candidates: list[Candidate]
    """The most probable pieces, best first."""
    lens: list[list[Candidate]]
    """For each decoder layer its state through the last LayerNorm and the output matrix: the
    pieces that it would write. Those of the last layer are ``candidates``."""
    lens_rank: list[int]
    """For each decoder layer the rank of the piece that was written in the end."""
    sublayers: list[float]
    """The log-probability of the written piece by the same reading of the stream after each decoder
    sublayer: self-attention, cross-attention, feed-forward network, layer after layer."""


@dataclass(frozen=True)
class BeamNode:
    """One hypothesis of the search, unfinished or finished."""

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
    """Log-probability of its last piece."""
    log_probability: float
    """Log-probability of all its pieces together."""
    score: float
    """``log_probability`` over the length penalty."""
    rank: int
    """Its rank among all candidates of its step, by ``log_probability``; 0 = best."""
    status: Status
    """alive: the search continued it. finished: it ended here and was kept. pruned: it had no
    place in the beam. open: the search was done before it could continue."""


@dataclass(frozen=True)
class BeamGraph:
    """The search as a tree: every candidate among the 2 * beam best of its step."""

    beam: int
    length_penalty: float
    nodes: list[BeamNode]
    best: list[int]
    """The answer's nodes, from the start symbol on."""
    finished: list[int]
    """The finished hypotheses, best score first."""


@dataclass(frozen=True)
class Erased:
    """The change of the answer's probability if one word of the source is erased."""

    words: list[str]
    changes: list[list[float]]
    """Row: the erased word. Column: the target piece. The new minus the old log-probability of
    that piece given the pieces before it: below 0, the translation needs the word."""
    totals: list[float]
    """The sums of the rows."""


@dataclass(frozen=True)
class Reference:
    """A correct translation, as the model and the search judge it."""

    log_probability: float
    score: float
    fell_off: int | None
    """The step at which it left the beam; None if it stayed to its end, or to the search's."""
    fell_rank: int | None
    """Its rank among all candidates of that step."""
    margin: float | None
    """The distance of its log-probability to that of the last candidate that went on there."""
    verdict: Verdict
    """found: it is the answer, perhaps in other pieces. search: the model scores it above the
    answer, and the search lost it. model: the model itself scores the answer higher."""


@dataclass(frozen=True)
class Trace:
    """One translation with all that the model computed for it."""

    version: int
    languages: tuple[str, str] | None
    asked: Query
    source: Side
    target: Side
    answer: Answer
    bounds: Bounds
    figure: list[Box]
    masks: Masks
    positions: Positions
    attention: list[AttentionTrace]
    """The encoder's by layer; then of each decoder layer self-attention and cross-attention."""
    sublayers: list[SublayerNorms]
    steps: list[Step]
    beam: BeamGraph
    erased: Erased
    reference: Reference | None
    terms: list[TermPlace]
    """The terms of the glossary, in the order of the text."""
    aligned: list[Head]
    """The heads from which word alignment takes its links; they are of one layer."""

    def to_json(self) -> str:
        """The trace as one line of JSON."""
        return to_json(self).decode()
