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
