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
    whole = []
    for text, before, after in zip(texts, first, second, strict=True):
        best = [segment.hypotheses[0] for segment in (*before.segments, *after.segments)]
        hypothesis = Alternative(
            text=after.text,
            score=math.fsum(each.score for each in best),
            confidence=before.confidence * after.confidence,
            alignment=[],
        )
        source, target = (0, len(text)), (0, len(after.text))
        segment = TranslatedSegment(source=source, target=target, hypotheses=[hypothesis])
        whole.append(Document(text=after.text, segments=[segment]))
    return whole
