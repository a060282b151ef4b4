"""Odd texts for the page's engine, and sentences that tokenizers learn from."""

import random

SENTENCES = [
    "Two men sit in the snow.",
    "An old dog runs across the grass; a young dog doesn't.",
    "Ein alter Hund läuft über das Gras, ein junger nicht.",
    "Zwei Männer sitzen im Schnee und lesen 17 Zeitungen.",
    "Une femme âgée lit près de la fenêtre à 9 h 30.",
    "abc abcd bcd dab cab (ab)",
]
_LETTERS = [
    *"abcdefgh ABC .,'’-0189äößéñ_=▁",
    *("\ufdd0", "\ufdd0=", "\ufdd0_", "\ufffd", "\ufeff", "\0", "\x01", "\x1f", "\x7f", "\x85"),
    *("\xa0", "\xad", "\u200b", "\u200c", "\u200d", "\u2028", "\u3000", "\ufe0f", "\r\n", "\t"),
    *("\ufffe", "\U0001ffff", "e\u0301", "o\u0302\u0301", "\u0345", "ﬁ", "①", "Ⅳ", "½", "ﾞ", "Ａ１"),
    *("가", "각", "日本", "กำ", "لا", "ﷺ", "क्\u200dष", "\u180e", "ǅ", "İ", "ς", "ẞ", "⁇"),
    *("𝐀", "𠀀", "😀", "👨‍👩‍👧", "🇩🇪", "❤️", "🏴\U000e0067\U000e007f", "\U0010ffff"),
    *("<s>", "<unk>", "<0x41>", "<x>"),
    *("ab", "abc", "bcd", "éab"),
]


def odd_texts(count: int, seed: int) -> list[str]:
    """Texts drawn at random: letters of all kinds, sentences with some, and the empty text."""
    draw = random.Random(seed)
    kinds = [_letters, _sentence, _spaced, _code_points, _repeated]
    return ["", *(draw.choice(kinds)(draw) for _ in range(count - 1))]


def _letters(draw: random.Random) -> str:
    return "".join(draw.choices(_LETTERS, k=draw.randint(1, 20)))


def _sentence(draw: random.Random) -> str:
    sentence = draw.choice(SENTENCES)
    place = draw.randint(0, len(sentence))
    return sentence[:place] + _letters(draw)[:4] + sentence[place:]


def _spaced(draw: random.Random) -> str:
    spaces = [" " * draw.randint(0, 3) for _ in range(3)]
    return draw.choice(SENTENCES).replace(" ", spaces[0]).join(spaces[1:])


def _code_points(draw: random.Random) -> str:
    codes = [draw.randrange(draw.choice((0x250, 0xD800, 0x110000))) for _ in range(12)]
    return "".join(chr(code) for code in codes if not 0xD800 <= code < 0xE000)


def _repeated(draw: random.Random) -> str:
    return draw.choice(_LETTERS) * draw.randint(1, 30)


_MARKS = [
    "",
    "",
    "",
    "- ",
    "* ",
    "  \u2022 ",
    "1. ",
    "12.\t",
    "> ",
    ">> - ",
    "## ",
    "- [ ] ",
    "(a) ",
]
_NAMES = [
    "Name",
    "an old dog",
    "SNOW",
    "17",
    "9 h 30",
    "",
    "{n}",
    "<b>dog</b>",
    "(grass)",
    "\uff11\uff12",
]
_SIGNS = [
    "\u200b",
    "\xa0",
    "*",
    "_",
    "\u2014",
    "{n}",
    "[x]",
    " \U0001f600",
    "\xad",
    "e\u0301",
    "  ",
]


def laid_out_texts(count: int, seed: int) -> list[str]:
    """Texts of several lines: paragraphs, lists, tables, rules, and lines of any length."""
    draw = random.Random(seed)
    ends = ["\n", "\n\n", "\r\n", " \n  ", "\n\u200b\n"]
    return [
        "".join(_line(draw) + draw.choice(ends) for _ in range(draw.randint(1, 5)))
        for _ in range(count)
    ]


def _line(draw: random.Random) -> str:
    kinds = [_paragraph, _paragraph, _signed, _row, _cells, _rule, _endless]
    return draw.choice(_MARKS) + draw.choice(kinds)(draw)


def _paragraph(draw: random.Random) -> str:
    sentences = draw.choices(SENTENCES[:5], k=draw.choice([1, 1, 2, 3, 9]))
    if draw.random() < 0.2:
        sentences = [each if "'" in each else each.upper() for each in sentences]
    return draw.choice([" ", "  "]).join(sentences)


def _signed(draw: random.Random) -> str:
    words = draw.choice(SENTENCES[:5]).rstrip(".").split(" ")
    words[draw.randrange(len(words))] += draw.choice(_SIGNS)
    return draw.choice(_SIGNS) + " ".join(words) + draw.choice(_SIGNS)


def _row(draw: random.Random) -> str:
    return f"| {' | '.join(draw.choices(_NAMES, k=draw.randint(1, 4)))} |"


def _cells(draw: random.Random) -> str:
    gap = draw.choice(["\t", "    ", " \u2192 ", " | ", " \xb7 ", "....."])
    return gap.join(draw.choices(_NAMES, k=draw.randint(2, 4)))


def _rule(draw: random.Random) -> str:
    return draw.choice(["=====", "|---|:-:|", "* * *", "\u2014", "...."])


def _endless(draw: random.Random) -> str:
    """A line without the end of a sentence."""
    words = ["dog", "snow", "Gras", "\U0001f600", "na\u00efve", "17", "\u65e5\u672c", "x" * 40]
    gaps = draw.choice([[" "], [" ", ", "], [" ", "; ", ", "], [""]])
    return "".join(draw.choice(words) + draw.choice(gaps) for _ in range(draw.randint(1, 60)))
