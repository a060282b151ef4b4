"""Word documents (.docx), of which a translator gets paragraphs, notes, headers and footers.

A document is a ZIP archive of XML. A paragraph holds runs, each a text of one format, and becomes a
fragment of HTML. The commonest format of a paragraph counts as plain. A run of another format is a
``span``, and an element without text is a point. All other parts of the archive stay byte for byte.
Fields, such as dates and page numbers, stay unchanged. The reader accepts all tracked changes.
"""

import re
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from html import escape, unescape
from io import BytesIO
from itertools import groupby
from typing import Any, TypeAlias

from lxml import etree
from lxml.etree import _Element as Element

from glassformer.data.words import has_letters
from glassformer.support.errors import InputError
from glassformer.support.strangers import read_members
from glassformer.tools.documents.files.content import FileContent

__all__ = ["read_docx"]

_MAX_BYTES = 100 << 20  # bytes of all parts, unpacked
_NO_XML = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")  # a model may write any byte
_PART = re.compile(r"word/(document|header\d*|footer\d*|footnotes|endnotes)\.xml")
_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_SPACE = "{http://www.w3.org/XML/1998/namespace}space"
_RUN, _TEXT, _FORMAT = f"{_W}r", f"{_W}t", f"{_W}rPr"


def _names(names: str) -> frozenset[str]:
    return frozenset(f"{_W}{name}" for name in names.split())


_BREAKS = _names("tab br cr")
_CONTAINERS = _names("ins smartTag moveTo")  # vanish, but not their content
_HOLDERS = _names("hyperlink sdt dir bdo")  # stay around their content
_NOISE = _names(
    "proofErr lastRenderedPageBreak del moveFrom moveFromRangeStart moveFromRangeEnd"
    " moveToRangeStart moveToRangeEnd"
)
_XML: dict[str, Any] = {"xml_declaration": True, "encoding": "UTF-8", "standalone": True}
_UNSEEN = _names("lang noProof")  # formats without a visible effect
_NAMES = {"break": "br", "point": "img", "link": "a"}
_TAG = re.compile(r'<(?P<close>/?)(?P<name>span|a|img|br)(?: id="(?P<id>\d+)")?>')

# A piece has a kind, a content and a format. The content of "text" is text; "break", "point" and
# "link" have elements as content; "end" ends a link.
_Piece: TypeAlias = tuple[str, Any, Element | None]


def read_docx(data: bytes) -> FileContent:
    """The paragraphs of a Word document as HTML. Raises InputError for any other file."""
    parts = _parts(data)
    trees = {info: _tree(part) for info, part in parts.items() if _PART.fullmatch(info.filename)}
    if not trees:
        raise InputError("not a Word document (.docx): the file has no word/document.xml")
    paragraphs = [
        paragraph
        for tree in trees.values()
        for element in tree.iter(f"{_W}p")
        if (paragraph := _Paragraph(element)).has_letters
    ]

    def write(translations: list[str]) -> bytes:
        for paragraph, translation in zip(paragraphs, translations, strict=True):
            paragraph.write(translation)
        written = BytesIO()
        with zipfile.ZipFile(written, "w") as archive:
            for info, part in parts.items():
                tree = trees.get(info)
                archive.writestr(info, part if tree is None else etree.tostring(tree, **_XML))
        return written.getvalue()

    return FileContent([paragraph.html for paragraph in paragraphs], write, html=True)


def _parts(data: bytes) -> dict[zipfile.ZipInfo, bytes]:
    """The unpacked parts of the archive."""
    members = read_members(BytesIO(data), "its zip file", bool, most_bytes=_MAX_BYTES)
    try:
        return {info: b"".join(pieces) for info, pieces in members}
    except InputError as error:
        raise InputError(f"not a Word document (.docx): {error}") from error


def _tree(part: bytes) -> Element:
    """The root of a part. The parser resolves no entity, loads nothing, and bounds the depth."""
    parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=False)
    try:
        return etree.fromstring(part, parser)
    except etree.XMLSyntaxError:
        raise InputError("the Word document is damaged: one of its parts is no XML") from None


