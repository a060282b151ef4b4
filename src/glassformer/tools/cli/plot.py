"""``glassformer plot``: pictures of the parts, of a training, and of one translation.

A class of options draws its picture. ``draw`` imports torch and matplotlib; ``--help`` does not.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, model_validator

from glassformer.config import BEAM, MOST_BEAM, MOST_LENGTH_PENALTY, Frequencies, Layout, Options
from glassformer.support.errors import UsageError
from glassformer.support.files import check_output

if TYPE_CHECKING:
    from glassformer.data.tokenizer import Tokenizer
    from glassformer.tools.inspection.plots.canvas import Figure
    from glassformer.tools.inspection.trace.schema import Trace
    from glassformer.translator import Translator

__all__ = ["OPTIONS", "PlotOptions", "run"]

_LONGEST = 5_000  # positions, columns or words; a picture holds no more
Width = Annotated[int, Field(ge=1, le=10**9)]
Part = Literal["encoder", "decoder", "cross"]


class PlotOptions(Options, ABC):
    """The options of a picture."""

    out: Path | None = None
    """File of the picture, .png or .svg. None takes the kind as name, such as masks.png."""

    @abstractmethod
    def draw(self) -> Figure:
        """The figure for these options; UsageError names the option that does not fit."""


class MasksOptions(PlotOptions):
    """The masks of the given sentences, which show the keys that each query may attend to."""

    source: str | None = None
    """A source sentence; the command adds the end symbol."""
    target: str | None = None
    """A target sentence; the command adds the start symbol."""
    bundle: Path | None = None
    """Cut the sentences by this translator's tokenizers; None cuts them at white space."""
    padding: int = Field(2, ge=0, le=500)
    """Number of padding symbols after each sentence, as in a batch with a longer sentence."""

    def draw(self) -> Figure:
        from glassformer.tools.inspection.plots.tensors import PAD, plot_mask

        tokenizers = _load(self.bundle).tokenizers if self.bundle else (None, None)
        padding = [PAD] * self.padding
        source: list[str] = []
        target: list[str] = []
        if self.source is not None:
            source = [*_tokens("source", self.source, tokenizers[0]), "</s>", *padding]
        if self.target is not None:
            target = ["<s>", *_tokens("target", self.target, tokenizers[1]), *padding]
        if not source and not target:
            raise UsageError("plot masks: give a sentence with --source, with --target, or both")
        return plot_mask(source=source, target=target)


class PositionsOptions(PlotOptions):
    """Positional encoding, as lines or as a heatmap."""

    view: Literal["lines", "heatmap"] = "lines"
    """The picture to draw."""
    d_model: int = Field(128, ge=2, le=_LONGEST, multiple_of=2)
    """Width of the table, an even number."""
    length: int = Field(100, ge=1, le=_LONGEST)
    """Number of positions."""
    columns: tuple[int, ...] = ()
    """Columns to draw with --view lines, from 0. Without columns, the command chooses four."""
    rows: tuple[int, ...] = ()
    """Rows to draw in place of columns, from 0. A row is the vector of one position."""
    apart: float = Field(0, ge=0, le=1_000)
    """Distance between a curve and the next, such as 2, so that the curves do not overlap."""
    offset: int = Field(0, ge=0, le=1_000_000)
    """Position of the first token."""
    layout: Layout = "interleaved"
    """Order of the columns: sines and cosines in turn (paper), or sines first (tensor2tensor)."""
    frequencies: Frequencies = "paper"
    """Frequencies: 10000^(-2i/d_model), or tensor2tensor's 10000^(-i/(d_model/2-1))."""

    def draw(self) -> Figure:
        from glassformer.model.positions import sinusoidal_positions
        from glassformer.tools.inspection.plots.tensors import plot_positions, wave_columns

        options = self.model_dump(include={"layout", "frequencies", "offset"})
        table = sinusoidal_positions(self.length, self.d_model, **options)
        columns, rows = self.columns or None, self.rows or None
        if self.view == "heatmap" and (columns or rows):
            raise UsageError("a heatmap has all columns and rows: leave --columns and --rows out")
        if self.view == "lines" and not (columns or rows):
            columns = tuple(wave_columns(self.d_model, self.layout))
        positions = range(self.offset, self.offset + self.length)
        figure = plot_positions(
            table,
            labels=None if rows else positions,
            columns=columns,
            rows=rows,
            apart=self.apart,
        )
        named = ", ".join(f"{name} {value}" for name, value in options.items())
        figure.suptitle(f"{figure.get_suptitle()}, {named}")
        return figure


