"""The end of a fine-tuning: the mean of parent and child if it is better, and both their scores."""

import copy

import torch

from glassformer.config import LENGTH_PENALTY
from glassformer.evaluation import Scores
from glassformer.model.transformer import Transformer
from glassformer.training.reporting import Reporter
from glassformer.training.scorer import Scorer

__all__ = ["child_or_mean", "gains"]


def child_or_mean(model: Transformer, scorer: Scorer, reporter: Reporter) -> Transformer:
    """The child, or the mean of its and its parent's weights if that loses nothing.

    Without ``general`` pairs there is no mean, because nothing shows the child's forgetting. The
    mean must have at least the child's greedy BLEU on the validation and on the general pairs.
    """
    parent = scorer.prepared.start.parent
    if parent is None or not scorer.prepared.general:
        return model
    mean = _mean(model, parent.model)
    bleus, better = [], True
    for name in ("validation", "general"):
        of_mean, of_child = (
            scorer.scores(each, name, length_penalty=LENGTH_PENALTY, beam=1)
            for each in (mean, model)
        )
        alike = of_mean.sentences == of_child.sentences  # the time may cut one of them
        better = better and alike and of_mean.bleu >= of_child.bleu
        bleus.append(f"{name} {of_mean.bleu:.1f}, child {of_child.bleu:.1f}")
    taken = "taken" if better else "not taken"
    reporter.note(f"mean of parent and child {taken}, greedy BLEU: {'; '.join(bleus)}")
    return mean if better else model


def gains(scorer: Scorer, scores: dict[str, Scores]) -> dict[str, str]:
    """The BLEU of parent and child on each text; {} without a parent. ``scores``: the child's."""
    parent = scorer.prepared.start.parent
    if parent is None:
        return {}
    before = {
        name: scorer.scores(parent.model, name, length_penalty=parent.length_penalty)
        for name in scores
    }
    return {
        name: f"BLEU {before[name].bleu:.2f} before, {scores[name].bleu:.2f} after"
        for name in scores
    }


@torch.no_grad()
def _mean(child: Transformer, parent: Transformer) -> Transformer:
    mean = copy.deepcopy(child)
    weights = parent.state_dict()
    mean.load_state_dict(
        {
            name: (weight.cpu() + weights[name].cpu()) / 2
            for name, weight in child.state_dict().items()
        }
    )
    return mean.to(child.output_weight.device).eval()
