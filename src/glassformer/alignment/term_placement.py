"""Terms in the places of the words that they translate.

The search for terms (:mod:`glassformer.decoding.glossary`) may write a term after the end of a
sentence, because the model has hardly ever read it. So each term is also put into the free
translation, in the place of the words that are linked to its source words. Of both translations the
more probable one counts; one with a sentence more than the free translation never does.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, groupby, islice, product
from typing import Protocol, runtime_checkable

from glassformer.alignment.align import BundleParts, align
from glassformer.data.splitting import sentence_spans
from glassformer.data.terms import Terms
from glassformer.data.words import Link, Span, words
from glassformer.decoding.beam import penalty
from glassformer.decoding.engine import SearchOptions
from glassformer.text_engine import SegmentTranslation, TextEngine, Translation

__all__ = ["ScoringTranslator", "TermPlacement", "with_forms"]

_MOST_CHOICES = 64  # of places and forms, for the terms of one segment together
_SURE = 0.75  # the weight of a link that leaves no word to another term


@runtime_checkable
class ScoringTranslator(BundleParts, Protocol):
    """A bundle that gives the probability of a translation: a ``Translator`` is one."""

    def score(self, sources: Sequence[str], targets: Sequence[str]) -> list[float]: ...

    def count_tokens(self, targets: Sequence[str]) -> list[int]: ...


@dataclass(frozen=True)
class TermPlacement:
    """Settles the translations that a search for ``terms`` has found with ``options``."""

    translator: ScoringTranslator
    engine: TextEngine
    terms: Terms
    options: SearchOptions

    def settled(
        self, texts: Sequence[str], searched: Sequence[Translation], prefixes: Sequence[str]
    ) -> list[Translation]:
        """The translations, with other ones of the segments that the search for terms harms."""
        places = [
            (number, place)
            for number, translation in enumerate(searched)
            for place, part in enumerate(translation.segments)
            if self.terms.forms_in(part.segment.text)
        ]
        if not places:
            return list(searched)
        parts = [searched[number].segments[place] for number, place in places]
        before = [prefixes[n] if prefixes and place == 0 else "" for n, place in places]
        sources = [part.segment.text for part in parts]
        options = replace(self.options, n_best=1)
        free = [t.text for t in self.engine.translate(sources, options, before, split=False)]
        links = align(self.translator, sources, free)
        choices = [
            self._choices(part, target, with_forms(self.terms, (source, target), link, len(prefix)))
            for part, source, target, link, prefix in zip(
                parts, sources, free, links, before, strict=True
            )
        ]
        best = iter(self._best(sources, choices))
        settled = [list(translation.segments) for translation in searched]
        for number, place in places:
            text, score = next(best)
            old = settled[number][place]
            if text != old.text:
                settled[number][place] = replace(old, text=text, score=score)
        most = dict(zip((n for n, _ in places), map(self._sentences, free), strict=True))
        return [
            self._joined(text, translation, new, most.get(number))
            for number, (text, translation, new) in enumerate(
                zip(texts, searched, settled, strict=True)
            )
        ]

    def _choices(self, part: SegmentTranslation, free: str, placed: list[str]) -> list[str]:
        """The translations that may count: with all terms if there are some, and none too long."""
        source = part.segment.text
        whole = [text for text in placed if not self.terms.missing(source, text)]
        longest = max((len(words(text)) for text in whole), default=len(words(part.text)))
        longer = self._sentences(part.text) > self._sentences(free)
        if longer or len(words(part.text)) > longest or self.terms.missing(source, part.text):
            return whole or placed
        return [part.text, *whole]

    def _best(
        self, sources: Sequence[str], choices: Sequence[Sequence[str]]
    ) -> list[tuple[str, float]]:
        """The most probable choice for each source, with its score."""
        pairs = [
            (source, text) for source, texts in zip(sources, choices, strict=True) for text in texts
        ]
        values = iter(self.translator.score(*map(list, zip(*pairs, strict=True))))
        lengths = iter(self.translator.count_tokens([text for _, text in pairs]))
        best = []
        for texts in choices:
            value, length, text = max((next(values), next(lengths), text) for text in texts)
            best.append((text, value / penalty(length, self.options.length_penalty)))
        return best

    def _joined(
        self, text: str, searched: Translation, parts: list[SegmentTranslation], most: int | None
    ) -> Translation:
        if most is None:
            return searched
        others = [t for t in searched.alternatives if self._sentences(t.text) <= most]
        best = searched if tuple(parts) == searched.segments else self.engine.joined(text, parts)
        return replace(best, alternatives=tuple(t for t in others if t.text != best.text))

    def _sentences(self, target: str) -> int:
        languages = self.engine.preprocessing.languages
        return sum(1 for _ in sentence_spans(target, languages and languages[1]))


def with_forms(
    terms: Terms, texts: tuple[str, str], links: Sequence[Link], least: int = 0
) -> list[str]:
    """The target of ``texts`` with the terms in their places, for each choice of places and forms.

    The place of a term is the run of words that are linked to its words most surely. Without one,
    each word is a choice that is linked to them at all; or each that is linked to no word, or to
    none surely. No place is before ``least``; a term without a place is left out.

    >>> terms = Terms.of({"dog": ["Hund", "Köter"]})
    >>> with_forms(terms, ("a dog", "ein Tier da"), [Link((2, 5), (4, 8))])
    ['ein Hund da', 'ein Köter da']
    """
    source, target = texts
    order = [span for span in words(target) if target[span[0]].isalnum()]
    surest: dict[Span, Link] = {}
    for link in links:
        if source[link.source[0]].isalnum():
            surest[link.target] = max(link, surest.get(link.target, link), key=lambda x: x.weight)
    places: list[tuple[list[Span], tuple[str, ...]]] = []
    doubtful = []
    for term, forms in terms.places_in(source):
        weights = {span: x.weight for span, x in surest.items() if _meet(x.source, term)}
        if any(span in weights for span in order):
            places.append(([_best_run(order, weights)], forms))
        else:
            doubtful.append((term, forms))
    taken = [span for [span], _ in places]
    left = [span for span in order if not any(_meet(span, other) for other in taken)]
    for term, forms in doubtful:
        linked = {link.target for link in links if _meet(link.source, term)}
        spans = [span for span in left if span in linked]
        spans = spans or [span for span in left if span not in surest]
        places.append((spans or [span for span in left if surest[span].weight < _SURE], forms))
    choices = [
        list(product(allowed, forms))
        for spans, forms in places
        if (allowed := [span for span in spans if span[0] >= least])
    ]
    apart = (
        changes
        for changes in product(*choices)
        if not any(_meet(one[0], other[0]) for one, other in combinations(set(changes), 2))
    )
    return [_replaced(target, changes) for changes in islice(apart, _MOST_CHOICES)] or [target]


def _best_run(order: Sequence[Span], weights: Mapping[Span, float]) -> Span:
    """From the first to the last of neighbouring words with great weights, which sum to most."""
    least = max(weights.values()) / 2
    groups = groupby(order, key=lambda span: weights.get(span, 0.0) >= least)
    runs = [list(run) for great, run in groups if great]
    run = max(runs, key=lambda run: sum(weights[span] for span in run))
    return run[0][0], run[-1][1]


def _replaced(text: str, changes: Iterable[tuple[Span, str]]) -> str:
    for (start, end), form in sorted(set(changes), reverse=True):
        text = text[:start] + form + text[end:]
    return text


def _meet(one: Span, other: Span) -> bool:
    return one[0] < other[1] and other[0] < one[1]
