"""A translator that keeps the protected spans of texts.

The model first sees the whole text. If the model loses, doubles or reorders a span, the model
translates the text again without all spans of that kind. The alignment then puts the spans back.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, TypeAlias, Unpack

from glassformer.data.protected import ProtectedSpan, measures, protected_spans
from glassformer.data.words import Link, has_letters
from glassformer.text_engine import Translation
from glassformer.tools.documents.bare_text import VOID, BareText, Mark
from glassformer.tools.documents.restoring import restored
from glassformer.translator import TranslateSettings, Translator

__all__ = ["ProtectingTranslator", "TextTranslator"]

_TAG = re.compile(r"<(?P<close>/?)(?P<name>[A-Za-z\d][\w:.-]*)[^>]*?(?P<end>/?)>")


@dataclass(frozen=True)
class ProtectingTranslator:
    """Translates as ``translator`` does, and keeps the protected spans of each text.

    A text without spans goes straight to ``translator``. A text without a letter outside its spans
    stays unchanged. The score belongs to the text that the model has read. The translator omits
    every alternative that loses a span.

    >>> class Forgetful:
    ...     def translate(self, texts, **options):
    ...         return [Translation(text.replace("{n}", "duck"), -1.0) for text in texts]
    >>> [t.text for t in ProtectingTranslator(Forgetful()).translate(["Hi {n}!", "{n} 👍🏽"])]
    ['Hi {n}!', '{n} 👍🏽']
    """

    translator: Translator

    def translate(
        self, texts: Sequence[str], **options: Unpack[TranslateSettings]
    ) -> list[Translation]:
        """One translation for each text, in order; ``translator`` gets ``options``."""
        prefixes = options.get("prefixes") or [""] * len(texts)
        rows = [_Row.of(text, prefix) for text, prefix in zip(texts, prefixes, strict=False)]
        wrong = isinstance(texts, str) or len(prefixes) != len(texts)  # the translator raises
        if wrong or not any(row.spans for row in rows):
            return self.translator.translate(texts, **options)
        sent = [place for place, row in enumerate(rows) if not row.stays]
        first = self.translator.translate(
            [rows[place].text for place in sent], **_of_rows(options, sent)
        )
        translations = dict(zip(sent, first, strict=True))
        for every in (False, True):
            faults = {
                place: rows[place].kinds if every else kinds
                for place, translation in translations.items()
                if (kinds := rows[place].faults(translation.text))
            }
            translations |= self._without(rows, faults, options)
        aligned = bool(options.get("alignment"))
        return [
            row.finished(translations.get(place), aligned=aligned) for place, row in enumerate(rows)
        ]

    def _without(
        self, rows: Sequence["_Row"], faults: Mapping[int, set[str]], options: TranslateSettings
    ) -> dict[int, Translation]:
        """New translations of rows with faults, without the spans of the faulty kinds."""
        if not faults:
            return {}
        bare = [rows[place].bare(kinds) for place, kinds in faults.items()]
        settings = _of_rows(options, list(faults))
        settings["alignment"] = True
        translations = self.translator.translate([text.bare for text in bare], **settings)
        return {
            place: rows[place].restored(text, translation)
            for place, text, translation in zip(faults, bare, translations, strict=True)
        }


TextTranslator: TypeAlias = Translator | ProtectingTranslator


@dataclass(frozen=True)
class _Row:
    """A text, the protected spans, and the text at the beginning of the translation."""

    text: str
    spans: tuple[ProtectedSpan, ...]
    prefix: str

    @classmethod
    def of(cls, text: str, prefix: str) -> "_Row":
        """The row of a text; a span in the prefix needs no protection."""
        spans = protected_spans(text)
        return cls(text, tuple(s for s in spans if text[s.start : s.end] not in prefix), prefix)

    @property
    def kinds(self) -> set[str]:
        return {span.kind for span in self.spans}

    @property
    def stays(self) -> bool:
        """Whether the text has spans, and no letter outside the spans."""
        if self.prefix or not self.spans:
            return False
        gaps = pairwise([0, *(place for s in self.spans for place in (s.start, s.end)), None])
        return not any(has_letters(self.text[slice(*gap)]) for gap in list(gaps)[::2])

    def faults(self, target: str) -> set[str]:
        """The kinds of spans that the target loses, doubles, or puts into another order."""
        if not self.spans:
            return set()
        target = target.removeprefix(self.prefix)
        in_target = [target[span.start : span.end] for span in protected_spans(target)]
        counts = Counter(in_target)
        faulty = set()
        for kind in self.kinds:
            texts = [self.text[s.start : s.end] for s in self.spans if s.kind == kind]
            wanted = Counter(texts)
            if kind == "measure":
                wrong = any(counts[x] < n and measures(x, target) < n for x, n in wanted.items())
            else:
                wrong = texts != [text for text in in_target if text in wanted]
            if wrong:
                faulty.add(kind)
        return faulty

    def bare(self, kinds: set[str]) -> BareText:
        """The text without the spans of ``kinds``."""
        marks = [_mark(self.text[s.start : s.end], s) for s in self.spans if s.kind in kinds]
        return BareText(self.text, tuple(marks))

    def restored(self, bare: BareText, translation: Translation) -> Translation:
        """A translation of the bare text, with the spans put back there and in all alternatives."""
        least = len(self.prefix)
        best, *others = [
            guessed if self.faults(placed.text) else placed
            for hypothesis in (translation, *translation.alternatives)
            for placed in [restored(bare, hypothesis, least=least)]
            for guessed in [restored(bare, hypothesis, least=least, aligned=False)]
        ]
        return replace(best, alternatives=tuple(others))

    def finished(self, translation: Translation | None, *, aligned: bool) -> Translation:
        """The translation without faulty alternatives, or the text if ``translation`` is None."""
        if translation is None:
            links = tuple(Link((s.start, s.end), (s.start, s.end)) for s in self.spans)
            return Translation(self.text, 0.0, alignment=links if aligned else None)
        if not self.spans:
            return translation
        others = [
            other if aligned else replace(other, alignment=None)
            for other in translation.alternatives
            if not self.faults(other.text)
        ]
        alignment = translation.alignment if aligned else None
        return replace(translation, alternatives=tuple(others), alignment=alignment)


def _mark(text: str, span: ProtectedSpan) -> Mark:
    """The mark of a span; a tag opens or closes, and any other span is a point."""
    tag = _TAG.fullmatch(text) if span.kind == "tag" else None
    if tag is None or tag["end"] or tag["name"].lower() in VOID:
        return Mark(span.start, span.end, kind=span.kind)
    role: Literal["open", "close"] = "close" if tag["close"] else "open"
    return Mark(span.start, span.end, role, tag["name"].lower(), span.kind)


def _of_rows(options: TranslateSettings, places: Sequence[int]) -> TranslateSettings:
    """The options for the texts at ``places``."""
    chosen = options.copy()
    if prefixes := options.get("prefixes"):
        chosen["prefixes"] = [prefixes[place] for place in places]
    return chosen
