"""Terms in the places of the words that they translate.

The search for terms (:mod:`glassformer.decoding.glossary`) may write a term after the end of a
sentence, or beside the model's own word, because the model has hardly ever read the term. Then the
term goes into the translation without terms, in the place of the words that are linked to it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from glassformer.alignment.align import align
from glassformer.bundle import Bundle
from glassformer.data.splitting import sentence_spans
from glassformer.data.terms import Terms, holds
from glassformer.data.words import Link, Span, words
from glassformer.decoding.engine import SearchOptions
from glassformer.text_engine import TextEngine, Translation

__all__ = ["TermPlacement", "with_terms"]

_SURE = 0.75  # the weight of a link that leaves no word to a term


@dataclass(frozen=True)
class TermPlacement:
    """Settles the translations that a search for ``terms`` has found with ``options``."""

    bundle: Bundle
    engine: TextEngine
    terms: Terms
    options: SearchOptions

    def settled(
        self, texts: Sequence[str], searched: Sequence[Translation], prefixes: Sequence[str]
    ) -> list[Translation]:
        """The translations; where one has a sentence or a word too many, with the terms placed."""
        settled = list(searched)
        found = [
            (number, place, part.segment.text)
            for number, translation in enumerate(searched)
            for place, part in enumerate(translation.segments)
            if self.terms.forms_in(part.segment.text)
        ]
        sources = [source for *_, source in found]
        begun = [prefixes[n] if prefixes and place == 0 else "" for n, place, _ in found]
        options = replace(self.options, n_best=1)
        free = self.engine.translate(sources, options, begun, split=False) if found else []
        links = align(self.bundle, sources, [translation.text for translation in free])
        for (number, place, source), plain, of_plain, prefix in zip(
            found, free, links, begun, strict=True
        ):
            translation, most = settled[number], self._sentences(plain.text)
            kept = [t for t in translation.alternatives if self._sentences(t.text) <= most]
            parts = list(translation.segments)
            old = parts[place].text
            new = with_terms(self.terms, (source, plain.text), of_plain, old, least=len(prefix))
            whole = not self.terms.missing(source, new)
            if self._sentences(old) > most or (whole and len(words(old)) > len(words(new))):
                parts[place] = replace(parts[place], text=new, score=plain.score)
                translation = self.engine.joined(texts[number], parts)
            settled[number] = replace(translation, alternatives=tuple(kept))
        return settled

    def _sentences(self, target: str) -> int:
        languages = self.engine.preprocessing.languages
        return sum(1 for _ in sentence_spans(target, languages and languages[1]))


def with_terms(
    terms: Terms, texts: tuple[str, str], links: Sequence[Link], searched: str, *, least: int = 0
) -> str:
    """The target of ``texts`` with each term of the source in its place.

    Its form is the one that the translation ``searched`` holds. Its place is the run of words that
    are linked to its words most surely. Without one it is the word nearest to the same part of the
    text, of those that are linked to the term at all; or to no word; or to none surely. A term
    whose place begins before ``least``, or that has none, is left out.

    >>> terms = Terms.of({"dog": ["Hund", "Köter"]})
    >>> with_terms(terms, ("a dog", "ein Tier da"), [Link((2, 5), (4, 8))], "ein. Köter")
    'ein Köter da'
    """
    source, target = texts
    order = [span for span in words(target) if target[span[0]].isalnum()]
    surest: dict[Span, Link] = {}
    for link in links:
        if source[link.source[0]].isalnum():
            surest[link.target] = max(link, surest.get(link.target, link), key=lambda x: x.weight)
    found = terms.places_in(source)
    places = {term: run for term, *_ in found if (run := _surest_run(order, surest, term))}
    for term, *_ in found:
        if term not in places:
            left = [s for s in order if not any(_meet(s, place) for place in places.values())]
            linked = {link.target for link in links if _meet(link.source, term)}
            choices = (
                [span for span in left if span in linked],
                [span for span in left if span not in surest],
                [span for span in left if span in surest and surest[span].weight < _SURE],
            )
            part = term[0] / len(source) * len(target)
            if spans := next(filter(None, choices), None):
                places[term] = min(spans, key=lambda span: abs(span[0] - part))
    changes = {
        places[term]: next((form for form in forms if holds(searched, form)), forms[0])
        for term, _, forms in found
        if term in places and places[term][0] >= least
    }
    for (start, end), form in sorted(changes.items(), reverse=True):
        target = target[:start] + form + target[end:]
    return target


def _surest_run(order: Sequence[Span], surest: Mapping[Span, Link], term: Span) -> Span | None:
    """From the first to the last of neighbouring words whose surest links are the term's."""
    weights = {
        span: surest[span].weight
        for span in order
        if span in surest and _meet(surest[span].source, term)
    }
    if not weights:
        return None
    least = max(weights.values()) / 2
    groups = groupby(order, lambda span: weights.get(span, 0.0) >= least)
    runs = [list(run) for great, run in groups if great]
    run = max(runs, key=lambda run: sum(weights[span] for span in run))
    return run[0][0], run[-1][1]


def _meet(one: Span, other: Span) -> bool:
    return one[0] < other[1] and other[0] < one[1]
