"""Accelerators: the marks of the keys in the labels of programs, as in "_Open", "Cu_t" and "&File".

A model has learnt words without marks. So a label loses its mark before the translation, and a word
of the translation gets the mark.
"""

import re
import unicodedata
from collections.abc import Iterable

from glassformer.data.protected import protected_spans
from glassformer.data.tokenizer import Tokenizer
from glassformer.data.words import replaced

__all__ = ["accelerator_sign", "key_place", "with_accelerator", "with_key", "without_accelerator"]

# The sign of GTK and the sign of Qt, each with the pattern of its double, which means the sign.
_DOUBLES = {"_": r"(?<=[^\W_])__(?=[^\W_])", "&": "&&"}
_LONGEST = 80  # characters of a label; in longer texts, "module_path" is a name
_NAMES = "$%@{<\\.="  # a sign after one of these characters belongs to a name
_LETTER = r"[^\W\d_]"
_WORD = re.compile(rf"(?<![\w&{re.escape(_NAMES)}]){_LETTER}")  # a word's first letter
_END = " .…:。："  # stands after a key in parentheses, as does a tab with a shortcut


def accelerator_sign(texts: Iterable[str]) -> str:
    """The sign that marks the keys in the texts of a catalogue, or "" if it has no such sign.

    More than half of the texts with the sign in a word have one sign, which begins the word. In
    other catalogues the sign stands inside names, such as user_name.

    >>> accelerator_sign(["_Open", "Cu_t", "_Save"]), accelerator_sign(["Set user_name"])
    ('_', '')
    """
    texts = set(texts)
    for sign in _DOUBLES:
        signed = [text for text in texts if sign in text and _signs(text, sign)]
        places = [(text, _place(text, sign)) for text in signed]
        first = [text for text, n in places if n is not None and not text[:n][-1:].isalnum()]
        if 2 * len(first) > len(signed):
            return sign
    return ""


def without_accelerator(text: str, sign: str) -> str:
    """The text without its mark; the double of the sign becomes the sign.

    >>> without_accelerator("Cu_t", "_"), without_accelerator("&Find && replace", "&")
    ('Cut', 'Find & replace')
    """
    if not sign or sign not in text:
        return text
    place = _place(text, sign)
    text = text if place is None else text[:place] + text[place + 1 :]
    return re.sub(_DOUBLES[sign], sign, text)


def with_accelerator(target: str, source: str, sign: str) -> str:
    """The translation with a mark if ``source`` has a mark, and without marks of the model's.

    The mark stands before a word with the same first letter, else before the first word. In scripts
    without capitals, such as Han, the key stands in parentheses at the end, as people write it.

    >>> with_accelerator("Speichern als …", "Save _As…", "_")
    'Speichern _als …'
    >>> with_accelerator("另存为…", "Save _As…", "_")
    '另存为(_A)…'
    """
    place = _place(source, sign) if sign else None
    if not sign or not target.strip() or (place is None and _signs(source, sign)):
        return target
    plain = without_accelerator(source, sign)
    words = re.finditer(rf"[^\W_]*(?:{sign}+[^\W_]+)+", _hidden(target))
    strays = [word.span() for word in words if word[0] not in plain]
    target = replaced(target, [(x, target[slice(*x)].replace(sign, "")) for x in strays])
    if re.search(_DOUBLES[sign], source):
        target = target.replace(sign, 2 * sign)
    if place is None:
        return target
    return with_key(target, sign, source[place + 1])


def key_place(text: str, tokenizer: Tokenizer) -> int | None:
    """The place of the mark in a text of no catalogue; None if it has no mark.

    A sign inside a word is a mark if the word has a capital, or if the tokenizer takes the word
    apart less without the sign, or knows the word and tears a part of it.
    """
    for sign in _DOUBLES:
        place = _place(text, sign)
        pattern = rf"(?<!\w)({_LETTER}*){sign}({_LETTER}+)(?![\w;&(])"
        if place is not None and (word := re.search(pattern, text)) and word.end(1) == place:
            whole = word[1] + word[2]
            rows = tokenizer.encode_batch([whole, word[1], word[2]], prefixed=False)
            fewer = len(rows[0]) < len(rows[1]) + len(rows[2]) - 1
            torn = any(len(part) < 2 or tokenizer.tears(part) for part in word.groups())
            torn &= 2 * len(rows[0]) <= len(whole)
            if not word[1] or whole.istitle() or fewer or torn:
                return place
    return None


def with_key(target: str, sign: str, key: str, *, least: int = 0) -> str:
    """The translation with the mark of a key, at or after the place ``least``.

    >>> with_key("%s sichern", "_", "S"), with_key("另存为…", "_", "A")
    ('%s _sichern', '另存为(_A)…')
    """
    free = _hidden(target, code=True)
    starts = [word.start() for word in _WORD.finditer(free, least)]
    if not starts or any(map(_is_other_letter, free)):
        place = max(least, len(target.partition("\t")[0].rstrip(_END)))
        key = key.upper() if len(key.upper()) == 1 else key  # not "SS" for "ß"
        space = " " * (target[:place][-1:] != free[:place][-1:])  # after a span
        return f"{target[:place]}{space}({sign}{key}){target[place:]}"
    same = [start for start in starts if target[start].lower() == key.lower()]
    place = (same or starts)[0]
    return f"{target[:place]}{sign}{target[place:]}"


def _signs(text: str, sign: str) -> list[int]:
    """The places of the signs beside a letter or digit, but of no sign of a run."""
    single = rf"(?<!{sign}){sign}(?!{sign})"
    signs = re.finditer(rf"{single}(?=[^\W_])|(?<=[^\W_]){single}", _hidden(text))
    return [match.start() for match in signs]


def _place(text: str, sign: str) -> int | None:
    """The place of the only mark in a label; None if the text has no mark, or is no label.

    A sign inside a word is a mark, unless a name such as Num_Lock or R&B holds it.
    """
    signs = _signs(text, sign) if sign in text and len(text) <= _LONGEST else []
    if len(signs) != 1:
        return None
    before, after = text[: signs[0]][-1:], text[signs[0] + 1 :]
    if before.isalpha():
        of_name = re.match(r"[A-Z]?(?![^\W_])", after) if sign == "&" else not after[:1].islower()
    else:
        of_name = before.isdigit() or before in {*_NAMES} or not after[:1].isalnum()
    return None if of_name else signs[0]


def _hidden(text: str, *, code: bool = False) -> str:
    """The text with spaces in place of its protected spans, but of emphasis and names of code."""
    changes = [
        ((span.start, span.end), " " * (span.end - span.start))
        for span in protected_spans(text)
        if span.kind not in ("code", "emphasis")
        or (span.kind == "code" and (code or text[span.start] == "`"))
    ]
    return replaced(text, changes)


def _is_other_letter(character: str) -> bool:
    """Whether the character is a letter of a script without capitals; "ª" belongs to Latin."""
    return {unicodedata.category(x) for x in unicodedata.normalize("NFKC", character)} == {"Lo"}
