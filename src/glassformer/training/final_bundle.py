"""What a finished run adds to its weights: scores, model card, alignment heads."""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from glassformer.alignment.heads import find_heads
from glassformer.bundle import Bundle
from glassformer.data.corpus import Pair
from glassformer.decoding.engine import SearchOptions
from glassformer.errors import InputError
from glassformer.evaluation import Scores, corpus_scores
from glassformer.model.transformer import Transformer
from glassformer.text_engine import TextEngine
from glassformer.training.checkpoint import RunState
from glassformer.training.length_penalty import best_penalty
from glassformer.training.reporting import duration
from glassformer.training.setup.prepare import Prepared
from glassformer.training.time_limit import in_time

__all__ = [
    "alignment_heads",
    "beam_scores",
    "final_scores",
    "model_card",
    "part_scored",
    "validations_of_the_end",
]

_LONGEST_ALIGNED = 200  # characters of a side of a pair that alignment is learnt from


def validations_of_the_end(prepared: Prepared) -> float:
    """The time of :func:`final_scores`, as a number of validations; with that of the parent's.

    Measured: a beam of 5 takes twice as long as a validation, which has a loss as well; and a
    little to spare. The validation pairs are searched twice.
    """
    valid, test, general = map(len, (prepared.valid, prepared.test, prepared.general))
    searched, greedy = 2 * valid + test, 0
    if prepared.parent is not None:
        searched += valid + test + 2 * general
        greedy = 2 * (valid + general) if general else 0
    return ((2 + prepared.config.beam) / 3 * searched + greedy) / valid


def final_scores(
    model: Transformer, prepared: Prepared, seconds_left: Callable[[], float]
) -> tuple[float, dict[str, Scores]]:
    """The length penalty, and the scores of the beam search with it: validation, and test if any.

    Each search gets its part of the time that is left, by its number of pairs.
    """
    valid, test, beam = prepared.valid, prepared.test, prepared.config.beam
    searches = 2 + len(test) / len(valid)
    engine = prepared.text_engine(model)
    alpha = best_penalty(
        valid,
        engine,
        beam=beam,
        language=prepared.target_language,
        seconds=seconds_left() / searches,
    )
    seconds = seconds_left() / (searches - 1)
    scores = {
        "validation": beam_scores(engine, prepared, valid, length_penalty=alpha, seconds=seconds)
    }
    if test:
        seconds = seconds_left()
        scores["test"] = beam_scores(engine, prepared, test, length_penalty=alpha, seconds=seconds)
    return alpha, scores


def beam_scores(
    engine: TextEngine,
    prepared: Prepared,
    pairs: Sequence[Pair],
    *,
    length_penalty: float,
    seconds: float = math.inf,
    beam: int | None = None,
) -> Scores:
    """The scores of the beam search's translations of ``pairs``, or as many as the time allows.

    ``beam``: None takes that of the options.
    """
    options = SearchOptions(beam or prepared.config.beam, length_penalty=length_penalty)
    texts = in_time(
        lambda sources: [translation.text for translation in engine.translate(sources, options)],
        [pair.source for pair in pairs],
        seconds=seconds,
    )
    return corpus_scores(
        list(texts.values()),
        [pairs[place].target for place in texts],
        language=prepared.target_language,
    )


def model_card(
    prepared: Prepared,
    state: RunState,
    *,
    averaged: Sequence[int],
    scores: Mapping[str, Scores],
) -> dict[str, object]:
    """The lines about data, training and scores in the bundle's README; for people to read."""
    parent = prepared.config.parent
    return {
        **({"parent": parent.name} if parent else {}),
        "data": " and ".join(path.name for path in prepared.config.pairs),
        "pairs": len(prepared.packed),
        "updates": state.update,
        "trained for": duration(state.seconds),
        "weights": f"mean of the checkpoints at updates {', '.join(map(str, averaged))}",
        **{
            name: _shown(result) + part_scored(prepared, name, result)
            for name, result in scores.items()
        },
    }


def part_scored(prepared: Prepared, name: str, scores: Scores) -> str:
    """A remark on scores of a part of the pairs; none on scores of all."""
    pairs = len(prepared.texts[name])
    if scores.sentences == pairs:
        return ""
    return f" ({scores.sentences:,} of {pairs:,} pairs, because the time was up)"


def _shown(scores: Scores) -> str:
    ruler = "" if scores.paper_ruler is None else f", paper ruler {scores.paper_ruler:.2f}"
    return f"BLEU {scores.bleu:.2f} ({scores.signatures['bleu']}), chrF++ {scores.chrf:.2f}{ruler}"


def alignment_heads(bundle: Bundle, pairs: Sequence[Pair]) -> dict[str, object] | None:
    """The heads that align words best on the pairs; None if too few words of the pairs align."""
    bundle.model.to("cpu")
    texts = [(pair.source, pair.target) for pair in pairs]
    short = [sides for sides in texts if max(map(len, sides)) <= _LONGEST_ALIGNED]
    with suppress(InputError):
        return find_heads(bundle, short).heads.as_dict()
    return None
