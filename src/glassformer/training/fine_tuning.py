"""The end of a fine-tuning: the mean of parent and child if it is better, and both their scores."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from glassformer.data.corpus import Pair
from glassformer.evaluation import Scores
from glassformer.model.transformer import Transformer
from glassformer.training.final_bundle import beam_scores
from glassformer.training.reporting import Reporter
from glassformer.training.setup.prepare import Prepared

__all__ = ["before_and_after", "child_or_mean"]


def child_or_mean(
    model: Transformer,
    prepared: Prepared,
    reporter: Reporter,
    seconds_left: Callable[[], float],
) -> Transformer:
    """The child, or the mean of its and its parent's weights if that loses nothing.

    Without ``general`` pairs there is no mean, because nothing shows what the child has forgotten.
    The mean must have at least the child's BLEU on the validation pairs and on the general pairs,
    both translated greedily. The four searches get half of the time that is left.
    """
    parent, general = prepared.parent, prepared.general
    if parent is None or not general:
        return model
    mean = _mean(model, parent.model)
    figures, better, seconds = [], True, seconds_left() / 8
    for name, pairs in (("validation", prepared.valid), ("general", general)):
        of_mean, of_child = (
            beam_scores(
                prepared.text_engine(each),
                prepared,
                pairs,
                length_penalty=parent.length_penalty,
                seconds=seconds,
                beam=1,
            )
            for each in (mean, model)
        )
        alike = of_mean.sentences == of_child.sentences  # the time may cut one of them
        better = better and alike and of_mean.bleu >= of_child.bleu
        figures.append(f"{name} {of_mean.bleu:.1f}, child {of_child.bleu:.1f}")
    taken = "taken" if better else "not taken"
    reporter.note(f"mean of parent and child {taken}, greedy BLEU: {'; '.join(figures)}")
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
    searches = 2 * len(prepared.texts) - len(scores)
    seconds = seconds_left() / searches

    def scored(of: Transformer, pairs: Sequence[Pair], length_penalty: float) -> Scores:
        engine = prepared.text_engine(of)
        return beam_scores(engine, prepared, pairs, length_penalty=length_penalty, seconds=seconds)

    figures = {}
    for name, pairs in prepared.texts.items():
        if name not in scores:
            scores[name] = scored(model, pairs, alpha)
        before = scored(parent.model, pairs, parent.length_penalty)
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
