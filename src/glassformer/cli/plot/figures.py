"""From the options of ``glassformer plot`` to its figures; loaded only when one is drawn."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from glassformer.cli.plot import traces as plot_traces
from glassformer.cli.plot.options import (
    MasksOptions,
    PositionsOptions,
    ScheduleOptions,
    SmoothingOptions,
    TrainingOptions,
)
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
from glassformer.data.tokenizer import Tokenizer
from glassformer.errors import UsageError
from glassformer.inspection.plots import masks, positions
from glassformer.inspection.plots.canvas import Figure
from glassformer.inspection.plots.schedule import plot_label_smoothing, plot_schedule
from glassformer.inspection.plots.training_curves import plot_training
from glassformer.inspection.trace.subwords import token_labels
from glassformer.model.positions import PositionalEncoding, sinusoidal_positions
from glassformer.translator import Translator

__all__ = ["draw"]


def draw(options: PlotOptions) -> Figure:
    """The figure of one kind of options; an error names the option that cannot be used."""
    return _DRAW[type(options)](options)


def _masks(options: MasksOptions) -> Figure:
    translator = _translator(options.bundle) if options.bundle else None
    padding = [masks.PAD] * options.padding
    source = target = None
    if options.source is not None:
        words = _tokens(
            "source", options.source, translator.source_tokenizer if translator else None
        )
        source = [*words, "</s>", *padding]
    if options.target is not None:
        words = _tokens(
            "target", options.target, translator.target_tokenizer if translator else None
        )
        target = ["<s>", *words, *padding]
    if source and target:
        return masks.plot_masks(source, target)
    if source:
        return masks.plot_source_mask(source)
    if target:
        return masks.plot_target_mask(target)
    raise UsageError("plot masks: give a sentence with --source, with --target, or both")


def _positions(options: PositionsOptions) -> Figure:
    table: Any = {"layout": options.layout, "frequencies": options.frequencies}
    size = (options.length, options.d_model)
    if options.view == "lines":
        columns = options.columns or None
        return positions.plot_position_lines(*size, columns=columns, offset=options.offset, **table)
    if options.view == "heatmap":
        return positions.plot_position_heatmap(*size, offset=options.offset, **table)
    if options.view == "similarity":
        return positions.plot_position_similarity(options.position, *size, **table)
    embedded, rows, labels = _embedding_and_positions(options)
    return positions.plot_embedding_plus_position(embedded, rows, labels=labels)


def _embedding_and_positions(
    options: PositionsOptions,
) -> tuple[torch.Tensor, torch.Tensor, list[str]]:
    """``(len, d_model)`` each, and the tokens: a bundle's own, or random and sinusoidal."""
    if options.bundle is None:
        labels = _tokens("sentence", options.sentence, None)
        drawn = torch.randn(
            len(labels), options.d_model, generator=torch.Generator().manual_seed(1)
        )
        rows = sinusoidal_positions(
            *drawn.shape,
            layout=options.layout,
            frequencies=options.frequencies,
            offset=options.offset,
        )
        return drawn, rows, labels
    translator = _translator(options.bundle)
    model, tokenizer = translator.model, translator.source_tokenizer
    labels = _tokens("sentence", options.sentence, tokenizer)
    if len(labels) > model.config.max_length:
        raise UsageError(
            f"--sentence has {len(labels)} tokens and the model reads"
            f" {model.config.max_length} at most: shorten it"
        )
    encoding = next(
        part for part in model.source_positions.modules() if isinstance(part, PositionalEncoding)
    )
    with torch.no_grad():
        ids = torch.tensor([tokenizer.encode(options.sentence)])
        embedded = model.source_embedding(ids)
        return embedded[0], encoding(torch.zeros_like(embedded))[0], labels


def _schedule(options: ScheduleOptions) -> Figure:
    pairs = list(zip(options.d_model, options.warmup, strict=True))
    return plot_schedule(pairs, updates=options.updates)


def _smoothing(options: SmoothingOptions) -> Figure:
    return plot_label_smoothing(
        options.labels,
        vocab_size=options.vocab_size,
        smoothing=options.smoothing,
        pad_id=options.pad_id,
    )


def _training(options: TrainingOptions) -> Figure:
    return plot_training(options.run, against=options.against)


_DRAW: dict[type, Callable[[Any], Figure]] = {
    MasksOptions: _masks,
    PositionsOptions: _positions,
    ScheduleOptions: _schedule,
    SmoothingOptions: _smoothing,
    TrainingOptions: _training,
    AttentionOptions: plot_traces.attention,
    AlignmentOptions: plot_traces.alignment,
    BeamOptions: plot_traces.beam,
    StepsOptions: plot_traces.steps,
    LensOptions: plot_traces.lens,
    ScoresOptions: plot_traces.scores,
    HeadsOptions: plot_traces.heads,
    EraseOptions: plot_traces.erase,
    Figure1Options: plot_traces.figure1,
}


def _translator(bundle: Path) -> Translator:
    return Translator.load(bundle, device="cpu")


def _tokens(option: str, text: str, tokenizer: Tokenizer | None) -> list[str]:
    """The sentence's tokens to read; words where there is no tokenizer."""
    tokens = token_labels(tokenizer, tokenizer.encode(text)) if tokenizer else text.split()
    if not tokens:
        raise UsageError(f"--{option} {text!r}: expected a sentence of at least one word")
    return tokens
