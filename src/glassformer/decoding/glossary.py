"""Phrases that a target must hold, by dynamic beam allocation (Post and Vilar 2018).

A hypothesis may not end before it holds all its phrases. That alone would help little: an
improbable first token of a phrase would leave the beam at once. So the beam is divided by how many
tokens of the phrases a hypothesis has (arXiv:1804.06609), and the next tokens of the phrases are
always among the candidates.
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

from glassformer.decoding.constraints import check_ordinary_ids
from glassformer.decoding.protocols import DEFAULT_IDS, Vocabulary

__all__ = ["Glossary"]


@dataclass(frozen=True)
class Glossary:
    """For each sentence the phrases, as ids, that its target must hold; in any order.

    `beam_search` puts the phrases at their most probable places. `greedy` and `sample` only refuse
    to end a sentence that lacks one. A target that the maximum length cuts may lack a phrase: it is
    not `finished`. Raises `ValueError` for an empty phrase or a special id in a phrase.

    >>> Glossary([[[7, 8], [5]]]).progress(0, [5, 4, 7])
    2
    """

    phrases: Sequence[Sequence[Sequence[int]]]
    vocabulary: Vocabulary = DEFAULT_IDS

    def __post_init__(self) -> None:
        for sentence, phrases in enumerate(self.phrases):
            for phrase in phrases:
                check_ordinary_ids(phrase, self.vocabulary, f"a phrase of sentence {sentence}")
                if not phrase:
                    raise ValueError(f"sentence {sentence} has a phrase without any id")

    @cached_property
    def _texts(self) -> list[list[str]]:
        """The phrases with a character for each id: `phrase in target` then looks one up."""
        return [list(dict.fromkeys(map(_text, phrases))) for phrases in self.phrases]

    def select(self, sentences: Sequence[int]) -> Glossary:
        """The phrases of these sentences."""
        return Glossary([self.phrases[i] for i in sentences], self.vocabulary)

    def needed(self, sentence: int) -> int:
        """The number of ids in the sentence's phrases."""
        return sum(len(phrase) for phrase in self._texts[sentence])

    def progress(self, sentence: int, target: Sequence[int]) -> int:
        """The number of phrase tokens in the target; `needed` if it holds all phrases.

        It counts the phrases in the target, and the longest beginning of a missing one at its end.
        """
        return self._progress(sentence, _text(target))

    def _progress(self, sentence: int, text: str) -> int:
        whole, begun = 0, 0
        for phrase in self._texts[sentence]:
            if phrase in text:
                whole += len(phrase)
            else:
                begun = max(begun, _begun(phrase, text))
        return whole + begun

    def _following(self, sentence: int, text: str) -> set[int]:
        """The next token of each missing phrase."""
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

    def allocate(
        self,
        sentences: Int64[Tensor, " live"],
        tokens: Int64[Tensor, "live width length"],
        sums: Float[Tensor, "live width vocab"],
        choices: Int64[Tensor, "live choices"],
    ) -> Int64[Tensor, "live choices"]:
        """The candidates of each sentence in the order in which they enter its beam.

        `sums[i, j, token]` is the log-probability of the target `tokens[i, j]` with one token more.
        A candidate is its index in the flattened `sums[i]`; `choices` are the most probable ones.
        The next tokens of the phrases join them, and the most probable next token of each target:
        a target that holds all its phrases must go on, however improbable it is. The candidates
        with equal progress form a bank. The banks take turns, the most advanced bank first.
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
        added = {
            row * vocab + token
            for row, text in enumerate(texts)
            for token in (likeliest[row], *self._following(sentence, text))
        }
        candidates = sorted({*choices, *added})
        scores = dict(zip(candidates, sums.flatten()[candidates].tolist(), strict=True))
        banks: dict[int, list[int]] = defaultdict(list)
        for candidate in sorted(candidates, key=lambda candidate: -scores[candidate]):
            row, token = divmod(candidate, vocab)
            possible = scores[candidate] > -torch.inf
            progress = self._progress(sentence, texts[row] + chr(token))
            banks[progress if possible else -1].append(candidate)
        impossible = banks.pop(-1, [])
        order = _in_turn(banks[progress] for progress in sorted(banks, reverse=True))
        return [*order, *impossible][: len(choices)]


def _text(ids: Iterable[int]) -> str:
    return "".join(map(chr, ids))


def _begun(phrase: str, text: str) -> int:
    """The length of the longest proper beginning of the phrase at the end of the text."""
    return next(n for n in reversed(range(len(phrase))) if text.endswith(phrase[:n]))


def _in_turn(banks: Iterable[list[int]]) -> list[int]:
    rounds = zip_longest(*banks)
    return [candidate for turns in rounds for candidate in turns if candidate is not None]
