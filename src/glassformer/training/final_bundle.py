"""The bundle of a finished run: its weights, model card and alignment heads."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from glassformer.alignment.heads import NoAnchorsError, find_heads
from glassformer.bundle import Bundle
from glassformer.config import TextMetric
from glassformer.evaluation import Scores
from glassformer.model.transformer import Transformer
from glassformer.support.progress import duration
from glassformer.training.checkpoint import RunState
from glassformer.training.reporting import beside
from glassformer.training.setup.prepare import Prepared

__all__ = ["final_bundle", "model_card", "part_scored"]

_LONGEST_ALIGNED = 200  # characters of a side of a pair that the choice of heads uses


def final_bundle(
    model: Transformer,
    prepared: Prepared,
    card: dict[str, object],
    *,
    length_penalty: float,
    note: Callable[[str], None],
) -> Bundle:
    """The translator that a run delivers, with its model card and alignment heads.

    ``note`` gets a line if the choice of the heads fails. Pairs of too few words that align choose
    no heads.
    """
    preprocessing = prepared.preprocessing
    bundle = Bundle(
        model,
        *prepared.tokenizers,
        preprocessing.languages,
        card,
        length_penalty=length_penalty,
        normalisation=preprocessing.normalisation,
        source_lengths=preprocessing.lengths,
        trigrams=prepared.trigrams,
        parts=prepared.parts.own_model,
    )
    model.to("cpu")
    texts = [(pair.source, pair.target) for pair in prepared.valid]
    short = [sides for sides in texts if max(map(len, sides)) <= _LONGEST_ALIGNED]
    with beside("word alignment", note), suppress(NoAnchorsError):
        bundle = replace(bundle, alignment=find_heads(bundle, short).as_dict())
    return bundle


def model_card(
    prepared: Prepared,
    state: RunState,
    *,
    averaged: Sequence[int],
    scores: Mapping[str, Scores],
) -> dict[str, object]:
    """The lines about data, training and scores for a person who reads the bundle's README."""
    parent = prepared.config.parent
    return {
        **({"parent": parent.name} if parent else {}),
        "data": " and ".join(path.name for path in prepared.config.pairs),
        "pairs": len(prepared.packed),
        "updates": state.update,
        "trained for": duration(state.seconds),
        "weights": _weights(averaged),
        **{
            name: _shown(result, prepared.metric) + part_scored(prepared, name, result)
            for name, result in scores.items()
        },
    }


def part_scored(prepared: Prepared, name: str, scores: Scores) -> str:
    """A remark if the scores count only a part of the pairs, or else an empty text."""
    pairs = len(prepared.texts[name])
    if scores.sentences == pairs:
        return ""
    return f" ({scores.sentences:,} of {pairs:,} pairs, because the time was up)"


def _weights(updates: Sequence[int]) -> str:
    if len(updates) == 1:
        return f"checkpoint of update {updates[0]}"
    return f"mean of the checkpoints at updates {', '.join(map(str, updates))}"


def _shown(scores: Scores, metric: TextMetric) -> str:
    if metric == "chrf":
        signature = scores.signatures["chrf"]
        return f"chrF++ {scores.chrf:.2f} ({signature}), exact match {scores.exact_match:.1f} %"
    ruler = "" if scores.paper_ruler is None else f", paper ruler {scores.paper_ruler:.2f}"
    return f"BLEU {scores.bleu:.2f} ({scores.signatures['bleu']}), chrF++ {scores.chrf:.2f}{ruler}"
