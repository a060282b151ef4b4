"""English names of languages, by their codes."""

__all__ = ["language_code", "language_name"]

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


_BY_NAME = {name.lower(): code for code, name in _BY_CODE.items()}


def language_code(name: str) -> str:
    """The code of a language by its English name; any other word stays as it is.

    >>> language_code("Chinese"), language_code("zh-CN")
    ('zh', 'zh-CN')
    """
    return _BY_NAME.get(name.lower(), name)


def language_name(code: str) -> str:
    """The English name of a language code; the code itself if it is unknown.

    >>> language_name("de"), language_name("pt-BR"), language_name("tlh")
    ('German', 'Portuguese (BR)', 'tlh')
    """
    language, _, region = code.replace("_", "-").partition("-")
    name = _BY_CODE.get(language.lower())
    if name is None:
        return code
    return f"{name} ({region})" if region else name
