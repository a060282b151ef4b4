"""Translates texts: cuts them into segments, which an engine translates, and joins the segments."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import fsum, inf
from textwrap import shorten

from glassformer.data.preprocessing import LONGEST_SOURCE, Preprocessing, Segment, joined
from glassformer.data.terms import NO_TERMS, Terms
from glassformer.data.tokenizer import Tokenizer, require_unicode
from glassformer.data.words import Link, Span
from glassformer.decoding.batched import DecodingSettings, SequenceModel
from glassformer.decoding.engine import Engine, Job, SearchOptions, SearchParts, TorchEngine
from glassformer.decoding.protocols import Hypothesis
from glassformer.decoding.vocabulary import Vocabulary
from glassformer.model.transformer import Transformer
from glassformer.support.displays import Shown, Table
from glassformer.support.errors import UsageError
from glassformer.support.progress import working
from glassformer.support.reading import reading, told
from glassformer.support.threads import in_order

__all__ = [
    "RUNS",
    "DecodingParts",
    "SegmentTranslation",
    "TextEngine",
    "Translation",
    "itself",
    "torch_engine",
    "with_alternatives",
    "without_added_stop",
    "without_run",
]

_AS_TYPED = Preprocessing()
# One to four words three times in a row, and four times or more at the end.
_WORDS = r"(?<!\w)(\w++(?:\W{1,3}+\w++){0,3}?)(?:\W{1,3}+\1(?!\w))"
RUNS = [_WORDS + "{2}", _WORDS + r"{3,}(?=\W*$)"]
_RUN, _RUN_AT_END = map(re.compile, RUNS)
_MARKS = frozenset(".,:;!?…。，：；！？")
_FULL_STOP = re.compile(r"(?<!\.) ?[.。．｡।۔።]$")  # a full stop of some script, but not three dots


@dataclass(frozen=True)
class SegmentTranslation:
    """The model's translation of one segment; ``span`` is its place in the whole translation.

    ``alignment`` links the segment's whole text to the translation, if somebody has aligned both.
    """

    segment: Segment
    text: str
    span: Span
    score: float = 0.0
    alignment: tuple[Link, ...] | None = None


@dataclass(frozen=True)
class Translation(Shown):
    """A translation, its score, and the next best translations.

    No alternative is blank, and no two texts differ in white space or the final full stop only. The
    score is log p(text | source) over the length penalty, at most 0. A sampled translation has no
    penalty. A text of several segments has the mean of the segments' scores, and no alternatives.
    The alignment is None unless the caller asks for an alignment. ``segments`` has the translation
    of each segment of the text, in order.
    """

    text: str
    score: float
    alternatives: tuple["Translation", ...] = ()
    alignment: tuple[Link, ...] | None = None
    segments: tuple[SegmentTranslation, ...] = field(default=(), repr=False, compare=False)

    def records(self) -> Table:
        """The translation and its alternatives."""
        return Table({"score": t.score, "text": t.text} for t in (self, *self.alternatives))

    def __repr__(self) -> str:  # on one line, for lists
        return f"Translation({shorten(self.text, 100, placeholder=' …')!r}, score={self.score:.4g})"


def itself(model: Transformer) -> SequenceModel:
    """The model's own ``encode``, ``start`` and ``step``."""
    return model


@dataclass(frozen=True, kw_only=True)
class DecodingParts(SearchParts):
    """The forms of the searches, and the decoder that the searches step, by default the model."""

    decoder: Callable[[Transformer], SequenceModel] = itself


