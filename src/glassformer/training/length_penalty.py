"""The length penalty of a trained model, chosen on the validation pairs.

Section 6.1 of the paper: beam size and length penalty "were chosen after experimentation on the
development set". The rule here: the lowest alpha within 0.2 BLEU of the best one.
"""

from collections.abc import Sequence
from functools import partial

from glassformer.config import LENGTH_PENALTY
from glassformer.data.corpus import Pair
from glassformer.decoding.beam import penalty
from glassformer.decoding.engine import SearchOptions
from glassformer.decoding.protocols import Hypothesis
from glassformer.evaluation import bleu_metric
from glassformer.text_engine import TextEngine
from glassformer.training.time_limit import Deadline, in_time

__all__ = ["best_penalty"]

_TRIED = (LENGTH_PENALTY, 1.0, 1.5, 2.0)
_MARGIN = 0.2  # BLEU: a smaller gain on one set may be a loss on the next


def best_penalty(
    pairs: Sequence[Pair],
    engine: TextEngine,
    *,
    beam: int,
    language: str | None = None,
    deadline: Deadline | None = None,
) -> float:
    """The lowest alpha whose BLEU is within 0.2 of the best, of 0.6, 1, 1.5 and 2.

    The beam search runs once, with the paper's 0.6; each alpha ranks its hypotheses anew. With a
    beam of 1 there is one hypothesis: the paper's alpha. It searches as many pairs as the
    deadline allows.
    """
    if beam == 1:
        return LENGTH_PENALTY
    bleu = bleu_metric(language)

    def by_alpha(sources: list[str]) -> list[tuple[str, ...]]:
        """The translations of each source, by each alpha."""
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
        alpha: bleu.corpus_score(list(texts), [references]).score
        for alpha, texts in zip(_TRIED, zip(*translations.values(), strict=True), strict=True)
    }
    return next(alpha for alpha in _TRIED if scores[alpha] >= max(scores.values()) - _MARGIN)


def _rank(hypothesis: Hypothesis, alpha: float) -> tuple[bool, float]:
    """The order of beam search: finished first, then by the penalised log-probability."""
    length = len(hypothesis.tokens) + hypothesis.finished  # the end symbol counts
    return hypothesis.finished, hypothesis.log_probability / penalty(length, alpha)
