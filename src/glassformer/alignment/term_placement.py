"""Puts terms into translations that lack these terms.

The search knows no terms. This module aligns a translation that lacks a term with its source. The
term replaces the words with links to the term's source words. No other words change, so that no
translation gains a sentence.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import fsum
from typing import TypeAlias

from glassformer.alignment.align import align
from glassformer.bundle import Bundle
from glassformer.data.terms import Terms, form_place
from glassformer.data.words import Link, Span, words
from glassformer.decoding.beam import penalty
from glassformer.support.errors import UsageError
from glassformer.text_engine import SegmentTranslation, TextEngine, Translation, with_alternatives

__all__ = ["TermPlacement", "TokenScores", "meet", "term_places"]

_SURE = 0.75  # no term replaces a word with such a link to another source word

TokenScores: TypeAlias = Callable[[Sequence[str], Sequence[str]], list[list[float]]]
"""A function from sources and targets to the log-probability of each token and end symbol."""


@dataclass(frozen=True)
class TermPlacement:
    """Puts ``terms`` into the translations of ``engine``.

    Of several forms of a term, the one with the best translation wins. A translation's score is the
    sum of its ``token_scores``, divided by the length penalty (alpha is ``length_penalty``).
    """

    bundle: Bundle
    engine: TextEngine
    terms: Terms
    token_scores: TokenScores
    length_penalty: float

    def placed(
        self, texts: Sequence[str], translations: Sequence[Translation], prefixes: Sequence[str]
    ) -> list[Translation]:
        """The translations and their alternatives, after missing terms are put in.

        No term begins in a prefix. If ``prefixes`` is empty, no translation has a prefix.

        A translation that its terms make too long for the model raises UsageError.
        """
        if not self.terms.entries:
            return list(translations)
        return [
            with_alternatives(
                self.engine.joined(
                    text,
                    [
                        self._with_terms(part, 0 if place else len(prefix.strip()))
                        for place, part in enumerate(translation.segments)
                    ],
                )
                for translation in (best, *best.alternatives)
            )
            for text, best, prefix in zip(
                texts, translations, prefixes or [""] * len(texts), strict=True
            )
        ]

    def _with_terms(self, part: SegmentTranslation, least: int) -> SegmentTranslation:
        """The translation of a segment, with each missing term in the term's best form.

        No term begins before the character ``least``.
        """
        source, target, score = part.segment.text, part.text, part.score
        missing = self.terms.missing(source, target)
        if not missing:
            return part
        [links] = align(self.bundle, [source], [target])
        changes = [
            (place, dict.fromkeys(forms))
            for term, forms, place in term_places(self.terms, source, target, links)
            if term in missing and place and place[0] >= least
        ]
        for (start, end), forms in sorted(changes, reverse=True):  # earlier places stay
            candidates = [target[:start] + form + target[end:] for form in forms]
            scores = self._scores(source, candidates)
            score = max(scores)
            target = candidates[scores.index(score)]
        return replace(part, text=target, score=score)

    def _scores(self, source: str, targets: Sequence[str]) -> list[float]:
        room = self.bundle.model.config.max_length
        longest = max(map(len, self.bundle.target_tokenizer.encode_batch(targets))) + 1
        if longest > room:
            raise UsageError(
                f"a translation with the glossary's terms has {longest:,} subwords, and this model"
                f" has room for {room:,}: shorten the terms"
            )
        rows = self.token_scores([source] * len(targets), targets)
        return [fsum(row) / penalty(len(row), self.length_penalty) for row in rows]


def term_places(
    terms: Terms, source: str, target: str, links: Sequence[Link]
) -> list[tuple[str, tuple[str, ...], Span | None]]:
    """Each term of the source in the order of the text, its forms, and its place in the target.

    If the target holds a form, the term's place is the form. Else the place is the run of words
    with the surest links to the term's words. Without such a run, the place is one word. A word
    linked to the term comes first, then an unlinked word, then a word with unsure links. Of
    several words, the nearest to the term's part of the text wins. Without a word, the term has no
    place.

    >>> term_places(Terms.of({"dog": "Hund"}), "a dog", "ein Tier da", [Link((2, 5), (4, 8))])
    [('dog', ('Hund',), (4, 8))]
    """
    in_source = terms.places_in(source)
    places: dict[Span, Span] = {}
    for term, _, forms in in_source:
        if held := next(filter(None, (form_place(target, form) for form in forms)), None):
            places[term] = held
    forms_held = list(places.values())
    surest: dict[Span, Link] = {}
    for link in links:
        taken = any(meet(link.target, place) for place in forms_held)
        if source[link.source[0]].isalnum() and not taken:
            surest[link.target] = max(link, surest.get(link.target, link), key=lambda x: x.weight)
    word_spans = [span for span in words(target) if target[span[0]].isalnum()]
    for term, *_ in in_source:
        if term not in places and (run := _surest_run(word_spans, surest, term)):
            places[term] = run
    for term, *_ in in_source:
        if term not in places:
            left = [s for s in word_spans if not any(meet(s, place) for place in places.values())]
            linked = {link.target for link in links if meet(link.source, term)}
            choices = (
                [span for span in left if span in linked],
                [span for span in left if span not in surest],
                [span for span in left if span in surest and surest[span].weight < _SURE],
            )
            part = term[0] / len(source) * len(target)
            if spans := next(filter(None, choices), None):
                places[term] = min(spans, key=lambda span: abs(span[0] - part))
    return [(term, forms, places.get(span)) for span, term, forms in in_source]


def _surest_run(order: Sequence[Span], surest: Mapping[Span, Link], term: Span) -> Span | None:
    """The span of neighbouring words whose surest links go to the term."""
    weights = {
        span: surest[span].weight
        for span in order
        if span in surest and meet(surest[span].source, term)
    }
    if not weights:
        return None
    least = max(weights.values()) / 2
    groups = groupby(order, lambda span: weights.get(span, 0.0) >= least)
    runs = [list(run) for great, run in groups if great]
    run = max(runs, key=lambda run: sum(weights[span] for span in run))
    return run[0][0], run[-1][1]


def meet(one: Span, other: Span) -> bool:
    """Whether two spans have a character in common."""
    return one[0] < other[1] and other[0] < one[1]
