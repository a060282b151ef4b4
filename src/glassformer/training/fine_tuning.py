"""The end of a fine-tuning: the mean of parent and child if it is better, and both their scores."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from glassformer.data.corpus import Pair
from glassformer.decoding.engine import SearchOptions
from glassformer.evaluation import Scores, corpus_scores
from glassformer.model.transformer import Transformer
from glassformer.training.final_bundle import beam_scores
from glassformer.training.reporting import Reporter
from glassformer.training.setup.prepare import Prepared

__all__ = ["before_and_after", "child_or_mean"]


def child_or_mean(model: Transformer, prepared: Prepared, reporter: Reporter) -> Transformer:
    """The child, or the mean of its and its parent's weights if that loses nothing.

    Without ``general`` pairs there is no mean, because nothing shows what the child has forgotten.
    The mean must have at least the child's BLEU on the validation pairs and on the general pairs,
    both translated greedily.
    """
    parent, general = prepared.parent, prepared.general
    if parent is None or not general:
        return model
    mean = _mean(model, parent.model)
    texts = [(name, pairs) for name, pairs in prepared.texts.items() if name != "test"]
    of_mean, of_child = (
        [_bleu(each, prepared, pairs) for _, pairs in texts] for each in (mean, model)
    )
    better = all(a >= b for a, b in zip(of_mean, of_child, strict=True))
    figures = "; ".join(
        f"{name} {a:.1f}, child {b:.1f}"
        for (name, _), a, b in zip(texts, of_mean, of_child, strict=True)
    )
    taken = "taken" if better else "not taken"
    reporter.note(f"mean of parent and child {taken}, greedy BLEU: {figures}")
    return mean if better else model


def before_and_after(
    model: Transformer,
    prepared: Prepared,
    scores: dict[str, Scores],
    *,
    alpha: float,
    seconds_left: Callable[[], float],
) -> dict[str, Any]:
    """The BLEU of parent and child on each text; {} without a parent.

    ``scores``: the child's, with the length penalty ``alpha``; those of general pairs are added.
    """
    parent = prepared.parent
    if parent is None:
        return {}
    texts = prepared.texts
    searches = len(texts) + ("general" in texts)
    figures = {}
    for name, pairs in texts.items():
        if name not in scores:
            engine = prepared.text_engine(model)
            seconds = seconds_left() / searches
            scores[name] = beam_scores(
                engine, prepared, pairs, length_penalty=alpha, seconds=seconds
            )
            searches -= 1
        engine = prepared.text_engine(parent.model)
        before = beam_scores(
            engine,
            prepared,
            pairs,
            length_penalty=parent.length_penalty,
            seconds=seconds_left() / searches,
        )
        searches -= 1
        figures[name] = f"BLEU {before.bleu:.2f} before, {scores[name].bleu:.2f} after"
    return figures


@torch.no_grad()
def _mean(child: Transformer, parent: Transformer) -> Transformer:
    mean = Transformer(child.config)
    weights = parent.state_dict()
    mean.load_state_dict(
        {
            name: (weight.cpu() + weights[name].cpu()) / 2
            for name, weight in child.state_dict().items()
        }
    )
    return mean.to(child.output_weight.device).eval()


def _bleu(model: Transformer, prepared: Prepared, pairs: Sequence[Pair]) -> float:
    engine = prepared.text_engine(model)
    translations = engine.translate([pair.source for pair in pairs], SearchOptions(beam=1))
    return corpus_scores(
        [translation.text for translation in translations],
        [pair.target for pair in pairs],
        language=prepared.target_language,
        quick=True,
    ).bleu
