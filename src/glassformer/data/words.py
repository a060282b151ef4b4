"""Finds a text's words with their places and subwords, and holds links between two texts' words."""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TypeAlias

from glassformer.data.tokenizer import ESCAPES, SPACE, Tokenizer
from glassformer.support.language_names import UNSPACED
from glassformer.support.languages import language_of

__all__ = [
    "ALNUM",
    "ALPHA",
    "JOINED",
    "JOINTS",
    "LONE",
    "NO_ENTITY",
    "UNSPACED_CLASS",
    "WORD",
    "Link",
    "Span",
    "has_letters",
    "is_unspaced",
    "knows_no_word",
    "pharaoh",
    "replaced",
    "subword_spans",
    "torn_words",
    "unknown_letters",
    "words",
]

Span: TypeAlias = tuple[int, int]  # its first character, and the character after its last

_APOSTROPHES = "'’"
UNSPACED_CLASS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u9fff"
    "\uf900-\ufaff\U00020000-\U0003ffff"
)
"""Thai, Lao, Burmese, Khmer, kana and Han, which put no spaces between words, as a class."""
ALNUM, ALPHA = (rf"(?:(?![{UNSPACED_CLASS}])[^\W{x}_])" for x in ("", r"\d"))
"""Patterns of letters and digits, and of letters, of the scripts with spaces."""
_UNSPACED = re.compile(f"[{UNSPACED_CLASS}]")
NO_ENTITY = r"(?!&#?\w{1,8};)"
"""Pattern of a place where no entity of HTML begins."""
JOINTS = "/&+=@~^*#%$·'’"
"""Signs that join letters to one word, as in "and/or"."""
WORD = re.compile(rf"{ALPHA}+(?:['’]{ALPHA}+)*")
JOINED = re.compile(rf"(?<!{ALNUM}){ALPHA}+(?:[{JOINTS}-]{ALPHA}+)*(?!{ALNUM})")
"""A word with its apostrophes, and words that signs join."""
_SIDE = rf"[{JOINTS}-]{ALNUM}"
LONE = re.compile(
    rf"(?<!{ALNUM})(?:{ALPHA}\.){{2,}}"
    rf"|(?<!{ALNUM}|[{JOINTS}-]){ALPHA}(?:[{JOINTS}-]{ALPHA})*(?!{ALNUM}|{_SIDE})"
)
"""Letters that are words of their own, and those of "e.g." and "R&D"."""


@dataclass(frozen=True)
class Link:
    """A source word and a target word that belong together, and the certainty of this (0 to 1).

    A word is a span of characters, so ``text[slice(*link.source)]`` is the source word.
    """

    source: Span
    target: Span
    weight: float = 1.0


def is_unspaced(language: str | None) -> bool:
    """Whether a language puts no spaces between its words and sentences.

    >>> is_unspaced("zh-Hant"), is_unspaced("mya"), is_unspaced("de"), is_unspaced(None)
    (True, True, False, False)
    """
    return language_of(language) in UNSPACED


def has_letters(text: str) -> bool:
    """Whether a text has words to translate; numbers, signs and emoji are no words.

    >>> has_letters("4 März"), has_letters("12.50 €"), has_letters("日本")
    (True, False, True)
    """
    return any(map(str.isalpha, text))


def unknown_letters(tokenizer: Tokenizer, text: str) -> list[str]:
    """The letters of ``text`` that have no subword, because the training text had hardly any.

    >>> from glassformer.data.subword_training import train_tokenizer
    >>> unknown_letters(train_tokenizer(["the cat sat"] * 3, vocab_size=300), "thé cat 😀")
    ['é']
    """
    [ids] = tokenizer.encode_batch([text], prefixed=False)
    if not tokenizer.lacks(ids):
        return []  # most texts
    letters = sorted(filter(str.isalpha, {*text}))
    rows = tokenizer.encode_batch(letters, prefixed=False)
    return [x for x, row in zip(letters, rows, strict=True) if tokenizer.lacks(row)]


