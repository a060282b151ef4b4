"""Accelerators: the marks of the keys in the labels of programs, as in "_Open", "Cu_t" and "&File".

A model has learnt words without marks. So a label loses its mark before the translation, and a word
of the translation gets the mark.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable

from glassformer.data.protected import protected_spans
from glassformer.tools.documents.files.content import replaced

__all__ = ["accelerator_sign", "with_accelerators", "without_accelerators"]

# The sign of GTK and the sign of Qt, each with the pattern of its double, which means the sign.
_DOUBLES = {"_": r"(?<=[^\W_])__(?=[^\W_])", "&": "&&"}
_LONGEST = 80  # characters of a label; in longer texts, "module_path" is a name
_NAMES = "$%@{<\\.="  # a sign after one of these characters belongs to a name
_WORD = re.compile(rf"(?<![\w&{re.escape(_NAMES)}])[^\W\d_]")  # a word's first letter
_END = " .…:。："  # stands after a key in parentheses, as does a tab with a shortcut


def accelerator_sign(texts: Iterable[str]) -> str:
    """The sign that marks the keys in the texts of a catalogue, or "" if it has no such sign.

    More than half of the lines with the sign in a word have one sign, which begins the word. In
    other catalogues the sign stands inside names, such as user_name.

    >>> accelerator_sign(["_Open", "Cu_t", "_Save\\n_Quit"]), accelerator_sign(["Set user_name"])
    ('_', '')
    """
    lines = {line for text in texts for line in text.split("\n")}
    for sign in _DOUBLES:
        signed = [line for line in lines if sign in line and _signs(line, sign)]
        places = [(line, _place(line, sign)) for line in signed]
        first = [line for line, n in places if n is not None and not line[:n][-1:].isalnum()]
        if 2 * len(first) > len(signed):
            return sign
    return ""


def without_accelerators(text: str, sign: str) -> str:
    """The text without the marks of its lines; the double of the sign becomes the sign.

    >>> without_accelerators("Cu_t", "_"), without_accelerators("&Find && replace", "&")
    ('Cut', 'Find & replace')
    """
    if not sign or sign not in text:
        return text
    lines = text.split("\n")
    places = [_place(line, sign) for line in lines]
    plain = [
        line if place is None else line[:place] + line[place + 1 :]
        for line, place in zip(lines, places, strict=True)
    ]
    return re.sub(_DOUBLES[sign], sign, "\n".join(plain))


def with_accelerators(target: str, source: str, sign: str) -> str:
    """The translation of ``source`` without accelerators, with as many as ``source`` has.

    The mark stands before a word with the same first letter, else before the first word. In scripts
    without capitals, such as Han, the key stands in parentheses at the end, as people write it.

    >>> with_accelerators("Speichern als …", "Save _As…", "_")
    'Speichern _als …'
    >>> with_accelerators("另存为…", "Save _As…", "_")
    '另存为(_A)…'
    """
    if not sign or not target.strip():
        return target
    lines, sources = target.split("\n"), source.split("\n")
    if len(lines) != len(sources):
        lines, sources = [target], [source]
    pairs = zip(lines, sources, strict=True)
    return "\n".join(_with_accelerator(line, source, sign) for line, source in pairs)


def _with_accelerator(target: str, source: str, sign: str) -> str:
    """The line of a translation with the mark of the source's line, and without other marks."""
    plain, place = without_accelerators(source, sign), _place(source, sign)
    words = re.finditer(rf"[^\W_]*(?:{sign}[^\W_]+)+", _hidden(target))
    strays = [word.span() for word in words if word[0] not in plain]
    target = replaced(target, [(x, target[slice(*x)].replace(sign, "")) for x in strays])
    if re.search(_DOUBLES[sign], source):
        target = target.replace(sign, 2 * sign)
    if place is None:
        return target
    key, free = source[place + 1], _hidden(target, but=())
    starts = [word.start() for word in _WORD.finditer(free)]
    if not starts or any(map(_is_other_letter, free)):
        place = len(target.partition("\t")[0].rstrip(_END))
        key = key.upper() if len(key.upper()) == 1 else key  # not "SS" for "ß"
        return f"{target[:place]}({sign}{key}){target[place:]}"
    same = [start for start in starts if target[start].lower() == key.lower()]
    place = (same or starts)[0]
    return f"{target[:place]}{sign}{target[place:]}"


def _signs(line: str, sign: str) -> list[int]:
    """The places of the signs beside a letter or digit, but of no double sign."""
    single = re.sub(2 * sign, "  ", _hidden(line))
    beside = rf"{sign}(?=[^\W_])|(?<=[^\W_]){sign}"
    return [match.start() for match in re.finditer(beside, single)]


def _place(line: str, sign: str) -> int | None:
    """The place of the only mark in a label; None if the line has no mark, or is no label.

    A sign inside a word is a mark, unless a name such as Num_Lock or R&B holds it.
    """
    signs = _signs(line, sign) if sign in line and len(line) <= _LONGEST else []
    if len(signs) != 1:
        return None
    [place] = signs
    before, after = line[:place][-1:], line[place + 1 :]
    if not after[:1].isalnum():
        return None
    if not before.isalnum():
        return None if before and before in _NAMES else place
    in_name = not after[0].islower() if sign == "_" else re.match(r"[A-Z](?![^\W_])", after)
    return None if in_name or before.isdigit() else place


def _hidden(line: str, *, but: Collection[str] = ("code",)) -> str:
    """The line with spaces in place of its protected spans, but of the kinds ``but``."""
    spans = [(span.start, span.end) for span in protected_spans(line) if span.kind not in but]
    return replaced(line, [((start, end), " " * (end - start)) for start, end in spans])


def _is_other_letter(character: str) -> bool:
    """Whether the character is a letter of a script without capitals; "ª" belongs to Latin."""
    return {unicodedata.category(x) for x in unicodedata.normalize("NFKC", character)} == {"Lo"}
