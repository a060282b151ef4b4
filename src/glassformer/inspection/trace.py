"""One translation, taken apart: what page, plots and tests read.

The answer is searched for as the translator does it, and watched. Then the model reads source and
answer once more, as in training, with every sublayer captured: that gives the same numbers as
decoding step by step, for the causal mask hides from each position all that comes later.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import torch

from glassformer.data.segments import LONGEST_SOURCE
from glassformer.data.tokenizer import Tokenizer
from glassformer.decoding.beam import beam_search, penalty
from glassformer.decoding.constraints import Constraint, ForcedPrefix
from glassformer.decoding.sentences import decode_sentences
from glassformer.decoding.step import Hypothesis, Vocabulary
from glassformer.errors import InputError, UsageError
from glassformer.inspection import trace_parts
from glassformer.inspection.beam_graph import EndsAfter, Watch, beam_graph
from glassformer.inspection.capture import capture
from glassformer.inspection.changes import changed, reordered
from glassformer.inspection.figure1 import figure1
from glassformer.inspection.pieces import pieces_of, word_spans
from glassformer.inspection.questions import erased, scored
from glassformer.inspection.sentence import TranslatorParts
from glassformer.inspection.trace_parts import Run
from glassformer.inspection.trace_schema import (
    VERSION,
    Answer,
    Asked,
    Bounds,
    Changes,
    Piece,
    Reference,
    Side,
    Trace,
)
from glassformer.model.masks import padding_mask, target_mask
from glassformer.model.transformer import Transformer

__all__ = ["Changes", "Trace", "trace"]

_PIECES = 64  # of a side that are shown
_VECTOR_NUMBERS = 1 << 19  # of all queries, keys and values together: 2 MiB
_EXTRA_LENGTH = 50  # what an answer may be longer than its source, as the translator's
_NO_CHANGES = Changes()


def trace(
    translator: TranslatorParts,
    text: str,
    *,
    beam: int = 5,
    forced_prefix: str | Sequence[int] | None = None,
    length_penalty: float = 0.6,
    top: int = 8,
    reference: str | None = None,
    changes: Changes = _NO_CHANGES,
) -> Trace:
    """Translate ``text`` and show all that happened on the way.

    ``forced_prefix``: what the answer must begin with, as text or as ids of pieces. To go on from
    another candidate of step ``i``, give the ids that were written before it and the candidate's;
    the end symbol may be the last. ``top``: candidates a step. ``reference``: a translation held
    for right, to see what became of it. ``changes``: what is switched off.

    The translator itself is not touched: others can use it at the same time. Raises InputError for
    a text that cannot be, UsageError for a wrong call, ValueError for a beam or length penalty out
    of its range.
    """
    if top < 1:
        raise UsageError(f"top {top}: expected at least 1 candidate a step")
    source = _source(translator, text, changes)
    prefix = _prefix(translator, forced_prefix)
    asked = Asked(text, beam, length_penalty, prefix, top, reference, changes)
    sentence = _Sentence(translator, changed(translator.model, changes), asked, source)
    line = None if reference is None else sentence.ended(reference)
    watch = Watch(beam, () if line is None else (line,))
    found = sentence.search(watch)
    traced = sentence.traced(watch, found)
    if line is None:
        return traced
    return replace(traced, reference=sentence.reference(line, watch, found))


@dataclass(frozen=True)
class _Sentence:
    """What is asked of which model about which source."""

    translator: TranslatorParts
    model: Transformer
    asked: Asked
    source: list[Piece]

    @property
    def tokenizer(self) -> Tokenizer:
        return self.translator.target_tokenizer

    @property
    def source_ids(self) -> list[int]:
        return [piece.id for piece in self.source]

    def ended(self, text: str) -> tuple[int, ...]:
        """The ids of a target text, the end symbol at last."""
        ids = (*self.tokenizer.encode(text), self.tokenizer.eos_id)
        longest = self.model.config.max_length
        if len(ids) > longest:
            raise InputError(
                f"the reference has {len(ids):,} subwords, and this model has positions for"
                f" {longest:,}: shorten it"
            )
        return ids

    def search(self, watch: Watch) -> Hypothesis:
        """The best answer, found as the translator finds it, while ``watch`` looks on."""
        prefix, asked = self.asked.forced_prefix, self.asked
        vocabulary, eos_id = Vocabulary.of(self.tokenizer), self.tokenizer.eos_id
        rules: list[Constraint] = [watch]
        if prefix[-1:] == [eos_id]:
            prefix = prefix[:-1]
            rules.insert(0, EndsAfter(len(prefix), eos_id))
        rules.insert(0, ForcedPrefix([prefix], vocabulary))
        options: dict[str, Any] = {"beam": asked.beam, "length_penalty": asked.length_penalty}
        found = decode_sentences(
            self.model,
            [self.source_ids[:-1]],  # the search adds the end symbol itself
            search=partial(beam_search, vocabulary=vocabulary, **options),
            constraints=rules,
            extra_length=_extra_length(self.model),
            device=self.model.output_weight.device,
            vocabulary=Vocabulary.of(self.translator.source_tokenizer),
        )[0][0]
        if not self.written(found):
            raise UsageError("no translation begins as forced_prefix asks")
        return found

    def traced(self, watch: Watch, found: Hypothesis) -> Trace:
        """All but the reference."""
        text = self.tokenizer.decode(found.tokens)
        written = self.written(found)
        target = pieces_of(self.tokenizer, written, text)
        run = self._run(written)
        source_side = self.source[: run.source_shown]
        vectors = run.vector_numbers <= _VECTOR_NUMBERS
        alpha = self.asked.length_penalty
        return Trace(
            version=VERSION,
            languages=_languages(self.translator),
            asked=self.asked,
            source=Side(self.asked.text, source_side, source_side, word_spans(self.source)),
            target=Side(
                text,
                target[: run.target_shown],
                self._read(target)[: run.target_shown],
                word_spans(target),
            ),
            answer=Answer(text, found.log_probability, found.score, found.finished),
            bounds=_bounds(len(self.source), len(written), vectors),
            figure=figure1(self.model, len(self.source), len(written)),
            masks=trace_parts.masks(run),
            positions=trace_parts.positions(run),
            attention=trace_parts.attention_traces(run, vectors=vectors),
            sublayers=trace_parts.sublayer_norms(run),
            steps=trace_parts.steps(run, top=self.asked.top, forced=len(self.asked.forced_prefix)),
            beam=beam_graph(watch, found, self.tokenizer, alpha=alpha, steps=_PIECES),
            erased=erased(self.model, self.source, self.asked.text, written[: run.target_shown]),
        )

    def reference(self, line: tuple[int, ...], watch: Watch, found: Hypothesis) -> Reference:
        """What became of the reference in this search."""
        penalised = penalty(len(line), self.asked.length_penalty)
        values, ranks = scored(self.model, self.source_ids, line)
        total = math.fsum(values)
        fall = watch.fall(line, self.tokenizer.eos_id)
        verdict: Literal["found", "search", "model"] = (
            "search" if total / penalised > found.score else "model"
        )
        text = self.asked.reference or ""
        return Reference(
            text=text,
            pieces=pieces_of(self.tokenizer, line, text),
            log_probabilities=values,
            ranks=ranks,
            log_probability=total,
            score=total / penalised,
            fell_off=None if fall is None else fall.step,
            fell_rank=None if fall is None else fall.rank,
            margin=None if fall is None else fall.margin,
            verdict="found" if line == self.written(found) else verdict,
        )

    def written(self, found: Hypothesis) -> tuple[int, ...]:
        """All that the search wrote: with the end symbol, if it came to it."""
        return (*found.tokens, self.tokenizer.eos_id) if found.finished else found.tokens

    @torch.no_grad()
    def _run(self, written: tuple[int, ...]) -> Run:
        """The model on source and answer, every sublayer captured."""
        device, pad = self.model.output_weight.device, self.model.config.pad_id
        read = torch.tensor([[self.tokenizer.bos_id, *written[:-1]]], device=device)
        mask = target_mask(read, pad)
        if self.asked.changes.causal_off:
            mask = padding_mask(read, pad).expand_as(mask)
        with capture(self.model) as seen:
            self.model(torch.tensor([self.source_ids], device=device), read, target_mask=mask)
        shown = [min(length, _PIECES) for length in (len(self.source), len(written))]
        return Run(self.model, self.tokenizer, seen, written, mask, *shown)

    def _read(self, target: list[Piece]) -> list[Piece]:
        """What each step reads."""
        bos = self.tokenizer.bos_id
        name = self.tokenizer.id_to_piece(bos)
        return [Piece(bos, name, name, 0, 0, None), *target[:-1]]


def _source(translator: TranslatorParts, text: str, changes: Changes) -> list[Piece]:
    """What the encoder reads: the text's pieces in the order asked for, and the end symbol."""
    tokenizer, config = translator.source_tokenizer, translator.model.config
    if not text.strip():
        raise InputError("the text is blank: there is nothing to translate")
    ids = tokenizer.encode(text)
    longest = min(LONGEST_SOURCE, config.max_length - _extra_length(translator.model))
    if len(ids) > longest:
        raise InputError(
            f"the text has {len(ids):,} subwords, and a trace is of one sentence of at most"
            f" {longest:,}: shorten it"
        )
    pieces = pieces_of(tokenizer, [*ids, tokenizer.eos_id], text)
    return [*reordered(pieces[:-1], changes.source_order), pieces[-1]]


def _prefix(translator: TranslatorParts, forced: str | Sequence[int] | None) -> list[int]:
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
    room = config.max_length - LONGEST_SOURCE - _extra_length(translator.model)
    if len(ids) > max(room, 1):
        raise InputError(
            f"forced_prefix has {len(ids):,} subwords, and there is room for {max(room, 1):,}"
        )
    return ids


def _extra_length(model: Transformer) -> int:
    return min(_EXTRA_LENGTH, model.config.max_length // 2)


def _languages(translator: TranslatorParts) -> tuple[str, str] | None:
    """A bundle knows them, and a translator has a bundle; other parts need not."""
    found = getattr(getattr(translator, "bundle", translator), "languages", None)
    return None if found is None else (str(found[0]), str(found[1]))


def _bounds(source: int, target: int, vectors: bool) -> Bounds:
    left_out = [
        f"the {side} has {count} pieces; the first {_PIECES} are shown"
        for side, count in (("source", source), ("target", target))
        if count > _PIECES
    ]
    if not vectors:
        left_out.append(
            "queries, keys and values are not stored: they are more than"
            f" {_VECTOR_NUMBERS:,} numbers"
        )
    return Bounds(_PIECES, source, target, left_out)
