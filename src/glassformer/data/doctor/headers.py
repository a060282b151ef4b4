"""Header rows: a first line that names the columns, such as ``source`` and ``target``.

>>> is_header("English", "Yoruba"), is_header("src_text", "tgt_text")
(True, True)
>>> is_header("Good morning", "Guten Morgen"), is_header("English", "Englisch")
(False, False)
"""

import re

__all__ = ["is_header"]

#: Each line holds names of one column: its roles or its language, in several languages, with codes.
_COLUMNS = """
source src original
target tgt trg translation translated
english en eng englisch anglais inglés inglese engels
german de deu ger deutsch allemand alemán tedesco duits
french fr fra fre französisch français francés francese frans
spanish es spa spanisch español espagnol castellano spagnolo spaans
italian it ita italienisch italiano italien italiaans
portuguese pt por portugiesisch português portugais portugués
dutch nl nld niederländisch nederlands néerlandais
swedish sv swe schwedisch svenska
norwegian no nb nor norwegisch norsk
danish da dan dänisch dansk
finnish fi fin finnisch suomi
icelandic is isl isländisch íslenska
polish pl pol polnisch polski polonais
czech cs ces cze tschechisch čeština český
slovak sk slk slowakisch slovenčina
slovenian slovene sl slv slowenisch slovenščina
croatian hr hrv kroatisch hrvatski
serbian sr srp serbisch srpski српски
bulgarian bg bul bulgarisch български
russian ru rus russisch русский russe
ukrainian uk ukr ukrainisch українська
greek el ell griechisch ελληνικά grec
turkish tr tur türkisch türkçe turc
hungarian hu hun ungarisch magyar
romanian ro ron rum rumänisch română
albanian sq sqi shqip
estonian et est eesti
latvian lv lav latviešu
lithuanian lt lit lietuvių
irish ga gle gaeilge
welsh cy cym cymraeg
basque eu eus euskara
catalan ca cat català
galician gl glg galego
arabic ar ara arabisch arabe العربية
hebrew he heb hebräisch עברית
persian farsi fa fas فارسی
urdu ur urd اردو
hindi hi hin हिन्दी
bengali bn ben বাংলা
tamil ta tam தமிழ்
telugu te tel తెలుగు
marathi mr mar मराठी
gujarati gu guj ગુજરાતી
punjabi pa pan ਪੰਜਾਬੀ
nepali ne nep नेपाली
chinese mandarin zh zho chi cmn chinesisch chinois 中文 汉语 漢語
japanese ja jpn japanisch japonais 日本語
korean ko kor koreanisch coréen 한국어
vietnamese vi vie tiếngviệt
thai th tha ไทย
indonesian id ind indonesia
malay ms msa melayu
tagalog filipino tl fil tgl
swahili sw swa kiswahili
yoruba yo yor yorùbá
igbo ig ibo
hausa ha hau
zulu zu zul isizulu
xhosa xh xho isixhosa
afrikaans af afr
amharic am amh አማርኛ
somali so som
kinyarwanda rw kin
twi tw
wolof wo wol
guarani gn grn guaraní
quechua qu que
nahuatl nah náhuatl
aymara ay aym
esperanto eo epo
latin la lat
"""
_COLUMN_OF = {name: row for row, line in enumerate(_COLUMNS.split("\n")) for name in line.split()}
_FILLERS = frozenset(
    ["text", "texts", "sentence", "sentences", "segment", "column", "language", "side"]
)
_BETWEEN = re.compile(r"[\s\d_\"'()\[\]:.;,#-]+")


def is_header(source: str, target: str) -> bool:
    """Whether two texts, those of the first line, name two different columns."""
    columns = [_column(source), _column(target)]
    return None not in columns and columns[0] != columns[1]


def _column(text: str) -> int | None:
    """The column that a text names, and nothing beside it."""
    if len(text) > 40:
        return None
    names = [name for name in _BETWEEN.split(text.casefold()) if name and name not in _FILLERS]
    return _COLUMN_OF.get(names[0]) if len(names) == 1 else None
