"""Translates the text of HTML, and keeps the tree.

Block elements bound the units of translation. The alignment puts inline elements at their words.

The module cuts tags as the HTML standard's tokenizer does: an unfinished tag or comment ends with
the document. Python's ``html.parser`` takes quadratic time on unfinished tags, and loses bytes.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape, unescape
from typing import Literal, Unpack

from glassformer.alignment.restoring import restored
from glassformer.data.bare_text import VOID, BareText, Mark
from glassformer.data.words import Span, has_letters, replaced
from glassformer.text_engine import Translation
from glassformer.translator import TranslateSettings, Translator

__all__ = ["Page", "translated_html"]

_INLINE = frozenset(
    {"a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "data", "del", "dfn", "em", "font"}
    | {"i", "img", "input", "ins", "label", "mark", "nobr", "output", "q", "ruby", "rb", "rp", "rt"}
    | {"s", "small", "span", "strike", "strong", "time", "tt", "u", "wbr"}
    | {"c", "lang", "v"}  # of subtitles in WebVTT
)
# Elements whose content stays unchanged; an inline element becomes a point in the sentence.
_OPAQUE_INLINE = frozenset(["code", "kbd", "math", "samp", "sub", "sup", "svg", "var"])
_OPAQUE = _OPAQUE_INLINE | {
    *("canvas", "iframe", "noscript", "object", "pre", "script", "style", "template", "textarea")
}
_RAW = {
    name: re.compile(rf"</{name}(?=[\s/>]|\Z)", re.IGNORECASE)
    for name in ("iframe", "noframes", "script", "style", "textarea", "title")
}
_TRANSLATED_ATTRIBUTES = frozenset({"alt", "aria-label", "placeholder", "title"})
_DESCRIPTION = re.compile("(?:og:|twitter:)?(?:description|title)")  # name or property of a meta
_BUTTONS = frozenset({"button", "reset", "submit"})
_LANGUAGE = re.compile(r"(<html(?:\s[^<>]*?)?\slang\s*=\s*[\"']?)[\w-]+", re.IGNORECASE)
_MARKUP = re.compile(
    r"<!--(?:-?>|.*?(?:--!?>|\Z))"  # a comment
    r"|<(?:[!?]|/(?![A-Za-z]))[^>]*(?:>|\Z)"  # a declaration, or a faulty comment
    r"|<[0-9][0-9:.]*>"  # a time in a subtitle
    r"|<(?P<slash>/?)(?P<name>[A-Za-z][^\s/>]*+)"
    r"(?:[^>=]++|=\s*+(?:\"[^\"]*+(?:\"|\Z)|'[^']*+(?:'|\Z))?+)*+(?:>|\Z)",
    re.DOTALL,
)
_ATTRIBUTE = re.compile(
    r"(?P<name>[^\s/>=]++)(?:\s*+=\s*+(?P<value>\"[^\"]*+\"|'[^']*+'|[^\s>\"'][^\s>]*+))?"
)
_WHITE = " \t\r\n\f"
_Role = Literal["text", "open", "close", "other"]
_COMMENT = Mark(0, 0, name="!")
_SPACES = re.compile(f"[{_WHITE}]+")
_PIECE = re.compile(rf"[{_WHITE}]++|[^{_WHITE}]++(?:[{_WHITE}]++[^{_WHITE}]++)*+")  # or white space


def translated_html(
    translator: Translator,
    documents: Sequence[str],
    *,
    language: str | None = None,
    **options: Unpack[TranslateSettings],
) -> list[str]:
    """Translated HTML documents or fragments; the translator gets ``options``.

    Scripts, styles, code, ``pre``, ``textarea``, comments, and elements with ``translate="no"`` or
    the class ``notranslate`` stay. The function translates attributes that people read. The
    document's ``lang`` becomes ``language``.

    >>> class Shouting:
    ...     def translate(self, texts, **options):
    ...         return [Translation(text.upper(), -1.0) for text in texts]
    >>> translated_html(Shouting(), ['<p title="old">one &amp; <i>two</i><pre>three</pre>'])
    ['<p title="OLD">ONE &amp; <i>TWO</i><pre>three</pre>']
    """
    pages = [Page.of(document) for document in documents]
    texts = [text for page in pages for text in page.texts]
    # Inline markup needs an alignment.
    options["alignment"] = any(unit.marks for page in pages for _, unit in page.units)
    rest = iter(translator.translate(texts, **options) if texts else [])
    return [page.written([next(rest) for _ in page.texts], language) for page in pages]


@dataclass(frozen=True)
class _Token:
    """Text, a tag, or other markup, as a span of the document."""

    start: int
    end: int
    role: _Role
    name: str = ""


@dataclass(frozen=True)
class Page:
    """A document, the spans of attribute values to translate, and the units.

    A unit is a text for one translation; inline markup in a unit is a mark.
    """

    text: str
    attributes: tuple[Span, ...]
    units: tuple[tuple[Span, BareText], ...]

    @classmethod
    def of(cls, text: str) -> "Page":
        """Find the texts to translate in a document."""
        reader = _Reader(text)
        reader.read()
        return cls(text, tuple(reader.attributes), tuple(reader.units))

    @property
    def texts(self) -> list[str]:
        """The texts to translate, first attributes, then units without markup."""
        values = [unescape(self.text[slice(*span)]) for span in self.attributes]
        return [*values, *(unit.bare for _, unit in self.units)]

    def written(self, translations: Sequence[Translation], language: str | None = None) -> str:
        """The document with ``translations`` in place of ``texts``, and with a new ``lang``."""
        if count := len(self.attributes):  # first, because units hold some attributes
            quotes = ["" if self.text[start - 1] in "\"'" else '"' for start, _ in self.attributes]
            values = [
                f"{quote}{escape(translation.text)}{quote}"
                for quote, translation in zip(quotes, translations[:count], strict=True)
            ]
            page = Page.of(replaced(self.text, zip(self.attributes, values, strict=True)))
            return replace(page, attributes=()).written(translations[count:], language)
        units = [
            (span, restored(unit, each.text, each.alignment, write=_escaped)[0])
            for (span, unit), each in zip(self.units, translations, strict=True)
        ]
        text = replaced(self.text, units)
        return _LANGUAGE.sub(rf"\g<1>{language}", text, count=1) if language else text


class _Reader:
    """Reads a document's tokens into units and attributes."""

    def __init__(self, text: str) -> None:
        self.units: list[tuple[Span, BareText]] = []
        self.attributes: list[Span] = []
        self._text = text
        self._pieces: list[tuple[Span, Mark | None]] = []  # of the open unit

    def read(self) -> None:
        tokens = list(_tokens(self._text))
        number = 0
        while number < len(tokens):
            token = tokens[number]
            span = token.start, token.end
            if token.role == "open" and self._stays(token):
                number = _end_of_element(tokens, number)
                inline = token.name in _INLINE | _OPAQUE_INLINE
                self._add((token.start, tokens[number].end), Mark(0, 0) if inline else None)
            elif token.role == "text":
                pieces = _PIECE.finditer(self._text, *span)
                self._pieces += [(piece.span(), None) for piece in pieces]
            elif token.role == "other":
                self._pieces.append((span, _COMMENT))
            else:
                role = "point" if token.name in VOID else token.role
                if token.role == "open":
                    self._read_attributes(token)
                self._add(span, Mark(0, 0, role, token.name) if token.name in _INLINE else None)
            number += 1
        self._end_unit()

    def _add(self, span: Span, mark: Mark | None) -> None:
        """Add a mark to the open unit; a block's tag (no mark) ends the unit."""
        if mark is None:
            self._end_unit()
        else:
            self._pieces.append((span, mark))

    def _end_unit(self) -> None:
        pieces, self._pieces = self._pieces, []
        while pieces and self._is_edge(*pieces[-1]):
            pieces.pop()
        first = next((n for n, piece in enumerate(pieces) if not self._is_edge(*piece)), 0)
        del pieces[:first]
        if not any(has_letters(unescape(self._text[slice(*s)])) for s, mark in pieces if not mark):
            return
        span = pieces[0][0][0], pieces[-1][0][1]
        self.units.append((span, self._bare_text(pieces)))

    def _bare_text(self, pieces: Sequence[tuple[Span, Mark | None]]) -> BareText:
        parts, marks, length = [], [], 0
        for span, mark in pieces:
            part = self._text[slice(*span)]
            if mark is None:
                part = _SPACES.sub(" ", unescape(part))
            else:
                marks.append(replace(mark, start=length, end=length + len(part)))
            parts.append(part)
            length += len(part)
        return BareText("".join(parts), tuple(marks))

    def _is_edge(self, span: Span, mark: Mark | None) -> bool:
        """Whether a piece at an end of a unit is white space or a comment, and stays outside."""
        return mark == _COMMENT or not self._text[slice(*span)].strip(_WHITE)

    def _stays(self, token: _Token) -> bool:
        """Whether an element stays untranslated."""
        if token.name in VOID:
            return False
        attributes = dict(self._attributes_of(token))
        spans = attributes.get("translate", (0, 0)), attributes.get("class", (0, 0))
        translate, classes = (unescape(self._text[slice(*span)]).lower() for span in spans)
        return token.name in _OPAQUE or translate == "no" or "notranslate" in classes.split()

    def _read_attributes(self, token: _Token) -> None:
        spans = dict(self._attributes_of(token))
        values = {name: unescape(self._text[slice(*span)]) for name, span in spans.items()}
        wanted = _TRANSLATED_ATTRIBUTES
        if _DESCRIPTION.fullmatch(values.get("name") or values.get("property", "")):
            wanted |= {"content"} if token.name == "meta" else set()
        if token.name == "input" and values.get("type", "").lower() in _BUTTONS:
            wanted |= {"value"}
        names = (name for name in spans if name in wanted and has_letters(values[name]))
        self.attributes += [spans[name] for name in names]

    def _attributes_of(self, token: _Token) -> Iterator[tuple[str, Span]]:
        """The name and the span of the value, without quotes, of each attribute."""
        start = token.start + 1 + len(token.name)
        for match in _ATTRIBUTE.finditer(self._text, start, token.end):
            if match["value"] is not None:
                first, last = match.span("value")
                quotes = match["value"][0] in "\"'"
                yield match["name"].lower(), (first + quotes, last - quotes)


def _tokens(text: str) -> Iterator[_Token]:
    """Cut a document into tokens, in order and without gaps."""
    place = 0
    while match := _MARKUP.search(text, place):
        if place < match.start():
            yield _Token(place, match.start(), "text")
        place = match.end()
        name = (match["name"] or "").lower().partition(".")[0]  # WebVTT: <c.yellow>
        role: _Role = "other" if not name else "close" if match["slash"] else "open"
        yield _Token(match.start(), place, role, name)
        if role == "open" and name in _RAW:
            end = _RAW[name].search(text, place)
            stop = end.start() if end else len(text)
            if place < stop:
                yield _Token(place, stop, "text")
            place = stop
    if place < len(text):
        yield _Token(place, len(text), "text")


def _end_of_element(tokens: Sequence[_Token], first: int) -> int:
    """The number of the token that closes the element, or else of the last token."""
    depth = 0
    for number in range(first, len(tokens)):
        token = tokens[number]
        if token.name == tokens[first].name:
            depth += {"open": 1, "close": -1}[token.role]
            if depth == 0:
                return number
    return len(tokens) - 1


def _escaped(text: str) -> str:
    return escape(text, quote=False).replace("\u00a0", "&nbsp;")
