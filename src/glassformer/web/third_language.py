"""A text by way of a third language, for pairs of languages without a translator of their own.

German to French by way of English is German to English, then English to French. Each translation
adds its own faults, and a meaning that the language between lacks is lost.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from glassformer.web.schema import Alternative, Document, TranslatedSegment

__all__ = ["whole_documents"]


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
