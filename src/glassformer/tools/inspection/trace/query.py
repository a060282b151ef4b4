"""A question about one sentence: the source's pieces, and the search."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from glassformer.alignment.align import align
from glassformer.alignment.term_placement import meet, term_places
from glassformer.bundle import Bundle
from glassformer.data.terms import NO_TERMS, Terms
from glassformer.data.tokenizer import Tokenizer
from glassformer.data.words import Span
from glassformer.decoding.beam import beam_search
from glassformer.decoding.engine import Job, SearchOptions
from glassformer.decoding.protocols import Hypothesis
from glassformer.decoding.vocabulary import Vocabulary
from glassformer.model.transformer import Transformer
from glassformer.parts import PLAIN
from glassformer.support.errors import InputError, UsageError
from glassformer.text_engine import TextEngine, torch_engine
from glassformer.tools.inspection.ablation import changed, reordered
from glassformer.tools.inspection.beam_graph import Watch
from glassformer.tools.inspection.trace.schema import Piece, Query, TermPlace
from glassformer.tools.inspection.trace.subwords import ended_ids, pieces_of

__all__ = ["Sentence"]


@dataclass(frozen=True)
class Sentence:
    """A question, the pieces of the source, and the model with the question's changes."""

    bundle: Bundle
    model: Transformer
    question: Query
    alpha: float
    """The length penalty."""
    forced: list[int]
    """The ids that the answer must begin with."""
    source: list[Piece]
    segments: int
    """Number of segments of the whole text; ``source`` holds the first segment."""
    terms: Terms
    """The glossary, which the search does not use."""

    @classmethod
    def of(cls, bundle: Bundle, question: Query, terms: Terms = NO_TERMS) -> "Sentence":
        """The first segment of a question's text; InputError if the segment is too long."""
        alpha = question.length_penalty
        alpha = bundle.length_penalty if alpha is None else alpha
        forced = _prefix_ids(bundle, question.forced_prefix)
        model = changed(bundle.model, question.changes)
        tokenizers = (bundle.source_tokenizer, bundle.target_tokenizer)
        engine = TextEngine.of(model, tokenizers, PLAIN, preprocessing=bundle.preprocessing)
        [row] = replace(engine, protects=True, terms=terms).segments([question.text])
        if not row:
            raise InputError("the text has no word that the model knows")
        first = row[0]
        engine.check_prefix(forced, engine.room - len(first.ids))
        pieces = pieces_of(tokenizers[0], [*first.ids, tokenizers[0].eos_id], first.text)
        return cls(
            bundle,
            model,
            replace(question, text=first.text, length_penalty=alpha, forced_prefix=forced),
            alpha,
            forced,
            [*reordered(pieces[:-1], question.changes.source_order), pieces[-1]],
            segments=len(row),
            terms=terms,
        )

    @property
    def tokenizer(self) -> Tokenizer:
        return self.bundle.target_tokenizer

    @property
    def source_ids(self) -> list[int]:
        return [piece.id for piece in self.source]

    def term_places(self, answer: str, pieces: Sequence[Piece]) -> list[TermPlace]:
        """Each glossary term in the text, with the term's place among the answer's pieces."""
        text = self.question.text
        if not self.terms.forms_in(text):
            return []
        [links] = align(self.bundle, [text], [answer])

        def covered(place: Span | None) -> list[int]:
            spans = [(piece.start, piece.end) for piece in pieces]
            return [number for number, span in enumerate(spans) if place and meet(span, place)]

        placed = term_places(self.terms, text, answer, links)
        return [TermPlace(term, list(forms), covered(place)) for term, forms, place in placed]

    def reference_ids(self) -> tuple[int, ...]:
        """The ids of the question's reference with the end symbol; () without a reference."""
        if self.question.reference is None:
            return ()
        longest, reference = self.model.config.max_length, self.question.reference
        return tuple(ended_ids(self.tokenizer, reference, longest, name="the reference"))

    def search(self, watch: Watch) -> Hypothesis:
        """The best hypothesis of the translator's own search, which ``watch`` observes."""
        tokenizers = self.bundle.source_tokenizer, self.tokenizer
        watched = partial(beam_search, observe=watch.observe)
        parts = replace(PLAIN, greedy=partial(watched, beam=1), beam_search=watched)
        # The search adds the end symbol of the source.
        job = Job([self.source_ids[:-1]], [self.forced])
        options = SearchOptions(beam=self.question.beam, length_penalty=self.alpha)
        best = torch_engine(self.model, tokenizers, parts).decode(job, options)[0][0]
        if not best.tokens and not best.finished:
            raise UsageError("no translation begins with forced_prefix")
        return best


def _prefix_ids(bundle: Bundle, forced: str | Sequence[int]) -> list[int]:
    """The ids that the answer must begin with; the end symbol may be the last."""
    tokenizer, config = bundle.target_tokenizer, bundle.model.config
    ids = tokenizer.encode(forced) if isinstance(forced, str) else list(forced)
    unknown = [index for index in ids if index >= config.target_vocab_size]
    if wrong := Vocabulary.of(tokenizer).wrong_in_prefix(ids) or unknown:
        raise UsageError(
            f"forced_prefix: the id {wrong[0]} is no ordinary piece of the target vocabulary"
        )
    return ids
