"""Subtitles in SubRip (.srt) and WebVTT (.vtt). Numbers, times, settings, notes and styles stay.

The lines of a cue are one text, because a sentence goes over several lines. The translation has as
many lines, of similar lengths. A new text begins at a dash, a musical note or a voice, because
another person speaks or sings. A line in brackets or between musical notes is a separate text. A
whole sentence in a tag is also a separate text.

Other libraries for subtitles write the file anew, and lose settings and notes of a cue.
"""

import re
from bisect import bisect_left
from html import escape, unescape

from glassformer.data.words import replaced
from glassformer.support.errors import InputError
from glassformer.tools.documents.files.content import FileContent, decoded

__all__ = ["read_subtitles"]

# A line with times, and the lines up to the next cue's number or times. In WebVTT a blank line ends
# a cue, because notes, styles and names of cues may follow.
_CUE, _WEB_CUE = (
    re.compile(
        r"^(?>[^\n]*?-->)[^\n]*+\n"
        rf"((?:(?!(?:[0-9]++(?:[^\S\n]*+\n)++)?+[^\n]*-->){line})+)",
        re.MULTILINE,
    )
    for line in (r"(?:[^\n]++(?:\n|\Z)|\n)", r"[^\n]*\S[^\n]*(?:\n|\Z)")
)
_TAG = re.compile(r"</?[A-Za-z][^<>\n]*>")
_BEGINS = re.compile(r"[-–—♪♫]|<v\b")
_MARKS = r"\[\]()（）【】♪♫"
_ALONE = re.compile(rf"\s*[{_MARKS}]\s*([^{_MARKS}]*[^\s{_MARKS}])\s*[{_MARKS}]\s*")
_SENTENCE_END = re.compile(r"[.!?…]['\"”’»]?(?:</\w+>)?\s*\Z")
_IN_TAG = re.compile(r"<(\w+)[^<>]*>.*[.!?…]['\"”’»]?</\1>")
_PIECE = re.compile(r"<[^<>]*>|&#?\w{1,31};|.", re.DOTALL)  # a tag, an entity or a character
_POSITION = re.compile(r"(?:\{\\[^{}\n]*\})*")  # such as {\an8}, at the beginning of a cue


def read_subtitles(data: bytes, *, escaped: bool) -> FileContent:
    """The texts of subtitles; ``escaped`` means WebVTT, which escapes characters as HTML does.

    Raises InputError for any other file.

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
    if escaped and not text.startswith("WEBVTT"):
        raise InputError(
            "not WebVTT: the first line does not begin with WEBVTT; the file may be srt"
        )
    if not escaped and text.strip() and "-->" not in text:
        raise InputError("not subtitles: no line has times, as 00:00:01,000 --> 00:00:02,000")
    spans, texts = [], []
    for cue in (_WEB_CUE if escaped else _CUE).finditer(text):
        start = cue.start(1)
        start = _POSITION.match(text, start).end()  # type: ignore[union-attr]
        block = text[start : cue.end(1)].rstrip()
        for offset, lines in _texts(block):
            spans.append((start + offset, start + offset + len(lines)))
            line = " ".join(lines.split())
            texts.append(line if escaped else _escaped(line))

    def write(translations: list[str]) -> bytes:
        cues = []
        for (first, last), translation in zip(spans, translations, strict=True):
            ending = "\r\n" if "\r\n" in text[first:last] else "\n"
            lines = _wrapped(translation, text.count("\n", first, last) + 1)
            cues.append(ending.join(lines) if escaped else unescape(ending.join(lines)))
        return mark + replaced(text, zip(spans, cues, strict=True)).encode()

    return FileContent(texts, write, html=True)


def _texts(block: str) -> list[tuple[int, str]]:
    """The texts of a cue, each with an offset."""
    spans: list[tuple[int, int]] = []
    ended, before = True, ""
    for match in re.finditer(r"[^\r\n]+|(?<=\n)(?=\r?\n)", block):
        (start, end), line = match.span(), match[0].strip()
        bare = _TAG.sub("", line).strip()
        if marked := _ALONE.fullmatch(match[0]):
            start, end = (match.start() + place for place in marked.span(1))
        alone = marked or _ALONE.fullmatch(bare)
        tagged = _IN_TAG.fullmatch(line)
        begins = alone or _BEGINS.match(line) or _BEGINS.match(bare)
        if not bare:
            ended = True
        elif ended or begins or (tagged and _SENTENCE_END.search(before)):
            spans.append((start, end))
            ended = bool(alone or tagged)
        else:
            spans[-1] = spans[-1][0], end
        before = line
    return [(start, block[start:end]) for start, end in spans]


def _escaped(text: str) -> str:
    """SubRip as HTML, with unchanged tags and escapes in all other text."""
    parts = re.split(f"({_TAG.pattern})", text)  # every second part is a tag
    parts[::2] = [escape(part, quote=False) for part in parts[::2]]
    return "".join(parts)


def _wrapped(text: str, count: int) -> list[str]:
    """The text in at most ``count`` lines of similar lengths (tags do not count)."""
    gaps: list[tuple[int, int]] = []  # for each space, the visible characters before, and the place
    visible = 0
    for piece in _PIECE.finditer(text):
        if piece[0] == " ":
            gaps.append((visible, piece.start()))
        visible += not piece[0].startswith("<")
    lines, start, least = [], 0, 0
    for number in range(1, count):
        wanted = visible * number / count
        after = bisect_left(gaps, (wanted, 0), least)
        beside = range(max(after - 1, least), min(after + 1, len(gaps)))
        if not beside:
            break
        nearest = min(beside, key=lambda gap: abs(gaps[gap][0] - wanted))
        lines.append(text[start : gaps[nearest][1]])
        start, least = gaps[nearest][1] + 1, nearest + 1
    return [*lines, text[start:]]
