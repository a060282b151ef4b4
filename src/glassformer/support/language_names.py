"""English names of languages, by their codes, and the languages without spaces."""

__all__ = ["CODES", "UNSPACED", "language_name"]

_NAMES = """
af Afrikaans|am Amharic|ar Arabic|az Azerbaijani|be Belarusian|bg Bulgarian|bn Bengali|bs Bosnian
ca Catalan|cs Czech|cy Welsh|da Danish|de German|el Greek|en English|eo Esperanto|es Spanish
et Estonian|eu Basque|fa Persian|fi Finnish|fr French|ga Irish|gl Galician|gu Gujarati|ha Hausa
he Hebrew|hi Hindi|hr Croatian|hu Hungarian|hy Armenian|id Indonesian|ig Igbo|is Icelandic
it Italian|ja Japanese|ka Georgian|kk Kazakh|km Khmer|kn Kannada|ko Korean|ky Kyrgyz|lo Lao
lt Lithuanian|lv Latvian|mk Macedonian|ml Malayalam|mn Mongolian|mr Marathi|ms Malay|mt Maltese
my Burmese|nb Norwegian Bokmål|ne Nepali|nl Dutch|nn Norwegian Nynorsk|no Norwegian|pa Punjabi
pl Polish|ps Pashto|pt Portuguese|ro Romanian|ru Russian|rw Kinyarwanda|si Sinhala|sk Slovak
sl Slovenian|so Somali|sq Albanian|sr Serbian|sv Swedish|sw Swahili|ta Tamil|te Telugu|tg Tajik
th Thai|tl Tagalog|tr Turkish|uk Ukrainian|ur Urdu|uz Uzbek|vi Vietnamese|xh Xhosa|yo Yoruba
zh Chinese|zu Zulu
"""
_BY_CODE = dict(item.split(" ", 1) for item in _NAMES.strip().replace("\n", "|").split("|"))


UNSPACED = {"zh", "yue", "wuu", "nan", "hak", "gan", "ja", "th", "lo", "my", "km", "bo", "dz"}
"""The languages that put no spaces between words; the first six are Chinese."""

CODES = {name.lower(): code for code, name in _BY_CODE.items()}
"""The codes of languages by their English names, in lower case."""


def language_name(code: str) -> str:
    """The English name of a language code; for an unknown code, the code itself.

    >>> language_name("de"), language_name("pt-BR"), language_name("tlh")
    ('German', 'Portuguese (BR)', 'tlh')
    """
    language, _, region = code.replace("_", "-").partition("-")
    name = _BY_CODE.get(language.lower())
    if name is None:
        return code
    return f"{name} ({region})" if region else name
