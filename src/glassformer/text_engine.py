"""Texts through an engine: window after window, cut into jobs, encoded, decoded, joined again."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import fsum

from glassformer.data.splitting import LONGEST_SOURCE, Segments, joined, segments_of
from glassformer.data.tokenizer import Tokenizer
from glassformer.data.words import Link
from glassformer.decoding.engine import Engine, Job, SearchOptions, TorchEngine
from glassformer.decoding.protocols import Hypothesis, Vocabulary
from glassformer.errors import UsageError
from glassformer.model.fast.choice import DecoderChoice
from glassformer.model.transformer import Transformer

__all__ = ["TextEngine", "Translation", "torch_engine", "windows_of"]

_WINDOW = 1 << 16  # characters of a stream that are sorted together


@dataclass(frozen=True)
class Translation:
    """A translation, its score, and the next best ones.

    The score is log p(text | source) over the length penalty; of a sampled one, without penalty;
    of a text in pieces, the mean of theirs. It is at most 0. The alignment is None unless it was
    asked for, and of a text in pieces.
    """

    text: str
    score: float
    alternatives: tuple["Translation", ...] = ()
    alignment: tuple[Link, ...] | None = None


@dataclass(frozen=True)
class TextEngine:
    """An engine with its tokenizers: texts in, translations out.

    `longest`: a source with more subwords is cut. `room`: what a source, or a prefix with its
    source, may have at most.
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
        # The longest translation has positions too.
        room = model.config.max_length - model.config.extra_length
        return cls(
            engine or torch_engine(model, tokenizers),
            *tokenizers,
            longest=min(LONGEST_SOURCE, room),
            room=room,
        )

    def translate(
        self, texts: Sequence[str], options: SearchOptions, prefixes: Sequence[str] | None = None
    ) -> list[Translation]:
        """One translation for each text, in their order; a blank text gives a blank one."""
        return next(self.answers([(texts, prefixes)], options))

    def search(
        self, texts: Sequence[str], options: SearchOptions
    ) -> tuple[Segments, list[list[Hypothesis]]]:
        """The segments of the texts, and the hypotheses of each segment."""
        segments = segments_of(texts, self.source, limit=self.longest)
        return segments, next(self.engine.decode([Job(segments.ids)], options))

    def answers(
        self, windows: Iterable[tuple[Sequence[str], Sequence[str] | None]], options: SearchOptions
    ) -> Iterator[list[Translation]]:
        """The translations of each window, whose texts are cut into jobs for the engine."""
        # Of the jobs that the engine has taken: the places of their texts in the window, which
        # pieces each text has, and whether the window ends with it.
        taken: deque[tuple[list[int], list[range], bool]] = deque()

        def jobs() -> Iterator[Job]:
            for texts, prefixes in windows:
                chunks = _chunks(texts, self.engine.at_once)
                for number, places in enumerate(chunks, start=1):
                    chosen = [texts[place] for place in places]
                    segments = segments_of(chosen, self.source, limit=self.longest)
                    taken.append((places, segments.spans, number == len(chunks)))
                    forced = [prefixes[place] for place in places] if prefixes else []
                    yield Job(segments.ids, self._forced(forced, segments.spans, segments.ids))

        window: dict[int, Translation] = {}
        for found in self.engine.decode(jobs(), options):
            places, spans, last = taken.popleft()
            window |= zip(places, self.translations(found, spans), strict=True)
            if last:
                yield [window[place] for place in range(len(window))]
                window = {}

    def _forced(
        self,
        prefixes: Sequence[str],
        spans: Sequence[range],
        pieces: Sequence[Sequence[int]],
    ) -> list[list[int]]:
        """Each text's prefix, forced on its first piece that says something."""
        if not any(prefixes):
            return []
        forced: list[list[int]] = [[] for _ in pieces]
        for span, ids in zip(spans, self.target.encode_batch(prefixes), strict=True):
            # A piece of spaces only never meets the model.
            first = next((place for place in span if pieces[place]), span.start)
            room = self.room - len(pieces[first])
            if self.target.unk_id in ids:
                raise UsageError("a prefix has a character that the target tokenizer has not")
            if len(ids) > room:
                raise UsageError(
                    f"a prefix has {len(ids):,} subwords, and this model has room for {room:,}"
                )
            forced[first] = ids
        return forced

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
                best, *others = map(Translation, texts, scores)
                yield Translation(best.text, best.score, tuple(others))


def _chunks(texts: Sequence[str], size: int) -> list[list[int]]:
    """The places of the texts in groups of like lengths, the longest first; at least one group.

    In characters: to know the subwords, all would have to be there before the first can go.
    """
    order = list(range(len(texts)))
    if len(texts) > size:
        order.sort(key=lambda place: -len(texts[place]))
    return [order[start : start + size] for start in range(0, max(len(order), 1), size)]


def windows_of(lines: Iterable[str]) -> Iterator[list[str]]:
    """The lines in lists of about 64 Ki characters: what a stream sorts by length together."""
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
