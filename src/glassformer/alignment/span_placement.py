"""Keeps the protected spans of segments in their translations.

A model reads a segment with its spans if it has learnt to copy them. If the translation loses,
doubles or invents a span, the model reads the segment again, without spans. The alignment then puts
the spans back.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TypeAlias

from glassformer.alignment.align import align
from glassformer.alignment.cross_attention import UnalignedError
from glassformer.alignment.restoring import restored
from glassformer.alignment.term_placement import TermPlacement
from glassformer.data.accelerators import with_key
from glassformer.data.bare_text import BareText, Mark
from glassformer.data.digits import LARGE, large_numbers, lost_numbers
from glassformer.data.preprocessing import Segment
from glassformer.data.protected import ProtectedSpan, measures, protected_spans
from glassformer.data.words import Link, Span, has_letters
from glassformer.decoding.engine import SearchOptions
from glassformer.text_engine import SegmentTranslation, Translation, with_alternatives

__all__ = ["SpanPlacement"]

_Parts: TypeAlias = tuple[SegmentTranslation, ...]
_CODE = frozenset("%{<[$#@&")  # signs of placeholders and tags, without which no span is invented
_PERCENT = re.compile(r"(?<!\d)%[^\W\d_]")  # a placeholder of C, or the model's trial of one


@dataclass(frozen=True)
class SpanPlacement:
    """Puts protected spans into translations with ``terms``, which were found with ``options``."""

    terms: TermPlacement
    options: SearchOptions

    def placed(
        self, texts: Sequence[str], translations: Sequence[Translation], prefixes: Sequence[str]
    ) -> list[Translation]:
        """The translations and their alternatives, with the spans of their texts.

        An alternative that loses a span is left out. No span comes before the end of a prefix.
        """
        leasts = list(map(len, prefixes or [""] * len(texts)))
        rows = [[best.segments, *(x.segments for x in best.alternatives)] for best in translations]
        self._read_again(texts, rows, prefixes)
        parts = [
            (part, 0 if number else least)
            for row, least in zip(rows, leasts, strict=True)
            for parts in row
            for number, part in enumerate(parts)
        ]
        rest = iter(self._restored(parts))
        finished = []
        for text, best, row in zip(texts, translations, rows, strict=True):
            first, *others = ([next(rest) for _ in parts] for parts in row)
            kept = [first, *(parts for parts in others if not any(map(_is_faulty, parts)))]
            kept = [[_as_typed(part, text) for part in parts] for parts in kept]
            same = [tuple(parts) for parts in kept] == [
                each.segments for each in (best, *best.alternatives)
            ]
            joined = (self.terms.engine.joined(text, parts) for parts in kept)
            finished.append(best if same else with_alternatives(joined))
        return finished

    def _read_again(
        self, texts: Sequence[str], rows: list[list[_Parts]], prefixes: Sequence[str]
    ) -> None:
        """Replace each faulty translation of a segment by one of the segment without spans.

        Lost numbers become spans, half of them at a time, until no translation lacks one.
        """
        faulty: dict[tuple[int, int], Segment] = {}
        for place, row in enumerate(rows):
            for index, part in enumerate(row[0]):
                lost = self._lost_numbers(part)
                if lost or _is_faulty(part):
                    faulty[place, index] = _with_spans(part.segment, lost)
        if not faulty:
            return
        engine, chosen = self.terms.engine, [texts[place] for place, _ in faulty]
        begins = ["" if index else prefixes[place] for place, index in faulty if prefixes]
        bare = [[segment.bare(engine.source)] for segment in faulty.values()]
        translations = engine.read(chosen, bare, self.options, begins)
        translations = self.terms.placed(chosen, translations, begins)
        for (place, index), best in zip(faulty, translations, strict=True):
            parts = rows[place][0]
            again = [best, *best.alternatives] if len(parts) == 1 else [best]
            rows[place] = [(*parts[:index], *x.segments, *parts[index + 1 :]) for x in again]
        self._read_again(texts, rows, prefixes)

    def _lost_numbers(self, part: SegmentTranslation) -> list[Span]:
        """Large numbers that a translation lacks, if the training's targets kept theirs.

        These are the longer half of the lost numbers, because the others may come through without
        them. A number inside a term is text, and so are the numbers of a text without words.
        """
        engine, segment, whole = self.terms.engine, part.segment, part.segment.whole
        known = engine.preprocessing.known
        if not (known and known.copies_numbers):
            return []
        if not lost_numbers(segment.text, part.text, least=LARGE):
            return []  # most texts
        spans = [(mark.start, mark.end) for mark in segment.marked.marks] if segment.marked else []
        spans += [term for term, *_ in engine.terms.places_in(whole)]
        taken = {place for span in spans for place in range(*span)}
        lost = [
            (start, end)
            for start, end in large_numbers(whole)
            if taken.isdisjoint(range(start, end))
            and lost_numbers(whole[start:end], part.text, least=LARGE)
        ]
        lost.sort(key=lambda span: span[0] - span[1])  # a long one is less often known
        longer = lost[: (len(lost) + 1) // 2]
        rest = _with_spans(segment, longer).marked
        return longer if rest and has_letters(rest.bare) else []

    def _restored(
        self, parts: Sequence[tuple[SegmentTranslation, int]]
    ) -> Iterator[SegmentTranslation]:
        """The translations with spans, each of which begins at or after a place.

        A blank translation gets no spans.
        """
        cleaned = [(_without_invented(part, least), least) for part, least in parts]
        bare = [part for part, _ in cleaned if part.segment.is_bare and part.text.strip()]
        sources, targets = [part.segment.text for part in bare], [part.text for part in bare]
        links: Iterator[tuple[Link, ...] | None] = iter([None] * len(bare))
        with suppress(UnalignedError):
            links = iter(align(self.terms.bundle, sources, targets) if bare else [])
        for part, least in cleaned:
            if not part.text.strip():
                yield part
                continue
            if marked := part.segment.marked if part.segment.is_bare else None:
                segment, read = replace(part.segment, text=marked.text), part.text
                for given in (next(links), None):
                    text, moved = restored(marked, read, given, least=least)
                    part = replace(part, segment=segment, text=text, alignment=moved)
                    if not _is_faulty(part):
                        break
            if mark := part.segment.accelerator:
                text = with_key(part.text, *mark, least=least)
                part = replace(part, text=text, alignment=None)
            yield part


def _with_spans(segment: Segment, spans: Sequence[Span]) -> Segment:
    """The segment with further spans that the model does not read."""
    marks = [*(segment.marked.marks if segment.marked else ())]
    marks += [Mark(*span, kind="unknown") for span in spans]
    marks.sort(key=lambda mark: mark.start)
    return replace(segment, marked=BareText(segment.whole, tuple(marks)) if marks else None)


def _is_faulty(part: SegmentTranslation) -> bool:
    """Whether a translation loses, doubles or invents a span, or changes the order of spans."""
    marked, target = part.segment.marked, part.text
    if marked is None or part.segment.is_bare:
        return False
    texts = [marked.text[mark.start : mark.end] for mark in marked.marks]
    spans = protected_spans(target)
    found = [span.text_of(target) for span in spans]
    counts, wanted = Counter(found), Counter(texts)
    for mark, text in zip(marked.marks, texts, strict=True):
        if mark.kind == "measure":
            number = max(counts[text], measures(text, target))
            wrong = number < wanted[text]
        elif mark.kind in ("unknown", "emphasis"):
            wrong = target.count(text) < wanted[text]
        else:
            wrong = counts[text] != wanted[text]
        if wrong:
            return True
    pairs = zip(marked.marks, texts, strict=True)
    ordered = [text for mark, text in pairs if mark.ordered or mark.kind == "tag"]
    if ordered != [text for text in found if text in ordered]:
        return True
    if len(_PERCENT.findall(target)) > len(_PERCENT.findall(part.segment.text)):
        return True
    return any(_is_code(span, target) and span.text_of(target) not in wanted for span in spans)


def _without_invented(part: SegmentTranslation, least: int) -> SegmentTranslation:
    """The translation without placeholders and tags that the text lacks, from a place on."""
    if _CODE.isdisjoint(part.text) or (part.segment.marked and not part.segment.is_bare):
        return part  # most texts
    marks = [
        Mark(span.start, span.end)
        for span in protected_spans(part.text)
        if span.start >= least
        and _is_code(span, part.text)
        and span.text_of(part.text) not in part.segment.text
    ]
    return replace(part, text=BareText(part.text, tuple(marks)).bare) if marks else part


def _as_typed(part: SegmentTranslation, text: str) -> SegmentTranslation:
    """The translation with the spans as somebody has typed them, in place of the spans read."""
    marked, places, target = part.segment.marked, part.segment.places, part.text
    if marked is None:
        return part
    for mark in [] if part.segment.is_bare else marked.marks:
        typed = text[places[mark.start] : places[mark.end]].rstrip()
        read = re.escape(marked.text[mark.start : mark.end])
        target = re.sub(rf"(?<!\d){read}(?!\d)", typed.replace("\\", r"\\"), target)
    if target == part.text:
        return part
    segment = replace(part.segment, text=marked.text)
    return replace(part, segment=segment, text=target, alignment=None)


def _is_code(span: ProtectedSpan, text: str) -> bool:
    """Whether a span is a placeholder or a tag, which no model may invent."""
    part = span.text_of(text)
    return span.kind in ("placeholder", "tag") and part[0] in _CODE and not part[1:].isdigit()
