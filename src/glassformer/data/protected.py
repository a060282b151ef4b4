"""Protected spans: parts of a text that its translation must hold unchanged.

Plain numbers, dates and amounts of money are not protected: languages write them differently.
"""

import re
from collections import Counter
from dataclasses import dataclass

__all__ = ["ProtectedSpan", "lost_spans", "measures", "protected_spans"]

_UNITS = (
    r"[nµmckM]?m[²³]?|[mk]?g|t|[mcd]?[lL]|ha|[kMGT]?Hz|[mkMG]?Wh?|[mk]V|mA|mAh|[kKMGTP]i?B|[kMG]?bit"
    r"|[kMG]?bit/s|[kKMG]B/s|km/h|m/s|mph|°[CF]|[hk]?Pa|bar|kJ|kcal|Nm|px|dpi|fps|rpm|ms|µs|min|h|dB"
)
_PICTURE = (
    r"(?:[\U0001F000-\U0001F1E5\U0001F200-\U0001F3FA\U0001F400-\U0001FAFF\u231A-\u23FF\u2600-\u2755"
    r"\u2757-\u275A\u2763-\u2767\u2795-\u2797\u27A1\u27B0\u27BF\u2B05-\u2B55]"
    r"|[©®‼⁉™ℹ↔-↪〰〽㊗㊙]\uFE0F)[\uFE0F\U0001F3FB-\U0001F3FF\U000E0020-\U000E007F]*"
)
# The first kind that matches at a place wins. Each pattern has a bound: the search is linear.
_KINDS = {
    "code": r"(?<!`)(?P<ticks>`{1,3})(?!`)[^\n]{1,300}?(?<!`)(?P=ticks)(?!`)",
    "url": r"(?<![A-Za-z\d])(?:(?:https?|ftps?|file|ssh)://|mailto:|www\.)"
    r"[^\s<>\"`{}|\\^«»“”‘’\u3000-\u303F\uFF01-\uFF60]{1,2000}",
    "email": r"(?<![\w.+-])[\w.+-]{1,64}@(?:[\w-]{1,63}\.){1,8}[^\W\d_]{2,24}\b",
    "tag": r"<!--[^\n]{0,300}?-->"
    r"|</?[A-Za-z][\w:.-]{0,40}(?:\s{1,4}[\w:@.-]{1,40}=(?:\"[^\"<>]{0,300}\"|'[^'<>]{0,300}'"
    r"|[^\s\"'<>]{1,300})){0,20}\s{0,4}/?>"
    r"|&(?:#\d{1,7}|#[xX][\da-fA-F]{1,6}|[A-Za-z][a-z]{1,7}\d{0,2});",
    "placeholder": r"\{\{\{?[^{}\n]{1,80}\}?\}\}|\{%[^{}\n]{1,120}%\}"
    r"|[$#%@]?\{[\w.\[\]-]{0,60}(?:![rsa])?(?::[^{}\s]{0,20})?\}"
    r"|\{\w{1,40},\s?(?:plural|select|selectordinal|number|date|time)\b"
    r"(?:[^{}]|\{[^{}]{0,80}\}){0,200}\}"
    r"|(?<!\d)%[A-Za-z_]\w{1,40}%(?!\w)|%%"
    r"|(?<!\d)%(?:\(\w{1,40}\)|\d{1,2}\$)?[-+0#]{0,3}\d{0,3}(?:\.\d{1,2})?"
    r"(?:hh?|ll?|[Lqjzt])?(?:[sdf@](?![^\W\d_]{3})|[A-Za-z](?![^\W\d_]{2}))"
    r"|(?<![\w$.,])\$[1-9](?![\w$]|[.,]\d)"
    r"|\[X\d{1,5}X\]",  # as Weblate hides its own placeholders
    "measure": r"(?<![\w.,])\d{1,12}(?:[.,]\d{1,9}){0,4}[ \u00A0\u202F]?"
    rf"(?:{_UNITS})(?![\w/²³])",
    "emoji": r"(?:[\U0001F1E6-\U0001F1FF]{2}|[\d#*]\uFE0F?\u20E3"
    rf"|{_PICTURE}(?:\u200D{_PICTURE})*)+",
}
_SPAN = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _KINDS.items()))
# Each span has one of these: most texts need no further search.
_MAY = re.compile("[{%$<&`@#*\\d©®\u203c-\U0010ffff]|://|mailto:|www[.]")
_SENTENCE_ENDS = ".,;:!?'*_…"
_CLOSERS = {")": "(", "]": "["}


@dataclass(frozen=True)
class ProtectedSpan:
    """A part of a text that stays as it is: its kind, its first character, the one after it."""

    kind: str
    start: int
    end: int


def protected_spans(text: str) -> list[ProtectedSpan]:
    """The protected spans of ``text`` in their order; no two overlap.

    Kinds: code (in backticks), url, email, tag (with entities), placeholder, measure (a number with
    its unit), emoji (with its neighbours). The time is linear in the text's length.

    >>> text = "Hi {name}, 100 % of $1,000 is at https://a.org/x. 👍🏽"
    >>> [(span.kind, text[span.start : span.end]) for span in protected_spans(text)]
    [('placeholder', '{name}'), ('url', 'https://a.org/x'), ('emoji', '👍🏽')]
    """
    spans: list[ProtectedSpan] = []
    if not _MAY.search(text):
        return spans
    for match in _SPAN.finditer(text):
        kind, end = str(match.lastgroup), match.end()
        if kind == "url":
            end = match.start() + len(_without_sentence_end(match.group()))
        spans.append(ProtectedSpan(kind, match.start(), end))
    return spans


def lost_spans(source: str, target: str) -> list[str]:
    """The protected spans of ``source`` that ``target`` lacks; each as often as it is missing.

    A measure is lost if its number is lost. The target may write "3,5", and the unit
    by another name.

    >>> lost_spans("%s has {n} files, 3.5 GB. %s", "%s hat Dateien, 3,5 GB.")
    ['{n}', '%s']
    """
    left = Counter(target[span.start : span.end] for span in protected_spans(target))
    lost = []
    for span in protected_spans(source):
        text = source[span.start : span.end]
        if span.kind == "measure" and text not in left:
            left[text] = measures(text, target)
        left[text] -= 1
        if left[text] < 0:
            lost.append(text)
    return lost


def measures(measure: str, text: str) -> int:
    """How often ``text`` holds the number of ``measure`` with its unit.

    Separators of digits may differ; the unit begins with the same sign or a letter beyond ASCII.

    >>> measures("3.5 GHz", "3,5 GHz"), measures("5 km", "5 Kilometer, 5 км"), measures("5 km", "5")
    (1, 2, 0)
    """
    number = r"[.,'’ \u00A0\u202F]?".join(re.findall(r"\d+", measure))
    unit = re.escape(re.sub(r"^[\d.,\s]+", "", measure)[:1])
    pattern = rf"(?i)(?<!\d){number}[ \u00A0\u202F-]?(?:{unit}|[^\x00-\x7F\W])"
    return len(re.findall(pattern, text))


def _without_sentence_end(url: str) -> str:
    """The address without the punctuation of the sentence around it.

    >>> _without_sentence_end("https://a.org/b_(c)).")
    'https://a.org/b_(c)'
    """
    while True:
        trimmed = url.rstrip(_SENTENCE_ENDS)
        closer = trimmed[-1:]
        if closer in _CLOSERS and trimmed.count(closer) > trimmed.count(_CLOSERS[closer]):
            trimmed = trimmed[:-1]
        if trimmed == url:
            return url
        url = trimmed
