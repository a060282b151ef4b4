"""From the options of ``glassformer plot`` to figures; loaded only to draw one."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from glassformer.alignment.align import Heads, align
from glassformer.cli.plot.options import (
    AlignmentOptions,
    AttentionOptions,
    Figure1Options,
    MasksOptions,
    PlotOptions,
    PositionsOptions,
    ScheduleOptions,
    SearchedOptions,
    TrainingOptions,
)
from glassformer.data.tokenizer import Tokenizer
from glassformer.errors import UsageError
from glassformer.inspection.attention_of import attention_of, check_index
from glassformer.inspection.plots import masks, positions
from glassformer.inspection.plots.alignment import plot_alignment
from glassformer.inspection.plots.attention import plot_attention
from glassformer.inspection.plots.canvas import Figure
from glassformer.inspection.plots.figure1 import plot_figure1
from glassformer.inspection.plots.schedule import plot_schedule
from glassformer.inspection.plots.training_curves import plot_training
from glassformer.inspection.trace.build import trace
from glassformer.inspection.trace.schema import Trace
from glassformer.inspection.trace.subwords import token_labels
from glassformer.model.positions import TableOptions
from glassformer.translator import Translator

__all__ = ["draw"]


def draw(options: PlotOptions) -> Figure:
    """The figure for these options; UsageError names the option that does not fit."""
    return _DRAW[type(options)](options)


def _masks(options: MasksOptions) -> Figure:
    translator = _load(options.bundle) if options.bundle else None
    padding = [masks.PAD] * options.padding
    source: list[str] = []
    target: list[str] = []
    if options.source is not None:
        tokenizer = translator.source_tokenizer if translator else None
        source = [*_tokens("source", options.source, tokenizer), "</s>", *padding]
    if options.target is not None:
        tokenizer = translator.target_tokenizer if translator else None
        target = ["<s>", *_tokens("target", options.target, tokenizer), *padding]
    if not source and not target:
        raise UsageError("plot masks: give a sentence with --source, with --target, or both")
    return masks.plot_masks(source, target)


def _positions(options: PositionsOptions) -> Figure:
    size = (options.length, options.d_model)
    table = TableOptions(
        layout=options.layout, frequencies=options.frequencies, offset=options.offset
    )
    if options.view == "heatmap":
        return positions.plot_position_heatmap(*size, **table)
    columns, rows = options.columns or None, options.rows or None
    return positions.plot_position_lines(*size, columns=columns, rows=rows, **table)


def _schedule(options: ScheduleOptions) -> Figure:
    settings = list(zip(options.d_model, options.warmup, strict=True))
    return plot_schedule(settings, updates=options.updates)


def _attention(options: AttentionOptions) -> Figure:
    """The maps of a translator with the given target or its own translation."""
    head = _index(options.head) if isinstance(options.head, int) else options.head
    translator, target = _load(options.bundle), options.target
    if target is None:
        target = translator.translate([options.text])[0].text
        print(f"translation: {target}")
    attention = attention_of(translator, options.text, target, part=options.part)
    return plot_attention(attention, layer=_index(options.layer), head=head)


def _alignment(options: AlignmentOptions) -> Figure:
    """The links by the chosen layer and head, or else by the bundle's best heads."""
    seen, translator = _traced(options), _load(options.bundle)
    heads, layer, head = None, _index(options.layer), _index(options.head)
    if layer is not None or head is not None:
        config = translator.model.config
        check_index("layer", layer, config.num_decoder_layers)
        check_index("head", head, config.num_heads)
        every = Heads.of(None, config)
        chosen = every.heads if head is None else (head,)
        heads = Heads(every.layer if layer is None else layer, chosen, "output")
    [links] = align(translator, [seen.source.text], [seen.target.text], heads=heads)
    return plot_alignment(seen.source.text, seen.target.text, links)


def _traced(options: SearchedOptions) -> Trace:
    """Build the trace; print the translation, and the parts that the trace leaves out."""
    seen = trace(
        _load(options.bundle),
        options.text,
        beam=options.beam,
        length_penalty=options.length_penalty,
    )
    print(f"translation: {seen.answer.text}")
    for left_out in seen.bounds.left_out:
        print(left_out)
    return seen


def _load(bundle: Path) -> Translator:
    return Translator.load(bundle, device="cpu")


def _index(number: int | None) -> int | None:
    """The Python index of a layer or head that the command line counts from 1."""
    return None if number is None else number - 1


_DRAW: dict[type, Callable[[Any], Figure]] = {
    MasksOptions: _masks,
    PositionsOptions: _positions,
    ScheduleOptions: _schedule,
    TrainingOptions: lambda options: plot_training(options.run, against=options.against),
    AttentionOptions: _attention,
    AlignmentOptions: _alignment,
    Figure1Options: lambda options: plot_figure1(_traced(options)),
}


def _tokens(option: str, text: str, tokenizer: Tokenizer | None) -> list[str]:
    """The labels of the sentence's tokens; its words if there is no tokenizer."""
    tokens = token_labels(tokenizer, tokenizer.encode(text)) if tokenizer else text.split()
    if not tokens:
        raise UsageError(f"--{option} {text!r}: expected a sentence of at least one word")
    return tokens
