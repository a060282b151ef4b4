"""``glassformer plot``: pictures of the parts, of a training, and of one translation."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from glassformer.cli.plot.sentence import (
    AlignmentOptions,
    AttentionOptions,
    BeamOptions,
    EraseOptions,
    Figure1Options,
    HeadsOptions,
    LensOptions,
    ScoresOptions,
    SentenceOptions,
    StepsOptions,
    check_sentence,
)

__all__ = [
    "OPTIONS",
    "MasksOptions",
    "PlotOptions",
    "PositionsOptions",
    "ScheduleOptions",
    "SmoothingOptions",
    "TrainingOptions",
    "run",
]

_NONE = "(default: none)"
_TEXT = tyro.conf.arg(metavar="TEXT", help_behavior_hint=_NONE)
_BUNDLE = tyro.conf.arg(metavar="BUNDLE", help_behavior_hint=_NONE)
_CHOSEN = tyro.conf.arg(metavar="N [N ...]", help_behavior_hint="(default: chosen by d_model)")


@dataclass(frozen=True)
class MasksOptions:
    """Who may attend to whom, in the attentions of the given sentences."""

    source: Annotated[str | None, _TEXT] = None
    """A source sentence; it gets its end symbol."""
    target: Annotated[str | None, _TEXT] = None
    """A target sentence; it gets its start symbol."""
    bundle: Annotated[Path | None, _BUNDLE] = None
    """Cut the sentences with this translator's tokenizers; without it, at white space."""
    padding: int = 2
    """Padding symbols after each sentence, as beside a longer one in a batch."""
    out: Path = Path("masks.png")
    """The picture: .png or .svg."""


@dataclass(frozen=True)
class PositionsOptions:
    """Positional encoding: lines, heatmap, similarity of positions, or embedding + position."""

    view: Literal["lines", "heatmap", "similarity", "embedding"] = "lines"
    """What to see."""
    d_model: int = 128
    """Width of the table; even."""
    length: int = 100
    """Number of positions."""
    columns: Annotated[tuple[int, ...], _CHOSEN] = ()
    """For lines: which columns."""
    position: int = 50
    """For similarity: the position that is compared with all others."""
    offset: int = 0
    """Position of the first token."""
    layout: Literal["interleaved", "halves"] = "interleaved"
    """Sines and cosines in turn (the paper), or all sines first (tensor2tensor)."""
    frequencies: Literal["paper", "tensor2tensor"] = "paper"
    """10000^(-2i/d_model), or tensor2tensor's 10000^(-i/(d_model/2-1))."""
    sentence: str = "A dog runs across the green field ."
    """For embedding: the sentence."""
    bundle: Annotated[Path | None, _BUNDLE] = None
    """For embedding: take both from this translator; without it, the embedding is random."""
    out: Path = Path("positions.png")
    """The picture: .png or .svg."""


@dataclass(frozen=True)
class ScheduleOptions:
    """The paper's learning rate over the updates, for several widths and warm-ups."""

    d_model: tuple[int, ...] = (512, 512, 256)
    """Width of each model."""
    warmup: tuple[int, ...] = (4_000, 8_000, 4_000)
    """Updates during which its rate rises; one for each d_model."""
    updates: int = 20_000
    """Where the picture ends."""
    out: Path = Path("schedule.png")
    """The picture: .png or .svg."""


@dataclass(frozen=True)
class SmoothingOptions:
    """Label smoothing: what is asked of the model, and what its confidence costs."""

    labels: tuple[int, ...] = (2, 1, 0, 3, 3)
    """A row of labels."""
    vocab_size: int = 5
    """Number of words to choose from."""
    smoothing: float = 0.1
    """Share of the probability that is spread over all words."""
    pad_id: int = 0
    """The label that asks nothing."""
    out: Path = Path("smoothing.png")
    """The picture: .png or .svg."""


@dataclass(frozen=True)
class TrainingOptions:
    """A training's loss, learning rate and validation scores."""

    run: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """The directory of a training, finished or not, or its metrics.jsonl."""
    against: Literal["updates", "minutes"] = "updates"
    """What runs along the bottom."""
    out: Path = Path("training.png")
    """The picture: .png or .svg."""


PlotOptions = (
    Annotated[MasksOptions, tyro.conf.subcommand("masks")]
    | Annotated[PositionsOptions, tyro.conf.subcommand("positions")]
    | Annotated[ScheduleOptions, tyro.conf.subcommand("schedule")]
    | Annotated[SmoothingOptions, tyro.conf.subcommand("smoothing")]
    | Annotated[TrainingOptions, tyro.conf.subcommand("training")]
    | Annotated[AttentionOptions, tyro.conf.subcommand("attention")]
    | Annotated[AlignmentOptions, tyro.conf.subcommand("alignment")]
    | Annotated[BeamOptions, tyro.conf.subcommand("beam")]
    | Annotated[StepsOptions, tyro.conf.subcommand("steps")]
    | Annotated[LensOptions, tyro.conf.subcommand("lens")]
    | Annotated[ScoresOptions, tyro.conf.subcommand("scores")]
    | Annotated[HeadsOptions, tyro.conf.subcommand("heads")]
    | Annotated[EraseOptions, tyro.conf.subcommand("erase")]
    | Annotated[Figure1Options, tyro.conf.subcommand("figure1")]
)

OPTIONS = PlotOptions


def run(options: PlotOptions) -> int:
    """Draw one picture, write it, and return the exit status 0.

    Raises:
        UsageError: an option is out of range, or the picture's name ends in neither .png nor .svg.
        InputError: matplotlib is missing, or a file or sentence cannot be used.
    """
    if isinstance(options, SentenceOptions):
        check_sentence(options)
    from glassformer.cli.plot.figures import draw
    from glassformer.inspection.plots.canvas import picture_suffix, save

    picture_suffix(options.out)  # before the work, not after it
    save(draw(options), options.out)
    print(f"wrote {options.out}")
    return 0
