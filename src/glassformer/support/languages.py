"""Codes of languages, and the subwords by which a multilingual model knows languages."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

from glassformer.support.errors import UsageError, nearest
from glassformer.support.language_names import CODES

__all__ = ["LanguageTokens", "language_of", "languages_in", "short_codes", "standard_code"]

_SHOWN = 12  # number of codes in a message


def standard_code(code: str) -> str:
    """The code in the form of BCP 47, such as en for eng_Latn. Any other word stays as it is.

    >>> [standard_code(code) for code in ("eng_Latn", "zho_Hans", "de_DE", "source")]
    ['en', 'zh-Hans', 'de-DE', 'source']
    """
    import langcodes
    from langcodes.tag_parser import LanguageTagError

    try:
        return langcodes.standardize_tag(code, macro=True)
    except LanguageTagError:
        return code


@cache
def language_of(code: str | None) -> str:
    """The shortest code of a language, from any code or the English name; "" for None.

    >>> [language_of(code) for code in ("zh-CN", "zho_Hant", "cmn", "Chinese", "DE", None)]
    ['zh', 'zh', 'zh', 'zh', 'de', '']
    """
    code = (code or "").lower()
    code = CODES.get(code, code)
    # The command line need not wait for langcodes.
    return code if len(code) <= 2 else standard_code(code).partition("-")[0]


def short_codes(codes: list[str]) -> dict[str, str]:
    """A short standard code for each code: the language alone if no other code has the language.

    >>> short_codes(["eng_Latn", "zho_Hans", "zho_Hant", "srp_Cyrl", "pes_Arab", "prs_Arab"])
    {'en': 'eng_Latn', 'zh-Hans': 'zho_Hans', 'zh-Hant': 'zho_Hant', 'sr': 'srp_Cyrl', \
'fa': 'pes_Arab', 'fa-AF': 'prs_Arab'}
    """
    standard = [standard_code(code) for code in codes]
    languages = [code.partition("-")[0] for code in standard]
    number = Counter(languages)
    short = [
        language if number[language] == 1 else full
        for language, full in zip(languages, standard, strict=True)
    ]
    number = Counter(short)
    return {
        name if number[name] == 1 else code: code for name, code in zip(short, codes, strict=True)
    }


def languages_in(subwords: Iterable[str], pattern: re.Pattern[str]) -> dict[str, str]:
    """The subwords that name languages, by short code; ``pattern`` finds a subword's code.

    >>> languages_in([">>deu<<", "▁Hund", ">>fra<<"], re.compile(">>(.+)<<"))
    {'de': '>>deu<<', 'fr': '>>fra<<'}
    """
    by_code = {match[1]: match[0] for match in map(pattern.fullmatch, subwords) if match}
    return {short: by_code[code] for short, code in short_codes([*by_code]).items()}


@dataclass(frozen=True)
class LanguageTokens:
    """The languages of a multilingual model, with the model's subword for each code.

    If ``before`` is "each", source and target begin with their own languages. If ``before`` is
    "source", the source begins with the language of the target.
    """

    subwords: Mapping[str, str]
    before: Literal["each", "source"] = "each"

    def pair(self, source: str | None, target: str | None) -> tuple[str | None, str]:
        """The keys in ``subwords`` of both languages, from any known forms of the codes.

        A missing or unknown language raises UsageError.

        >>> tokens = LanguageTokens({"en": "eng_Latn", "de": "deu_Latn"})
        >>> tokens.pair("en", "deu_Latn")
        ('en', 'de')
        """
        if self.before == "each":
            source = self._known("source", source)
        return source and standard_code(source), self._known("target", target)

    def prefixes(self, source: str | None, target: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The subwords before a source, and the subwords before its target.

        >>> LanguageTokens({"en": "eng_Latn", "de": "deu_Latn"}).prefixes("en", "de")
        (('eng_Latn',), ('deu_Latn',))
        """
        if self.before == "source":
            return (self.subwords[target],), ()
        return (self.subwords[source or target],), (self.subwords[target],)

    def _known(self, side: str, asked: str | None) -> str:
        """The code in ``subwords`` of the language ``asked``, a code in any known form."""
        names = sorted(self.subwords)
        some = ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
        argument = f"{side}_language"
        if asked is None:
            raise UsageError(
                f"is missing: this model has {len(names)} languages: {some}", argument=argument
            )
        by_own_code = {subword.strip("_<>"): code for code, subword in self.subwords.items()}
        for code in (asked, by_own_code.get(asked, ""), standard_code(asked)):
            if code in self.subwords:
                return code
        near = nearest(asked, [*names, *by_own_code]) or f": expected one of {some}"
        raise UsageError(f"{asked!r}: this model has no such language{near}", argument=argument)