@dataclass(frozen=True)
class TextEngine:
    """An engine with its tokenizers, which together turn texts into translations.

    `longest` is the number of subwords beyond which a segment is cut. `room` is the greatest number
    of subwords of a segment and its prefix together. `terms` are text, even if the model does not
    know them.
    """

    engine: Engine
    source: Tokenizer
    target: Tokenizer
    longest: int
    room: int
    preprocessing: Preprocessing = _AS_TYPED
    protects: bool = False
    terms: Terms = NO_TERMS

    @classmethod
    def of(
        cls,
        model: Transformer,
        tokenizers: tuple[Tokenizer, Tokenizer],
        parts: DecodingParts,
        *,
        preprocessing: Preprocessing,
        engine: Engine | None = None,
    ) -> "TextEngine":
        """The text engine of a model in evaluation mode; without ``engine``, torch decodes."""
        room = model.config.longest_source
        return cls(
            engine or torch_engine(model, tokenizers, parts),
            *tokenizers,
            longest=min(LONGEST_SOURCE, room),
            room=room,
            preprocessing=preprocessing,
        )

    def translate(
        self,
        texts: Sequence[str],
        options: SearchOptions,
        prefixes: Sequence[str] = (),
        *,
        split: bool = True,
    ) -> list[Translation]:
        """One translation for each text, in the order of the texts.

        A text without segments stays as it is. The engine gets the texts in jobs of similar
        lengths. Without ``split``, only a line that is too long is cut at sentence ends.
        """
        self._check(options, forced=any(prefixes))

        def translations(places: list[int]) -> list[Translation]:
            chosen = [texts[place] for place in places]
            rows = self.segments(chosen, split=split)
            begins = [prefixes[place] for place in places] if prefixes else []
            return self.read(chosen, rows, options, begins)

        chunks = _chunks(texts, self.engine.at_once)
        by_place: dict[int, Translation] = {}
        with working("translating", total=len(texts) if len(chunks) > 1 else None) as advance:
            threads = min(len(chunks), self.engine.threads)
            answers = in_order(translations, chunks, threads=threads)
            for places, answer in zip(chunks, answers, strict=True):
                by_place |= zip(places, answer, strict=True)
                advance(len(places))
        return [by_place[place] for place in range(len(texts))]

    def read(
        self,
        texts: Sequence[str],
        rows: Sequence[Sequence[Segment]],
        options: SearchOptions,
        prefixes: Sequence[str] = (),
    ) -> list[Translation]:
        """The translations of texts that are cut into ``rows`` of segments, in one job."""
        hypotheses = self.search(rows, options, self._forced(prefixes, rows))
        return list(self.translations(texts, rows, hypotheses))

    def search(
        self,
        rows: Sequence[Sequence[Segment]],
        options: SearchOptions,
        forced: Sequence[Sequence[int]] = (),
    ) -> list[list[Hypothesis]]:
        """The hypotheses of each segment of all texts, which begin with the ids in ``forced``.

        An open capture sees one segment after another.
        """
        segments = [segment for row in rows for segment in row]
        if not reading.get():
            return self.engine.decode(Job([segment.ids for segment in segments], forced), options)
        if options.sampling and len(segments) > 1:
            raise UsageError("sampling: inside a capture, draw for one sentence at a time")
        hypotheses: list[list[Hypothesis]] = []
        for place, segment in enumerate(segments):
            job = Job([segment.ids], forced[place : place + 1])
            with told(segment.text):
                hypotheses += self.engine.decode(job, options)
        return hypotheses

    def _check(self, options: SearchOptions, *, forced: bool) -> None:
        """Raise UsageError for a minimum length without room, or no_repeat_ngram with a prefix."""
        if options.min_length > self.room:
            raise UsageError(
                f"min_length {options.min_length}: this model has room for {self.room:,} subwords:"
                " give less"
            )
        if options.no_repeat_ngram and forced:
            raise UsageError(
                f"no_repeat_ngram {options.no_repeat_ngram} could forbid subwords of"
                " a prefix: give only one of the two"
            )

    def segments(self, texts: Sequence[str], *, split: bool = True) -> list[list[Segment]]:
        """The segments of each text, with protected spans if the engine ``protects``."""
        require_unicode(texts)
        return self.preprocessing.segments(
            texts,
            self.source,
            limit=self.longest,
            split=split,
            protect=self.protects,
            terms=self.terms,
        )

    def _forced(
        self, prefixes: Sequence[str], rows: Sequence[Sequence[Segment]]
    ) -> list[list[int]]:
        """The ids that begin the translation of each segment; [] without prefixes.

        Only the first segment of a text has the prefix of the text.
        """
        if not any(prefixes):
            return []
        forced: list[list[int]] = []
        # No target begins with two subwords of white space, so no prefix does.
        encoded = self.target.encode_batch([prefix.lstrip() for prefix in prefixes])
        for row, ids in zip(rows, encoded, strict=True):
            if row:
                self.check_prefix(ids, self.room - len(row[0].ids))
            forced += [ids if segment is row[0] else [] for segment in row]
        return forced

    def check_prefix(self, ids: Sequence[int], room: int) -> None:
        """Raise UsageError for an unknown character, or if the ids do not fit the room."""
        if Vocabulary.of(self.target).wrong_in_prefix(ids):
            raise UsageError(
                "a prefix has a character that the target tokenizer lacks: leave it out"
            )
        if len(ids) > room:
            raise UsageError(
                f"a prefix has {len(ids):,} subwords, and this model has room for {room:,}:"
                " shorten it"
            )

    def translations(
        self,
        texts: Sequence[str],
        rows: Sequence[Sequence[Segment]],
        hypotheses: Sequence[Sequence[Hypothesis]],
    ) -> Iterator[Translation]:
        """The translation of each text, from the hypotheses of all segments in order.

        The translation of a text of several segments joins the segments' best hypotheses.
        """
        rest = iter(hypotheses)
        beams_by_text = [[next(rest) for _ in row] for row in rows]
        # Each text has a list of candidates; a candidate has one hypothesis for each segment.
        ranked = [
            [[beam[0] for beam in beams]] if len(beams) != 1 else [[h] for h in beams[0]]
            for beams in beams_by_text
        ]
        tokens = [h.tokens for candidates in ranked for chosen in candidates for h in chosen]
        # joined() puts the source's white space around each segment.
        decoded = map(str.strip, self.target.decode_batch(tokens))
        for text, row, candidates in zip(texts, rows, ranked, strict=True):
            translations = [
                self.joined(
                    text,
                    [
                        SegmentTranslation(
                            segment,
                            without_added_stop(
                                text, segment, without_run(segment.text, next(decoded))
                            ),
                            (0, 0),
                            hypothesis.score,
                        )
                        for segment, hypothesis in zip(row, chosen, strict=True)
                    ],
                )
                for chosen in candidates
            ]
            yield with_alternatives(translations)

    def joined(self, text: str, parts: Sequence[SegmentTranslation]) -> Translation:
        """Join the translations of a text's segments, each with its span in the whole."""
        if not parts:
            return Translation(text, 0.0)
        languages = self.preprocessing.languages
        shown = [part.text.upper() if part.segment.capitals else part.text for part in parts]
        row = [part.segment for part in parts]
        whole, spans = joined(text, row, shown, language=languages[1] if languages else None)
        placed = zip(parts, spans, strict=True)
        segments = tuple(replace(part, span=span) for part, span in placed)
        score = fsum(part.score for part in parts) / len(parts)
        return Translation(whole, score, segments=segments)

    def without_blanks(self, text: str, translation: Translation) -> Translation:
        """The translation, with each segment as typed in the place of its blank translation."""
        parts = translation.segments
        if all(part.text.strip() for part in parts):
            return translation
        typed = [text[slice(*part.segment.span)] for part in parts]
        kept = [
            x if x.text.strip() else replace(x, text=y) for x, y in zip(parts, typed, strict=True)
        ]
        return replace(self.joined(text, kept), alternatives=translation.alternatives)


