"""One sentence and the question about it: the checks, the pieces of the source, and the search."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

from glassformer.bundle import TranslatorParts
from glassformer.data.preprocessing import LONGEST_SOURCE
from glassformer.data.terms import NO_TERMS, Terms, letter_ids
from glassformer.data.tokenizer import Tokenizer
from glassformer.decoding.batched import DecodingSettings, decode_sentences
from glassformer.decoding.beam import beam_search
from glassformer.decoding.constraints import Constraint, ForcedPrefix
from glassformer.decoding.glossary import Glossary
from glassformer.decoding.protocols import Hypothesis, Vocabulary
from glassformer.errors import InputError, UsageError
from glassformer.inspection.ablation import changed, reordered
from glassformer.inspection.beam_graph import EndsAfter, Watch
from glassformer.inspection.trace.schema import Piece, Question, TermPlace
from glassformer.inspection.trace.subwords import pieces_of
from glassformer.model.fast.choice import decoder_of
from glassformer.model.transformer import Transformer
from glassformer.text_engine import glossary_of

__all__ = ["Sentence", "prefix_ids"]


@dataclass(frozen=True)
class Sentence:
    """A question, the pieces of its source, and the model with the question's changes."""

    translator: TranslatorParts
    model: Transformer
    question: Question
    source: list[Piece]
    sentences: int
    """How many segments the text has; this is the first."""
    forms: Mapping[str, tuple[str, ...]]
    """The forms of each glossary term in the text."""

    @classmethod
    def of(
        cls, translator: TranslatorParts, question: Question, terms: Terms = NO_TERMS
    ) -> "Sentence":
        """The first sentence as the encoder reads it; InputError if the model has no room."""
        texts = _sentences(translator, question.text)
        question = replace(question, text=texts[0])
        source = _source(translator, question)
        room = translator.model.config.longest_source
        if len(source) - 1 + len(question.forced_prefix) > room:
            raise InputError(
                f"the text has {len(source) - 1:,} subwords and forced_prefix"
                f" {len(question.forced_prefix):,}, and this model takes {room:,} in all:"
                " shorten them"
            )
        model = changed(translator.model, question.changes)
        return cls(translator, model, question, source, len(texts), terms.forms_in(question.text))

    @property
    def tokenizer(self) -> Tokenizer:
        return self.translator.target_tokenizer

    @property
    def source_ids(self) -> list[int]:
        return [piece.id for piece in self.source]

    @cached_property
    def glossary(self) -> Glossary | None:
        """The terms that the answer must hold; None if the text has none.

        Raises UsageError if the model has no room for them.
        """
        if not self.forms:
            return None
        tokenizer = self.tokenizer
        glossary = glossary_of([list(self.forms.values())], tokenizer, letter_ids(tokenizer))
        room = self.model.config.longest_source
        if len(self.source) - 1 + len(self.question.forced_prefix) + glossary.needed(0) > room:
            raise UsageError(
                f"the glossary's terms in the text have {glossary.needed(0):,} subwords, and this"
                f" model takes {room:,} of text, prefix and terms in all: shorten them"
            )
        return glossary

    def term_places(self, written: Sequence[int]) -> list[TermPlace]:
        """Each glossary term, and the pieces of its form in ``written``."""
        places = self.glossary.places(0, written) if self.glossary else []
        return [
            TermPlace(term, list(forms), list(place or ()))
            for (term, forms), place in zip(self.forms.items(), places, strict=True)
        ]

    def reference_ids(self) -> tuple[int, ...]:
        """The ids of the question's reference with the end symbol; () without a reference."""
        if self.question.reference is None:
            return ()
        ids = (*self.tokenizer.encode(self.question.reference), self.tokenizer.eos_id)
        longest = self.model.config.max_length
        if len(ids) > longest:
            raise InputError(
                f"the reference has {len(ids):,} subwords, and this model has positions for"
                f" {longest:,}: shorten it"
            )
        return ids

    def search(self, watch: Watch) -> Hypothesis:
        """The best hypothesis of the translator's own search, which ``watch`` observes."""
        prefix, question = self.question.forced_prefix, self.question
        vocabulary, eos_id = Vocabulary.of(self.tokenizer), self.tokenizer.eos_id
        rules: list[Constraint] = []
        if prefix[-1:] == [eos_id]:
            prefix = prefix[:-1]
            rules.append(EndsAfter(len(prefix), eos_id))
        rules.append(ForcedPrefix([prefix], vocabulary))
        if self.glossary is not None:
            rules.append(self.glossary)
        rules.append(watch)
        options: dict[str, Any] = {
            "beam": question.beam,
            "length_penalty": question.length_penalty,
        }
        best = decode_sentences(
            decoder_of(self.model),
            [self.source_ids[:-1]],  # the search adds the end symbol itself
            search=partial(beam_search, vocabulary=vocabulary, **options),
            constraints=rules,
            settings=DecodingSettings(
                extra_length=self.model.config.extra_length,
                device=self.model.output_weight.device,
                vocabulary=Vocabulary.of(self.translator.source_tokenizer),
            ),
        )[0][0]
        if not best.tokens and not best.finished:
            raise UsageError("no translation is as forced_prefix and glossary ask")
        return best


def _sentences(translator: TranslatorParts, text: str) -> list[str]:
    """The texts that a translation of ``text`` reads one by one."""
    tokenizer, limit = translator.source_tokenizer, sys.maxsize  # a long one is refused later
    [row] = translator.preprocessing.segments([text], tokenizer, limit=limit)
    if not row:
        raise InputError("the text is blank: there is nothing to translate")
    return [segment.text for segment in row]


def _source(translator: TranslatorParts, question: Question) -> list[Piece]:
    """The pieces of the text in the order that the question gives, and the end symbol."""
    tokenizer = translator.source_tokenizer
    text = question.text
    ids = tokenizer.encode(text)
    longest = min(LONGEST_SOURCE, translator.model.config.longest_source)
    if len(ids) > longest:
        raise InputError(
            f"the text has {len(ids):,} subwords, and a trace is of one sentence of at most"
            f" {longest:,}: shorten it"
        )
    pieces = pieces_of(tokenizer, [*ids, tokenizer.eos_id], text)
    return [*reordered(pieces[:-1], question.changes.source_order), pieces[-1]]


def prefix_ids(translator: TranslatorParts, forced: str | Sequence[int] | None) -> list[int]:
    """The ids that the answer must begin with; the end symbol may be the last."""
    tokenizer, config = translator.target_tokenizer, translator.model.config
    ids = tokenizer.encode(forced) if isinstance(forced, str) else list(forced or ())
    body = ids[:-1] if ids[-1:] == [tokenizer.eos_id] else ids
    special = {tokenizer.pad_id, tokenizer.unk_id, tokenizer.bos_id, tokenizer.eos_id}
    for index in body:
        if index in special or not 0 <= index < config.target_vocab_size:
            raise UsageError(
                f"forced_prefix: the id {index} is no ordinary piece of the target's vocabulary"
            )
    return ids
