"""Terms: words of the source, and the forms that their translation may have.

A term is used in a text if its words stand there. An inflected language needs several forms of a
target term: any one of them will do.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from glassformer.data.lines import read_lines
from glassformer.data.tokenizer import Tokenizer
from glassformer.data.words import Span, words
from glassformer.errors import InputError, UsageError

__all__ = ["NO_TERMS", "Terms", "encoded_forms", "holds", "letter_ids", "read_terms"]

_PART = re.compile("['’]|[^'’]+")
_STOPS = tuple(".,;:!?…%)]}")
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

        Raises UsageError for a blank term, a blank form, or a term without a form; TypeError for
        another type.
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
                raise UsageError("glossary: a source term is blank: give it words")
            if not forms or not all(form.strip() for form in forms):
                raise UsageError(f"glossary: {term!r} has a blank target term: give it words")
            entries.append((term, tuple(form.strip() for form in dict.fromkeys(forms))))
        return cls(tuple(entries))

    def __or__(self, other: "Terms") -> "Terms":
        """Both; a term of ``other`` takes the place of the same term here."""
        return Terms(tuple((dict(self.entries) | dict(other.entries)).items()))

    def forms_in(self, text: str) -> dict[str, tuple[str, ...]]:
        """The forms of each term that stands in ``text``, in the order of the text.

        A term stands there as whole words. At the start of a sentence its first letter may be a
        capital; there its forms may have a capital too. Where terms overlap, the longest counts.
        """
        found: dict[str, tuple[str, ...]] = {}
        for _, term, forms in self.places_in(text):
            found[term] = tuple(dict.fromkeys((*found.get(term, ()), *forms)))
        return found

    def missing(self, text: str, translation: str) -> list[str]:
        """The terms of ``text`` of which ``translation`` holds no form.

        >>> Terms.of({"dog": ["Hund", "Hunde"], "cat": "Katze"}).missing("a dog, a cat", "Hunde")
        ['cat']
        """
        found = self.forms_in(text).items()
        return [term for term, forms in found if not any(holds(translation, f) for f in forms)]

    def places_in(self, text: str) -> list[tuple[Span, str, tuple[str, ...]]]:
        """The characters of each term in ``text``, the term, and its forms there."""
        pieces = [piece for piece, _ in _pieces(text)]
        spans = [span for _, span in _pieces(text)]
        found = []
        for start, begins in enumerate(_begins_sentence(pieces)):
            for first, rest, entry in self._by_first_word.get(pieces[start].lower(), ()):
                exact = pieces[start] == first
                capital = begins and pieces[start] == _capitalised(first)
                end = start + 1 + len(rest)
                if (exact or capital) and pieces[start + 1 : end] == rest:
                    found.append((start - end, not exact, start, entry, begins))
        taken: set[int] = set()
        kept = []
        for negative_length, _, start, entry, begins in sorted(found):
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
        """First word, other words and entry of each term, by the first word in lower case."""
        index = defaultdict(list)
        for entry in self.entries:
            first, *rest = (piece for piece, _ in _pieces(entry[0]))
            index[first.lower()].append((first, rest, entry))
        return dict(index)


NO_TERMS = Terms(())


def read_terms(path: Path) -> Terms:
    """The terms of a file, one a line: source term, target term, further forms; tabs between.

    A blank line and a line that begins with # are left out.

    Raises InputError for a file that cannot be read, or a line that is no term.
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
            raise InputError(f"{place}: the {side} term is blank: give it words, or begin with #")
        if term in lines:
            raise InputError(
                f"{place}: {term!r} stands on line {lines[term]} already:"
                " write all its forms on one line"
            )
        glossary[term], lines[term] = [form for form in forms if form], number
    return Terms.of(glossary)


def encoded_forms(tokenizer: Tokenizer, form: str) -> list[list[int]]:
    """The ids of a target term at the start of a text, after a space, and after another character.

    The third is for quotation marks, and for scripts that put no spaces between words.

    Raises UsageError for a character that the tokenizer lacks.

    >>> from glassformer.data.subword_training import train_tokenizer
    >>> tokenizer = train_tokenizer(["Hund (Hund)"] * 9, vocab_size=320)
    >>> [[tokenizer.subword(i) for i in ids] for ids in encoded_forms(tokenizer, "Hund")]
    [['▁Hund'], ['Hund']]
    """
    before = "\n"  # no subword holds a line feed and a letter
    start, space, other, lead = tokenizer.encode_batch(
        [form, f"{before} {form}", f"{before}{form}", before], prefixed=False
    )
    if tokenizer.unk_id in start:
        raise UsageError(
            f"glossary: {form!r} has a character that the target tokenizer lacks: leave it out"
        )
    inside = [ids[len(lead) :] for ids in (space, other) if ids[: len(lead)] == lead]
    return [list(ids) for ids in dict.fromkeys(tuple(ids) for ids in (start, *inside) if ids)]


def letter_ids(tokenizer: Tokenizer) -> tuple[frozenset[int], frozenset[int]]:
    """The ids of the subwords that begin with a letter; of those after which a word needs a space.

    A digit counts as a letter. A character of a script without spaces does not: each is a word. Nor
    does a byte of a rare character, which could be anything. A word needs a space after a letter
    and a stop, not after an opening bracket, a quotation mark or a hyphen.
    """
    letters, closing = set(), set()
    for index in range(tokenizer.vocab_size):
        text = tokenizer.subword(index)
        if text.startswith("<0x") and text.endswith(">"):
            text = bytes([int(text[3:5], 16)]).decode(errors="ignore")
        if _is_letter(text[:1]):
            letters.add(index)
        if _is_letter(text[-1:]) or text[-1:] in _STOPS:
            closing.add(index)
    return frozenset(letters), frozenset(closing)


def _is_letter(character: str) -> bool:
    """Whether the character makes the word before it longer."""
    return words("a" + character) == [(0, 2)]


def _pieces(text: str) -> list[tuple[str, Span]]:
    """The words of ``text`` with their places; an apostrophe is one: "l'eau" holds "eau"."""
    return [
        (unicodedata.normalize("NFC", part[0]), (start + part.start(), start + part.end()))
        for start, end in words(text)
        for part in _PART.finditer(text[start:end])
    ]


def holds(text: str, form: str) -> bool:
    """Whether a form stands in ``text`` as whole words."""
    words_of, wanted = ([piece for piece, _ in _pieces(each)] for each in (text, form))
    return any(words_of[n : n + len(wanted)] == wanted for n in range(len(words_of)))


def _begins_sentence(pieces: Sequence[str]) -> Iterator[bool]:
    """For each piece whether it is the first word of a sentence."""
    begins = True
    for piece in pieces:
        is_word = piece[0].isalnum()
        yield begins and is_word
        begins = (begins and not is_word) or piece in _SENTENCE_ENDS


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]
