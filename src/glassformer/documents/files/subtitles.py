"""Subtitles: SubRip (.srt) and WebVTT (.vtt). Numbers, times, settings, notes and styles stay.

The lines of a cue are one text, because a sentence goes over them. Its translation has as many
lines, of similar lengths. Lines that begin with a dash are the words of two people: each is a text.

The libraries for subtitles that we know write the file anew, and lose settings and notes of a cue.
"""

import re
from html import escape, unescape

from glassformer.documents.files.content import FileContent, decoded, replaced

__all__ = ["read_subtitles"]

_CUE = re.compile(r"^[^\n]*-->[^\n]*\n((?:(?![^\n]*-->)[^\n]*\S[^\n]*(?:\n|\Z))+)", re.MULTILINE)
_TAG = re.compile(r"</?[A-Za-z][^<>\n]*>")
_POSITION = re.compile(r"(?:\{\\[^{}\n]*\})*")  # such as {\an8}, at the beginning of a cue
_DASHES = ("-", "–", "—")


def read_subtitles(data: bytes, *, escaped: bool) -> FileContent:
    """The texts of subtitles; ``escaped``: characters may be escaped as in HTML, as in WebVTT.

    >>> srt = b"1\\n00:01,000 --> 00:02,000\\nTom & <i>Ann</i>\\nare here.\\n"
    >>> content = read_subtitles(srt, escaped=False)
    >>> content.texts
    ['Tom &amp; <i>Ann</i> are here.']
    >>> print(content.write(["Tom &amp; <i>Anna</i> sind hier."]).decode())
    1
    00:01,000 --> 00:02,000
    Tom & <i>Anna</i>
    sind hier.
    <BLANKLINE>
    """
    text, mark = decoded(data)
    spans, texts = [], []
    for cue in _CUE.finditer(text):
        start = cue.start(1)
        start = _POSITION.match(text, start).end()  # type: ignore[union-attr]
        block = text[start : cue.end(1)].rstrip("\r\n")
        for offset, lines in _texts(block):
            spans.append((start + offset, start + offset + len(lines)))
            one = " ".join(lines.split())
            texts.append(one if escaped else _escaped(one))

    def write(translations: list[str]) -> bytes:
        cues = []
        for (first, last), translation in zip(spans, translations, strict=True):
            ending = "\r\n" if "\r\n" in text[first:last] else "\n"
            lines = _wrapped(translation, text.count("\n", first, last) + 1)
            cues.append(ending.join(lines) if escaped else unescape(ending.join(lines)))
        return mark + replaced(text, zip(spans, cues, strict=True)).encode()

    return FileContent(texts, write, html=True)


def _texts(block: str) -> list[tuple[int, str]]:
    """The texts of a cue with their offsets: the whole block, or each line of a dialogue."""
    lines = [*re.finditer(r"[^\n]+", block)]
    if not all(_TAG.sub("", line[0]).lstrip().startswith(_DASHES) for line in lines):
        return [(0, block)]
    return [(line.start(), line[0].rstrip("\r")) for line in lines]


def _escaped(text: str) -> str:
    """SubRip as HTML: its tags stay tags, and every other character is itself."""
    parts = re.split(f"({_TAG.pattern})", text)  # every second one is a tag
    parts[::2] = [escape(part, quote=False) for part in parts[::2]]
    return "".join(parts)


def _wrapped(text: str, count: int) -> list[str]:
    """The text in ``count`` lines or fewer, of similar lengths without their tags."""
    gaps = [match.start() for match in re.finditer(r" (?![^<>]*>)", text)]
    lengths = {gap: _length(text[:gap]) for gap in gaps}
    whole = _length(text)
    lines, start = [], 0
    for number in range(1, count):
        later = [gap for gap in gaps if gap > start]
        if not later:
            break
        gap = min(later, key=lambda gap: abs(lengths[gap] - whole * number / count))
        lines.append(text[start:gap])
        start = gap + 1
    return [*lines, text[start:]]


def _length(text: str) -> int:
    """The number of characters that are seen."""
    return len(unescape(_TAG.sub("", text)))
