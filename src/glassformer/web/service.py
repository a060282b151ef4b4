"""The translators of a server by their language pairs, all before one queue."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from glassformer.config import BEAM
from glassformer.data.splitting import LONGEST_SOURCE
from glassformer.decoding.beam import penalty
from glassformer.errors import UsageError
from glassformer.web.limits import RefusedError
from glassformer.web.queue import Batcher
from glassformer.web.schema import (
    Candidate,
    Document,
    Link,
    Segment,
    TraceQuestion,
    TranslatorFacts,
)
from glassformer.web.segments import Cut, cut

if TYPE_CHECKING:
    from glassformer.text_engine import Translation
    from glassformer.translator import Translator

__all__ = ["Pair", "Service", "by_pair"]

Pair = tuple[str, str]

_ALONE = 1 << 20  # more than any batch may cost: others can have their turn after it


def by_pair(translators: Mapping[str, Translator]) -> dict[Pair, Translator]:
    """The translators by source and target; the keys say which bundle each is from.

    One that does not know its languages translates from "source" to "target".

    Raises UsageError for two of the same pair.
    """
    found: dict[Pair, Translator] = {}
    names: dict[Pair, str] = {}
    for name, translator in translators.items():
        pair = translator.bundle.languages or ("source", "target")
        if pair in found:
            raise UsageError(
                f"{names[pair]} and {name} both translate {pair[0]} to {pair[1]}:"
                " serve one of them, or each on a --port of its own"
            )
        found[pair], names[pair] = translator, name
    return found


@dataclass(frozen=True)
class _Answer:
    """What a translator says of a piece, and how sure it is of each hypothesis."""

    translation: Translation
    confidences: Sequence[float]


@dataclass(frozen=True)
class Service:
    """Translates for many at once: `submit` gives a future, and the batcher's thread does it.

    `beam`: hypotheses that are followed at once.
    """

    translators: Mapping[Pair, Translator]
    batcher: Batcher
    beam: int = BEAM

    def pair(self, source: str | None, target: str | None) -> Pair:
        """The pair that is meant. RefusedError if there is none, or if "auto" could be several."""
        pairs = list(self.translators)
        if source is None and target is None:
            return pairs[0]
        fits = [p for p in pairs if source in (None, "auto", p[0]) and target in (None, p[1])]
        if len(fits) == 1:
            return fits[0]
        known = ", ".join(f"{one[0]} to {one[1]}" for one in pairs)
        if fits:
            raise RefusedError(400, f"source 'auto' could be several: say which ({known})")
        for code, codes in ((source, {p[0] for p in pairs}), (target, {p[1] for p in pairs})):
            if code not in (None, "auto") and code not in codes:
                raise RefusedError(400, f"{code!a} is not supported: there is {known}")
        raise RefusedError(400, f"{source!a} to {target!a} is not supported: there is {known}")

    def facts(self) -> list[TranslatorFacts]:
        """What there is."""
        return [
            TranslatorFacts(
                source=source,
                target=target,
                parameters=sum(weight.numel() for weight in one.model.parameters()),
                validation=_text_or_none(one.bundle.about.get("validation")),
            )
            for (source, target), one in self.translators.items()
        ]

    async def translate(
        self, pair: Pair, texts: Sequence[str], *, alternatives: int = 0, alignment: bool = False
    ) -> list[Document]:
        """Each text's translation. Cancelled, it stops the work that has not begun."""
        translator = self.translators[pair]
        # In a thread: cutting twenty thousand characters takes a while, in which others come.
        cuts = await asyncio.to_thread(_cuts, texts, translator)
        pieces = [piece for one in cuts for piece in one.pieces]
        n_best = alternatives + 1

        def run(some: Sequence[str]) -> list[_Answer]:
            found = translator.translate(
                some,
                beam=max(self.beam, n_best),
                n_best=n_best,
                alignment=alignment,
            )
            return _answers(translator, found)

        answers = await asyncio.wrap_future(
            self.batcher.submit(
                (pair, n_best, alignment),
                run,
                [piece.text for piece in pieces],
                costs=[piece.cost for piece in pieces],
            )
        )
        rest = iter(answers)
        return [_document(one, [next(rest) for _ in one.pieces]) for one in cuts]

    async def trace(self, pair: Pair, question: TraceQuestion) -> str:
        """One trace, as JSON. ValueError for a question that a trace cannot answer."""
        from glassformer.inspection.trace.build import trace

        def run(questions: Sequence[dict[str, Any]]) -> list[str]:
            return [trace(self.translators[pair], **said).to_json() for said in questions]

        said = {name: value for name, value in question if name not in ("source", "target")}
        found = await asyncio.wrap_future(
            self.batcher.submit(("trace", pair), run, [said], costs=[_ALONE])
        )
        return str(found[0])


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _cuts(texts: Sequence[str], translator: Translator) -> list[Cut]:
    tokenizer = translator.source_tokenizer
    return [
        cut(text, lambda some: len(tokenizer.encode(some)), limit=LONGEST_SOURCE) for text in texts
    ]


def _answers(translator: Translator, found: Sequence[Translation]) -> list[_Answer]:
    found = [replace(one, alternatives=_others(one)) for one in found]
    texts = [one.text for best in found for one in (best, *best.alternatives)]
    counts = iter(translator.count_tokens(texts))

    def confidence(one: Translation) -> float:
        """The geometric mean of a token's probability: exp(log p / tokens)."""
        tokens = next(counts)
        log_probability = one.score * penalty(tokens, translator.length_penalty)
        return math.exp(min(0.0, log_probability / tokens))

    return [_Answer(one, [*map(confidence, (one, *one.alternatives))]) for one in found]


def _others(translation: Translation) -> tuple[Translation, ...]:
    """The alternatives that read differently; the same text in other subwords is none."""
    by_text = {one.text: one for one in reversed(translation.alternatives)}
    by_text.pop(translation.text, None)
    return tuple(sorted(by_text.values(), key=lambda one: -one.score))


def _document(found: Cut, answers: Sequence[_Answer]) -> Document:
    segments: list[Segment] = []
    end = 0
    for piece, answer in zip(found.pieces, answers, strict=True):
        start = end + len(piece.gap)
        end = start + len(answer.translation.text)
        place = piece.start, piece.start + len(piece.text)
        segments.append(Segment(source=place, target=(start, end), candidates=_candidates(answer)))
    most = max((len(segment.candidates) for segment in segments), default=1)
    best, *others = (
        found.joined([_ranked(segment.candidates, rank).text for segment in segments])
        for rank in range(most)
    )
    return Document(text=best, segments=segments, alternatives=others)


def _ranked(candidates: Sequence[Candidate], rank: int) -> Candidate:
    """The candidate of that rank; the best where there are not so many."""
    return candidates[rank] if rank < len(candidates) else candidates[0]


def _candidates(answer: _Answer) -> list[Candidate]:
    best = answer.translation
    return [
        Candidate(
            text=one.text,
            score=one.score,
            confidence=confidence,
            alignment=None
            if one.alignment is None
            else [
                Link(source=link.source, target=link.target, weight=link.weight)
                for link in one.alignment
            ],
        )
        for one, confidence in zip((best, *best.alternatives), answer.confidences, strict=True)
    ]
