"""Pairs of languages without a translator of their own: two translators, and a language between.

German to French by way of English is German to English, then English to French. Each translation
adds its own faults, and a meaning that the language between lacks is lost.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from glassformer.web.schema import Alternative, Document, TranslatedSegment

__all__ = ["pairs_through", "whole_documents"]


def pairs_through(third: str | None, pairs: Collection[tuple[str, str]]) -> list[tuple[str, str]]:
    """The pairs that two of ``pairs`` make by way of the language ``third``; none for None.

    >>> pairs_through("en", [("de", "en"), ("en", "fr"), ("en", "de")])
    [('de', 'fr')]
    """
    sources = [source for source, target in pairs if target == third]
    targets = [target for source, target in pairs if source == third]
    return [
        (source, target)
        for source in sources
        for target in targets
        if source != target and (source, target) not in pairs
    ]


def whole_documents(
    texts: Sequence[str], first: Sequence[Document], second: Sequence[Document]
) -> list[Document]:
    """The documents of ``second``, each as one segment of its text without an alignment.

    Its confidence is the product of both translations' own.
    """
    return [
        Document(
            text=after.text,
            segments=[
                TranslatedSegment(
                    source=(0, len(text)),
                    target=(0, len(after.text)),
                    hypotheses=[_hypothesis(after.text, [before, after])],
                )
            ],
        )
        for text, before, after in zip(texts, first, second, strict=True)
    ]


def _hypothesis(text: str, documents: Sequence[Document]) -> Alternative:
    segments = [segment for document in documents for segment in document.segments]
    return Alternative(
        text=text,
        score=math.fsum(segment.hypotheses[0].score for segment in segments),
        confidence=math.prod(document.confidence for document in documents),
        alignment=[],
    )
