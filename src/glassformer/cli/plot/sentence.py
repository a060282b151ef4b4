"""The options of those pictures that ``glassformer plot`` draws of one translation."""

from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from glassformer.config import BEAM, MOST_BEAM, MOST_LENGTH_PENALTY, Options

__all__ = [
    "AlignmentOptions",
    "AttentionOptions",
    "BeamOptions",
    "EraseOptions",
    "Figure1Options",
    "HeadsOptions",
    "LensOptions",
    "PlotOptions",
    "ScoresOptions",
    "SearchedOptions",
    "SentenceOptions",
    "StepsOptions",
]

_NOT_WITH_TRACE = {
    "BUNDLE": "bundle",
    "--target": "target",
    "--beam": "beam",
    "--length-penalty": "length_penalty",
}


class PlotOptions(Options):
    """A picture's options; each kind has its own default name."""

    out: Path
    """The picture: .png or .svg."""


class SentenceOptions(PlotOptions):
    """A sentence and who translates it, or a trace of both."""

    bundle: Path | None = Field(None, title="BUNDLE")
    """The directory of a trained translator."""
    text: str | None = Field(None, title="TEXT")
    """The sentence that it reads."""
    trace: Path | None = None
    """Instead of both: a trace, as Trace.to_json() writes it."""

    @model_validator(mode="after")
    def _sentence_or_trace(self) -> "SentenceOptions":
        if self.trace is not None:
            for name, field in _NOT_WITH_TRACE.items():
                if field in self.model_fields_set:
                    raise ValueError(f"--trace is a finished translation: {name} cannot be given")
        elif self.bundle is None:
            raise ValueError("give BUNDLE and TEXT, or --trace FILE")
        elif self.text is None:
            raise ValueError("TEXT is missing: the sentence to translate")
        elif not self.text.strip():
            raise ValueError("the source sentence is empty: there is no token to attend to")
        return self


class SearchedOptions(SentenceOptions):
    """The same, and how the translation is searched for."""

    beam: int = Field(BEAM, ge=1, le=MOST_BEAM)
    """Hypotheses that are followed at once, from 1 to 100."""
    length_penalty: float | None = Field(None, ge=0, le=MOST_LENGTH_PENALTY)
    """The paper's alpha (section 6.1); None: the bundle's."""


class AttentionOptions(SentenceOptions):
    """The attention of a translator for one sentence, layers by heads or one of them."""

    target: str | None = None
    """The sentence that it writes; without it, its own translation."""
    part: Literal["encoder", "decoder", "cross"] = "cross"
    """Self-attention of the encoder or the decoder, or from the decoder to the encoder."""
    layer: int | None = None
    """Only this layer, counted from 1."""
    head: int | Literal["mean"] | None = None
    """Only this head, counted from 1; or the mean of the heads."""
    out: Path = Path("attention.png")
    """The picture: .png or .svg."""


class AlignmentOptions(SearchedOptions):
    """Which source word each word of the translation was made from, as lines."""

    layer: int | None = None
    """Layer of the cross-attention, counted from 1."""
    head: int | None = None
    """One head of that layer, counted from 1."""
    out: Path = Path("alignment.png")
    """The picture: .png or .svg."""


class BeamOptions(SearchedOptions):
    """The beam search as a tree: what went on, what ended, what had no place."""

    first: int = 1
    """The first step in the picture, counted from 1."""
    count: int | None = None
    """So many steps."""
    pruned: bool = True
    """Also candidates that had no place in the beam."""
    out: Path = Path("beam.png")
    """The picture: .png or .svg."""


class StepsOptions(SearchedOptions):
    """The most probable next pieces at each step of decoding, as bars."""

    first: int = 1
    """The first step in the picture, counted from 1."""
    count: int | None = None
    """So many steps."""
    top: int = 5
    """Candidates a step."""
    out: Path = Path("steps.png")
    """The picture: .png or .svg."""


class LensOptions(SearchedOptions):
    """The layer lens: which piece each layer of the decoder would write at each step."""

    first: int = 1
    """The first step in the picture, counted from 1."""
    count: int | None = None
    """So many steps."""
    out: Path = Path("lens.png")
    """The picture: .png or .svg."""


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


class HeadsOptions(SearchedOptions):
    """What each head looks at: entropy, its own place, the place before, start and end symbols."""

    out: Path = Path("heads.png")
    """The picture: .png or .svg."""


class EraseOptions(SearchedOptions):
    """How much probability each piece of the translation loses without each source word."""

    out: Path = Path("erase.png")
    """The picture: .png or .svg."""


class Figure1Options(SearchedOptions):
    """The paper's figure 1 of a translator, with a sentence's shapes and the parameters."""

    out: Path = Path("figure1.png")
    """The picture: .png or .svg."""
