"""Reasons to doubt a translation; all reasons are facts, as a model is sure of bad ones too."""

import re
from textwrap import shorten

from glassformer.bundle import Bundle
from glassformer.data.normaliser import normaliser
from glassformer.data.preprocessing import SINGLE_SENTENCES
from glassformer.data.words import unknown_letters, words
from glassformer.text_engine import Translation

__all__ = ["doubts", "lost_numbers"]

_NUMBER = re.compile(r"\d{1,18}(?:[.,'’\u00a0\u202f]\d{3}(?!\d)){0,5}")
_LEAST = 25  # a translation may have a smaller number as a word, or 15 o'clock as 3 o'clock


def doubts(bundle: Bundle, source: str, translation: Translation) -> list[str]:
    """One sentence for each reason to doubt the translation of ``source``, which is one segment."""
    target, lengths, reasons = translation.text, bundle.source_lengths, []
    if lengths and lengths != SINGLE_SENTENCES and len(source) > lengths.longest:
        reasons.append("The text is longer than 99 of 100 texts of the training.")
    read = normaliser(bundle.normalisation)(source)
    letters = unknown_letters(bundle.source_tokenizer, read)
    letters += unknown_letters(bundle.target_tokenizer, target)
    for reason, items in (
        ("The training had hardly any text with these letters", letters),
        ("The translation lacks these numbers of the text", lost_numbers(source, target)),
    ):
        if items:
            named = shorten(", ".join(dict.fromkeys(items)), 40, placeholder=" …")
            reasons.append(f"{reason}: {named}.".replace("….", "…"))
    links = {link.source for link in translation.alignment or ()}
    aligned = [
        source[start:end] in target or any(a < end and start < b for a, b in links)
        for start, end in words(source)
        if source[start].isalnum()
    ]
    if sum(aligned) < len(aligned) / 2:  # none of 300 sentences of Multi30k's test
        reasons.append("Fewer than half of the text's words are aligned with the translation.")
    return reasons


def lost_numbers(source: str, target: str) -> list[str]:
    """The numbers of ``source`` from 25 on that ``target`` lacks; a year may have two digits.

    >>> lost_numbers("1,200 on 4/20/1998, at 17:30", "1200 am 20.4.98 um 5:30")
    []
    >>> lost_numbers("4 on March 4, 2030 and 2031", "am 4. März 2030")
    ['2031']
    """
    wanted, there = (
        [str(int(re.sub(r"\D", "", number))) for number in _NUMBER.findall(text)]
        for text in (source, target)
    )
    kept = [n for n in wanted for o in there if o.endswith(n) or n.endswith(o.zfill(2))]
    return [number for number in wanted if int(number) >= _LEAST and number not in kept]