class _Paragraph:
    """A paragraph as HTML, and the formats and elements for the numbers in the HTML."""

    def __init__(self, element: Element) -> None:
        self._element = element
        self._formats: list[Element] = []  # by the id of a span
        self._elements: list[list[Element]] = []  # by the id of a break, point or link
        pieces = _merged(_pieces(element))
        texts = [(text, form) for kind, text, form in pieces if kind == "text"]
        self.has_letters = any(has_letters(text) for text, _ in texts)
        sizes: Counter[bytes] = Counter()
        for text, form in texts:
            sizes[_key(form)] += len(text)
        plain = max(sizes, key=sizes.__getitem__, default=b"")
        self._plain = next((form for _, form in texts if _key(form) == plain), None)
        self.html = "".join(self._written(pieces, plain))

    def _written(self, pieces: Sequence[_Piece], plain: bytes) -> Iterator[str]:
        for kind, content, form in pieces:
            if kind == "text" and _key(form) == plain:
                yield escape(content, quote=False)
            elif kind == "text":
                self._formats.append(form)
                yield f'<span id="{len(self._formats) - 1}">{escape(content, quote=False)}</span>'
            elif kind == "end":
                yield "</a>"
            else:
                self._elements.append(content)
                yield f'<{_NAMES[kind]} id="{len(self._elements) - 1}">'

    def write(self, html: str) -> None:
        """Put a translation of ``html`` in the place of the paragraph's content."""
        for child in _content(self._element):
            self._element.remove(child)
        parents, formats = [self._element], [self._plain]
        place = 0
        for tag in _TAG.finditer(html):
            _add_text(parents[-1], html[place : tag.start()], formats[-1])
            place = tag.end()
            stack = formats if tag["name"] == "span" else parents
            if tag["close"]:
                del stack[max(1, len(stack) - 1) :]
            elif tag["name"] == "span":
                formats.append(self._formats[int(tag["id"])])
            else:
                elements = self._elements[int(tag["id"])]
                for element in elements:
                    _add(parents[-1], element)
                if tag["name"] == "a":
                    holder = _holder(elements[0])
                    parents.append(holder)
                    for child in _content(holder):
                        holder.remove(child)
        _add_text(parents[-1], html[place:], formats[-1])


def _content(element: Element) -> list[Element]:
    """The children of a paragraph or link, without the element for the paragraph's format."""
    return [child for child in element if child.tag != f"{_W}pPr"]


def _holder(element: Element) -> Element:
    """The element that holds the content of a link or of a content control."""
    content = element.find(f"{_W}sdtContent")
    return element if content is None else content


def _pieces(parent: Element) -> Iterator[_Piece]:
    """The pieces of a paragraph, or of an element inside it."""
    children = _content(parent)
    number = 0
    while number < len(children):
        child = children[number]
        last = _end_of_field(children, number)
        if last is not None:
            yield "point", children[number : last + 1], None
            number = last
        elif child.tag == _RUN:
            yield from _pieces_of_run(child)
        elif child.tag in _HOLDERS:
            yield "link", [child], None
            yield from _pieces(_holder(child))
            yield "end", None, None
        elif child.tag in _CONTAINERS:
            yield from _pieces(child)
        elif child.tag not in _NOISE:
            yield "point", [child], None
        number += 1


def _pieces_of_run(run: Element) -> Iterator[_Piece]:
    form = run.find(_FORMAT)
    for child in run:
        if child.tag == _TEXT:
            yield "text", child.text or "", form
        elif child.tag == f"{_W}noBreakHyphen":
            yield "text", "\u2011", form
        elif child.tag not in (_FORMAT, *_NOISE):
            yield "break" if child.tag in _BREAKS else "point", [child], None


def _end_of_field(children: Sequence[Element], first: int) -> int | None:
    """The number of the run that ends the field of run ``first``; None without a field there.

    If a field goes on in another paragraph, the function ends the field before the field's text.
    """
    depth, separate = 0, None
    for number in range(first, len(children)):
        for mark in children[number].iter(f"{_W}fldChar"):
            kind = mark.get(f"{_W}fldCharType")
            depth += {"begin": 1, "end": -1}.get(kind, 0)
            if kind == "separate" and depth == 1:
                separate = number
        if depth <= 0:
            return number if number > first else None
    return len(children) - 1 if separate is None else separate


def _merged(pieces: Iterable[_Piece]) -> list[_Piece]:
    """The pieces, after a join of neighbouring texts of one format, which Word often cuts."""
    merged: list[_Piece] = []
    for form, group in groupby(pieces, lambda piece: piece[0] == "text" and _key(piece[2])):
        if form is False:  # no texts
            merged += group
        else:
            (_, first, element), *others = group
            merged.append(("text", first + "".join(text for _, text, _ in others), element))
    return merged


def _key(form: Element | None) -> bytes:
    """The visible part of a format, as bytes for a comparison."""
    if form is None:
        return b""
    return b"".join(etree.tostring(child) for child in form if child.tag not in _UNSEEN)


def _add(parent: Element, element: Element) -> None:
    """Append an element; an element from inside a run gets a run of equal format around it."""
    owner = element.getparent()
    if owner is not None and owner.tag == _RUN:
        parent = _new_run(parent, owner.find(_FORMAT))
    parent.append(element)


def _add_text(parent: Element, html: str, form: Element | None) -> None:
    if html:
        text = etree.SubElement(_new_run(parent, form), _TEXT)
        text.set(_SPACE, "preserve")
        text.text = _NO_XML.sub("", unescape(html))


def _new_run(parent: Element, form: Element | None) -> Element:
    run = etree.SubElement(parent, _RUN)
    if form is not None:
        run.append(deepcopy(form))
    return run