def knows_no_word(tokenizer: Tokenizer, text: str) -> bool:
    """Whether ``text`` has words, and the tokenizer takes each of them apart.

    A known word has no bytes. If the tokenizer cuts subwords, they have two letters or more on
    average. Words with digits and words of one letter do not count.

    >>> from glassformer.data.subword_training import train_tokenizer
    >>> tokenizer = train_tokenizer(["the cat sat"] * 3, vocab_size=300)
    >>> [knows_no_word(tokenizer, text) for text in ("a hello", "hello cat", "A4 12", "B")]
    [True, False, False, False]
    """
    parts = (part[slice(*word)] for part in text.split() for word in words(part))
    found = (word for word in parts if has_letters(word) and not any(map(str.isdecimal, word)))
    known = (_knows(tokenizer, word) for word in found if len(word) > 1 or _kind(word) == "alone")
    return not next(known, True) and not any(known)


def _knows(tokenizer: Tokenizer, word: str) -> bool:
    [ids] = tokenizer.encode_batch([word], prefixed=False)
    if tokenizer.lacks(ids):
        return False
    letters = unicodedata.normalize("NFD", word)  # a Hangul syllable has several
    return len(word) == 1 or len(letters) >= 2 * len(ids) or not tokenizer.cuts_subwords


def torn_words(tokenizer: Tokenizer, text: str, letters: str) -> list[Span]:
    """The words that the tokenizer tears, such as "INFO", and letters alone but for ``letters``.

    Words that a sign joins are one word, as are the letters of "e.g.".

    >>> from glassformer.data.subword_training import train_tokenizer
    >>> tokenizer = train_tokenizer(["the cat sat"] * 3, vocab_size=300)
    >>> text = "the xD-cat sat I c."
    >>> [text[slice(*word)] for word in torn_words(tokenizer, text, "i")]
    ['xD-cat', 'c']
    """
    joined = JOINED.finditer(text) if tokenizer.may_tear(text) else ()
    torn = [
        match.span()
        for match in joined
        if any(
            len(part[0]) > 1 and tokenizer.tears(part[0], begins=part.start() == 0)
            for part in WORD.finditer(match[0])
        )
    ]
    known = {*letters, *f".-{JOINTS}"}
    lone = (x.span() for x in LONE.finditer(text) if not known.issuperset(x[0].lower()))
    return sorted([*torn, *lone])


def words(text: str) -> list[Span]:
    """The words of ``text``, in their order, as spans of characters.

    A word is a run of letters and digits, with apostrophes inside, or any other visible character
    by itself. In scripts without spaces, such as Han, each character is a word. Such words are
    smaller than the language's words, but equal in all programs.

    >>> text = "Don't: 4.–7. März"
    >>> [text[slice(*word)] for word in words(text)]
    ["Don't", ':', '4', '.', '–', '7', '.', 'März']
    >>> words("3月4日")
    [(0, 1), (1, 2), (2, 3), (3, 4)]
    """
    spans: list[Span] = []
    open_run = False  # whether a letter would continue the last word
    for place, character in enumerate(text):
        kind = _kind(character)
        if kind == "letter" and not open_run and _joins(text, place - 1):
            spans.pop()  # after an apostrophe the earlier word goes on
            spans[-1] = (spans[-1][0], place + 1)
        elif (kind == "letter" and open_run) or (
            kind == "mark" and spans and spans[-1][1] == place
        ):
            spans[-1] = (spans[-1][0], place + 1)
        elif kind != "space":
            spans.append((place, place + 1))
        if kind != "mark":
            open_run = kind == "letter"
    return spans


