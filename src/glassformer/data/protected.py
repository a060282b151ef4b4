"""Protected spans: parts of a text that its translation must hold unchanged.

This module does not protect plain numbers, dates, times and amounts of money, because languages
write numbers differently.
"""

import re
from collections import Counter
from dataclasses import dataclass, replace

from glassformer.data.bare_text import VOID, Mark
from glassformer.data.words import ALNUM, ALPHA

__all__ = [
    "SPANS",
    "ProtectedSpan",
    "lost_spans",
    "mark_of",
    "measures",
    "protected_spans",
]

_UNITS = (
    r"[nµmckM]?m[²³]?|[mk]?g|t|[mcd]?[lL]|ha|[kMGT]?Hz|[mkMG]?Wh?|[mk]V|mA|mAh|[kKMGTP]i?B|[kMG]?bit"
    r"|[kMG]?bit/s|[kKMG]B/s|km/h|m/s|mph|°[CF]|[hk]?Pa|bar|kJ|kcal|Nm|px|dpi|fps|rpm|ms|µs|min|h|dB"
)
_PICTURE = (
    r"(?:[\U0001F000-\U0001F1E5\U0001F200-\U0001F3FA\U0001F400-\U0001FAFF\u231A-\u23FF\u2600-\u2755"
    r"\u2757-\u275A\u2763-\u2767\u2795-\u2797\u27A1\u27B0\u27BF\u2B05-\u2B55]"
    r"|[©®‼⁉™ℹ↔-↪〰〽㊗㊙]\uFE0F)[\uFE0F\U0001F3FB-\U0001F3FF\U000E0020-\U000E007F]*"
)
_EMPHASIS = r"(?:\*{1,3}|_{1,3}|~~|'{2,5})"
_MINUS = "-−–"
_NUMBER = r"\d{1,12}(?:[.,]\d{1,9}){0,4}"
_OPENS = r"\s(\[{\"'„“«"  # such a character, or nothing, stands before a word's sign
# The first kind that matches at a place wins. Each pattern has a bound, so the search is linear.
_KINDS = {
    "url": r"(?<![A-Za-z\d])(?:(?:https?|ftps?|file|ssh)://|mailto:|www\.)"
    r"[^\s<>\"`{}|\\^«»“”‘’\u3000-\u303F\uFF01-\uFF60]{1,2000}",
    "email": r"(?<![\w.+-])[\w.+-]{1,64}@(?:[\w-]{1,63}\.){1,8}[^\W\d_]{2,24}\b",
    "path": r"(?<![\w/.:<~\\-])(?:[A-Za-z]:\\[^\s\"<>|?*]{1,200}|(?:~|\.{1,2})/[\w.@+-]{1,60}"
    r"(?:/[\w.@+-]{1,60}){0,20}/?|(?:/[\w.@+-]{1,60}){2,20}/?"
    r"|(?:[\w-]{1,60}+/){1,20}[\w-]{1,60}\.[a-z][a-z\d]{0,4}(?!\w)"
    r"|[\w-]{1,60}\.[a-z][a-z\d]{0,4}(?::\d{1,6}){1,2}(?!\w))",
    "code": r"(?<!`)(?P<ticks>`{1,3})(?!`|[^`'\n]{1,60}'(?![\w'`]))"  # not the quote of `this'
    r"[^\n]{1,300}?(?<!`)(?P=ticks)(?!`)"
    r"|(?<!\w)[A-Za-z][A-Za-z\d]{0,40}+_[A-Za-z\d]\w{0,40}(?:\(\))?|(?<!\w)[A-Za-z][\w.]{0,60}+\(\)"
    r"|(?<!\w)[A-Za-z]\w{0,40}+(?:::\w{1,40}){1,9}|(?<![\w-])--[a-z][\w-]{1,40}",
    "tag": r"<(?:%[^\n]{0,120}?%|\?[^\n]{0,120}?\?|/?#[^<>\n]{1,80})>|<!--[^\n]{0,300}?-->"
    r"|\{\\[^{}\n]{1,60}\}"  # the second in subtitles
    r"|\[/?(?:[biusq*]|url|img|quote|code|list|size|color|center|spoiler)(?:=[^\[\]\n]{1,60})?\]"
    r"|</?[A-Za-z][\w:.-]{0,40}(?:=[^\s\"'<>]{1,40})?"
    r"(?:\s{1,4}[\w:@.-]{1,40}=(?:\"[^\"<>]{0,300}\"|'[^'<>]{0,300}'"
    r"|[^\s\"'<>]{1,300})){0,20}\s{0,4}/?>|</?\d{1,3}\s?/?>|<\d[\d:.]{2,14}>"
    r"|&(?:#\d{1,7}|#[xX][\da-fA-F]{1,6}|[A-Za-z][a-z]{1,7}\d{0,2});",
    "shortcode": r"(?<![\w:])(?::[a-z\d+][\w+-]{0,40}:){1,99}(?!\w)",
    "placeholder": r"\{\{\{?[^{}\n]{1,80}\}?\}\}|\{%[^{}\n]{1,120}%\}"
    r"|\$\([\w.-]{1,60}\)|(?<!\w)@\w{1,40}@(?!\w)"
    r"|\{\s\$\w{1,40}\s\}|(?<!\d)%L?(?:n|\d{1,2})(?!\.?\d|\$|\w(?!%))"
    r"|[$#%@]?\{[\w.\[\]-]{0,60}(?:![rsa])?(?::[^{}\s]{0,20})?\}"
    r"|\{\w{1,40},\s?(?:plural|select|selectordinal|number|date|time)\b"
    r"(?:[^{}]|\{[^{}]{0,80}\}){0,200}\}"
    r"|(?<!\d)%[A-Za-z_]\w{1,40}%(?!\w)|%%"
    r"|(?<!\d)%(?:\(\w{1,40}\)|\d{1,2}\$)?[-+0#'I]{0,3}\d{0,3}(?:\.\d{1,2})?"
    r"(?:hh?|ll?|[Lqjzt])?(?:[sdf@](?![^\W\d_]{3})|[A-Za-z](?![^\W\d_]{2}))"
    r"|(?<![\w$.,])\$[1-9](?![\w$]|[.,]\d)"
    r"|(?<![\w$])\$(?:t\([^()\n]{1,80}\)|[A-Za-z_]\w{0,40})|(?<!\w)__[A-Za-z\d_]{1,40}?__(?!\w)"
    rf"|:(?<![^{_OPENS}]:)(?:[A-Za-z]\w{{1,40}}|[a-z](?!\w))|@:[\w.]{{1,60}}"
    r"|\[X\d{1,5}X\]",  # Weblate's form of a hidden placeholder
    "reference": r"\[\^?\d[\d\s.,:;–-]{0,20}\]"
    r"|\[(?=[^\[\]\s]{0,40}[A-Za-z])(?=[^\[\]\s]{0,40}\d)[^\[\]\s{}<>\\]{1,40}\]"
    r"|[§¶№]{1,2}\s?\d[\d.–-]{0,20}(?:\s?\(\d{1,3}\)){0,9}",
    "escape": r"\\(?:[nrtNh](?![a-z])|[A-Za-z]{2,20}\*?)",  # of a string, or a command of LaTeX
    "name": r"(?<![\w@#&/.])(?:@[A-Za-z_]\w{1,40}(?:\.\w{1,40}){0,3}"
    r"|#(?=\d{0,99}[^\W\d])\w{1,100})",
    "measure": rf"(?:[{_MINUS}](?<![^{_OPENS}].))?(?<![\w.,])"
    rf"(?:{_NUMBER}\s?[{_MINUS}]\s?)?{_NUMBER}[ \u00A0\u202F]?(?:{_UNITS})(?![\w/²³])",
    "version": r"(?<![\w.,])(?:v\d{1,4}(?:\.\d{1,5}){0,4}|\d{1,2}\.\d{1,2}\.\d"
    r"|\d{1,3}(?:\.\d{1,3}){3})(?:-(?:alpha|beta|rc|dev)[.\d]{0,9})?(?![\w]|[.,]\d)",
    "identifier": rf"(?<!{ALNUM}|[_.-])"
    r"(?:(?=[a-f-]{0,40}\d)[\da-f]{6,8}(?:-[\da-f]{2,12}){1,4}"
    rf"|{ALPHA}{{1,24}}\d{ALNUM}{{0,20}}|\d{{1,9}}{ALPHA}{{1,20}}\d{ALNUM}{{0,20}}"
    r"|[A-Z]{1,6}(?:-[^\W_]{0,20}\d[^\W_]{0,20}){1,4}|\d{1,6}(?:-\d{1,8}){3,6}"
    r"|\+(?:\d{7,15}|\d{1,6}-[\d/-]{3,17}\d|\d{1,6}[ (/][ \d()/-]{3,17}\d))"
    r"(?![\w\uFE0F\u20E3-]|[.,:]\d)",
    "emoji": r"(?<!\S)[:;=]['-]?[DPpOo](?!\S)"
    r"|(?:[\U0001F1E6-\U0001F1FF]{2}\uFE0F?|[\d#*]\uFE0F?\u20E3"
    rf"|{_PICTURE}(?:\u200D{_PICTURE})*)+",
    "emphasis": rf"(?<!\w){_EMPHASIS}(?=\w)|(?<=[\w.,;:!?%]){_EMPHASIS}(?!\w)",
}
#: A pattern of all kinds, each a named group.
SPANS = "|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _KINDS.items())
_SPAN = re.compile(SPANS)
# Each span matches this pattern; most texts have no match and need no further search.
_MAY = re.compile(
    r"[\[\\{%$<&`@#*\d_/©®\u203c-\U0010ffff]|[:;=]['\\A-Za-z-]|\(\)|www[.]|~~|''|::|--"
)
_TAG = re.compile(r"<(?P<close>/?)(?P<name>[A-Za-z\d][\w:.-]*)[^>]*?(?P<end>/?)>")
# A placeholder without a name or number counts by its place among the others.
_ORDERED = re.compile(r"%[-+0#' I]{0,3}\d{0,3}(?:\.\d+)?[A-Za-z@]+|\{(?:[!:].*)?\}")
_SENTENCE_ENDS = ".,;:!?'*_…"
_CLOSERS = {")": "(", "]": "["}


