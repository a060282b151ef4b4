"""Texts through an engine: cut into segments, encoded, decoded, joined again."""

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import fsum
from typing import TypeVar

from glassformer.data.splitting import LONGEST_SOURCE, Segments, joined, segments_of
from glassformer.data.terms import Terms, encoded_forms, letter_ids
from glassformer.data.tokenizer import Tokenizer
from glassformer.data.words import Link
from glassformer.decoding.engine import Engine, Future, Job, SearchOptions, TorchEngine
from glassformer.decoding.glossary import Glossary
from glassformer.decoding.protocols import Hypothesis, Vocabulary
from glassformer.errors import UsageError
from glassformer.model.fast.choice import DecoderChoice
from glassformer.model.transformer import Transformer

__all__ = ["TextEngine", "Translation", "results_in_order", "torch_engine", "windows_of"]

T = TypeVar("T")

_NO_TERMS = Terms(())

_FULL_STOP = re.compile(r"(?<!\.) ?[.。．｡।۔።]$")  # of several scripts; three dots are none
_WINDOW = 1 << 16  # characters; the lines of a window are sorted by length together


@dataclass(frozen=True)
class Translation:
    """A translation, its score, and the next best ones.

    No alternative is blank, and no two texts differ in white space or the final full stop only.
    The score is log p(text | source) over the length penalty, at most 0. A sampled translation has
    no penalty; a text of several segments has the mean of their scores. The alignment is None if
    nobody asked for it, and for a text of several segments.
    """

    text: str
    score: float
    alternatives: tuple["Translation", ...] = ()
    alignment: tuple[Link, ...] | None = None


@dataclass(frozen=True)
class TextEngine:
    """An engine with its tokenizers: texts in, translations out.

    `longest`: a source with more subwords is cut into segments. `room`: the most subwords that a
    segment and its prefix may have together.
    """

    engine: Engine
    source: Tokenizer
    target: Tokenizer
    longest: int
    room: int

    @classmethod
    def of(
        cls,
        model: Transformer,
        tokenizers: tuple[Tokenizer, Tokenizer],
        *,
        engine: Engine | None = None,
    ) -> "TextEngine":
        """The text engine of a model in evaluation mode; without an ``engine``, torch runs it.

        Make a new one after the model's weights change.
        """
        room = model.config.longest_source
        return cls(
            engine or torch_engine(model, tokenizers),
            *tokenizers,
            longest=min(LONGEST_SOURCE, room),
            room=room,
        )

    def translate(
        self, texts: Sequence[str], options: SearchOptions, prefixes: Sequence[str] = ()
    ) -> list[Translation]:
        """One translation for each text, in their order; a blank text gives a blank one."""
        return self.submit(texts, options, prefixes).result()

    def submit(
        self,
        texts: Sequence[str],
        options: SearchOptions,
        prefixes: Sequence[str] = (),
        terms: Terms = _NO_TERMS,
    ) -> Future[list[Translation]]:
        """A future of :meth:`translate`. The engine gets the texts in jobs of like lengths."""
        self._check(options, forced=any(prefixes) or bool(terms.entries))
        jobs = []
        for places in _chunks(texts, self.engine.at_once):
            forced = [prefixes[place] for place in places] if prefixes else []
            jobs.append((places, *self._search([texts[i] for i in places], options, forced, terms)))

        def finish() -> list[Translation]:
            by_place: dict[int, Translation] = {}
            for places, segments, hypotheses in jobs:
                translations = self.translations(hypotheses.result(), segments.spans)
                by_place |= zip(places, translations, strict=True)
            return [by_place[place] for place in range(len(texts))]

        return Future([hypotheses for *_, hypotheses in jobs], finish)

    def _check(self, options: SearchOptions, *, forced: bool) -> None:
        """Raise UsageError if the model or what is ``forced`` has no room for the options."""
        if options.min_length > self.room:
            raise UsageError(
                f"min_length {options.min_length}: this model has room for {self.room:,} subwords:"
                " give less"
            )
        if options.no_repeat_ngram and forced:
            raise UsageError(
                f"no_repeat_ngram {options.no_repeat_ngram}: it could forbid what a prefix or a"
                " glossary demands: leave one of them out"
            )

    def search(
        self, texts: Sequence[str], options: SearchOptions
    ) -> tuple[Segments, list[list[Hypothesis]]]:
        """The segments of the texts, and the hypotheses of each segment."""
        segments, hypotheses = self._search(texts, options, (), _NO_TERMS)
        return segments, hypotheses.result()

    def _search(
        self, texts: Sequence[str], options: SearchOptions, prefixes: Sequence[str], terms: Terms
    ) -> tuple[Segments, Future[list[list[Hypothesis]]]]:
        segments = segments_of(texts, self.source, limit=self.longest)
        forced = self._forced(prefixes, segments)
        job = Job(segments.ids, forced, self._glossary(terms, texts, segments, forced))
        return segments, self.engine.submit(job, options)

    def _forced(self, prefixes: Sequence[str], segments: Segments) -> list[list[int]]:
        """The forced ids of each segment: a text's first segment that is not blank has its prefix.

        [] without prefixes.
        """
        if not any(prefixes):
            return []
        forced: list[list[int]] = [[] for _ in segments.ids]
        for span, ids in zip(segments.spans, self.target.encode_batch(prefixes), strict=True):
            # A blank segment never meets the model.
            first = next((place for place in span if segments.ids[place]), span.start)
            room = self.room - len(segments.ids[first])
            if self.target.unk_id in ids:
                raise UsageError(
                    "a prefix has a character that the target tokenizer lacks: leave it out"
                )
            if len(ids) > room:
                raise UsageError(
                    f"a prefix has {len(ids):,} subwords, and this model has room for {room:,}:"
                    " shorten it"
                )
            forced[first] = ids
        return forced

    def _glossary(
        self,
        terms: Terms,
        texts: Sequence[str],
        segments: Segments,
        forced: Sequence[Sequence[int]],
    ) -> Glossary | None:
        """The terms that stand in each segment, with the ids of their forms; None if none does."""
        if not terms.entries:
            return None
        of_segments = list(self.source.decode_batch(segments.ids))
        for text, span in zip(texts, segments.spans, strict=True):
            if len(span) == 1:  # as it was written: the tokenizer may change letters
                of_segments[span.start] = text
        forms = [terms.forms_in(text) for text in of_segments]
        if not any(forms):
            return None
        ids = {
            form: encoded_forms(self.target, form)
            for form in dict.fromkeys(
                form for segment in forms for term in segment for form in term
            )
        }
        glossary = Glossary(
            [
                [[row for form in term for row in ids[form]] for term in segment]
                for segment in forms
            ],
            Vocabulary.of(self.target),
            *self._letters,
        )
        for place, source in enumerate(segments.ids):
            room = self.room - len(source) - (len(forced[place]) if forced else 0)
            if glossary.needed(place) > room:
                raise UsageError(
                    f"the glossary's terms for a text have {glossary.needed(place):,} subwords, and"
                    f" this model has room for {room:,}: shorten it"
                )
        return glossary

    @cached_property
    def _letters(self) -> tuple[frozenset[int], frozenset[int]]:
        return letter_ids(self.target)

    def translations(
        self, hypotheses: Sequence[Sequence[Hypothesis]], spans: Sequence[range]
    ) -> Iterator[Translation]:
        """The translation of each text, whose segments have ``hypotheses`` at its span's places.

        A text of several segments takes the best hypothesis of each.
        """
        of_texts = [
            [hypotheses[place][0] for place in span] if len(span) > 1 else hypotheses[span.start]
            for span in spans
        ]
        decoded = iter(self.target.decode_batch([h.tokens for text in of_texts for h in text]))
        for span, of_text in zip(spans, of_texts, strict=True):
            texts = [next(decoded) for _ in of_text]
            scores = [hypothesis.score for hypothesis in of_text]
            if len(span) > 1:
                yield Translation(joined(texts), fsum(scores) / len(scores))
            else:
                best, *others = _distinct(map(Translation, texts, scores))
                yield Translation(best.text, best.score, tuple(others))