class ScheduleOptions(PlotOptions):
    """The paper's learning rate over the updates, for several widths and warm-ups."""

    d_model: tuple[Width, ...] = Field((512, 512, 256), min_length=1)
    """Width of each model."""
    warmup: tuple[Width, ...] = (4_000, 8_000, 4_000)
    """Number of warm-up updates, in which the rate rises, for each d_model."""
    updates: int = Field(20_000, ge=2, le=10**9)
    """The last update in the picture."""

    @model_validator(mode="after")
    def _in_pairs(self) -> ScheduleOptions:
        if len(self.warmup) != len(self.d_model):
            raise ValueError(
                f"--warmup has {len(self.warmup)} values and --d-model {len(self.d_model)}:"
                " give one for each"
            )
        return self

    def draw(self) -> Figure:
        from glassformer.tools.inspection.plots.schedule import plot_schedule

        settings = list(zip(self.d_model, self.warmup, strict=True))
        return plot_schedule(settings, updates=self.updates)


class TrainingOptions(PlotOptions):
    """One training's loss, learning rate and validation scores, or several trainings' losses.

    Several runs, such as runs with different seeds, also get a table of final scores.
    """

    runs: tuple[Path, ...] = Field(min_length=1, title="RUN [RUN ...]")
    """Directories of trainings, finished or not, or their metrics.jsonl."""

    def draw(self) -> Figure:
        from glassformer.tools.inspection.plots.training_curves import (
            plot_losses,
            plot_training,
            read_metrics,
            score_table,
        )

        if len(self.runs) == 1:
            return plot_training(self.runs[0])
        records = {str(run): read_metrics(run) for run in self.runs}
        print(score_table(records))
        return plot_losses(records)


class SentenceOptions(PlotOptions, ABC):
    """A translator and a sentence."""

    bundle: Path = Field(title="BUNDLE")
    """Directory of a trained translator."""
    text: str = Field(title="TEXT")
    """The source sentence."""

    @model_validator(mode="after")
    def _has_a_sentence(self) -> SentenceOptions:
        if not self.text.strip():
            raise ValueError("the source sentence is empty: there is no token to attend to")
        return self


class SearchedOptions(SentenceOptions, ABC):
    """A translator and a sentence, and the options of the search."""

    beam: int = Field(BEAM, ge=1, le=MOST_BEAM)
    """Hypotheses of the beam search; 1 means greedy search."""
    length_penalty: float | None = Field(None, ge=0, le=MOST_LENGTH_PENALTY)
    """The paper's alpha (section 6.1); None means the bundle's alpha."""

    def traced(self, translator: Translator) -> Trace:
        """Build the trace; print the translation, and the parts that the trace leaves out."""
        from glassformer.tools.inspection.trace.build import trace
        from glassformer.tools.inspection.trace.schema import Query

        record = trace(translator, Query(self.text, self.length_penalty, beam=self.beam))
        print(f"translation: {record.answer.text}")
        for left_out in record.bounds.left_out:
            print(left_out)
        return record


