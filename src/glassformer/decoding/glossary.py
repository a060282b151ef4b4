"""Terms that a target must hold, by dynamic beam allocation (Post and Vilar 2018).

A term is one phrase or several, and a target holds the term if it holds one of them. A hypothesis
may not end before it holds all its terms. That alone would help little: an improbable first token
of a phrase would leave the beam at once. So each number of phrase tokens that a hypothesis may hold
has its share of the beam (arXiv:1804.06609). The next tokens of the phrases are always candidates.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, zip_longest

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from glassformer.decoding.protocols import DEFAULT_IDS, Vocabulary

__all__ = ["Glossary"]


@dataclass(frozen=True)
class Glossary:
    """For each sentence the terms that its target must hold, in any order.

    A term is a list of phrases, as ids; any one of them satisfies it. `beam_search` puts the
    phrases at their most probable places. `greedy` and `sample` only refuse to end a sentence that
    lacks a term. A target that the maximum length cuts may lack one: it is not `finished`.

    A phrase stands in a target as whole words only. `letters` are the ids whose text begins with a
    letter, `closing` those after which a word needs a space; none of `letters` follows one of
    `closing` at an edge of the phrase.

    >>> Glossary([[[[7, 8]], [[5], [6]]]]).progress(0, [5, 4, 7])  # 7 8, and 5 or 6
    2
    """

    terms: Sequence[Sequence[Sequence[Sequence[int]]]]
    vocabulary: Vocabulary = DEFAULT_IDS
    letters: Collection[int] = frozenset()
    closing: Collection[int] = frozenset()

    @cached_property
    def _texts(self) -> list[list[tuple[str, ...]]]:
        """The terms, their phrases with a character for each id: `find` then looks one up."""
        return [
            list(dict.fromkeys(tuple(map(_text, phrases)) for phrases in terms))
            for terms in self.terms
        ]

    @cached_property
    def _letter_ids(self) -> Int64[Tensor, " ids"]:
        return torch.tensor(sorted(self.letters), dtype=torch.int64)

    def select(self, sentences: Sequence[int]) -> Glossary:
        """The terms of these sentences."""
        return replace(self, terms=[self.terms[i] for i in sentences])

    def needed(self, sentence: int) -> int:
        """The number of ids in the longest phrases of the sentence's terms."""
        return sum(max(map(len, phrases)) for phrases in self._texts[sentence])

    def progress(self, sentence: int, target: Sequence[int]) -> int:
        """The number of phrase tokens in the target; `needed` if it holds all terms.

        Each term in the target counts with its longest phrase. The beginning of a phrase at the
        target's end counts too, if its term is missing.
        """
        text, whole, begun = _text(target), 0, 0
        for phrases in self._texts[sentence]:
            if self._place(phrases, text):
                whole += max(map(len, phrases))
            else:
                begun = max(begun, *(self._begun(phrase, text) for phrase in phrases))
        return whole + begun

    def places(self, sentence: int, target: Sequence[int]) -> list[range | None]:
        """For each term the places of a phrase of it in the target; None if there is none.

        >>> Glossary([[[[7, 8]], [[5], [6]]]]).places(0, [6, 4, 7])
        [None, range(0, 1)]
        """
        text = _text(target)
        return [self._place(list(map(_text, phrases)), text) for phrases in self.terms[sentence]]

    def _place(self, phrases: Sequence[str], text: str) -> range | None:
        for phrase in phrases:
            place = text.find(phrase)
            while place >= 0:
                end = place + len(phrase)
                if not (self._inside(text, place) or self._inside(text, end)):
                    return range(place, end)
                place = text.find(phrase, place + 1)
        return None

    def _inside(self, text: str, place: int) -> bool:
        """Whether a letter follows there without the space that it needs."""
        return (
            0 < place < len(text)
            and ord(text[place - 1]) in self.closing
            and ord(text[place]) in self.letters
        )

    def _begun(self, phrase: str, text: str) -> int:
        """The length of the longest proper beginning of the phrase at the end of the text."""
        for length in reversed(range(1, len(phrase))):
            if text.endswith(phrase[:length]) and not self._inside(text, len(text) - length):
                return length
        return 0

    def _following(self, sentence: int, target: Sequence[int]) -> set[int]:
        """The next token of each phrase of the missing terms."""
        text = _text(target)
        missing = [phrases for phrases in self._texts[sentence] if not self._place(phrases, text)]
        return {ord(phrase[self._begun(phrase, text)]) for phrase in chain.from_iterable(missing)}

    def __call__(
        self,
        log_probabilities: Float[Tensor, "rows vocab"],
        tokens: Int64[Tensor, "rows length"],
        sentences: Int64[Tensor, " rows"],
    ) -> Float[Tensor, "rows vocab"]:
        """-inf for the end symbol in the rows that lack a term."""
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
        beam: int,
    ) -> Int64[Tensor, "live choices"]:
        """At most 2 * `beam` candidates of each sentence, in the order of their places in the beam.

        `sums[i, j, token]` is the log-probability of the target `tokens[i, j]` with one token more.
        A candidate is its index in the flattened `sums[i]`. The next tokens of the phrases join the
        most probable candidates. The most probable next token of each target joins them too, and
        the most probable that begins a word: a target with all its terms must go on.
        The candidates with equal progress form a bank. The banks take turns, the most
        advanced first.
        """
        every = sums.flatten(1)
        choices = every.topk(min(2 * beam, every.shape[1]), dim=1).indices
        rows = zip(sentences.tolist(), tokens.tolist(), sums, choices.tolist(), strict=True)
        return torch.tensor([self._order(*row) for row in rows], device=choices.device)

    def _order(
        self, sentence: int, targets: list[list[int]], sums: Tensor, choices: list[int]
    ) -> list[int]:
        vocab = sums.shape[1]
        likeliest = sums.argmax(dim=1).tolist()
        new_words = sums.index_fill(1, self._letter_ids.to(sums.device), -torch.inf)
        beginning = new_words.argmax(dim=1).tolist()
        added = {
            row * vocab + token
            for row, target in enumerate(targets)
            for token in (likeliest[row], beginning[row], *self._following(sentence, target))
        }
        candidates = sorted({*choices, *added})
        scores = dict(zip(candidates, sums.flatten()[candidates].tolist(), strict=True))
        banks: dict[int, list[int]] = defaultdict(list)
        for candidate in sorted(candidates, key=lambda candidate: -scores[candidate]):
            row, token = divmod(candidate, vocab)
            possible = scores[candidate] > -torch.inf
            progress = self.progress(sentence, [*targets[row], token])
            banks[progress if possible else -1].append(candidate)
        impossible = banks.pop(-1, [])
        rounds = zip_longest(*(banks[progress] for progress in sorted(banks, reverse=True)))
        in_turn = [each for turns in rounds for each in turns if each is not None]
        return [*in_turn, *impossible][: len(choices)]


def _text(ids: Iterable[int]) -> str:
    return "".join(map(chr, ids))
