"""The options of each picture that ``glassformer plot`` draws."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from glassformer.config import BEAM, MOST_BEAM, MOST_LENGTH_PENALTY, Frequencies, Layout, Options

__all__ = [
    "OPTIONS",
    "AlignmentOptions",
    "AttentionOptions",
    "Figure1Options",
    "MasksOptions",
    "PlotOptions",
    "PositionsOptions",
    "ScheduleOptions",
    "SearchedOptions",
    "SentenceOptions",
    "TrainingOptions",
]

_LONGEST = 5_000  # positions, columns, words: more do not fit a picture
Width = Annotated[int, Field(ge=1, le=10**9)]
Part = Literal["encoder", "decoder", "cross"]


class PlotOptions(Options):
    """The options of a picture; each kind has its own default file name."""

    out: Path
    """The picture: .png or .svg."""


class MasksOptions(PlotOptions):
    """The masks of the given sentences: the keys that each query may attend to."""

    source: str | None = None
    """A source sentence; the end symbol is added."""
    target: str | None = None
    """A target sentence; the start symbol is added."""
    bundle: Path | None = None
    """Cut the sentences by this translator's tokenizers; None: at white space."""
    padding: int = Field(2, ge=0, le=500)
    """Padding symbols after each sentence, as beside a longer one in a batch."""
    out: Path = Path("masks.png")
    """The picture: .png or .svg."""


class PositionsOptions(PlotOptions):
    """Positional encoding, as lines or as a heatmap."""

    view: Literal["lines", "heatmap"] = "lines"
    """The picture to draw."""
    d_model: int = Field(128, ge=2, le=_LONGEST, multiple_of=2)
    """Width of the table; even."""
    length: int = Field(100, ge=1, le=_LONGEST)
    """Number of positions."""
    columns: tuple[int, ...] = ()
    """For lines: the columns, from 0; none: four that fit d_model."""
    rows: tuple[int, ...] = ()
    """For lines: the vectors of these positions, from 0, in place of columns."""
    offset: int = Field(0, ge=0, le=1_000_000)
    """Position of the first token."""
    layout: Layout = "interleaved"
    """Sines and cosines in turn (the paper), or all sines first (tensor2tensor)."""
    frequencies: Frequencies = "paper"
    """10000^(-2i/d_model), or tensor2tensor's 10000^(-i/(d_model/2-1))."""
    out: Path = Path("positions.png")
    """The picture: .png or .svg."""

    @model_validator(mode="after")
    def _within_the_table(self) -> "PositionsOptions":
        _check_below("--columns", self.columns, self.d_model)
        _check_below("--rows", self.rows, self.length)
        return self


class ScheduleOptions(PlotOptions):
    """The paper's learning rate over the updates, for several widths and warm-ups."""

    d_model: tuple[Width, ...] = Field((512, 512, 256), min_length=1)
    """Width of each model."""
    warmup: tuple[Width, ...] = (4_000, 8_000, 4_000)
    """Updates of the rising rate; one number for each d_model."""
    updates: int = Field(20_000, ge=2, le=10**9)
    """The last update in the picture."""
    out: Path = Path("schedule.png")
    """The picture: .png or .svg."""

    @model_validator(mode="after")
    def _in_pairs(self) -> "ScheduleOptions":
        if len(self.warmup) != len(self.d_model):
            raise ValueError(
                f"--warmup has {len(self.warmup)} values and --d-model {len(self.d_model)}:"
                " give one for each"
            )
        return self


class TrainingOptions(PlotOptions):
    """A training's loss, learning rate and validation scores."""

    run: Path = Field(title="RUN")
    """Directory of a training, finished or not, or its metrics.jsonl."""
    against: Literal["updates", "minutes"] = "updates"
    """The unit of the x axis."""
    out: Path = Path("training.png")
    """The picture: .png or .svg."""


def _check_below(option: str, numbers: Iterable[int], end: int) -> None:
    for number in numbers:
        if not 0 <= number < end:
            raise ValueError(f"{option} {number}: expected 0 to {end - 1}")


class SentenceOptions(PlotOptions):
    """A translator and a sentence."""

    bundle: Path = Field(title="BUNDLE")
    """Directory of a trained translator."""
    text: str = Field(title="TEXT")
    """The source sentence."""

    @model_validator(mode="after")
    def _has_a_sentence(self) -> "SentenceOptions":
        if not self.text.strip():
            raise ValueError("the source sentence is empty: there is no token to attend to")
        return self


class SearchedOptions(SentenceOptions):
    """A translator and a sentence, and the options of the search."""

    beam: int = Field(BEAM, ge=1, le=MOST_BEAM)
    """Hypotheses of the beam search; 1: greedy."""
    length_penalty: float | None = Field(None, ge=0, le=MOST_LENGTH_PENALTY)
    """The paper's alpha (section 6.1); None: the bundle's."""


class AttentionOptions(SentenceOptions):
    """The attention maps of one sentence: all layers and heads, or one."""

    target: str | None = None
    """The target sentence; None: the translator's own translation."""
    part: Part = "cross"
    """Self-attention of encoder or decoder, or cross-attention."""
    layer: int | None = None
    """Only this layer, counted from 1; None: all."""
    head: int | Literal["mean"] | None = None
    """Only this head, counted from 1, or the mean of the heads; None: all."""
    out: Path = Path("attention.png")
    """The picture: .png or .svg."""


class AlignmentOptions(SearchedOptions):
    """Word alignment: lines from each source word to its target words."""

    layer: int | None = None
    """Layer of the cross-attention, counted from 1; None: the best for alignment."""
    head: int | None = None
    """Head of that layer, counted from 1; None: the best for alignment."""
    out: Path = Path("alignment.png")
    """The picture: .png or .svg."""


class Figure1Options(SearchedOptions):
    """The paper's figure 1 for a translator, with a sentence's shapes and the parameters."""

    out: Path = Path("figure1.png")
    """The picture: .png or .svg."""


OPTIONS: dict[str, type[PlotOptions]] = {
    "masks": MasksOptions,
    "positions": PositionsOptions,
    "schedule": ScheduleOptions,
    "training": TrainingOptions,
    "attention": AttentionOptions,
    "alignment": AlignmentOptions,
    "figure1": Figure1Options,
}
