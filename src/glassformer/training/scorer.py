"""The scores at the end of a run, in the time that is left; the parent's after a fine-tuning."""

import copy

import torch

from glassformer.config import LENGTH_PENALTY
from glassformer.decoding.engine import SearchOptions
from glassformer.evaluation import Scores, corpus_scores
from glassformer.model.transformer import Transformer
from glassformer.training.length_penalty import best_penalty
from glassformer.training.reporting import Reporter
from glassformer.training.setup.prepare import Prepared
from glassformer.training.time_limit import Deadline, in_time

__all__ = ["Scorer", "child_or_mean", "gains", "validations_of_the_end"]


def validations_of_the_end(prepared: Prepared) -> float:
    """The estimated time after the last validation, as a number of validations."""
    mean_of_checkpoints = 1
    return mean_of_checkpoints + _cost_of_the_end(prepared) / len(prepared.valid)


class Scorer:
    """Scores models on the texts of a run: validation, test and general pairs.

    Each search gets its share of the time that is left, by the cost of all searches to come. Once
    this time is up, the pairs so far stand for all.
    """

    def __init__(self, prepared: Prepared, deadline: Deadline) -> None:
        self.prepared, self._deadline = prepared, deadline
        self.parent = prepared.start.parent
        self._to_come = _cost_of_the_end(prepared)

    def scores(
        self, model: Transformer, name: str, *, length_penalty: float, beam: int | None = None
    ) -> Scores:
        """The scores of the model's translations of a text; ``beam``: None takes the option's."""
        prepared, pairs = self.prepared, self.prepared.texts[name]
        beam = beam or prepared.config.beam
        engine = prepared.text_engine(model)
        options = SearchOptions(beam, length_penalty=length_penalty)
        texts = in_time(
            lambda sources: [each.text for each in engine.translate(sources, options)],
            [pair.source for pair in pairs],
            self._share(name, beam),
        )
        references = [pairs[place].target for place in texts]
        return corpus_scores(list(texts.values()), references, language=prepared.target_language)

    def length_penalty(self, model: Transformer) -> float:
        """The best length penalty on the validation pairs."""
        prepared, beam = self.prepared, self.prepared.config.beam
        return best_penalty(
            prepared.valid,
            prepared.text_engine(model),
            beam=beam,
            language=prepared.target_language,
            deadline=self._share("validation", beam),
        )

    def _share(self, name: str, beam: int) -> Deadline:
        """The deadline of the next search."""
        cost = len(self.prepared.texts[name]) * _cost(beam)
        share = cost / self._to_come
        self._to_come -= cost
        return self._deadline.share(share)


def child_or_mean(model: Transformer, scorer: Scorer, reporter: Reporter) -> Transformer:
    """The child, or the mean of its and its parent's weights if that loses nothing.

    Without ``general`` pairs there is no mean, because nothing shows the child's forgetting. The
    mean must have at least the child's greedy BLEU on the validation and on the general pairs.
    """
    parent = scorer.parent
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
    parent = scorer.parent
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


def _cost(beam: int) -> float:
    """The time of a search, as a number of greedy ones.

    A beam of 5 takes twice as long as a validation with its loss (measured). A little is to spare.
    """
    return (2 + beam) / 3


def _cost_of_the_end(prepared: Prepared) -> float:
    """The time of all searches of a :class:`Scorer`, as a number of greedy ones of one pair."""
    valid, test, general = map(len, (prepared.valid, prepared.test, prepared.general))
    searched, greedy = 2 * valid + test, 0  # the first search chooses the length penalty
    if prepared.start.parent is not None:
        searched += valid + test + 2 * general
        greedy = 2 * (valid + general) if general else 0
    return _cost(prepared.config.beam) * searched + greedy
