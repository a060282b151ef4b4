"""What a page without a server carries beside its trace: answers that only the model can give.

A film of the sentence over a run's checkpoints, each head off in turn, the source in another
order, and no positions. Small enough to mail; what is not in here, the page says it cannot do.
"""

import json
import random
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from glassformer.bundle import Bundle
from glassformer.inspection.ablation import changed
from glassformer.inspection.scoring import log_probabilities
from glassformer.inspection.trace.build import trace
from glassformer.inspection.trace.records import AttentionPart
from glassformer.inspection.trace.schema import Changes, Head, Trace
from glassformer.web.look.film import film

__all__ = ["stored_answers"]

_MOST_HEADS = 64  # that are switched off one by one; the paper's base model has 144


def stored_answers(bundle: Bundle, seen: Trace, directory: Path) -> dict[str, Any]:
    """What :func:`~glassformer.web.look.single_file.build_page` stores for one trace."""
    return {
        "trace": json.loads(seen.to_json()),
        "without": _without(bundle, seen),
        "changed": {
            "positions_off": _changed(bundle, seen, Changes(positions_off=True)),
            "source_order": _changed(bundle, seen, Changes(source_order=_order(seen))),
        },
        "film": film(
            bundle,
            directory,
            seen.asked.text,
            beam=seen.asked.beam,
            length_penalty=seen.asked.length_penalty,
        ),
    }


def _without(bundle: Bundle, seen: Trace) -> Mapping[str, list[float]] | None:
    """For each head by the name ``part.layer.head``: by how much each written piece changes."""
    config = bundle.model.config
    layers: dict[AttentionPart, int] = {
        "encoder": config.num_encoder_layers,
        "decoder": config.num_decoder_layers,
        "cross": config.num_decoder_layers,
    }
    heads = [
        Head(part, layer, head)
        for part, count in layers.items()
        for layer in range(count)
        for head in range(config.num_heads)
    ]
    if len(heads) > _MOST_HEADS:
        return None
    tokenizer = bundle.source_tokenizer  # a trace may leave out some of a long source
    sources = [[*tokenizer.encode(seen.asked.text), tokenizer.eos_id]]
    target = [piece.id for piece in seen.target.pieces]
    whole = log_probabilities(bundle.model, sources, target)[0]
    return {
        f"{one.part}.{one.layer}.{one.head}": (
            log_probabilities(changed(bundle.model, Changes([one])), sources, target)[0] - whole
        ).tolist()
        for one in heads
    }


def _changed(bundle: Bundle, seen: Trace, changes: Changes) -> dict[str, Any]:
    """What is read and written after a change."""
    asked = seen.asked
    other = trace(
        bundle,
        asked.text,
        beam=asked.beam,
        length_penalty=asked.length_penalty,
        changes=changes,
    )
    return {
        "source": [asdict(piece) for piece in other.source.pieces],
        "text": other.answer.text,
        "log_probability": other.answer.log_probability,
    }


def _order(seen: Trace) -> list[int]:
    """The source's pieces shuffled, the same way each time."""
    count = seen.bounds.source_pieces - 1
    return random.Random(count).sample(range(count), count)
