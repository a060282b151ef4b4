"""A translator that knows some texts exactly, and invents a translation for every other text.

Everything between a person's text and the model runs as it is: an engine takes the model's place,
and the alignment is the words' order.
"""

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from string import ascii_letters
from typing import ClassVar

import pytest
import torch

from glassformer.alignment import span_placement, term_placement
from glassformer.bundle import Bundle
from glassformer.config import ModelConfig
from glassformer.data import corpus
from glassformer.data.known import Known
from glassformer.data.preprocessing import SourceLengths
from glassformer.data.subword_training import train_tokenizer
from glassformer.data.tokenizer import Tokenizer
from glassformer.data.words import Link, words
from glassformer.decoding.engine import Job, SearchOptions
from glassformer.decoding.protocols import Hypothesis
from glassformer.decoding.vocabulary import Vocabulary
from glassformer.model.transformer import Transformer
from glassformer.translator import Translator
from tests.data.decorations import FIRST, UNITS, WORDS, Pair

INVENTED = "INVENTED 4.42030"
# Texts with hyphens, apostrophes and ligatures; the words of both sides have one order.
PAIRS = tuple(
    Pair(*sides, aligned=True)
    for sides in (
        ("Two dogs run.", "Zwei Hunde rennen."),
        ("The red hat is old.", "Der rote Hut ist alt."),
        ("A man sits in the snow.", "Ein Mann sitzt in dem Schnee."),
        ("The children don't sing.", "Die Kinder singen nicht."),
        ("The first flight is late.", "Der erste Flug ist spät."),
        ("Save the new file", "Speichere die neue Datei"),
        ("Open the office door", "Öffne die enge Tür"),
        ("Select a well-known colour", "Wähle eine hell-rote Farbe"),
        ("Copy the folder", "Kopiere den Ordner"),
        ("Search", "Suche"),
        ("A cat sleeps", "Eine Katze schläft."),  # a model may add a full stop
    )
)
# Symbols in the places of spans, and spans that the translator copies.
_COPIED = re.compile(
    r"[\ue000-\ue00f]|[$%#]?\{\w+\}|\{\{ ?\w+ ?\}\}|\$[1-9]"
    r"|%[1-9](?:\$s|(?!\d))|%\(\w+\)s|%[sd]\b|`\w+`"
)
_SYMBOL = re.compile(r"[\ue000-\ue00f]")


@dataclass(frozen=True)
class ExactEngine:
    """Gives a known source's translation, and :data:`INVENTED` for any other source.

    A known source may have symbols; the engine copies what stands in their places.
    """

    tokenizers: tuple[Tokenizer, Tokenizer]
    known: dict[str, str] = field(default_factory=dict)
    name: ClassVar[str] = "exact"
    at_once: int = sys.maxsize
    threads: int = 1

    def answer(self, text: str) -> str:
        """The translation of a text."""
        copied = _COPIED.findall(text)
        symbols = iter(range(len(copied)))
        template = _COPIED.sub(lambda _: chr(ord(FIRST) + next(symbols)), text)
        if (known := self.known.get(text, self.known.get(template))) is None:
            return INVENTED
        return _SYMBOL.sub(lambda match: copied[ord(match[0]) - ord(FIRST)], known)

    def learn(self, pairs: Iterable[Pair]) -> None:
        self.known.update((pair.source, pair.target) for pair in pairs)

    def decode(self, job: Job, options: SearchOptions) -> list[list[Hypothesis]]:  # noqa: ARG002
        source, target = self.tokenizers
        answers = [self.answer(source.decode(ids)) for ids in job.sources]
        return [
            [Hypothesis(tuple(target.encode(answer)), -1.0, -1.0, finished=True)]
            for answer in answers
        ]

    def with_target(self, target: Vocabulary) -> "ExactEngine":  # noqa: ARG002
        return self


def exact_translator(pairs: Sequence[Pair] = PAIRS) -> Translator:
    """A translator whose engine knows ``pairs``, as a training on them would leave it."""
    sources, targets = [[pair[side] for pair in pairs] for side in (0, 1)]
    tokenizers = tuple(
        train_tokenizer([*3 * side, *3 * WORDS], vocab_size=400) for side in (sources, targets)
    )
    torch.manual_seed(3)
    model = Transformer(
        ModelConfig(
            source_vocab_size=tokenizers[0].vocab_size,
            target_vocab_size=tokenizers[1].vocab_size,
            d_model=8,
            num_heads=2,
            d_ff=8,
            num_encoder_layers=1,
            num_decoder_layers=1,
            tying="none",
        )
    )
    bundle = Bundle(
        model.eval().requires_grad_(False),
        *tokenizers,
        ("en", "de"),
        normalisation="text",
        source_lengths=SourceLengths.of(sources, "en"),
        known=_known(pairs).with_words(tokenizers[0], sources),
    )
    engine = ExactEngine(tokenizers)
    engine.learn(pairs)
    return Translator(bundle, engine=engine)


def _known(pairs: Sequence[Pair]) -> Known:
    """The counts of the pairs; the translator knows letters, units as words, and some spans."""
    known = Known.of([corpus.Pair(*pair[:2]) for pair in [*pairs, (ascii_letters, ascii_letters)]])
    units = {f"measure {unit}": (0, 5) for unit in UNITS}
    return replace(known, spans=units | {**{f"placeholder {sign}": (5, 5) for sign in "%{$"}})


@contextmanager
def in_the_order_of_words() -> Iterator[None]:
    """The alignment links the words of a text and of its translation in their order."""

    def align(_bundle: Bundle, sources: Sequence[str], targets: Sequence[str]):
        sides = zip(map(words, sources), map(words, targets), strict=True)
        return [
            tuple(Link(source, target) for source, target in zip(*pair, strict=False))
            for pair in sides
        ]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(span_placement, "align", align)
        patch.setattr(term_placement, "align", align)
        yield
