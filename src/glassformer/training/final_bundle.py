"""What a finished run adds to its weights: scores, model card, alignment heads."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from glassformer.alignment.heads import find_heads
from glassformer.bundle import Bundle
from glassformer.data.corpus import Pair
from glassformer.decoding.engine import SearchOptions
from glassformer.errors import InputError
from glassformer.evaluation import Scores, corpus_scores
from glassformer.text_engine import TextEngine
from glassformer.training.checkpoint import RunState
from glassformer.training.reporting import duration
from glassformer.training.setup.prepare import Prepared

__all__ = ["alignment_heads", "beam_scores", "model_card"]

_LONGEST_ALIGNED = 200  # characters of a side of a pair that alignment is learnt from


def beam_scores(
    engine: TextEngine, prepared: Prepared, pairs: Sequence[Pair], *, length_penalty: float
) -> Scores:
    """The scores of the beam search's translations of ``pairs``."""
    options = SearchOptions(prepared.config.beam, length_penalty=length_penalty)
    translations = engine.translate([pair.source for pair in pairs], options)
    return corpus_scores(
        [translation.text for translation in translations],
        [pair.target for pair in pairs],
        language=prepared.target_language,
    )


def model_card(
    prepared: Prepared,
    state: RunState,
    *,
    averaged: Sequence[int],
    scores: Mapping[str, Scores],
) -> dict[str, Any]:
    """The lines about data, training and scores in the bundle's README; for people to read."""
    return {
        "data": " and ".join(path.name for path in prepared.config.pairs),
        "pairs": len(prepared.packed),
        "updates": state.update,
        "trained for": duration(state.seconds),
        "weights": f"mean of the checkpoints at updates {', '.join(map(str, averaged))}",
        **{name: _shown(result) for name, result in scores.items()},
    }


def _shown(scores: Scores) -> str:
    ruler = "" if scores.paper_ruler is None else f", paper ruler {scores.paper_ruler:.2f}"
    return f"BLEU {scores.bleu:.2f} ({scores.signatures['bleu']}), chrF++ {scores.chrf:.2f}{ruler}"


def alignment_heads(bundle: Bundle, pairs: Sequence[Pair]) -> dict[str, Any] | None:
    """The heads that align words best on the pairs; None if too few words of the pairs align."""
    bundle.model.to("cpu")
    texts = [(pair.source, pair.target) for pair in pairs]
    short = [sides for sides in texts if max(map(len, sides)) <= _LONGEST_ALIGNED]
    with suppress(InputError):
        return find_heads(bundle, short).heads.as_dict()
    return None
