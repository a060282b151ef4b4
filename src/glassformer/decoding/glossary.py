"""Phrases that a target must hold, and beams shared out so that it comes to hold them.

A hypothesis may not end before it has all its phrases. That alone would help little: the unlikely
first token of a phrase would never survive among the most probable. So the places in the beam are
shared out by how many tokens of the phrases a hypothesis has (dynamic beam allocation: Post and
Vilar 2018, arXiv:1804.06609), and the next tokens of the phrases are always among the candidates.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from glassformer.decoding.constraints import ordinary_ids
from glassformer.decoding.protocols import DEFAULT_IDS, Vocabulary

__all__ = ["Glossary"]


@dataclass(frozen=True)
class Glossary:
    """For each sentence the phrases, as ids, that its target must hold; in any order.

    In `beam_search` the phrases come wherever the model likes them best. In `greedy` and `sample`
    the sentence only may not end without them. A target that is cut at its maximum length may lack
    a phrase: it is not `finished`. Raises `ValueError` for an empty phrase or a special id in one.

    >>> Glossary([[[7, 8], [5]]]).progress(0, [5, 4, 7])
    2
    """

    phrases: Sequence[Sequence[Sequence[int]]]
    vocabulary: Vocabulary = DEFAULT_IDS

    def __post_init__(self) -> None:
        for sentence, phrases in enumerate(self.phrases):
            for phrase in phrases:
                ordinary_ids(phrase, self.vocabulary, f"a phrase of sentence {sentence}")
                if not phrase:
                    raise ValueError(f"sentence {sentence} has a phrase without any id")

    @cached_property
    def _texts(self) -> list[list[str]]:
        """The phrases with a character for each id: finding one in a target is then `in`."""
        return [list(dict.fromkeys(_text(one) for one in phrases)) for phrases in self.phrases]

    def select(self, sentences: Sequence[int]) -> Glossary:
        """The phrases of these sentences."""
        return Glossary([self.phrases[i] for i in sentences], self.vocabulary)

    def needed(self, sentence: int) -> int:
        """The number of ids in the sentence's phrases."""
        return sum(len(phrase) for phrase in self._texts[sentence])

    def progress(self, sentence: int, target: Sequence[int]) -> int:
        """How many tokens of the phrases the target has: those of the phrases that it holds, and
        the longest beginning of another that it ends with. `needed` if it holds all."""
        return self._progress(sentence, _text(target))

    def _progress(self, sentence: int, text: str) -> int:
        met, begun = 0, 0
        for phrase in self._texts[sentence]:
            if phrase in text:
                met += len(phrase)
            else:
                begun = max(begun, _begun(phrase, text))
        return met + begun

    def _following(self, sentence: int, text: str) -> set[int]:
        """The tokens that begin one of the missing phrases, or go on with it."""
        missing = [phrase for phrase in self._texts[sentence] if phrase not in text]
        return {ord(phrase[_begun(phrase, text)]) for phrase in missing}

    def __call__(
        self,
        log_probabilities: Float[Tensor, "rows vocab"],
        tokens: Int64[Tensor, "rows length"],
        sentences: Int64[Tensor, " rows"],
    ) -> Float[Tensor, "rows vocab"]:
        """-inf for the end symbol in the rows that lack a phrase."""
        rows = zip(sentences.tolist(), tokens.tolist(), strict=True)
        lacking = [
            row
            for row, (sentence, target) in enumerate(rows)
            if self.progress(sentence, target) < self.needed(sentence)
        ]
        log_probabilities[lacking, self.vocabulary.eos_id] = -torch.inf
        return log_probabilities

    def share(
        self,
        sentences: Int64[Tensor, " live"],
        tokens: Int64[Tensor, "live width length"],
        sums: Float[Tensor, "live width vocab"],
        choices: Int64[Tensor, "live choices"],
    ) -> Int64[Tensor, "live choices"]:
        """The candidates of each sentence in the order in which they get places in its beam.

        `sums[i, j, token]` is the log-probability of the target `tokens[i, j]` with one token more;
        a candidate is its place in the flattened `sums[i]`, and `choices` are the most probable.
        The next tokens of the phrases join them, and the most probable next token of each target:
        without it one that has all its phrases, but is less probable than the others, could not go
        on. Then every bank (the candidates with equal progress) has one place in turn, the most
        advanced first.
        """
        pairs = zip(sentences.tolist(), tokens.tolist(), strict=True)
        orders = [
            self._order(sentence, list(map(_text, targets)), sums[i], choices[i].tolist())
            for i, (sentence, targets) in enumerate(pairs)
        ]
        return torch.tensor(orders, device=choices.device)

    def _order(
        self, sentence: int, texts: list[str], sums: Tensor, choices: list[int]
    ) -> list[int]:
        vocab = sums.shape[1]
        likeliest = sums.argmax(dim=1).tolist()
        wanted = {
            row * vocab + token
            for row, text in enumerate(texts)
            for token in (likeliest[row], *self._following(sentence, text))
        }
        pool = sorted({*choices, *wanted})
        scores = dict(zip(pool, sums.flatten()[pool].tolist(), strict=True))
        banks: dict[int, list[int]] = defaultdict(list)
        for place in sorted(pool, key=lambda place: -scores[place]):
            row, token = divmod(place, vocab)
            possible = scores[place] > -torch.inf
            advance = self._progress(sentence, texts[row] + chr(token))
            banks[advance if possible else -1].append(place)
        impossible = banks.pop(-1, [])
        order = _in_turn(banks[advance] for advance in sorted(banks, reverse=True))
        return [*order, *impossible][: len(choices)]


def _text(ids: Iterable[int]) -> str:
    return "".join(map(chr, ids))


def _begun(phrase: str, text: str) -> int:
    """The length of the longest proper beginning of the phrase that the text ends with."""
    return next(n for n in reversed(range(len(phrase))) if text.endswith(phrase[:n]))


def _in_turn(banks: Iterable[list[int]]) -> list[int]:
    return [place for round_ in zip_longest(*banks) for place in round_ if place is not None]
