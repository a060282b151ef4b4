"""The length penalty and the scores at the end of a run, within the remaining time.

Section 6.1 of the paper: beam size and length penalty "were chosen after experimentation on the
development set". This module chooses the lowest alpha within 0.2 points of the best score.
"""

from collections.abc import Sequence
from functools import partial
from operator import attrgetter

from sacrebleu.metrics.base import Metric

from glassformer.config import LENGTH_PENALTY
from glassformer.data.corpus import Pair
from glassformer.decoding.beam import penalty
from glassformer.decoding.engine import SearchOptions
from glassformer.decoding.protocols import Hypothesis
from glassformer.evaluation import METRIC_NAMES, Scores, corpus_scores, new_metric
from glassformer.model.transformer import Transformer
from glassformer.text_engine import TextEngine
from glassformer.training.setup.prepare import Prepared
from glassformer.training.time_limit import Deadline, in_time

__all__ = ["Scorer", "best_penalty", "validations_of_the_end"]

_TRIED = (LENGTH_PENALTY, 1.0, 1.5, 2.0)
_MARGIN = 0.2  # of BLEU or chrF++: a smaller gain on one set may be a loss on the next


def validations_of_the_end(prepared: Prepared) -> float:
    """The estimated time of the work after the last validation, as a number of validations.

    By measurement, a beam of 5 takes twice as long as a validation. The estimate adds a reserve.
    """
    mean_of_checkpoints = 1
    search = (2 + prepared.config.beam) / 3
    return mean_of_checkpoints + search * _searched(prepared) / len(prepared.valid)


class Scorer:
    """Scores models on the texts of a run: validation, test and general pairs.

    A search gets a share of the remaining time in proportion to its share of the remaining pairs.
    When the search's time is up, its score counts only the pairs that the search has reached.
    """

    def __init__(self, prepared: Prepared, deadline: Deadline) -> None:
        self._prepared, self._deadline = prepared, deadline
        self._to_come = _searched(prepared)

    def length_penalty(self, model: Transformer) -> float:
        """The best length penalty on the validation pairs."""
        prepared = self._prepared
        return best_penalty(
            prepared.valid,
            prepared.text_engine(model),
            beam=prepared.config.beam,
            metric=new_metric(prepared.metric, prepared.target_language),
            deadline=self._share(len(prepared.valid)),
        )

    def scores(self, model: Transformer, *, length_penalty: float) -> dict[str, Scores]:
        """The scores of the model's translations, with the names of the texts as keys."""
        prepared, engine = self._prepared, self._prepared.text_engine(model)
        options = SearchOptions(prepared.config.beam, length_penalty=length_penalty)
        scores = {}
        for name, pairs in prepared.texts.items():
            texts = in_time(
                lambda sources: [each.text for each in engine.translate(sources, options)],
                [pair.source for pair in pairs],
                self._share(len(pairs)),
            )
            references = [pairs[place].target for place in texts]
            language = prepared.target_language
            scores[name] = corpus_scores(list(texts.values()), references, language=language)
        return scores

    def gains(self, scores: dict[str, Scores]) -> dict[str, str]:
        """The scores of the parent and of the child (``scores``) as text; {} without a parent."""
        parent = self._prepared.start.parent_anew()
        if parent is None:
            return {}
        before = self.scores(parent.model, length_penalty=parent.length_penalty)
        metric = self._prepared.metric
        score, metric_name = attrgetter(metric), METRIC_NAMES[metric]
        return {
            name: f"{metric_name} {score(before[name]):.2f} before, {score(after):.2f} after"
            for name, after in scores.items()
        }

    def _share(self, pairs: int) -> Deadline:
        """The deadline of the next search."""
        share = pairs / self._to_come
        self._to_come -= pairs
        return self._deadline.share(share)


def _searched(prepared: Prepared) -> int:
    """The number of pairs in all searches of a :class:`Scorer`, the length penalty's included."""
    models = 2 if prepared.start.parent else 1
    return len(prepared.valid) + models * sum(map(len, prepared.texts.values()))


def best_penalty(
    pairs: Sequence[Pair],
    engine: TextEngine,
    *,
    beam: int,
    metric: Metric,
    deadline: Deadline | None = None,
) -> float:
    """The lowest alpha whose score is within 0.2 of the best, of 0.6, 1, 1.5 and 2.

    The beam search runs once, with the paper's 0.6, and each alpha ranks the hypotheses anew. With
    a beam of 1, and so one hypothesis, the function returns the paper's alpha. The search
    translates as many pairs as the deadline allows.
    """
    if beam == 1:
        return LENGTH_PENALTY

    def by_alpha(sources: list[str]) -> list[tuple[str, ...]]:
        """The translations of each source, one for each alpha."""
        rows = engine.segments(sources)
        beams = engine.search(rows, SearchOptions(beam, n_best=beam))
        ranked = []
        for alpha in _TRIED:
            rank = partial(_rank, alpha=alpha)
            best = [[max(hypotheses, key=rank)] for hypotheses in beams]
            ranked.append([t.text for t in engine.translations(sources, rows, best)])
        return list(zip(*ranked, strict=True))

    translations = in_time(by_alpha, [pair.source for pair in pairs], deadline)
    references = [pairs[place].target for place in translations]
    scores = {
        alpha: metric.corpus_score(list(texts), [references]).score
        for alpha, texts in zip(_TRIED, zip(*translations.values(), strict=True), strict=True)
    }
    return next(alpha for alpha in _TRIED if scores[alpha] >= max(scores.values()) - _MARGIN)


def _rank(hypothesis: Hypothesis, alpha: float) -> tuple[bool, float]:
    """The key of beam search, which prefers finished hypotheses, then penalised probability."""
    length = len(hypothesis.tokens) + hypothesis.finished  # the end symbol counts
    return hypothesis.finished, hypothesis.log_probability / penalty(length, alpha)