def _distinct(translations: Iterable[Translation]) -> list[Translation]:
    """The best translation, and each other one that is not blank and reads differently.

    A beam may end with one text in several segmentations into subwords. To a person two texts are
    one if they differ in white space or in the final full stop only.
    """
    by_reading: dict[str, Translation] = {}
    for translation in translations:
        reading = " ".join(translation.text.split())
        if reading or not by_reading:
            by_reading.setdefault(_FULL_STOP.sub("", reading), translation)
    return list(by_reading.values())


def _chunks(texts: Sequence[str], size: int) -> list[list[int]]:
    """The places of the texts in groups of like lengths, the longest first; at least one group.

    Lengths are in characters: no group waits until all texts are cut into subwords.
    """
    order = list(range(len(texts)))
    if len(texts) > size:
        order.sort(key=lambda place: -len(texts[place]))
    return [order[start : start + size] for start in range(0, max(len(order), 1), size)]


def results_in_order(futures: Iterable[Future[list[T]]]) -> Iterator[T]:
    """The items of each future's list, in order.

    Reads a further future only while the first one without a result is not done.
    """
    pending: deque[Future[list[T]]] = deque()
    for future in futures:
        pending.append(future)
        while pending and pending[0].done():
            yield from pending.popleft().result()
    for future in pending:
        yield from future.result()


def windows_of(lines: Iterable[str]) -> Iterator[list[str]]:
    """The lines in windows of about 64 Ki characters; a stream sorts each window by length."""
    window: list[str] = []
    length = 0
    for line in lines:
        window.append(line)
        length += len(line) + 1
        if length >= _WINDOW:
            yield window
            window, length = [], 0
    if window:
        yield window


def torch_engine(
    model: Transformer,
    tokenizers: tuple[Tokenizer, Tokenizer],
    *,
    weights: str = "as they are",
) -> TorchEngine:
    """The engine that decodes with ``model`` itself; ``weights`` is the number type."""
    source, target = map(Vocabulary.of, tokenizers)
    return TorchEngine(
        model,
        DecoderChoice(model, weights),
        source,
        target,
        next(model.parameters()).device,
        model.config.extra_length,
    )