def without_run(source: str, target: str) -> str:
    """``target`` without a run of the same words at its end, unless the source has a run too.

    >>> without_run("A dog.", "Ein Hund, ein Hund, ein Hund, ein Hund, ein Hund.")
    'Ein Hund, ein Hund.'
    """
    cut = _RUN_AT_END.sub(r"\1", target)
    return target if cut == target or _RUN.search(source) else cut


def without_added_stop(text: str, segment: Segment, target: str) -> str:
    """The translation of a segment without a final stop that the model adds before another mark.

    >>> without_added_stop("A dog runs?", Segment("A dog runs", range(11), []), "Ein Hund rennt.")
    'Ein Hund rennt'
    """
    end = segment.span[1]
    is_added = segment.text[-1:].isalnum() and text[end : end + 1] in _MARKS
    return _FULL_STOP.sub("", target) if is_added else target


def with_alternatives(translations: Iterable[Translation]) -> Translation:
    """The first translation; its alternatives are all others that neither are blank nor repeat.

    A beam may end with one text in several segmentations into subwords. A text repeats another text
    if the two differ in white space or in the final full stop only.
    """
    by_reading: dict[str, Translation] = {}
    for translation in translations:
        reading = " ".join(translation.text.split())
        if reading or not by_reading:
            by_reading.setdefault(_FULL_STOP.sub("", reading), translation)
    best, *others = by_reading.values()
    return replace(best, alternatives=tuple(others))


def _chunks(texts: Sequence[str], size: int) -> list[list[int]]:
    """The indices of the texts in groups of similar length, the longest first; at least one group.

    Lengths are in characters, so that the first group need not wait for all texts' subwords.
    """
    order = list(range(len(texts)))
    if len(texts) > size:
        order.sort(key=lambda place: -len(texts[place]))
    return [order[start : start + size] for start in range(0, max(len(order), 1), size)]


def torch_engine(
    model: Transformer,
    tokenizers: tuple[Tokenizer, Tokenizer],
    parts: DecodingParts,
    *,
    max_length_ratio: float = inf,
) -> TorchEngine:
    """The engine that decodes ``model`` with the forms of ``parts``."""
    source, target = map(Vocabulary.of, tokenizers)
    device = next(model.parameters()).device
    settings = DecodingSettings(
        extra_length=model.config.extra_length,
        max_length_ratio=max_length_ratio,
        cache_bytes=8 * model.config.d_model * model.config.num_decoder_layers,
        device=device,
        vocabulary=source,
    )
    return TorchEngine(parts.decoder(model), parts, target, settings)