class AttentionOptions(SentenceOptions):
    """The attention maps of one sentence, in all layers and heads or in one."""

    target: str | None = None
    """The target sentence; None means the translator's own translation."""
    part: Part = "cross"
    """Kind of attention: self-attention of encoder or decoder, or cross-attention."""
    layer: int | None = None
    """Number of the only layer to draw, from 1; None means all layers."""
    head: int | Literal["mean"] | None = None
    """Number of the only head to draw, from 1, or the mean of the heads; None means all heads."""

    def draw(self) -> Figure:
        from glassformer.tools.inspection.attention_of import attention_of
        from glassformer.tools.inspection.plots.attention import plot_attention_of

        translator, target = _load(self.bundle), self.target
        if target is None:
            target = translator.translate([self.text])[0].text
            print(f"translation: {target}")
        attention = attention_of(translator, self.text, target, part=self.part)
        head = _index(self.head) if isinstance(self.head, int) else self.head
        return plot_attention_of(attention, layer=_index(self.layer), head=head)


class AlignmentOptions(SearchedOptions):
    """Word alignment, with lines from each source word to the aligned target words."""

    layer: int | None = None
    """Layer of the cross-attention, from 1; None means the best layer for alignment."""
    head: int | None = None
    """Head of the cross-attention layer, from 1; None means the best head for alignment."""

    def draw(self) -> Figure:
        from glassformer.alignment.align import Heads, align
        from glassformer.tools.inspection.attention_of import check_index
        from glassformer.tools.inspection.plots.alignment import plot_alignment

        translator = _load(self.bundle)
        record = self.traced(translator)
        heads, layer, head = None, _index(self.layer), _index(self.head)
        if layer is not None or head is not None:
            config = translator.model.config
            check_index("layer", layer, config.num_decoder_layers)
            check_index("head", head, config.num_heads)
            every = Heads.of(None, config)
            chosen = every.heads if head is None else (head,)
            heads = Heads(every.layer if layer is None else layer, chosen, "output")
        source, target = record.source.text, record.target.text
        [links] = align(translator.bundle, [source], [target], heads=heads)
        return plot_alignment(source, target, links)


class Figure1Options(SearchedOptions):
    """The paper's figure 1 for a translator, with tensor shapes for a sentence and parameters."""

    def draw(self) -> Figure:
        from glassformer.tools.inspection.plots.figure1 import plot_figure1

        return plot_figure1(self.traced(_load(self.bundle)))


OPTIONS: dict[str, type[PlotOptions]] = {
    "masks": MasksOptions,
    "positions": PositionsOptions,
    "schedule": ScheduleOptions,
    "training": TrainingOptions,
    "attention": AttentionOptions,
    "alignment": AlignmentOptions,
    "figure1": Figure1Options,
}


def run(options: PlotOptions) -> int:
    """Draw one picture and write it; the exit status is 0.

    Raises:
        UsageError: an option is out of range, or the file name ends in neither .png nor .svg.
        InputError: matplotlib is missing, or a file or sentence cannot be used.
    """
    from glassformer.tools.inspection.plots.canvas import picture_suffix, save

    [name] = [name for name, kind in OPTIONS.items() if isinstance(options, kind)]
    out = options.out or Path(f"{name}.png")
    picture_suffix(out)
    check_output("--out", out)
    save(options.draw(), out)
    print(f"wrote {out}")
    return 0


def _load(bundle: Path) -> Translator:
    from glassformer.translator import Translator

    return Translator.load(bundle, device="cpu")


def _tokens(option: str, text: str, tokenizer: Tokenizer | None) -> list[str]:
    """The labels of the sentence's tokens, or the sentence's words without a tokenizer."""
    from glassformer.tools.inspection.trace.subwords import token_labels

    tokens = token_labels(tokenizer, tokenizer.encode(text)) if tokenizer else text.split()
    if not tokens:
        raise UsageError(f"--{option} {text!r}: expected a sentence of at least one word")
    return tokens


def _index(number: int | None) -> int | None:
    """The Python index of a layer or head that the command line counts from 1."""
    return None if number is None else number - 1