@dataclass(frozen=True)
class ProtectedSpan:
    """A part of a text that stays as it is, with its kind; ``end`` comes after the part."""

    kind: str
    start: int
    end: int

    def text_of(self, text: str) -> str:
        """The part of ``text``."""
        return text[self.start : self.end]


def protected_spans(text: str, pattern: re.Pattern[str] | None = None) -> list[ProtectedSpan]:
    """The protected spans of ``text`` in their order; no two spans overlap.

    A ``pattern`` has further kinds.

    The kinds are code (in backticks, user_name, run()), url, email, tag (with entities),
    placeholder, reference ([1]), name (@name, #tag), path, measure (a number with its sign and
    unit), version, identifier (AR-1000, +49 30 123456), escape (backslash n), emoji (with its
    neighbours). The time is linear in the text's length.

    >>> text = "Hi {name}, 100 % of $1,000 is at https://a.org/x. 👍🏽"
    >>> [(span.kind, text[span.start : span.end]) for span in protected_spans(text)]
    [('placeholder', '{name}'), ('url', 'https://a.org/x'), ('emoji', '👍🏽')]
    """
    spans: list[ProtectedSpan] = []
    if not (pattern or _MAY.search(text)):
        return spans
    search, end = (pattern or _SPAN).search, 0
    while match := search(text, end):
        kind, end = str(match.lastgroup), match.end()
        if kind in ("url", "path"):
            end = match.start() + len(_without_sentence_end(match.group()))
        spans.append(ProtectedSpan(kind, match.start(), end))
    return spans


