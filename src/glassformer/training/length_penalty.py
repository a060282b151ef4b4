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

__all__ = ["best_penalty"]

_TRIED = (LENGTH_PENALTY, 1.0, 1.5, 2.0)
_MARGIN = 0.2  # BLEU: a smaller gain on one set may be a loss on the next


def best_penalty(
    pairs: Sequence[Pair],
    engine: TextEngine,
    *,
    beam: int,
    language: str | None = None,
) -> float:
    """The lowest alpha whose BLEU is within 0.2 of the best, of 0.6, 1, 1.5 and 2.

    The beam search runs once, with the paper's 0.6; each alpha ranks its hypotheses anew. With a
    beam of 1 there is one hypothesis: the paper's alpha.
    """
    if beam == 1:
        return LENGTH_PENALTY
    sources = [pair.source for pair in pairs]
    rows = engine.segments(sources)
    beams = engine.search(rows, SearchOptions(beam, n_best=beam))
    references = [pair.target for pair in pairs]
    bleu = bleu_metric(language, force=True)

    def score(alpha: float) -> float:
        rank = partial(_rank, alpha=alpha)
        best = [[max(hypotheses, key=rank)] for hypotheses in beams]
        texts = [translation.text for translation in engine.translations(sources, rows, best)]
        return float(bleu.corpus_score(texts, [references]).score)

    scores = {alpha: score(alpha) for alpha in _TRIED}
    return next(alpha for alpha in _TRIED if scores[alpha] >= max(scores.values()) - _MARGIN)


def _rank(hypothesis: Hypothesis, alpha: float) -> tuple[bool, float]:
    """The order of beam search: finished first, then by the penalised log-probability."""
    length = len(hypothesis.tokens) + hypothesis.finished  # the end symbol counts
    return hypothesis.finished, hypothesis.log_probability / penalty(length, alpha)
