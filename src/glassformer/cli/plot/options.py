"""The options of each picture of ``glassformer plot``."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from glassformer.cli.plot.sentence import (
    AlignmentOptions,
    AttentionOptions,
    BeamOptions,
    EraseOptions,
    Figure1Options,
    HeadsOptions,
    LensOptions,
    PlotOptions,
    ScoresOptions,
    StepsOptions,
)

__all__ = [
    "OPTIONS",
    "MasksOptions",
    "PositionsOptions",
    "ScheduleOptions",
    "SmoothingOptions",
    "TrainingOptions",
]

_LONGEST = 5_000  # positions, columns, words: more do not fit a picture
Width = Annotated[int, Field(ge=1, le=10**9)]


class MasksOptions(PlotOptions):
    """Who may attend to whom, in the attentions of the given sentences."""

    source: str | None = None
    """A source sentence; it gets its end symbol."""
    target: str | None = None
    """A target sentence; it gets its start symbol."""
    bundle: Path | None = None
    """Cut the sentences with this translator's tokenizers; without it, at white space."""
    padding: int = Field(2, ge=0, le=500)
    """Padding symbols after each sentence, as beside a longer one in a batch."""
    out: Path = Path("masks.png")
    """The picture: .png or .svg."""


class PositionsOptions(PlotOptions):
    """Positional encoding: lines, heatmap, similarity of positions, or embedding + position."""

    view: Literal["lines", "heatmap", "similarity", "embedding"] = "lines"
    """What to see."""
    d_model: int = Field(128, ge=2, le=_LONGEST, multiple_of=2)
    """Width of the table; even."""
    length: int = Field(100, ge=1, le=_LONGEST)
    """Number of positions."""
    columns: tuple[int, ...] = ()
    """For lines: which columns."""
    position: int = 50
    """For similarity: the position that is compared with all others."""
    offset: int = Field(0, ge=0, le=1_000_000)
    """Position of the first token."""
    layout: Literal["interleaved", "halves"] = "interleaved"
    """Sines and cosines in turn (the paper), or all sines first (tensor2tensor)."""
    frequencies: Literal["paper", "tensor2tensor"] = "paper"
    """10000^(-2i/d_model), or tensor2tensor's 10000^(-i/(d_model/2-1))."""
    sentence: str = "A dog runs across the green field ."
    """For embedding: the sentence."""
    bundle: Path | None = None
    """For embedding: take both from this translator; without it, the embedding is random."""
    out: Path = Path("positions.png")
    """The picture: .png or .svg."""

    @model_validator(mode="after")
    def _within_the_table(self) -> "PositionsOptions":
        _check_below("--columns", self.columns, self.d_model)
        if self.view == "similarity":
            _check_below("--position", [self.position], self.length)
        return self


class ScheduleOptions(PlotOptions):
    """The paper's learning rate over the updates, for several widths and warm-ups."""

    d_model: tuple[Width, ...] = Field((512, 512, 256), min_length=1)
    """Width of each model."""
    warmup: tuple[Width, ...] = (4_000, 8_000, 4_000)
    """Updates during which its rate rises; one for each d_model."""
    updates: int = Field(20_000, ge=2, le=10**9)
    """Where the picture ends."""
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


class SmoothingOptions(PlotOptions):
    """Label smoothing: what is asked of the model, and what its confidence costs."""

    labels: tuple[int, ...] = Field((2, 1, 0, 3, 3), min_length=1)
    """A row of labels."""
    vocab_size: int = Field(5, ge=2, le=_LONGEST)
    """Number of words to choose from."""
    smoothing: float = Field(0.1, ge=0, lt=1)
    """Share of the probability that is spread over all words."""
    pad_id: int = 0
    """The label that asks nothing."""
    out: Path = Path("smoothing.png")
    """The picture: .png or .svg."""

    @model_validator(mode="after")
    def _labels_are_words(self) -> "SmoothingOptions":
        _check_below("--labels", self.labels, self.vocab_size)
        return self


class TrainingOptions(PlotOptions):
    """A training's loss, learning rate and validation scores."""

    run: Path = Field(title="RUN")
    """The directory of a training, finished or not, or its metrics.jsonl."""
    against: Literal["updates", "minutes"] = "updates"
    """What runs along the bottom."""
    out: Path = Path("training.png")
    """The picture: .png or .svg."""


def _check_below(option: str, numbers: Iterable[int], end: int) -> None:
    for number in numbers:
        if not 0 <= number < end:
            raise ValueError(f"{option} {number}: expected 0 to {end - 1}")


OPTIONS: dict[str, type[PlotOptions]] = {
    "masks": MasksOptions,
    "positions": PositionsOptions,
    "schedule": ScheduleOptions,
    "smoothing": SmoothingOptions,
    "training": TrainingOptions,
    "attention": AttentionOptions,
    "alignment": AlignmentOptions,
    "beam": BeamOptions,
    "steps": StepsOptions,
    "lens": LensOptions,
    "scores": ScoresOptions,
    "heads": HeadsOptions,
    "erase": EraseOptions,
    "figure1": Figure1Options,
}