def mark_of(text: str, span: ProtectedSpan, start: int = 0) -> Mark:
    """The mark of a span in ``text[start:]``; a tag opens or closes, other spans are points."""
    part = span.text_of(text)
    tag = _TAG.fullmatch(part) if span.kind == "tag" else None
    place = Mark(span.start - start, span.end - start, kind=span.kind)
    if tag and not tag["end"] and tag["name"].lower() not in VOID:
        return replace(place, role="close" if tag["close"] else "open", name=tag["name"].lower())
    if span.kind == "emphasis":
        opens = text[span.end : span.end + 1].isalnum()
        return replace(place, role="open" if opens else "close", name=part)
    return replace(place, ordered=bool(_ORDERED.fullmatch(part)))


def lost_spans(source: str, target: str) -> list[str]:
    """The protected spans of ``source`` that ``target`` lacks; repetitions count.

    A measure is lost if ``target`` lacks its number. ``target`` may write "3,5" for "3.5", and
    another name of the unit.

    >>> lost_spans("%s has {n} files, 3.5 GB. %s", "%s hat Dateien, 3,5 GB.")
    ['%s', '{n}']
    """
    spans = protected_spans(source)
    kept = Counter(span.text_of(target) for span in protected_spans(target))
    for measure in {span.text_of(source) for span in spans if span.kind == "measure"} - {*kept}:
        kept[measure] = measures(measure, target)
    return [*(Counter(span.text_of(source) for span in spans) - kept).elements()]


def measures(measure: str, text: str) -> int:
    """The number of places where ``text`` holds the number of ``measure`` with sign and unit.

    Digit separators, minus signs and the word between the ends of a range may differ. The unit
    begins with the measure's first letter, or with a letter beyond ASCII.

    >>> measures("3.5 GHz", "3,5 GHz"), measures("5 km", "5 Kilometer, 5 км"), measures("5 km", "5")
    (1, 2, 0)
    >>> measures("-5 °C", "\\u22125 °C, minus 5 °C"), measures("-5 °C", "5 °C, 3-5 °C")
    (2, 0)
    >>> measures("3-5 km", "3 bis 5 km"), measures("3-5 km", "5 km")
    (1, 0)
    """
    unit = measure.lstrip(f"0123456789., \u00a0\u202f{_MINUS}")
    ends = re.split(rf"(?<=\d)\s?[{_MINUS}]", measure.removesuffix(unit))
    separated = [r"[.,'’ \u00A0\u202F]?".join(re.findall(r"\d+", end)) for end in ends]
    number, unit = r"\D{1,9}".join(separated), re.escape(unit[:1])
    sign = rf"(?P<sign>[{_MINUS}](?<![^{_OPENS}].)\s?|\bminus )?"
    pattern = rf"(?i){sign}(?<!\d){number}[ \u00A0\u202F-]?(?:{unit}|[^\x00-\x7F\W])"
    signed = measure[0] in _MINUS
    return sum(bool(match["sign"]) == signed for match in re.finditer(pattern, text))


def _without_sentence_end(url: str) -> str:
    """The address or path without the punctuation at the end of the sentence.

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
