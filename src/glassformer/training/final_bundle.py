"""The end of a run: the bundle with model card and alignment heads, and the last report."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from glassformer.alignment.heads import NoAnchorsError, find_heads
from glassformer.bundle import Bundle
from glassformer.config import TextMetric
from glassformer.evaluation import Scores
from glassformer.support.progress import duration
from glassformer.training.loop import Trainer
from glassformer.training.reporting import beside
from glassformer.training.setup.prepare import Prepared
from glassformer.training.time_budget import TimedPace

__all__ = ["final_bundle", "model_card", "report_end"]

_LONGEST_ALIGNED = 200  # characters of a side of a pair that the choice of heads uses
# 200 updates of the tiny model on 4,000 pairs of Multi30k reach BLEU 2.8 and chrF++ 21.
_WORTHLESS: dict[TextMetric, float] = {"bleu": 5.0, "chrf": 20.0}


def final_bundle(trainer: Trainer, card: dict[str, object], *, length_penalty: float) -> Bundle:
    """The translator that a run delivers, with its model card and alignment heads.

    If too few words of the validation pairs align, the bundle has no heads.
    """
    prepared, preprocessing = trainer.prepared, trainer.prepared.preprocessing
    bundle = Bundle(
        trainer.model.to("cpu"),
        *prepared.tokenizers,
        preprocessing.languages,
        card,
        length_penalty=length_penalty,
        normalisation=preprocessing.normalisation,
        source_lengths=preprocessing.lengths,
        known=preprocessing.known,
        trigrams=prepared.trigrams,
        parts=prepared.parts.own_model,
    )
    texts = [(pair.source, pair.target) for pair in prepared.valid]
    short = [sides for sides in texts if max(map(len, sides)) <= _LONGEST_ALIGNED]
    with beside("word alignment", trainer.reporter.note), suppress(NoAnchorsError):
        bundle = replace(bundle, alignment=find_heads(bundle, short).as_dict())
    return bundle


def model_card(
    trainer: Trainer, *, averaged: Sequence[int], scores: Mapping[str, Scores]
) -> dict[str, object]:
    """The lines about data, training and scores for a person who reads the bundle's README."""
    prepared, state, parent = trainer.prepared, trainer.state, trainer.config.parent
    return {
        **({"parent": parent.name} if parent else {}),
        "data": " and ".join(path.name for path in prepared.config.pairs),
        "pairs": len(prepared.packed),
        "updates": state.update,
        "trained for": duration(state.seconds),
        "weights": _weights(averaged),
        **{
            name: _shown(result, prepared.metric) + _part_scored(prepared, name, result)
            for name, result in scores.items()
        },
    }


def report_end(trainer: Trainer, alpha: float, scores: dict[str, Scores]) -> None:
    """Note how the run ended."""
    config, note = trainer.config, trainer.reporter.note
    parts = {name: _part_scored(trainer.prepared, name, scores[name]) for name in scores}
    if config.beam > 1 and scores:
        note(f"length penalty {alpha:g}: chosen on the validation pairs{parts['validation']}")
    for name, result in scores.items():
        note(f"{name}, beam {config.beam}{parts[name]}:\n{result}")
    note(f"bundle: {config.run}")
    if isinstance(trainer.pace, TimedPace):
        note(trainer.pace.summary())
        updates, enough = trainer.state.update, config.warmup or 0  # a model learns little before
        metric = trainer.prepared.metric
        worthless = scores and getattr(scores["validation"], metric) < _WORTHLESS[metric]
        if worthless and updates < enough:
            note(
                f"this translator is worthless: {updates:,} updates are too few to learn from;"
                f" {trainer.pace.minutes_for(enough)} minutes would be enough for {enough:,} here"
            )


def _part_scored(prepared: Prepared, name: str, scores: Scores) -> str:
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
