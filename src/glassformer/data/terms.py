"""Terms: words of the source, and the forms that their translation may have.

A text uses a term if the text holds the term's words. An inflected language needs several forms of
a target term; a translation needs one form.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from glassformer.data.lines import read_lines
from glassformer.data.words import Span, words
from glassformer.support.errors import InputError, UsageError

__all__ = ["NO_TERMS", "Terms", "form_place", "read_terms"]

_PART = re.compile("['’]|[^'’]+")
_SENTENCE_ENDS = ".!?…。！？"


@dataclass(frozen=True)
class Terms:
    """A glossary: each source term with its target forms.

    >>> terms = Terms.of({"dog": ["Hund", "Hunde"], "guide dog": "Blindenhund", "cat": "Katze"})
    >>> terms.forms_in("A guide dog. Hotdogs; the dog.")
    {'guide dog': ('Blindenhund',), 'dog': ('Hund', 'Hunde')}
    """

    entries: tuple[tuple[str, tuple[str, ...]], ...]

    @classmethod
    def of(cls, glossary: Mapping[str, str | Sequence[str]]) -> "Terms":
        """The terms of a mapping from a source term to a target term, or to several forms.

        A blank term, a blank form, or a term without a form raises UsageError. Another type raises
        TypeError.
        """
        if not isinstance(glossary, Mapping):
            raise TypeError(
                "glossary must map source terms to target terms, as a dict does, not"
                f" {type(glossary).__name__}: read_terms reads a file"
            )
        entries = []
        for term, target in glossary.items():
            forms = (target,) if isinstance(target, str) else target
            listed = isinstance(forms, Sequence)
            if not (listed and all(isinstance(text, str) for text in (term, *forms))):
                raise TypeError(f"glossary: {term!r}: {target!r}: expected a text, or some texts")
            if not term.strip():
                raise UsageError("glossary: a source term is blank: write a word")
            if not forms or not all(form.strip() for form in forms):
                raise UsageError(f"glossary: the target term of {term!r} is blank: write a word")
            entries.append((term, tuple(form.strip() for form in dict.fromkeys(forms))))
        return cls(tuple(entries))

    def __or__(self, other: "Terms") -> "Terms":
        """The terms of both glossaries; for a term in both, ``other`` has the forms that count."""
        return Terms(tuple((dict(self.entries) | dict(other.entries)).items()))

    def forms_in(self, text: str) -> dict[str, tuple[str, ...]]:
        """The forms of each term that stands in ``text``, in the order of the text.

        A term stands in the text as whole words. At the start of a sentence, the first letter of a
        term and of its forms may be a capital. Of overlapping terms, the longest counts.
        """
        by_term: dict[str, tuple[str, ...]] = {}
        for _, term, forms in self.places_in(text):
            by_term[term] = tuple(dict.fromkeys((*by_term.get(term, ()), *forms)))
        return by_term

    def missing(self, text: str, translation: str) -> list[str]:
        """The terms of ``text`` whose forms ``translation`` lacks.

        >>> Terms.of({"dog": ["Hund", "Hunde"], "cat": "Katze"}).missing("a dog, a cat", "Hunde")
        ['cat']
        """
        terms = self.forms_in(text).items()
        return [term for term, forms in terms if not any(form_place(translation, f) for f in forms)]

    def places_in(self, text: str) -> list[tuple[Span, str, tuple[str, ...]]]:
        """The span of each term in ``text``, the term, and its possible forms."""
        pieces = [piece for piece, _ in _pieces(text)]
        spans = [span for _, span in _pieces(text)]
        matches = []
        for start, begins in enumerate(_begins_sentence(pieces)):
            for first, rest, entry in self._by_first_word.get(pieces[start].lower(), ()):
                exact = pieces[start] == first
                capital = begins and pieces[start] == _capitalised(first)
                end = start + 1 + len(rest)
                if (exact or capital) and pieces[start + 1 : end] == rest:
                    matches.append((start - end, not exact, start, entry, begins))
        taken: set[int] = set()
        kept = []
        for negative_length, _, start, entry, begins in sorted(matches):
            places = range(start, start - negative_length)
            if taken.isdisjoint(places):
                taken.update(places)
                (term, forms), span = entry, (spans[start][0], spans[places[-1]][1])
                capitalised = tuple(map(_capitalised, forms)) if begins else ()
                kept.append((span, term, (*forms, *capitalised)))
        return sorted(kept)

    @cached_property
    def _by_first_word(
        self,
    ) -> dict[str, list[tuple[str, list[str], tuple[str, tuple[str, ...]]]]]:
        """The first word, other words and entry of each term, by the first word in lower case."""
        index = defaultdict(list)
        for entry in self.entries:
            first, *rest = (piece for piece, _ in _pieces(entry[0]))
            index[first.lower()].append((first, rest, entry))
        return dict(index)


NO_TERMS = Terms(())


def read_terms(path: Path) -> Terms:
    """The terms of a file; tabs separate a line's source term, target term and further forms.

    The function passes over a blank line and a line that begins with #.

    A file that cannot be read, or a line that is no term, raises InputError.
    """
    glossary: dict[str, list[str]] = {}
    lines: dict[str, int] = {}
    for number, line in enumerate(read_lines(path), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        term, *forms = [column.strip() for column in line.split("\t")]
        place = f"{path}, line {number}"
        if not forms:
            raise InputError(f"{place}: no tab: expected a source term, a tab and its target term")
        if not term or not forms[0]:
            side = "target" if term else "source"
            raise InputError(f"{place}: the {side} term is blank: write the term, or begin with #")
        if term in lines:
            raise InputError(
                f"{place}: {term!r} stands on line {lines[term]} already:"
                " write all its forms on one line"
            )
        glossary[term], lines[term] = [form for form in forms if form], number
    return Terms.of(glossary)


def _pieces(text: str) -> list[tuple[str, Span]]:
    """The words of ``text`` with their places; "l'eau" holds "eau", as an apostrophe is a word."""
    return [
        (unicodedata.normalize("NFC", part[0]), (start + part.start(), start + part.end()))
        for start, end in words(text)
        for part in _PART.finditer(text[start:end])
    ]


def form_place(text: str, form: str) -> Span | None:
    """The first place where ``text`` holds a form as whole words; None without such a place.

    >>> form_place("Die Hunde, der Hund.", "Hund")
    (15, 19)
    """
    pieces, wanted = _pieces(text), [piece for piece, _ in _pieces(form)]
    for start in range(len(pieces)):
        stretch = pieces[start : start + len(wanted)]
        if [piece for piece, _ in stretch] == wanted:
            return stretch[0][1][0], stretch[-1][1][1]
    return None


def _begins_sentence(pieces: Sequence[str]) -> Iterator[bool]:
    """True for each piece that is the first word of a sentence."""
    begins = True
    for piece in pieces:
        is_word = piece[0].isalnum()
        yield begins and is_word
        begins = (begins and not is_word) or piece in _SENTENCE_ENDS


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]
