"""What a trace holds: one translation, taken apart. These dataclasses are its JSON's schema.

``Trace.to_json()`` writes the fields below under their own names, and ``Trace.from_json`` reads
them; half of their kinds are in :mod:`~glassformer.inspection.trace.records`. Arrays are
:class:`~glassformer.inspection.trace.array_codec.Packed`. A *step* is one of decoding, counted from
0: step ``i`` reads ``target.read[i]``, writes ``target.pieces[i]``, and is row ``i`` of each map
of the decoder. Layers and heads count from 0. Logarithms are natural.

Within one ``version`` fields are added, none is renamed or loses its meaning.
"""

from dataclasses import dataclass, field
from typing import Literal

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json

from glassformer.errors import InputError
from glassformer.inspection.trace.records import (
    AttentionPart,
    AttentionTrace,
    BeamGraph,
    Masks,
    Part,
    Positions,
    Step,
    SublayerNorms,
)

__all__ = [
    "VERSION",
    "Answer",
    "Asked",
    "Bounds",
    "Changes",
    "Erased",
    "Head",
    "Piece",
    "Reference",
    "Side",
    "Trace",
]

VERSION = 1


@dataclass(frozen=True)
class Piece:
    """One subword."""

    id: int
    piece: str
    """As the vocabulary writes it: ``▁`` where a word begins, ``<0xE6>`` for a byte."""
    text: str
    """The same without ``▁`` before it, to be read."""
    start: int
    """Its characters are ``side.text[start:end]``; the same for both where it has none. The bytes
    of one character share that character's span."""
    end: int
    word: int | None
    """Which of the side's ``words`` it belongs to; None for the start and end symbol."""


@dataclass(frozen=True)
class Side:
    """One side's text and pieces."""

    text: str
    pieces: list[Piece]
    """Source: all that the encoder reads, with ``</s>`` at last. Target: all that is written."""
    read: list[Piece]
    """Target: what each step reads, ``<s>`` and then the piece before. Source: as ``pieces``."""
    words: list[tuple[int, int]]
    """The words' characters in ``text``; ``piece.word`` is an index of this list."""


@dataclass(frozen=True)
class Head:
    """One attention head."""

    part: AttentionPart
    layer: int
    head: int


@dataclass(frozen=True)
class Changes:
    """What was done to model or source before the trace; by default nothing."""

    heads_off: list[Head] = field(default_factory=list)
    """These heads' outputs are zeros; their weights are shown all the same."""
    source_order: list[int] | None = None
    """Source pieces in another order: ``pieces[i]`` is the ``source_order[i]``-th of the text.
    ``</s>`` stays last and is not named."""
    positions_off: bool = False
    """No position is added to any embedding."""
    causal_off: bool = False
    """In the maps and steps each target position sees all others. The search is as always: it
    has nothing later to see."""


@dataclass(frozen=True)
class Asked:
    """The question that the trace answers."""

    text: str
    beam: int
    length_penalty: float
    forced_prefix: list[int]
    """Ids that the translation must begin with."""
    top: int
    """Candidates a step."""
    reference: str | None
    changes: Changes


@dataclass(frozen=True)
class Answer:
    """The best translation that the search found."""

    text: str
    log_probability: float
    score: float
    """``log_probability`` over the length penalty."""
    finished: bool
    """False where the search was cut at the greatest length."""


@dataclass(frozen=True)
class Bounds:
    """What was left out of the trace to keep it small; the model saw all of it."""

    limit: int
    """Pieces a side that are shown at most."""
    source_pieces: int
    """Pieces that there are, shown or not."""
    target_pieces: int
    left_out: list[str]
    """One sentence for each bound that bit; empty where all is shown."""


@dataclass(frozen=True)
class Erased:
    """How the answer's probability changes when a word of the source is taken away."""

    words: list[str]
    spans: list[tuple[int, int]]
    """The words' characters in ``source.text``."""
    changes: list[list[float]]
    """Row: the word that is gone. Column: the target piece. The new minus the old log-probability
    of that piece after those before it: below 0, the word was needed."""
    totals: list[float]
    """The sums of the rows."""

    def to_json(self) -> str:
        """As one line of JSON."""
        return to_json(self).decode()


@dataclass(frozen=True)
class Reference:
    """A translation that somebody holds for right, in the eyes of the model and of the search."""

    text: str
    pieces: list[Piece]
    log_probabilities: list[float]
    """Of each piece, ``</s>`` at last."""
    ranks: list[int]
    """Place of each among all pieces after those before it."""
    log_probability: float
    score: float
    fell_off: int | None
    """The step at which it left the beam; None where it stayed to its end, or the search's."""
    fell_rank: int | None
    """Its place among all candidates of that step."""
    margin: float | None
    """By how much its log-probability was below that of the last that went on there."""
    verdict: Literal["found", "search", "model"]
    """found: it is the answer, perhaps in other pieces. search: the model scores it above the
    answer, and the search lost it. model: the model itself scores the answer higher."""


@dataclass(frozen=True)
class Trace:
    """One translation, taken apart."""

    version: int
    languages: tuple[str, str] | None
    asked: Asked
    source: Side
    target: Side
    answer: Answer
    bounds: Bounds
    figure: list[Part]
    masks: Masks
    positions: Positions
    attention: list[AttentionTrace]
    """The encoder's by layer; then of each decoder layer its own and the cross attention."""
    sublayers: list[SublayerNorms]
    steps: list[Step]
    beam: BeamGraph
    erased: Erased | None = None
    reference: Reference | None = None

    def to_json(self) -> str:
        """As one line of JSON."""
        return to_json(self).decode()

    @staticmethod
    def from_json(text: str) -> "Trace":
        """What :meth:`to_json` wrote; InputError for anything else."""
        try:
            trace = _ADAPTER.validate_json(text)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"])) or "the text"
            raise InputError(f"not a trace: {where}: {first['msg']}") from None
        if trace.version != VERSION:
            raise InputError(
                f"a trace of version {trace.version}, but this glassformer reads {VERSION}"
            )
        return trace


_ADAPTER = TypeAdapter(Trace)
