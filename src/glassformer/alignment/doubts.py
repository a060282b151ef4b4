"""Reasons to doubt a translation; all reasons are facts, as a model is sure of bad ones too."""

import sys

from glassformer.bundle import Bundle
from glassformer.data.digits import lost_numbers
from glassformer.data.preprocessing import SINGLE_SENTENCES
from glassformer.data.protected import lost_spans, protected_spans
from glassformer.data.words import knows_no_word, replaced, unknown_letters, words
from glassformer.text_engine import Translation

__all__ = ["NO_WORD", "doubts", "invented"]

NO_WORD = "The training had hardly any word of the text."

_VARIED = ("measure", "identifier")  # kinds that a translation may write otherwise
_SHOWN = 6  # letters, numbers or other parts of a text


def doubts(bundle: Bundle, source: str, translation: Translation) -> list[str]:
    """One sentence for each reason to doubt the translation of ``source``, which is one segment.

    Without an alignment, nothing is said of the words that no word is aligned with.
    """
    target, lengths, reasons = translation.text, bundle.source_lengths, []
    if lengths and lengths != SINGLE_SENTENCES and len(source) > lengths.longest:
        reasons.append("The text is longer than 99 of 100 texts of the training.")
    if invented(bundle, source, target):
        reasons.append(NO_WORD)
    tokenizer = bundle.source_tokenizer
    letters = unknown_letters(tokenizer, source)  # none for most texts
    letters = letters and unknown_letters(tokenizer, _read(bundle, source))
    letters += unknown_letters(bundle.target_tokenizer, target)
    varied = {span.text_of(source) for span in protected_spans(source) if span.kind in _VARIED}
    lost = [part for part in lost_spans(source, target) if part not in varied]
    for reason, items in (
        ("The training had hardly any text with these letters", letters),
        ("The translation lacks these numbers of the text", lost_numbers(source, target)),
        ("The translation lacks these parts, which should stay", lost),
    ):
        if items:
            names = [*dict.fromkeys(items)]
            ending = "." if len(names) <= _SHOWN else " …"
            reasons.append(f"{reason}: {', '.join(names[:_SHOWN])}{ending}")
    if translation.alignment is None:
        return reasons
    links = {link.source for link in translation.alignment}
    aligned = [
        source[start:end] in target or any(a < end and start < b for a, b in links)
        for start, end in words(source)
        if source[start].isalnum()
    ]
    if sum(aligned) < len(aligned) / 2:  # none of 300 sentences of Multi30k's test
        reasons.append("Fewer than half of the text's words are aligned with the translation.")
    return reasons


def invented(bundle: Bundle, source: str, target: str) -> bool:
    """Whether the model knows no word of ``source``, and does not read or does not copy it."""
    tokenizer = bundle.source_tokenizer
    if not knows_no_word(tokenizer, source):
        return False  # most texts
    spans = [((x.start, x.end), "") for x in protected_spans(source)]
    unknown = knows_no_word(tokenizer, replaced(source, spans))
    stays = source == target
    read = _read(bundle, source, protect=stays)
    return unknown and (not read or (not stays and knows_no_word(tokenizer, read)))


def _read(bundle: Bundle, source: str, *, protect: bool = False) -> str:
    """The text that the model reads of ``source``, with the spans or without."""
    tokenizer = bundle.source_tokenizer
    [row] = bundle.preprocessing.segments(
        [source], tokenizer, limit=sys.maxsize, split=False, protect=protect
    )
    return " ".join(segment.text for segment in row)
