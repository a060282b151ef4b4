"""The translators of a server by their language pairs, behind one queue."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import chain, product
from typing import TypeAlias

import torch

from glassformer.alignment.doubts import NO_WORD, doubts, invented
from glassformer.config import BEAM
from glassformer.data.preprocessing import Segment, joined
from glassformer.data.terms import NO_TERMS, Terms
from glassformer.data.trigrams import language_shares
from glassformer.data.words import unknown_letters
from glassformer.support.errors import UsageError, counted
from glassformer.support.language_names import language_name
from glassformer.support.languages import standard_code
from glassformer.text_engine import Translation, without_added_stop
from glassformer.tools.documents.html import Page
from glassformer.tools.inspection.trace.build import trace
from glassformer.tools.inspection.trace.schema import Query, Trace
from glassformer.tools.web.queue import Batcher
from glassformer.tools.web.schema import (
    Alternative,
    DetectedLanguage,
    Document,
    TraceRequest,
    TranslatedSegment,
    TranslateRequest,
    TranslateResponse,
    TranslatorInfo,
)
from glassformer.tools.web.security import RefusedError
from glassformer.translator import TranslateSettings, Translator

__all__ = ["LanguagePair", "Service", "translators_by_pair"]

LanguagePair: TypeAlias = tuple[str, str]

_MAX_ITEM = 1000  # subwords of a text in an HTML document, which stays whole in one batch
_SAMPLE = 500  # characters from which the server detects a language
_WARM_UP = 2.0  # seconds in which a further batch of the warm-up begins
_FULL_BATCH = 256  # texts of the warm-up's last batches
_MOST_TRIED = 8  # languages in which the translators try a text of unknown language
_WHOLE_BATCH = 1 << 20  # cost of a trace; over any budget, so that a trace is a batch alone


def translators_by_pair(translators: Mapping[str, Translator]) -> dict[LanguagePair, Translator]:
    """The translators by source and target language, from translators by bundle name.

    Of a multilingual bundle only the pair counts that stands in it, or that the user chose. A
    bundle without languages translates from "source" to "target".

    Raises UsageError if two bundles have the same pair.
    """
    names: dict[LanguagePair, str] = {}
    for name, translator in translators.items():
        pair = translator.bundle.pairs[0]
        if pair in names:
            raise UsageError(
                f"{names[pair]} and {name} both translate {pair[0]} to {pair[1]}:"
                " serve one of them, or start a server for each"
            )
        names[pair] = name
    return {pair: translators[name] for pair, name in names.items()}


@dataclass(frozen=True)
class Service:
    """Translates for many clients at once, in the batcher's thread, with beams of size `beam`.

    `glossaries` has the terms of a pair's translations, if any. `max_subwords` limits a request.
    `through` is the pivot language for pairs without a translator.
    """

    translators: Mapping[LanguagePair, Translator]
    batcher: Batcher
    beam: int = BEAM
    glossaries: Mapping[LanguagePair, Terms] = field(default_factory=dict)
    max_subwords: int = 10_000
    through: str | None = None

    @cached_property
    def pairs(self) -> list[LanguagePair]:
        """The pairs with a translator, then the pairs with the pivot language `through`."""
        sources = [source for source, target in self._all if target == self.through]
        targets = [target for source, target in self._all if source == self.through]
        two = [pair for pair in product(sources, targets) if pair[0] != pair[1]]
        return list(dict.fromkeys([*self._all, *two]))

    @cached_property
    def _all(self) -> dict[LanguagePair, Translator]:
        """`translators`, then multilingual ones by their further pairs."""
        further = {pair: each for each in self.translators.values() for pair in each.bundle.pairs}
        return {**self.translators, **further, **self.translators}

    def translator(self, pair: LanguagePair) -> Translator:
        """The translator of a pair; the pairs of a multilingual bundle share its model."""
        return self.translators.get(pair) or self._all[pair].between(*pair)

    async def warm_up(self) -> None:
        """Let the engines load their models, and the batcher measure their speed."""
        with suppress(RefusedError):  # too slow for the server's timeout
            for pair in self.translators:
                begin = time.monotonic()
                for texts in (1, 8, 8, 8, _FULL_BATCH):
                    if time.monotonic() - begin < _WARM_UP:
                        await self.translate(pair, [language_name(pair[0])] * texts)

    @cached_property
    def codes(self) -> dict[str, str]:
        """The served codes, by the same codes in small letters."""
        return {code.lower(): code for pair in self._all for code in pair}

    def code(self, asked: str) -> str:
        """The served code, as de for DE, deu or de-DE. Raises RefusedError if none matches."""
        standard = standard_code(asked)
        for form in (asked, standard, standard.partition("-")[0]):
            if form.lower() in self.codes:
                return self.codes[form.lower()]
        raise RefusedError(400, f"{asked} is not supported")

    def pair(self, source: str | None, target: str | None) -> LanguagePair:
        """The first pair of languages; None fits any. Raises RefusedError if no pair matches."""
        wanted = source and self.code(source), target and self.code(target)
        for pair in self.pairs:
            if wanted[0] in (None, pair[0]) and wanted[1] in (None, pair[1]):
                return pair
        names = [f"{language_name(code)} ({code})" if code else "any language" for code in wanted]
        raise RefusedError(400, f"{names[1]} is not available as a target language from {names[0]}")

    async def detect(
        self, texts: Sequence[str], target: str | None = None
    ) -> list[DetectedLanguage]:
        """The languages that the texts may have, the likeliest first.

        The profiles of the bundles decide by the first 500 characters. If a bundle has no profile,
        or the text's letters are in none, the translators' confidence decides. Letters that no
        translator knows give 0. With ``target``, only languages of a pair with that target count.
        """
        sources = {pair[0] for pair in self.pairs if target in (None, pair[1])}
        pairs = {pair[0]: pair for pair in self._all if pair[0] in sources}
        if not pairs:
            return await self.detect(texts)
        sample = "\n".join(texts)[:_SAMPLE]
        profiles, shares = self.profiles, dict.fromkeys(pairs, 0.0)
        if pairs.keys() <= profiles.keys():
            asked = profiles if target is None else {source: profiles[source] for source in pairs}
            shares = language_shares(sample, asked)
        if not any(shares.values()) and len(pairs) > 1:
            letters = {*filter(str.isalpha, sample)}
            pairs = {
                language: pair
                for language, pair in pairs.items()
                if letters - {*unknown_letters(self.translator(pair).source_tokenizer, sample)}
            }
            if len(pairs) > _MOST_TRIED:
                raise RefusedError(
                    400,
                    f"{len(pairs)} languages are too many to try: name the source",
                )
            documents = [self.translate(pair, [sample]) for pair in pairs.values()]
            confidences = [document.confidence for [document] in await asyncio.gather(*documents)]
            shares |= zip(pairs, confidences, strict=True)
        detected = [
            DetectedLanguage(language=language, confidence=round(100 * share, 1))
            for language, share in shares.items()
        ]
        return sorted(detected, key=lambda language: -language.confidence)

    @cached_property
    def profiles(self) -> dict[str, str]:
        """The trigrams of each language, from the bundles that have trigrams."""
        return {
            language: profile
            for pair, each in self.translators.items()
            for language, profile in zip(pair, each.bundle.trigrams or (), strict=False)
        }

    async def _languages(
        self, asked: TranslateRequest
    ) -> tuple[LanguagePair, DetectedLanguage | None]:
        """The codes of both languages, and the detected language if the source is auto."""
        detected, target = None, self.code(asked.target)
        if asked.source == "auto":
            [detected, *_] = await self.detect(asked.texts, target)
        source = detected.language if detected else self.code(asked.source)
        return (source, target) if source == target else self.pair(source, target), detected

    def translator_infos(self, *, examples: bool) -> list[TranslatorInfo]:
        """Languages, size and origin of each translator; examples only with `examples`."""
        infos = [
            TranslatorInfo(
                source=source,
                target=target,
                parameters=sum(weight.numel() for weight in translator.model.parameters()),
                learnt_from=_learnt_from(translator.bundle.about),
                through=None,
                examples=list(translator.bundle.examples) if examples else [],
                languages=list(dict.fromkeys(chain(*translator.bundle.pairs[1:]))),
            )
            for (source, target), translator in self.translators.items()
        ]
        return infos + [
            TranslatorInfo(source=source, target=target, through=self.through)
            for source, target in self.pairs[len(self._all) :]
        ]

    async def documents(self, asked: TranslateRequest) -> TranslateResponse:
        """The answer to a request; texts in the target language stay as they are."""
        (source, target), detected = await self._languages(asked)
        if source == target:
            documents = [Document(text=text) for text in asked.texts]
        elif (source, target) in self._all:
            documents = await self._translated((source, target), asked)
        else:
            documents = await self._translated_twice((source, target), asked)
        return TranslateResponse(
            source=source, target=target, documents=documents, detected=detected
        )

    async def _translated(self, pair: LanguagePair, asked: TranslateRequest) -> list[Document]:
        if asked.format == "html":
            return await self.translate_html(pair, asked.texts, glossary=asked.glossary)
        options = asked.model_dump(include={"alternatives", "alignment", "glossary"})
        return await self.translate(pair, asked.texts, **options)

    async def _translated_twice(
        self, pair: LanguagePair, asked: TranslateRequest
    ) -> list[Document]:
        """The translation of each text by way of the pivot language, without segments.

        German to French by way of English is German to English, then English to French. Each
        translation adds faults, and a meaning without a word in English is lost.
        """
        assert self.through is not None
        if asked.glossary:
            raise RefusedError(400, f"glossary: a translation by way of {self.through} takes none")
        asked = asked.model_copy(update={"alternatives": 0, "alignment": False})
        first = await self._translated((pair[0], self.through), asked)
        between = asked.model_copy(update={"q": [document.text for document in first]})
        second = await self._translated((self.through, pair[1]), between)
        return [Document(text=document.text) for document in second]

    async def translate(
        self,
        pair: LanguagePair,
        texts: Sequence[str],
        *,
        alternatives: int = 0,
        alignment: bool = False,
        glossary: Mapping[str, str | Sequence[str]] | None = None,
    ) -> list[Document]:
        """The translation of each text. Cancelling drops the segments that still wait.

        Raises InputError if the texts with their terms are too long for the model.
        """
        translator = self.translator(pair)
        # A thread cuts the texts, so that the event loop serves other requests meanwhile.
        terms = self._terms(pair, glossary)
        rows = await asyncio.to_thread(translator.segments, texts, glossary=terms)
        segments = [
            (text[slice(*segment.span)], len(segment.ids))
            for text, row in zip(texts, rows, strict=True)
            for segment in row
        ]
        search: TranslateSettings = {"n_best": alternatives + 1, "alignment": alignment}
        translations = await self._queued(pair, segments, terms, {**search, "split": False})
        sources = [source for source, _ in segments]
        rate = partial(_alternatives, translator)
        rest = iter(await asyncio.to_thread(lambda: list(map(rate, sources, translations))))
        return [
            _document(text, row, [next(rest) for _ in row], language=pair[1])
            if row or not invented(translator.bundle, text, text)
            else Document(text=text, doubts=[NO_WORD])
            for text, row in zip(texts, rows, strict=True)
        ]

    def _terms(
        self, pair: LanguagePair, glossary: Mapping[str, str | Sequence[str]] | None
    ) -> Terms:
        """The terms of the server's glossary and of a request's glossary."""
        terms = self.glossaries.get(pair, NO_TERMS)
        return terms | Terms.of(glossary) if glossary else terms

    async def _queued(
        self,
        pair: LanguagePair,
        texts: Sequence[tuple[str, int]],
        terms: Terms,
        search: TranslateSettings,
    ) -> list[Translation]:
        """The translation of each text; a text stands beside the number of its subwords.

        Requests for one pair with equal options share batches.
        """
        size = sum(length for _, length in texts)
        if size > self.max_subwords:
            raise RefusedError(
                400,
                f"Invalid request: request ({size:,} subwords) exceeds the limit of"
                f" {self.max_subwords:,}: send less text at once",
            )
        search["beam"] = max(self.beam, search.get("n_best", 1))
        translator = self.translator(pair)
        return await asyncio.wrap_future(
            self.batcher.submit(
                (pair, *search.items()),
                partial(_with_terms, translator, search=search),
                [(text, terms) for text, _ in texts],
                costs=[length + 1 for _, length in texts],
            )
        )

    async def translate_html(
        self,
        pair: LanguagePair,
        texts: Sequence[str],
        *,
        glossary: Mapping[str, str | Sequence[str]] | None = None,
    ) -> list[Document]:
        """The translation of each HTML document, without segments and alternatives."""
        pages = await asyncio.to_thread(lambda: [Page.of(text) for text in texts])
        units = [page.texts for page in pages]
        flat = [text for of_page in units for text in of_page]
        ids = await asyncio.to_thread(self.translator(pair).source_tokenizer.encode_batch, flat)
        lengths = [len(of_text) for of_text in ids]
        if max(lengths, default=0) > _MAX_ITEM:
            raise RefusedError(
                400,
                f"Invalid request: a text of the document has {max(lengths):,} subwords, more"
                f" than the limit of {_MAX_ITEM:,}: divide it among several elements",
            )
        pairs = list(zip(flat, lengths, strict=True))
        rest = iter(
            await self._queued(pair, pairs, self._terms(pair, glossary), {"alignment": True})
        )
        answers = [[next(rest) for _ in of_page] for of_page in units]
        bundle = self.translator(pair).bundle
        return [
            Document(
                text=page.written(answer, pair[1]),
                doubts=[NO_WORD]
                * any(invented(bundle, x, y.text) for x, y in zip(texts, answer, strict=True)),
            )
            for page, texts, answer in zip(pages, units, answers, strict=True)
        ]

    async def trace(self, pair: LanguagePair, request: TraceRequest) -> str:
        """One trace as JSON. Raises InputError if the request has no trace."""
        if pair not in self._all:
            raise RefusedError(400, f"{pair[0]} to {pair[1]} has no single translator to trace")
        options = {name: value for name, value in request if name not in ("source", "target")}
        terms = self.glossaries.get(pair, NO_TERMS)
        traced = partial(trace, self.translator(pair), Query(**options), glossary=terms)

        def trace_batch(batch: Sequence[Callable[[], Trace]]) -> list[str]:
            return [each().to_json() for each in batch]

        answers = await asyncio.wrap_future(
            self.batcher.submit(("trace", pair), trace_batch, [traced], costs=[_WHOLE_BATCH])
        )
        return str(answers[0])


def _with_terms(
    translator: Translator,
    batch: Sequence[tuple[str, Terms]],
    *,
    search: TranslateSettings,
) -> list[Translation]:
    """The translations of texts, each with its terms; texts of equal terms share a batch."""
    translations: dict[int, Translation] = {}
    for shared in {id(terms): terms for _, terms in batch}.values():
        places = [place for place, item in enumerate(batch) if item[1] is shared]
        options: TranslateSettings = {**search, "glossary": shared}
        translated = translator.translate([batch[place][0] for place in places], **options)
        translations |= zip(places, translated, strict=True)
    return [translations[place] for place in range(len(batch))]


def _learnt_from(about: Mapping[str, object]) -> str | None:
    """The texts of a bundle's training and the number of pairs, for people to read."""
    data, pairs = about.get("data"), about.get("pairs")
    if not isinstance(data, str):
        return None
    return f"{data} ({counted(pairs, 'pair')})" if isinstance(pairs, int) else data


