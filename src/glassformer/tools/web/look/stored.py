"""The model's answers for a page without a server.

The answers are the trace, and further answers with each head off, a reordered source, or no
positions. The page disables all other questions.
"""

import json
import random
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from glassformer.bundle import Bundle
from glassformer.tools.inspection.ablation import changed
from glassformer.tools.inspection.scoring import log_probabilities
from glassformer.tools.inspection.trace.build import trace
from glassformer.tools.inspection.trace.schema import Changes, Head, Query, Trace

__all__ = ["stored_answers"]

_MAX_HEADS = 64  # each head costs one pass of the model; the paper's base model has 144


def stored_answers(bundle: Bundle, traced: Trace) -> dict[str, Any]:
    """The ``stored`` of :func:`.single_file.build_page` for one trace."""
    count = traced.bounds.source_pieces - 1
    order = random.Random(count).sample(range(count), count)  # seeded by the length
    return {
        "trace": json.loads(traced.to_json()),
        "without": _without(bundle, traced),
        "changed": {
            "positions_off": _changed(bundle, traced, Changes(positions_off=True)),
            "source_order": _changed(bundle, traced, Changes(source_order=order)),
        },
    }


def _without(bundle: Bundle, traced: Trace) -> Mapping[str, list[float]] | None:
    """The change of each target piece's log-probability without a head ``part.layer.head``.

    None if the model has too many heads.
    """
    heads = [
        Head(attention.part, attention.layer, head)
        for attention in traced.attention
        for head in range(bundle.model.config.num_heads)
    ]
    if len(heads) > _MAX_HEADS:
        return None
    tokenizer = bundle.source_tokenizer  # a trace leaves out some pieces of a long source
    sources = [[*tokenizer.encode(traced.asked.text), tokenizer.eos_id]]
    target = [piece.id for piece in traced.target.pieces]
    whole = log_probabilities(bundle.model, sources, target)[0]
    return {
        f"{head.part}.{head.layer}.{head.head}": (
            log_probabilities(changed(bundle.model, Changes([head])), sources, target)[0] - whole
        ).tolist()
        for head in heads
    }


def _changed(bundle: Bundle, traced: Trace, changes: Changes) -> dict[str, Any]:
    """The source and its translation after a change."""
    asked = traced.asked
    question = Query(asked.text, asked.length_penalty, beam=asked.beam, changes=changes)
    other = trace(bundle, question)
    return {
        "source": [asdict(piece) for piece in other.source.pieces],
        "text": other.answer.text,
        "log_probability": other.answer.log_probability,
    }
