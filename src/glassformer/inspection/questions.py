"""Questions that weights alone cannot answer: change something, and see what the model then says.

A change is judged in two ways: by a target that is given, whose pieces become more or less
probable, and by the answer, which may become another one. The translator itself is not touched.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from pydantic_core import to_json

from glassformer.config import BEAM
from glassformer.data.words import words
from glassformer.inspection.attention_of import TranslatorParts
from glassformer.inspection.scoring import erased_words, log_probabilities
from glassformer.inspection.trace.query import Sentence, length_penalty_of, sentence
from glassformer.inspection.trace.schema import Asked, Changes, Erased, Head, Piece
from glassformer.inspection.trace.subwords import pieces_of

__all__ = [
    "Effect",
    "effect",
    "erase",
    "shuffle_source",
    "without_causal_mask",
    "without_heads",
    "without_positions",
]

_NO_CHANGES = Changes()


@dataclass(frozen=True)
class Effect:
    """What a change does to a target's probability, and to the answer."""

    changes: Changes
    target: str
    pieces: list[Piece]
    before: list[float]
    """Of each target piece, log p(piece | those before it, source)."""
    after: list[float]
    """The same with the change."""
    words: list[str]
    """Of the target; the end symbol at last."""
    word_changes: list[float]
    """By how much each word's log-probability is higher than before: the sum of its pieces."""
    answer_before: str
    """What the search finds."""
    answer_after: str

    def to_json(self) -> str:
        """As one line of JSON, by the names of the fields."""
        return to_json(self).decode()


def without_heads(
    translator: TranslatorParts, text: str, heads: Sequence[Head], *, target: str | None = None
) -> Effect:
    """Zero these heads' outputs, all at once.

    ``without_heads(translator, "A dog runs.", [Head("cross", 0, 3)]).word_changes``
    """
    return effect(translator, text, Changes(heads_off=list(heads)), target=target)


def shuffle_source(
    translator: TranslatorParts,
    text: str,
    *,
    order: Sequence[int] | None = None,
    seed: int = 1,
    target: str | None = None,
) -> Effect:
    """Put the source's pieces into another order: one that is given, or drawn by ``seed``."""
    if order is None:
        order = list(range(len(translator.source_tokenizer.encode(text))))
        Random(seed).shuffle(order)
    return effect(translator, text, Changes(source_order=list(order)), target=target)


def without_positions(
    translator: TranslatorParts, text: str, *, target: str | None = None
) -> Effect:
    """Add no position to any embedding: the encoder then reads a bag of pieces."""
    return effect(translator, text, Changes(positions_off=True), target=target)


def without_causal_mask(
    translator: TranslatorParts, text: str, *, target: str | None = None
) -> Effect:
    """Let each target position see those behind it, as no training with the mask has taught it.

    A model that was trained so would only copy what it is to predict. The answer stays as it is:
    a search has nothing behind the last position.
    """
    return effect(translator, text, Changes(causal_off=True), target=target)


def effect(
    translator: TranslatorParts, text: str, changes: Changes, *, target: str | None = None
) -> Effect:
    """Any changes together. ``target`` is by default the answer without them."""
    plain = sentence(translator, _asked(translator, text))
    other = sentence(translator, _asked(translator, text, changes))
    answers = [_answer(one) for one in (plain, other)]
    target = answers[0] if target is None else target
    ids = plain.ended(target)
    before, after = (
        log_probabilities(one.model, [one.source_ids], ids, causal=causal)[0].tolist()
        for one, causal in ((plain, True), (other, not changes.causal_off))
    )
    pieces = pieces_of(plain.tokenizer, ids, target)
    names = [target[slice(*span)] for span in words(target)]
    sums = [0.0] * (len(names) + 1)
    for piece, old, new in zip(pieces, before, after, strict=True):
        sums[-1 if piece.word is None else piece.word] += new - old
    names.append(pieces[-1].text)
    return Effect(changes, target, pieces, before, after, names, sums, *answers)


def erase(translator: TranslatorParts, text: str, *, target: str | None = None) -> Erased:
    """Take each word of the source away in turn: one row of changes for each.

    ``target`` is by default the answer to the whole text.
    """
    one = sentence(translator, _asked(translator, text))
    ids = one.ended(_answer(one) if target is None else target)
    return erased_words(one.model, one.source, text, ids)


def _asked(translator: TranslatorParts, text: str, changes: Changes = _NO_CHANGES) -> Asked:
    """As the translator is asked by default."""
    return Asked(text, BEAM, length_penalty_of(translator), [], 1, None, changes)


def _answer(one: Sentence) -> str:
    found = one.search(one.watch())
    return one.tokenizer.decode(found.tokens)
