"""From the options of ``glassformer plot`` to the figures of one translation."""

from pathlib import Path
from typing import Any

from glassformer.alignment.align import align
from glassformer.cli.plot.sentence import (
    AlignmentOptions,
    AttentionOptions,
    BeamOptions,
    EraseOptions,
    Figure1Options,
    HeadsOptions,
    LensOptions,
    ScoresOptions,
    SearchedOptions,
    SentenceOptions,
    StepsOptions,
)
from glassformer.errors import InputError
from glassformer.inspection.plots.alignment import links_in, plot_alignment
from glassformer.inspection.plots.attention import attention_figure, plot_attention
from glassformer.inspection.plots.beam import plot_beam
from glassformer.inspection.plots.canvas import Figure
from glassformer.inspection.plots.erase import plot_erased
from glassformer.inspection.plots.figure1 import plot_figure1
from glassformer.inspection.plots.heads import plot_head_statistics
from glassformer.inspection.plots.lens import plot_lens
from glassformer.inspection.plots.scores import plot_masked_scores
from glassformer.inspection.plots.steps import plot_steps
from glassformer.inspection.trace.build import trace
from glassformer.inspection.trace.schema import Trace
from glassformer.translator import Translator

__all__ = [
    "alignment",
    "attention",
    "beam",
    "erase",
    "figure1",
    "heads",
    "lens",
    "scores",
    "steps",
]

_TOP = 8  # candidates a step


def attention(options: AttentionOptions) -> Figure:
    """Of a trace, or of a translator and whatever target is given."""
    head = _index(options.head) if isinstance(options.head, int) else options.head
    chosen: dict[str, Any] = {"part": options.part, "layer": _index(options.layer), "head": head}
    if options.trace is not None:
        return plot_attention(_read(options.trace), **chosen)
    translator, text = _translator(options), options.text or ""
    target = options.target
    if target is None:
        target = translator.translate([text])[0].text
        print(f"translation: {target}")
    return attention_figure(translator, text, target, **chosen)


def alignment(options: AlignmentOptions) -> Figure:
    """By the heads that the bundle holds for the best, unless others are asked for."""
    found = _traced(options)
    texts = found.source.text, found.target.text
    if options.trace is not None or options.layer is not None or options.head is not None:
        links = links_in(found, layer=_index(options.layer), head=_index(options.head))
    else:
        links = [*align(_translator(options), [texts[0]], [texts[1]])[0]]
    return plot_alignment(*texts, links)


def beam(options: BeamOptions) -> Figure:
    return plot_beam(
        _traced(options), first=options.first - 1, count=options.count, pruned=options.pruned
    )


def steps(options: StepsOptions) -> Figure:
    found = _traced(options, top=max(options.top, _TOP))
    return plot_steps(found, first=options.first - 1, count=options.count, top=options.top)


def lens(options: LensOptions) -> Figure:
    return plot_lens(_traced(options), first=options.first - 1, count=options.count)


def scores(options: ScoresOptions) -> Figure:
    return plot_masked_scores(
        _traced(options), part=options.part, layer=options.layer - 1, head=options.head - 1
    )


def heads(options: HeadsOptions) -> Figure:
    return plot_head_statistics(_traced(options))


def erase(options: EraseOptions) -> Figure:
    return plot_erased(_traced(options))


def figure1(options: Figure1Options) -> Figure:
    return plot_figure1(_traced(options))


def _traced(options: SearchedOptions, top: int = _TOP) -> Trace:
    """The trace that is read or made; what it leaves out is said."""
    if options.trace is not None:
        found = _read(options.trace)
    else:
        found = trace(
            _translator(options),
            options.text or "",
            beam=options.beam,
            length_penalty=options.length_penalty,
            top=top,
        )
        print(f"translation: {found.answer.text}")
    for left_out in found.bounds.left_out:
        print(left_out)
    return found


def _index(number: int | None) -> int | None:
    """The Python index of a layer or head that the command line counts from 1."""
    return None if number is None else number - 1


def _read(path: Path) -> Trace:
    try:
        return Trace.from_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    except (InputError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: {error}") from None


def _translator(options: SentenceOptions) -> Translator:
    return Translator.load(options.bundle or Path(), device="cpu")