def subword_spans(tokenizer: Tokenizer, ids: Sequence[int], text: str) -> list[Span]:
    """The span of ``text`` that each of its subwords covers; a control symbol covers none.

    Each byte of a character covers the whole character. If the tokenizer changes the text (NFKC),
    the spans hold the nearest characters.

    >>> from glassformer.data.subword_training import train_tokenizer
    >>> tokenizer = train_tokenizer(["the cat sat"] * 3, vocab_size=400)
    >>> subword_spans(tokenizer, tokenizer.encode("the cat é"), "the cat é")
    [(0, 3), (3, 7), (7, 8), (8, 9), (8, 9)]
    """
    decoded, spans = _decoded(tokenizer, ids)
    if decoded == text:
        return spans
    places = [0] * (len(decoded) + 1)
    matcher = SequenceMatcher(None, decoded, text, autojunk=False)
    for _, start, end, first, last in matcher.get_opcodes():
        for step in range(end - start):
            places[start + step] = min(first + step, last)
        places[end] = last
    return [(places[start], places[end]) for start, end in spans]


def replaced(text: str, changes: Iterable[tuple[Span, str]]) -> str:
    """The text with new parts in place of spans; ``changes`` come in the order of spans.

    >>> replaced("A dog runs.", [((0, 1), "The"), ((6, 10), "sits")])
    'The dog sits.'
    """
    parts, place = [], 0
    for (start, end), new in changes:
        parts += [text[place:start], new]
        place = end
    return "".join([*parts, text[place:]])


def pharaoh(source: str, target: str, links: Iterable[Link]) -> str:
    """The links as ``i-j``, where i and j count words of ``text.split()`` from 0.

    ``fast_align`` and other aligners print the links in this format.

    >>> pharaoh("in May.", "Im Mai.", [Link((3, 6), (3, 6)), Link((6, 7), (6, 7))])
    '1-1'
    """
    starts = [[word.start() for word in re.finditer(r"\S+", text)] for text in (source, target)]
    pairs = {
        (bisect_right(starts[0], link.source[0]) - 1, bisect_right(starts[1], link.target[0]) - 1)
        for link in links
    }
    return " ".join(f"{first}-{second}" for first, second in sorted(pairs))


def _kind(character: str) -> str:
    if character.isspace():
        return "space"
    category = unicodedata.category(character)
    if category[0] == "M" or category == "Cf":
        return "mark"
    is_letter = category[0] in "LN" and not _UNSPACED.match(character)
    return "letter" if is_letter else "alone"


def _joins(text: str, place: int) -> bool:
    """Whether an apostrophe stands at ``place``, after a letter."""
    return (
        place > 0
        and text[place] in _APOSTROPHES
        and unicodedata.category(text[place - 1])[0] in "LNM"
        and _kind(text[place - 1]) != "alone"
    )


def _decoded(tokenizer: Tokenizer, ids: Sequence[int]) -> tuple[str, list[Span]]:
    """The text of the subwords, without a space before the first word, and each subword's span."""
    text = ""
    spans: list[Span] = []
    pending = b""  # bytes of a character whose other bytes are still to come
    for index in ids:
        subword = "" if index in tokenizer.symbols else tokenizer.subword(index)
        start = len(text)
        if byte := subword.startswith("<0x") and subword.endswith(">"):
            pending += bytes([int(subword[3:5], 16)])
            subword = pending.decode(errors="ignore")
            pending = b"" if subword else pending
        elif index == tokenizer.unk_id:
            subword = "\ufffd"
        text += subword.replace(SPACE, " ")
        if character := ESCAPES.get(text[max(0, start - 1) : start + 1]):
            text, start = text[: start - 1] + character + text[start + 1 :], start - 1
        spans.append((start, start + 1 if byte else len(text)))
    # Bytes of an incomplete character cover nothing.
    spans = [(min(start, len(text)), min(end, len(text))) for start, end in spans]
    if text[:1] != " ":
        return text, spans
    return text[1:], [(max(0, start - 1), max(0, end - 1)) for start, end in spans]
