"""The length penalty that suits a trained model, chosen on the validation pairs.

Section 6.1 of the paper: beam size and length penalty "were chosen after experimentation on the
development set". Its 0.6 is one of those that are tried here.
"""

from collections.abc import Sequence
from functools import partial

from glassformer.bundle import PAPERS_PENALTY
from glassformer.data.corpus import Pair
from glassformer.data.tokenizer import Tokenizer
from glassformer.decoding.beam import beam_search, penalty
from glassformer.decoding.step import Hypothesis, Vocabulary
from glassformer.evaluation import corpus_scores
from glassformer.model.transformer import Transformer
from glassformer.training.validation import searched, texts_of

__all__ = ["best_penalty"]

_TRIED = (PAPERS_PENALTY, 1.0, 1.5, 2.0)


def best_penalty(
    model: Transformer,
    pairs: Sequence[Pair],
    tokenizers: tuple[Tokenizer, Tokenizer],
    *,
    beam: int,
    language: str | None = None,
) -> float:
    """Of those tried, the one whose choice among a beam's finished targets has the highest BLEU.

    The search is done once, with the paper's; the others rank anew what it found. A beam of 1
    leaves nothing to choose: the paper's, then.
    """
    if beam == 1:
        return PAPERS_PENALTY
    source, target = tokenizers
    search = partial(beam_search, beam=beam, n_best=beam, vocabulary=Vocabulary.of(target))
    pieces, found = searched(model, [pair.source for pair in pairs], source, search=search)

    def bleu(alpha: float) -> float:
        def score(one: Hypothesis) -> tuple[bool, float]:
            length = len(one.tokens) + one.finished  # the end symbol counts
            return one.finished, one.log_probability / penalty(length, alpha)

        texts = texts_of(pieces, [max(beams, key=score) for beams in found], target)
        references = [pair.target for pair in pairs]
        return corpus_scores(texts, references, language=language, quick=True).bleu

    return max(_TRIED, key=bleu)
