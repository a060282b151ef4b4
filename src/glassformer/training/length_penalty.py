"""The length penalty that suits a trained model, chosen on the validation pairs.

Section 6.1 of the paper: beam size and length penalty "were chosen after experimentation on the
development set". Its 0.6 is the first of those that are tried here; a higher one must score better
by more than chance, because what the highest gains on one set it may lose on the next.
"""

from collections.abc import Sequence
from functools import partial

from glassformer.config import LENGTH_PENALTY
from glassformer.data.corpus import Pair
from glassformer.data.tokenizer import Tokenizer
from glassformer.decoding.beam import beam_search, penalty
from glassformer.decoding.protocols import Hypothesis, Vocabulary
from glassformer.evaluation import bleu_metric
from glassformer.model.transformer import Transformer
from glassformer.significance import bleu_p_values
from glassformer.training.validation import searched, texts_of

__all__ = ["best_penalty"]

_TRIED = (LENGTH_PENALTY, 1.0, 1.5, 2.0)
_CHANCE = 0.05  # a difference that chance alone makes this often is none


def best_penalty(
    model: Transformer,
    pairs: Sequence[Pair],
    tokenizers: tuple[Tokenizer, Tokenizer],
    *,
    beam: int,
    language: str | None = None,
) -> float:
    """Of those tried, the lowest whose choice among a beam's finished targets has the highest BLEU,
    or one that differs from it by no more than chance (paired bootstrap, `significance.py`).

    The search is done once, with the paper's; the others rank anew what it found. A beam of 1
    leaves nothing to choose: the paper's, then.
    """
    if beam == 1:
        return LENGTH_PENALTY
    source, target = tokenizers
    search = partial(beam_search, beam=beam, n_best=beam, vocabulary=Vocabulary.of(target))
    pieces, found = searched(model, [pair.source for pair in pairs], source, search=search)

    references = [pair.target for pair in pairs]

    def chosen_by(alpha: float) -> list[str]:
        def score(one: Hypothesis) -> tuple[bool, float]:
            length = len(one.tokens) + one.finished  # the end symbol counts
            return one.finished, one.log_probability / penalty(length, alpha)

        return texts_of(pieces, [max(beams, key=score) for beams in found], target)

    texts = {alpha: chosen_by(alpha) for alpha in _TRIED}
    bleu = bleu_metric(language, force=True)
    best = max(texts.values(), key=lambda said: bleu.corpus_score(said, [references]).score)
    differ = bleu_p_values(best, list(texts.values()), references, language=language)
    return next(alpha for alpha, p in zip(_TRIED, differ, strict=True) if p >= _CHANCE)
