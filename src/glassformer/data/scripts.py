"""The script of a letter: Latin, Cyrillic, Han."""

import re
import unicodedata

__all__ = ["script"]

_SCRIPT_OF_NAME = {"CJK": "Han", "IDEOGRAPHIC": "Han", "FEMININE": "Latin", "MASCULINE": "Latin"}


def script(character: str) -> str | None:
    """The script of a letter, from the letter's Unicode name; None for any other character.

    >>> script("ß"), script("ж"), script("語"), script("7")
    ('Latin', 'Cyrillic', 'Han', None)
    """
    if unicodedata.category(character)[0] not in "LM":
        return None
    name = unicodedata.name(character, "UNNAMED")
    first = re.sub("^(FULLWIDTH|HALFWIDTH) ", "", name).replace("-", " ").split()[0]
    if first in ("COMBINING", "VARIATION"):  # a mark of any script
        return None
    return _SCRIPT_OF_NAME.get(first, first.capitalize())