def _alternatives(translator: Translator, source: str, best: Translation) -> list[Alternative]:
    """The translations of one segment, best first, with their probabilities."""
    segment = [best, *best.alternatives]
    values = torch.tensor(translator.log_probabilities(segment), dtype=torch.float64)
    shares = values[:, 0].softmax(0).tolist()
    confidences = (values[:, 0] / values[:, 1]).exp().clamp(max=1.0).tolist()
    return [
        Alternative(
            text=each.text,
            score=each.score,
            confidence=confidence,
            share=share,
            alignment=None if each.alignment is None else list(each.alignment),
            doubts=doubts(translator.bundle, source, each),
        )
        for each, confidence, share in zip(segment, confidences, shares, strict=True)
    ]


def _before_mark(text: str, segment: Segment, answer: Alternative) -> Alternative:
    """The answer without a final stop that the model adds before another mark, and its links."""
    shown = without_added_stop(text, segment, answer.text)
    links = answer.alignment and [x for x in answer.alignment if x.target[1] <= len(shown)]
    return answer.model_copy(update={"text": shown, "alignment": links})


def _document(
    text: str,
    row: Sequence[Segment],
    answers: Sequence[Sequence[Alternative]],
    *,
    language: str,
) -> Document:
    """The document of a text, from the hypotheses of each of its segments."""
    answers = [
        [_before_mark(text, segment, each) for each in answer]
        for segment, answer in zip(row, answers, strict=True)
    ]
    ranks = range(max(map(len, answers), default=1))
    (best, spans), *others = (
        joined(
            text,
            row,
            # A segment with fewer hypotheses repeats its best hypothesis.
            [answer[rank if rank < len(answer) else 0].text for answer in answers],
            language=language,
        )
        for rank in ranks
    )
    segments = [
        TranslatedSegment(source=segment.span, target=span, hypotheses=list(hypotheses))
        for segment, span, hypotheses in zip(row, spans, answers, strict=True)
    ]
    reasons = chain.from_iterable(answer[0].doubts for answer in answers)
    return Document(
        text=best,
        segments=segments,
        alternatives=[other for other, _ in others],
        doubts=list(dict.fromkeys(reasons)),
    )
