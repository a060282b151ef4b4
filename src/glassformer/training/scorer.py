"""The scores at the end of a run, in the time that is left."""

from glassformer.decoding.engine import SearchOptions
from glassformer.evaluation import Scores, corpus_scores
from glassformer.model.transformer import Transformer
from glassformer.training.length_penalty import best_penalty
from glassformer.training.setup.prepare import Prepared
from glassformer.training.time_limit import Deadline, in_time

__all__ = ["Scorer", "validations_of_the_end"]


def validations_of_the_end(prepared: Prepared) -> float:
    """The estimated time after the last validation, as a number of validations.

    A beam of 5 takes twice as long as a validation with its loss (measured). A little is to spare.
    """
    mean_of_checkpoints = 1
    search = (2 + prepared.config.beam) / 3
    return mean_of_checkpoints + search * _searched(prepared) / len(prepared.valid)


class Scorer:
    """Scores models on the texts of a run: validation, test and general pairs.

    Each search gets its share of the time that is left, by the pairs of all searches to come. Once
    this time is up, the pairs so far stand for all.
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
            language=prepared.target_language,
            deadline=self._share(len(prepared.valid)),
        )

    def scores(self, model: Transformer, *, length_penalty: float) -> dict[str, Scores]:
        """The scores of the model's translations, by the names of the texts."""
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

    def _share(self, pairs: int) -> Deadline:
        """The deadline of the next search."""
        share = pairs / self._to_come
        self._to_come -= pairs
        return self._deadline.share(share)


def _searched(prepared: Prepared) -> int:
    """The pairs of all searches of a :class:`Scorer`, with those for the length penalty."""
    models = 2 if prepared.start.parent else 1
    return len(prepared.valid) + models * sum(map(len, prepared.texts.values()))
