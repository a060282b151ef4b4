"""The training film: one sentence, translated with all weights that a run has kept in turn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from glassformer.bundle import Bundle, load_tensors, load_weights
from glassformer.config import BEAM
from glassformer.data.terms import NO_TERMS, Terms
from glassformer.inspection.trace.array_codec import encode_array
from glassformer.inspection.trace.build import trace
from glassformer.inspection.trace.schema import Trace
from glassformer.model.transformer import Transformer
from glassformer.training.early_weights import kept_weights

__all__ = ["film"]

_MAX_FRAMES = 24  # of more weights the film takes an even selection


def film(
    bundle: Bundle,
    run_directory: Path,
    text: str,
    *,
    beam: int = BEAM,
    length_penalty: float | None = None,
    glossary: Terms = NO_TERMS,
) -> list[dict[str, Any]]:
    """One frame for each kept update of the run, oldest first; [] if it has none.

    A frame has the ``update``, the translation's ``text``, ``log_probability`` and ``pieces``, and
    ``weights``: the cross-attention from the pieces to the source, mean of all layers and heads.
    """
    kept = list(kept_weights(run_directory).items())
    step = max(1, -(-len(kept) // _MAX_FRAMES))

    def traced(bundle: Bundle) -> Trace:
        return trace(bundle, text, beam=beam, length_penalty=length_penalty, glossary=glossary)

    return [
        {"update": update, **_frame(bundle, path, traced)} for update, path in kept[::-step][::-1]
    ]


def _frame(bundle: Bundle, path: Path, traced: Callable[[Bundle], Trace]) -> dict[str, Any]:
    model = Transformer(bundle.model.config)
    load_weights(model, load_tensors(path), path)
    model.to(bundle.model.output_weight.device).eval().requires_grad_(False)
    frame = traced(replace(bundle, model=model))
    maps = [
        torch.from_numpy(attention.weights.array()).mean(dim=0)
        for attention in frame.attention
        if attention.part == "cross"
    ]
    return {
        "text": frame.answer.text,
        "log_probability": frame.answer.log_probability,
        "pieces": [asdict(piece) for piece in frame.target.pieces],
        "weights": asdict(encode_array(torch.stack(maps).mean(dim=0), "u8")),
    }
