"""The schema of a trace, the record of one translation and of the model's numbers, as dataclasses.

``Trace.to_json()`` writes the fields under their names; pydantic's type adapter reads them. Arrays
have the class :class:`~glassformer.tools.inspection.trace.array_codec.EncodedArray`. Steps of
decoding, layers, heads, positions and ranks are indices and count from 0; page and pictures add 1.
Step ``i`` reads ``target.read[i]``, writes ``target.pieces[i]``, and is row ``i`` of each decoder
map. Logarithms are natural.

One ``version`` can gain fields, but no field of a version changes its name or meaning.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Literal

from pydantic_core import from_json, to_json

from glassformer.config import BEAM, Frequencies, PositionKind
from glassformer.support.displays import Page, Shown, Table
from glassformer.tools.inspection.trace.array_codec import EncodedArray
from glassformer.tools.web.look.single_file import build_page

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
"""Self-attention of the encoder, self-attention of the decoder, cross-attention."""

ATTENTION_PATHS: dict[AttentionPart, str] = {
    "encoder": "encoder.blocks.{}.self_attention",
    "decoder": "decoder.blocks.{}.self_attention",
    "cross": "decoder.blocks.{}.cross_attention",
}
"""The path of each attention sublayer in the model; ``{}`` is the layer's index."""


# The question


@dataclass(frozen=True)
class Head:
    """One attention head; layer and head are indices."""

    part: AttentionPart
    layer: int
    head: int


@dataclass(frozen=True)
class Changes:
    """Changes of the model or of the source before the trace; none by default."""

    heads_off: list[Head] = field(default_factory=list)
    """Heads whose outputs are zeros; the trace still shows the weights of these heads."""
    source_order: list[int] | None = None
    """Another order of the source pieces: ``pieces[i]`` is piece ``source_order[i]`` of the text.
    ``</s>`` stays last and has no entry."""
    positions_off: bool = False
    """The model adds no position to any embedding."""
    causal_off: bool = False
    """In the maps and steps each target position attends to all others. The search does not change,
    because nothing follows the last position of its targets."""


@dataclass(frozen=True)
class Query:
    """The text, the options of the search, and the changes; in a trace no option is None.

    >>> Query("A dog.", beam=1).top
    10
    """

    text: str
    """The source text; the trace shows the first sentence."""
    length_penalty: float | None = None
    """The paper's alpha (section 6.1); None means the bundle's alpha."""
    forced_prefix: str | Sequence[int] = ()
    """The beginning of the answer, as text or as ids of pieces; a trace holds ids. To continue from
    another candidate of step ``i``, give the ids of all earlier steps and the candidate's id. The
    end symbol may be the last id."""
    beam: int = BEAM
    """The number of hypotheses that the search keeps."""
    top: int = 10
    """The number of candidates for each step."""
    reference: str | None = None
    """A correct translation, which the trace follows through the search."""
    changes: Changes = field(default_factory=Changes)


# The texts


@dataclass(frozen=True)
class Piece:
    """One subword."""

    id: int
    piece: str
    """The piece in the vocabulary, with ``▁`` where a word begins, and ``<0xE6>`` for a byte."""
    text: str
    """The piece for a reader, without ``▁`` before it."""
    start: int
    """The piece's characters are ``side.text[start:end]``; a symbol has ``start == end``. The
    bytes of one character share that character's span."""
    end: int
    word: int | None
    """Index in the side's ``words``; None for the start and the end symbol."""


@dataclass(frozen=True)
class Side:
    """The text and the pieces of the source or of the target."""

    text: str
    pieces: list[Piece]
    """The source has the pieces that the encoder reads, with ``</s>``. The target has the pieces
    that the decoder writes."""
    read: list[Piece]
    """The target has the piece that each step reads: ``<s>``, then the previous piece. The source
    has its ``pieces`` again."""
    words: list[tuple[int, int]]
    """The span of each word in ``text``; ``piece.word`` is an index of this list."""


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
    """The alternative translations, of which the answer holds one."""
    pieces: list[int]
    """Indices in ``target.pieces``: of the form in the answer, or of the words that the form
    replaces in the translation. The list is empty if the term has no place."""


@dataclass(frozen=True)
class Bounds:
    """The parts that the trace leaves out to stay small; the model has read all pieces."""

    source_pieces: int
    """Number of pieces of the source, in the trace or not."""
    target_pieces: int
    left_out: list[str]
    """One sentence for each missing part; empty if the trace is complete."""


# The model


@dataclass(frozen=True)
class Box:
    """One box of the paper's figure 1."""

    name: str
    """The box's path in the model, such as ``encoder.blocks.0.self_attention``; a plain word, such
    as ``softmax``, for a box without a path."""
    title: str
    """The box's title in the figure."""
    stack: Literal[Stack, "output"]
    layer: int | None
    """The index of the block that holds the box."""
    section: str
    """The section of the paper."""
    input_shape: list[int]
    """The shape for the trace's sentence, without the batch, such as (src_len, d_model)."""
    output_shape: list[int]
    inner_shape: list[int] | None
    """The weights of an attention, or the inner layer of a feed-forward network."""
    parameters: int
    """Learned numbers, LayerNorm included; 0 if all of them belong to another box."""
    shared_with: str | None
    """The box that has the parameters of this box (tied embeddings)."""
    own: str | None = None
    """"yours" if a learner's own part runs in the box, or the mistakes of the parts in it."""


