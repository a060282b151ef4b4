"""A translator of a few words, whose order and losses are known."""

import re
from dataclasses import dataclass, field

import pytest

from glassformer.data.words import Link, words
from glassformer.text_engine import Translation

WORDS = {"hello": "hallo", "you": "du", "have": "hast", "items": "Dinge", "see": "siehe"}
WORDS |= {"click": "klicke", "here": "hier", "now": "jetzt", "red": "rot", "hat": "Hut"}


@dataclass
class WordTranslator:
    """Translates word for word and drops what it does not know; counts its calls.

    `order`: gives the places of the source words in the order of the target.
    """

    order: type = range
    keeps: str = r"(?!)"  # the unknown words that it copies
    calls: list = field(default_factory=list)

    def translate(self, texts, **options):
        self.calls.append((list(texts), options))
        prefixes = options.get("prefixes") or [""] * len(texts)
        return [
            self._translation(text, prefix, options)
            for text, prefix in zip(texts, prefixes, strict=True)
        ]

    def _translation(self, text, prefix, options):
        if re.search(self.keeps, text):
            return Translation(text, -1.0)
        spans = words(text)
        target, links = prefix, []
        for place in self.order(len(spans)):
            start, end = spans[place]
            word = text[start:end]
            if not (word.lower() in WORDS or word in ".,:!?"):
                continue
            gap = " " if target and word not in ".,:!?" else ""
            new = WORDS.get(word.lower(), word)
            links.append(Link((start, end), (len(target + gap), len(target + gap + new)), 0.9))
            target += gap + new
        aligned = tuple(links) if options.get("alignment") else None
        return Translation(target, -1.0, alignment=aligned)


@pytest.fixture
def words_alone():
    """A translator that keeps nothing but the words it knows."""
    return WordTranslator()


@pytest.fixture
def backwards():
    """The same with the words in the opposite order."""
    return WordTranslator(order=lambda length: reversed(range(length)))
