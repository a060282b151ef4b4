"""The options of those pictures that ``glassformer plot`` draws of one translation."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from glassformer.config import BEAM
from glassformer.errors import UsageError

__all__ = [
    "AlignmentOptions",
    "AttentionOptions",
    "BeamOptions",
    "EraseOptions",
    "Figure1Options",
    "HeadsOptions",
    "LensOptions",
    "ScoresOptions",
    "SearchedOptions",
    "SentenceOptions",
    "StepsOptions",
    "check_sentence",
]

_NONE = "(default: none)"
_TEXT = tyro.conf.arg(metavar="TEXT", help_behavior_hint=_NONE)
_BUNDLE = tyro.conf.arg(metavar="BUNDLE", help_behavior_hint=_NONE)
_FILE = tyro.conf.arg(metavar="FILE", help_behavior_hint=_NONE)
_BEAM = tyro.conf.arg(metavar="N", help_behavior_hint=f"(default: {BEAM})")
_PENALTY = tyro.conf.arg(metavar="X", help_behavior_hint="(default: the bundle's)")
_HEAD = tyro.conf.arg(metavar="N|mean", help_behavior_hint="(default: all)")
_CHOSEN_HEADS = tyro.conf.arg(metavar="N", help_behavior_hint="(default: what aligns best)")
_NUMBER = tyro.conf.arg(metavar="N", help_behavior_hint="(default: all)")
_NOT_WITH_TRACE = {
    "BUNDLE": "bundle",
    "--target": "target",
    "--beam": "beam",
    "--length-penalty": "length_penalty",
}


@dataclass(frozen=True)
class SentenceOptions:
    """A sentence and who translates it, or a trace of both."""

    bundle: Annotated[Path | None, tyro.conf.Positional, _BUNDLE] = None
    """The directory of a trained translator."""
    text: Annotated[str | None, tyro.conf.Positional, _TEXT] = None
    """The sentence that it reads."""
    trace: Annotated[Path | None, _FILE] = None
    """Instead of both: a trace, as Trace.to_json() writes it."""


@dataclass(frozen=True)
class SearchedOptions(SentenceOptions):
    """The same, and how the translation is searched for."""

    beam: Annotated[int | None, _BEAM] = None
    """Hypotheses that are followed at once, from 1 to 100."""
    length_penalty: Annotated[float | None, _PENALTY] = None
    """The paper's alpha (section 6.1)."""


@dataclass(frozen=True)
class AttentionOptions(SentenceOptions):
    """The attention of a translator for one sentence, layers by heads or one of them."""

    target: Annotated[str | None, _TEXT] = None
    """The sentence that it writes; without it, its own translation."""
    part: Literal["encoder", "decoder", "cross"] = "cross"
    """Self-attention of the encoder or the decoder, or from the decoder to the encoder."""
    layer: Annotated[int | None, _NUMBER] = None
    """Only this layer, counted from 1."""
    head: Annotated[int | Literal["mean"] | None, _HEAD] = None
    """Only this head, counted from 1; or the mean of the heads."""
    out: Path = Path("attention.png")
    """The picture: .png or .svg."""


@dataclass(frozen=True)
class AlignmentOptions(SearchedOptions):
    """Which source word each word of the translation was made from, as lines."""

    layer: Annotated[int | None, _CHOSEN_HEADS] = None
    """Layer of the cross-attention, counted from 1."""
    head: Annotated[int | None, _CHOSEN_HEADS] = None
    """One head of that layer, counted from 1."""
    out: Path = Path("alignment.png")
    """The picture: .png or .svg."""


@dataclass(frozen=True)
class BeamOptions(SearchedOptions):
    """The beam search as a tree: what went on, what ended, what had no place."""

    first: int = 1
    """The first step in the picture, counted from 1."""
    count: Annotated[int | None, _NUMBER] = None
    """So many steps."""
    pruned: bool = True
    """Also candidates that had no place in the beam."""
    out: Path = Path("beam.png")
    """The picture: .png or .svg."""


@dataclass(frozen=True)
class StepsOptions(SearchedOptions):
    """The most probable next pieces at each step of decoding, as bars."""

    first: int = 1
    """The first step in the picture, counted from 1."""
    count: Annotated[int | None, _NUMBER] = None
    """So many steps."""
    top: int = 5
    """Candidates a step."""
    out: Path = Path("steps.png")
    """The picture: .png or .svg."""


@dataclass(frozen=True)
class LensOptions(SearchedOptions):
    """The layer lens: which piece each layer of the decoder would write at each step."""

    first: int = 1
    """The first step in the picture, counted from 1."""
    count: Annotated[int | None, _NUMBER] = None
    """So many steps."""
    out: Path = Path("lens.png")
    """The picture: .png or .svg."""


@dataclass(frozen=True)
class ScoresOptions(SearchedOptions):
    """The scores of one head before and after the mask, and the weights that they become."""

    part: Literal["encoder", "decoder", "cross"] = "decoder"
    """Self-attention of the encoder or the decoder, or from the decoder to the encoder."""
    layer: int = 1
    """Layer, counted from 1."""
    head: int = 1
    """Head, counted from 1."""
    out: Path = Path("scores.png")
    """The picture: .png or .svg."""


@dataclass(frozen=True)
class HeadsOptions(SearchedOptions):
    """What each head looks at: entropy, its own place, the place before, start and end symbols."""

    out: Path = Path("heads.png")
    """The picture: .png or .svg."""


@dataclass(frozen=True)
class EraseOptions(SearchedOptions):
    """How much probability each piece of the translation loses without each source word."""

    out: Path = Path("erase.png")
    """The picture: .png or .svg."""


@dataclass(frozen=True)
class Figure1Options(SearchedOptions):
    """The paper's figure 1 of a translator, with a sentence's shapes and the parameters."""

    out: Path = Path("figure1.png")
    """The picture: .png or .svg."""


def check_sentence(options: SentenceOptions) -> None:
    """A translator with a sentence, or a trace, and not both; UsageError otherwise."""
    if options.trace is None:
        if options.bundle is None:
            raise UsageError("give BUNDLE and TEXT, or --trace FILE")
        if options.text is None:
            raise UsageError("TEXT is missing: the sentence that is translated")
        if not options.text.strip():
            raise UsageError("the source sentence is empty: there is no token to attend to")
        return
    said = [
        name for name, field in _NOT_WITH_TRACE.items() if getattr(options, field, None) is not None
    ]
    if said:
        raise UsageError(f"--trace holds a translation that was made: {said[0]} cannot be given")