@dataclass(frozen=True)
class Masks:
    """The masks of attention, in which True lets a query attend to a key."""

    source: list[bool]
    """Whether queries may attend to a source piece."""
    target: list[list[bool]]
    """Row ``i``, column ``j`` tells if step ``i`` may attend to the piece that step ``j`` read."""


@dataclass(frozen=True)
class Positions:
    """The position vectors that the model adds to the embeddings."""

    kind: PositionKind
    frequencies: Frequencies
    source: EncodedArray
    """(src_len, d_model)"""
    target: EncodedArray
    """(tgt_len, d_model); learned positions have a table for each side."""


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
    """(heads, q_len, d_head), float32. None if all queries, keys and values together are too many
    numbers; ``bounds`` then names the missing numbers."""
    key: EncodedArray | None
    """(heads, k_len, d_head)"""
    value: EncodedArray | None
    """(heads, k_len, d_head)"""


@dataclass(frozen=True)
class SublayerNorms:
    """The lengths of the vectors before, in and after one residual block, by position."""

    name: str
    """The path of the block, such as ``encoder.blocks.0.self_attention``."""
    input: list[float]
    """Lengths of the stream before the block."""
    added: list[float]
    """Lengths of the sublayer's output."""
    output: list[float]
    """Lengths of the stream after the block, with residual connection and LayerNorm."""


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
    """Rank of the written piece among all pieces by probability; 0 is the most probable."""
    forced: bool
    """Whether the step belongs to the forced prefix."""
    candidates: list[Candidate]
    """The most probable pieces, best first."""
    lens: list[list[Candidate]]
    """The pieces that each decoder layer would write, if the last LayerNorm and the output matrix
    read its state. The last layer's pieces are ``candidates``."""
    lens_rank: list[int]
    """The rank of the written piece in each decoder layer's reading."""
    sublayers: list[float]
    """The log-probability of the written piece, read like ``lens`` after each decoder sublayer:
    self-attention, cross-attention, feed-forward network, layer after layer."""


@dataclass(frozen=True)
class BeamNode:
    """One hypothesis of the search, unfinished or finished."""

    id: int
    """The node's index in ``nodes``; 0 is the start symbol."""
    parent: int | None
    step: int
    """The step that wrote the last piece; -1 for the start symbol."""
    token: int
    """The id of the last piece."""
    piece: str
    text: str
    step_log_probability: float
    """Log-probability of the last piece."""
    log_probability: float
    """Log-probability of all pieces together."""
    score: float
    """``log_probability`` over the length penalty."""
    rank: int
    """The rank among all candidates of the step, by ``log_probability``; 0 is the best."""
    status: Status
    """The search continues alive hypotheses and keeps finished hypotheses. Pruned hypotheses have
    no place in the beam. Open hypotheses have no end when the search ends."""


@dataclass(frozen=True)
class BeamGraph:
    """The search as a tree of the 2 * beam best candidates of each step."""

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
    """Each erased word has a row, and each target piece a column, with the new minus the old
    log-probability of the piece. Below 0, the translation needs the word."""
    totals: list[float]
    """The sums of the rows."""


@dataclass(frozen=True)
class Reference:
    """The judgement of model and search on a correct translation."""

    log_probability: float
    score: float
    fell_off: int | None
    """The step at which the reference left the beam; None if it stayed to the end."""
    fell_rank: int | None
    """The reference's rank among all candidates of the step ``fell_off``."""
    margin: float | None
    """The log-probability that the reference lacked at the step ``fell_off`` to stay."""
    verdict: Verdict
    """With ``found``, the reference is the answer, perhaps in other pieces. With ``search``, the
    model prefers the lost reference; with ``model``, the model prefers the answer."""


@dataclass(frozen=True, repr=False)
class Trace(Shown):
    """The record of one translation and of the model's numbers on the way."""

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
    """The encoder's attentions by layer, then each decoder layer's self- and cross-attention."""
    sublayers: list[SublayerNorms]
    steps: list[Step]
    beam: BeamGraph
    erased: Erased
    reference: Reference | None
    terms: list[TermPlace]
    """The terms of the glossary, in the order of the text."""
    aligned: list[Head]
    """The heads, all in one layer, from which word alignment takes links."""

    @property
    def remarks(self) -> list[str]:
        return self.bounds.left_out

    def to_json(self) -> str:
        """The trace as one line of JSON."""
        return to_json(self).decode()

    def records(self) -> Table:
        """The steps, with the piece that each reads, and the piece that each writes."""
        steps = zip(self.steps, self.target.read, strict=True)
        return Table({"reads": r.piece, **asdict(s.written), "rank": s.rank} for s, r in steps)

    def page(self) -> Page:
        """The page of ``glassformer look``, without the answers to other questions."""
        stored = {"trace": from_json(self.to_json()), "without": None, "changed": None}
        return Page(build_page(stored, title=self.source.text))
