"""One sentence through a translator's model: its pieces, and the answer that a search finds."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from glassformer.config import LENGTH_PENALTY
from glassformer.data.splitting import LONGEST_SOURCE
from glassformer.data.tokenizer import Tokenizer
from glassformer.decoding.batched import decode_sentences
from glassformer.decoding.beam import beam_search
from glassformer.decoding.constraints import Constraint, ForcedPrefix
from glassformer.decoding.protocols import Hypothesis, Vocabulary
from glassformer.errors import InputError, UsageError
from glassformer.inspection.ablation import changed, reordered
from glassformer.inspection.attention_of import TranslatorParts
from glassformer.inspection.beam_graph import EndsAfter, Watch
from glassformer.inspection.trace.schema import Asked, Changes, Piece
from glassformer.inspection.trace.subwords import pieces_of
from glassformer.model.transformer import Transformer

__all__ = ["Sentence", "length_penalty_of", "prefix_ids", "sentence"]


@dataclass(frozen=True)
class Sentence:
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

    def watch(self, line: tuple[int, ...] = ()) -> Watch:
        """What looks on while :meth:`search` searches."""
        return Watch(self.asked.beam, self.tokenizer.eos_id, line)

    def search(self, watch: Watch) -> Hypothesis:
        """The best answer, found as the translator finds it, while ``watch`` looks on."""
        prefix, asked = self.asked.forced_prefix, self.asked
        vocabulary, eos_id = Vocabulary.of(self.tokenizer), self.tokenizer.eos_id
        rules: list[Constraint] = []
        if prefix[-1:] == [eos_id]:
            prefix = prefix[:-1]
            rules.append(EndsAfter(len(prefix), eos_id))
        rules += [ForcedPrefix([prefix], vocabulary), watch]
        options: dict[str, Any] = {"beam": asked.beam, "length_penalty": asked.length_penalty}
        found = decode_sentences(
            self.model,
            [self.source_ids[:-1]],  # the search adds the end symbol itself
            search=partial(beam_search, vocabulary=vocabulary, **options),
            constraints=rules,
            extra_length=self.model.config.extra_length,
            device=self.model.output_weight.device,
            vocabulary=Vocabulary.of(self.translator.source_tokenizer),
        )[0][0]
        if not self.written(found):
            raise UsageError("no translation begins as forced_prefix asks")
        return found

    def written(self, found: Hypothesis) -> tuple[int, ...]:
        """All that the search wrote: with the end symbol, if it came to it."""
        return (*found.tokens, self.tokenizer.eos_id) if found.finished else found.tokens


def length_penalty_of(translator: TranslatorParts) -> float:
    """The bundle's alpha; the paper's for parts that were put together by hand."""
    return float(getattr(translator, "length_penalty", LENGTH_PENALTY))


def sentence(translator: TranslatorParts, asked: Asked) -> Sentence:
    """The text as the encoder reads it, and the model with the changes that are asked for."""
    source = _source(translator, asked.text, asked.changes)
    room = translator.model.config.max_length - translator.model.config.extra_length
    if len(source) - 1 + len(asked.forced_prefix) > room:
        raise InputError(
            f"the text has {len(source) - 1:,} subwords and forced_prefix"
            f" {len(asked.forced_prefix):,}, and this model takes {room:,} in all: shorten them"
        )
    return Sentence(translator, changed(translator.model, asked.changes), asked, source)


def _source(translator: TranslatorParts, text: str, changes: Changes) -> list[Piece]:
    """What the encoder reads: the text's pieces in the order asked for, and the end symbol."""
    tokenizer, config = translator.source_tokenizer, translator.model.config
    if not text.strip():
        raise InputError("the text is blank: there is nothing to translate")
    ids = tokenizer.encode(text)
    longest = min(LONGEST_SOURCE, config.max_length - config.extra_length)
    if len(ids) > longest:
        raise InputError(
            f"the text has {len(ids):,} subwords, and a trace is of one sentence of at most"
            f" {longest:,}: shorten it"
        )
    pieces = pieces_of(tokenizer, [*ids, tokenizer.eos_id], text)
    return [*reordered(pieces[:-1], changes.source_order), pieces[-1]]


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
