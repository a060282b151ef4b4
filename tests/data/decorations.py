"""Decorations: signs, marks and identifiers beside texts that a translator knows.

A family makes cases of one kind. Each case has a decorated text and its right translations, byte
for byte. Most families draw a frame, such as ``[␀]``: each ``␀`` stands for a known text, and all
other characters must stay. The other families draw a span inside a known text.

A family draws from a :class:`random.Random`, so that it serves properties and counts alike.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from random import Random
from typing import Literal, NamedTuple, TypeAlias

SLOT = "␀"  # in a frame, the place of a known text
FIRST, SECOND = "\ue000", "\ue001"  # symbols that a model reads in the places of spans


class Pair(NamedTuple):
    """A text that the translator knows, and its translation.

    `aligned`: whether the words of both sides belong together in their order.
    """

    source: str
    target: str
    aligned: bool = False


@dataclass(frozen=True)
class Case:
    """A decorated text, its right translations, and the pairs that a translator must know.

    A pair may have symbols in the places of spans.
    """

    family: str
    source: str
    targets: tuple[str, ...]
    pairs: tuple[Pair, ...]


Drawn: TypeAlias = tuple[str, Sequence[str], Sequence[Pair]]  # source, targets and known pairs
Make: TypeAlias = Callable[[Random, Sequence[Pair]], Drawn]


@dataclass(frozen=True)
class Family:
    """A kind of decoration; ``make`` draws one around or inside known texts.

    At an "edge" the decoration never reaches the model, so everything must be right. Of a span
    "inside" a sentence, the model may read a symbol. `named`: whether somebody had met such a text
    before this module. `stub`: only a stub knows such texts. `numbers`: the decoration has bare
    numbers, which are text for a model of dates and amounts.
    """

    name: str
    make: Make
    where: Literal["edge", "inside"] = "edge"
    named: bool = True
    stub: bool = False
    numbers: bool = False

    def case(self, draw: Random, pairs: Sequence[Pair]) -> Case:
        source, targets, known = self.make(draw, pairs)
        return Case(self.name, source, tuple(targets), tuple(known))


def cases(family: Family, count: int, pairs: Sequence[Pair]) -> list[Case]:
    """The first ``count`` cases of a family, the same at each call."""
    draw = Random(family.name)
    return [family.case(draw, pairs) for _ in range(count)]


# Fields of frames and spans ----------------------------------------------------------------------

_NAMES = ("name", "n", "count", "user_name", "fileCount", "x1")


def identifier(draw: Random) -> str:
    """Letters and digits in one word, in any order."""
    letters = draw.choice(("ABCDEFGHKLMNPQRSTUVWXYZ", "abcdefghkmnpqrstuvwxyz"))
    size = draw.randint(2, 12)
    word = [*draw.choices(letters + "0123456789", k=size), draw.choice("0123456789")]
    word.insert(draw.randrange(len(word)), draw.choice(letters))
    return "".join(word)


def digits(draw: Random, least: int = 2, most: int = 5) -> str:
    return "".join(draw.choices("0123456789", k=draw.randint(least, most)))


def code(draw: Random) -> str:
    """Letters and digits, or groups of digits, with hyphens."""
    letters, groups = "".join(draw.choices("ABCDEFGH", k=2)), [digits(draw) for _ in range(4)]
    forms = (f"{letters}-{groups[0]}", f"{letters}-{groups[0]}-{groups[1]}", "-".join(groups))
    return draw.choice((*forms, f"978-{'-'.join(groups[:3])}-0", f"{sha(draw)}-4a{groups[0]}-b1"))


def phone(draw: Random) -> str:
    form = draw.choice(("+{} {} {} {}", "+{}-{}-{}-{}", "+{} ({}) {}-{}", "+{}{}{}{}"))
    return form.format(draw.randint(1, 99), *(digits(draw, 2, 4) for _ in range(3)))


def sha(draw: Random) -> str:
    return f"{draw.randrange(1 << 28, 1 << 32):08x}"


def torn(draw: Random) -> str:
    """A word of known letters that no subword begins, or two such words that a sign joins."""
    letters = draw.choice(("JKQVXZ", "jkqvxz"))
    parts = ["".join(draw.choices(letters, k=draw.randint(2, 6))) for _ in range(2)]
    return draw.choice((parts[0], parts[0], draw.choice("-/=&+").join(parts)))


def joint(draw: Random) -> str:
    """Signs between two texts that no training here has."""
    several = ("--", "***", "<>", "+/-", "::", "|||", ">>", "~~~", "=>", "##")
    return draw.choice((draw.choice("★;&/·~+=※◆|¦→⇒#*^"), draw.choice(several), sign(draw)))


def sign(draw: Random) -> str:
    """A sign, but no emoji and no sign of money."""
    return draw.choice(
        [x for x in _signs() if "\u2010" < x < "\u2300" and _is_alone(x, "So", "Sm")]
    )


def unknown_word(draw: Random) -> str:
    """A word of letters of one block that no training here has."""
    return "".join(draw.choices(draw.choice(_blocks()), k=draw.randint(1, 6)))


@cache
def _blocks() -> list[str]:
    """The letters of each 128 characters from Greek on, without those that have a known twin."""
    starts = (
        *range(0x380, 0x1E00, 128),
        *range(0x2C00, 0xD780, 128),
        *range(0x10000, 0x1D000, 128),
    )
    blocks = [
        "".join(c for c in map(chr, range(start, start + 128)) if _is_alone(c, "Lo", "Ll"))
        for start in starts
    ]
    return [block for block in blocks if len(block) > 20]


@cache
def _signs() -> str:
    codes = (*range(0xA1, 0x100), *range(0x2010, 0x2C00), *range(0x1F300, 0x1FAF0))
    signs = filter(lambda sign: _is_alone(sign, "So", "Sm", "Sc"), map(chr, codes))
    return "".join(sign for sign in signs if sign not in f"{SLOT}⏎")


def _is_alone(character: str, *kinds: str) -> bool:
    """Whether a character of one of the Unicode categories has no other form in Unicode."""
    alike = unicodedata.normalize("NFKC", character) == character
    return alike and unicodedata.category(character) in kinds


def rule(draw: Random) -> str:
    sign = draw.choice(("=", "-", "_", "*", "~", "#", "+", "─", "═", "·", "- ", "* "))
    return (sign * draw.randint(3, 30)).rstrip()


def move(draw: Random) -> str:
    piece = draw.choice(("", "N", "B", "R", "Q", "K", "Nx", "Rad"))
    return piece + draw.choice("abcdefgh") + str(draw.randint(1, 8)) + draw.choice(["", "+", "#"])


def placeholder(draw: Random) -> str:
    """A placeholder of any language."""
    return drawn(draw, SPANS[draw.choice([name for name in SPANS if "placeholders" in name])])


FIELDS: dict[str, Callable[[Random], str]] = {
    "address": lambda draw: drawn(draw, SPANS["addresses"]),
    "bar": lambda draw: draw.choice("|││║¦"),
    "code": code,
    "digit": lambda draw: draw.choice("123456789"),
    "digits": digits,
    "emoji": lambda draw: drawn(draw, SPANS["emoji *"]),
    "gap": lambda draw: " " * draw.randint(3, 12),
    "identifier": identifier,
    "joint": joint,
    "leader": lambda draw: draw.choice((".", " .", "·", "_", "-")) * draw.randint(4, 30),
    "letter": lambda draw: draw.choice("abcdef"),
    "move": move,
    "name": lambda draw: draw.choice(_NAMES),
    "number": lambda draw: str(draw.randint(10, 59)),
    "part": lambda draw: draw.choice("½¼¾⅓⅔⅛"),
    "phone": phone,
    "placeholder": placeholder,
    "rule": rule,
    "sha": sha,
    "shortcode": lambda draw: drawn(draw, SPANS["shortcodes"]),
    "sign": lambda draw: draw.choice(_signs()),
    "sounds": lambda draw: "".join(draw.choices("ɪŋɡʃəʊæθðɔːɑˈ", k=draw.randint(3, 8))),
    "spaces": lambda draw: draw.choice((" ", "   ", "\t", "\u00a0", " \t ")),
    "tag": lambda draw: draw.choice(("b", "i", "p", "em", "li", "Trans", "x-y")),
    "torn": torn,
    "word": unknown_word,
}
_FIELD = re.compile("⟨([a-z]+)′*⟩")
_WHITE = str.maketrans({"⏎": "\n", "⇥": "\t", "␣": " "})


def drawn(draw: Random, forms: str) -> str:
    """One of the forms, a line each, with drawn fields; equal fields of a form are equal."""
    form = draw.choice(forms.strip("\n").split("\n")).translate(_WHITE)
    values = {field[0]: FIELDS[field[1]](draw) for field in _FIELD.finditer(form)}
    return _FIELD.sub(lambda field: values[field[0]], form)


# Frames and spans --------------------------------------------------------------------------------
# A line is a form. ⏎, ⇥ and ␣ are white space, ⟨…⟩ is a field, and ⟨…′⟩ a second one. A star says
# that nobody had met such a text before this module.

_BESIDE = """
{} ␀
␀ {}
{}: ␀
␀ ({})
[{}] ␀
␀⏎{}
␀ – {}
"""
FRAMES: dict[str, str] = {
    "list marks": r"""
- ␀
* ␀
+ ␀
␣␣- ␀
• ␀
→ ␀
✓ ␀
☐ ␀
# ␀
> ␀
>> ␀
- [ ] ␀
* [x] ␀
⟨number⟩. ␀
⟨number⟩) ␀
⟨number⟩.) ␀
(⟨number⟩) ␀
⟨letter⟩) ␀
(iv) ␀
""",
    "line ends": r"""
␀*
␀†
␀¹
␀²³
␀ *
␀ ‡
␀ ¶
␀ ✓
␀ →
␀ »
␀ |
␀ \
␀ //
␀ {
␀␣␣
""",
    "sentences in brackets *": r"""
"␀ ␀"
(␀ ␀ ␀)
“␀ ␀”
[␀ ␀]
""",
    "marks after a text *": r"""
␀?
␀!
␀…
␀?!
[␀?]
␀:
␀;
""",
    "pairs with spans between *": r"""
⟨code⟩ (␀) ⟨code′⟩ [␀]
{␀} ⟨move⟩ {␀}
“␀” “␀”
⟨identifier⟩: (␀) (␀)
""",
    "marks in pairs *": r"""
"⟨number⟩. ␀"
[⟨number⟩) ␀]
(- ␀)
“• ␀”
*⟨letter⟩) ␀*
`␀'
""",
    "blocks of markup *": r"""
<td>␀</td><td>␀</td>
<h2 class="⟨letter⟩">␀</h2><p>␀</p>
<ul><li>␀<li>␀</ul>
""",
    "entities of signs *": r"""
&quot;␀&quot;
&laquo;&nbsp;␀&nbsp;&raquo;
␀&#8230;
""",
    "lists in brackets *": r"""
["␀", "␀"]
{"⟨torn⟩": "␀", "⟨code⟩": "␀"}
[("␀", "␀")]
""",
    "labels before colons *": r"""
⟨torn⟩ ⟨code⟩: ␀
Q: ␀⏎A: ␀
␀; ␀: ␀
""",
    "single letters *": r"""
Q⇥␀
␀ | Z
""",
    "texts joined by signs *": r"""
␀ ⟨joint⟩ ␀
␀ ⟨joint⟩ ␀ ⟨joint′⟩ ␀
""",
    "emoticons *": r"""
␀ :D
␀ ;-P
␀ xD
:-O ␀
=P ␀ :p
""",
    "dialogue dashes": r"""
— ␀
–␀
-␀
―␀
– – ␀
— ␀⏎— ␀
-␀⏎-␀
""",
    "rules": r"""
␀⏎⟨rule⟩⏎␀
␀⏎⟨rule⟩
⟨rule⟩ ␀ ⟨rule⟩
⟨rule⟩⏎␀⏎⟨rule⟩
| ␀ | ␀ |⏎|---|:-:|⏎| ␀ | ␀ |
""",
    "leaders": r"""
␀ ⟨leader⟩ ␀
␀⟨leader⟩␀
""",
    "cells between bars": r"""
| ␀ | ␀ |
|␀|␀|␀|
␀ ⟨bar⟩ ␀
␀ ⟨bar⟩ ␀ ⟨bar⟩ ␀
⟨bar⟩ ␀ ⟨bar⟩ ␀ ⟨bar⟩
␀ || ␀
""",
    "cells between tabs": r"""
␀⇥␀
␀⇥␀⇥␀
⇥␀
␀⇥⇥␀
␀⇥
""",
    "cells between spaces": r"""
␀⟨gap⟩␀
␀⟨gap⟩␀⟨gap′⟩␀
""",
    "lines": r"""
␀⏎␀
␀⏎⏎␀⏎
⏎␀⏎␀⏎⏎⏎␀⏎⏎
␣␣␀⏎␣␣␣␀␣⏎␀
␀⏎⇥␀
""",
    "lines of white space": r"""
␀⏎⟨spaces⟩⏎␀
⟨spaces⟩⏎␀
␀⏎⟨spaces⟩
""",
    "literal escapes": r"""
␀\n␀
␀\t␀
␀\r\n␀
\n␀
␀\n
␀\u00a0␀
""",
    "subtitles": r"""
{\i1}␀{\i0}
{\an⟨digit⟩}␀
␀\N␀
- {\b1}␀{\b0}
{\an8}{\c&H⟨sha⟩&}␀
""",
    "markup around a text": r"""
<⟨tag⟩>␀</⟨tag⟩>
<a class="x" href="https://a.org/x?y=1">␀</a>
<b><i>␀</i></b>
<0>␀</0>
<br/>␀
␀<br>
<!-- x1 -->␀
&nbsp;␀
""",
    "identifiers beside": _BESIDE.replace("{}", "⟨identifier⟩"),
    "codes beside": _BESIDE.replace("{}", "⟨code⟩"),
    "phone numbers beside": _BESIDE.replace("{}", "⟨phone⟩"),
    "shortcodes beside": _BESIDE.replace("{}", "⟨shortcode⟩"),
    "unknown words beside": _BESIDE.replace("{}", "⟨word⟩"),
    "words in letters beside *": _BESIDE.replace("{}", "⟨torn⟩"),
    "unknown signs beside": _BESIDE.replace("{}", "⟨sign⟩"),
    "placeholders beside": _BESIDE.replace("{}", "⟨placeholder⟩"),
    "addresses beside": _BESIDE.replace("{}", "⟨address⟩"),
    "lines after spans": r"""
␀ ⟨placeholder⟩⏎␀
␀ ⟨placeholder⟩⏎
⟨placeholder⟩ ␀⏎␀ ⟨placeholder′⟩⏎⏎␀
␀⏎⟨placeholder⟩⏎␀⏎
""",
    "changelogs *": r"""
- ␀ (#⟨digits⟩)
* [`⟨sha⟩`] ␀
- ␀ ([#⟨number⟩](https://a.org/i/⟨number⟩))
v1.⟨number⟩.0 – ␀
* ␀ [GH-⟨digits⟩] (@user⟨digit⟩)
## [0.⟨number⟩.⟨digit⟩]⏎⏎- ␀⏎- ␀
""",
    "chats *": r"""
[15:⟨number⟩] <bob_⟨digit⟩> ␀
<@U⟨digits⟩7⟨digits⟩> ␀
15:⟨number⟩ <bob_⟨digit⟩> ␀⏎15:⟨number⟩ <bob_⟨digit′⟩> ␀
@bob_⟨digit⟩: ␀
␀ xD2 :p1:
""",
    "quoted mail *": r"""
> ␀⏎> ␀⏎⏎␀
>> ␀⏎>␀
> > ␀⏎>⏎> ␀
| ␀⏎| ␀
␀⏎-- ⏎␀
""",
    "forms *": r"""
␀: ⟨leader⟩
[ ] ␀   [x] ␀
( ) ␀⏎(•) ␀
☐ ␀  ☑ ␀
␀ ______ ␀ ______
␀ [____]
""",
    "clauses of law *": r"""
§ ⟨number⟩ ␀
§ ⟨number⟩ (⟨digit⟩) ␀
§§ ⟨digit⟩–⟨number⟩ ␀
⟨digit⟩.⟨number⟩.⟨digit′⟩ ␀
(xii) ␀
¶ ⟨number⟩. ␀
(a)(ii) ␀
""",
    "recipes *": r"""
⟨part⟩ ␀
⟨digit⟩ ⟨part⟩ × ␀
• ⟨digit⟩× ␀
␀ (×⟨digit⟩)
⟨part⟩–⟨part′⟩ ␀
""",
    "chess *": r"""
⟨number⟩. ⟨move⟩ ⟨move′⟩ {␀}
⟨number⟩… ⟨move⟩ ␀
⟨number⟩. ⟨move⟩ $1 {␀} ⟨number⟩… ⟨move′⟩ {␀}
""",
    "chords *": r"""
[G7]␀
[C#m7]␀ [Bb7]␀
♪ ␀ ♪
𝄞 ␀
{start_of_verse1}⏎[Dmaj7]␀
""",
    "marks of direction *": "\u200f␀\u200e\n\u2067␀\u2069\n\u202b␀\u202c\n␀\u200e\n\u2068␀\u2069⏎␀",
    "CSV *": r"""
"␀","␀"
"␀";"␀"
"␀","⟨identifier⟩","␀"
"␀","","␀"
""",
    "settings files *": r"""
msg_⟨digit⟩ = "␀"
"k_⟨digit⟩": "␀",
title_⟨digit⟩: ␀
<string name="m_⟨digit⟩">␀</string>
[x_⟨digit⟩]⏎k_1=␀
  - x_⟨digit⟩: "␀"  # x_2
""",
    "hashtags *": r"""
␀ #x1
␀ #news #Ünï #год
@user ␀
#a_b ␀
""",
    "BBCode *": r"""
[b]␀[/b]
[url=https://a.org/x]␀[/url]
[*] ␀
[quote=x_⟨digit⟩]␀[/quote]⏎␀
""",
    "LaTeX *": r"""
\textbf{␀}
\section*{␀}
\item ␀
␀ \\
␀~\cite{x⟨number⟩}
\emph{␀} \label{s:⟨digit⟩}
␀ $x_{⟨digit⟩}$
""",
    "colours of a terminal *": "\x1b[31m␀\x1b[0m\n\x1b[0;1m␀\x1b[m\n\x1b[38;5;208m␀\x1b[0m␀",
    "wikis *": r"""
== ␀ ==
[[␀]]
* '''␀'''
; ␀⏎: ␀
! ␀ !! ␀
{{x1|␀}}
␀{{x1}}
h⟨digit⟩. ␀
""",
    "comments in code *": r"""
// ␀
/* ␀ */
/*⏎ * ␀⏎ * ␀⏎ */
-- ␀
;; ␀
(* ␀ *)
% ␀
#: ␀
""",
    "breadcrumbs *": r"""
␀ › ␀
␀ » ␀ » ␀
␀ → ␀
␀ => ␀
␀ -> ␀ -> ␀
␀ · ␀ · ␀
␀ ▸ ␀
␀ • ␀ • ␀
""",
    "logs *": r"""
2026-11-⟨number⟩T15:08:⟨number′⟩Z ␀
[  ⟨number⟩.⟨digits⟩] ␀
192.168.⟨number⟩.1 - - ␀
E/x.y1(⟨digits⟩): ␀
a1.c:⟨number⟩:⟨number′⟩: ␀
""",
    "notes and citations *": r"""
␀[^⟨number⟩]
␀ [⟨digit⟩, ⟨number⟩]
[^⟨number⟩]: ␀
␀⁽²⁾
␀ [[⟨number⟩]]
[@x⟨number⟩] ␀
""",
    "times of songs *": r"""
[00:⟨number⟩.12]␀
<00:00:⟨number⟩.120>␀
[00:⟨number⟩.12]␀⏎[01:⟨number′⟩.30]␀
00:00:⟨number⟩,500 --> 00:01:⟨number⟩,100⏎␀
""",
    "templates *": r"""
{% if x⟨digit⟩ %}␀{% endif %}
<?php echo $x⟨digit⟩; ?>␀
<%= x⟨digit⟩ %> ␀
{{#if x⟨digit⟩}}␀{{/if}}
{{ _("x⟨digit⟩") }}: ␀
<#if x⟨digit⟩>␀</#if>
""",
    "differences of files *": r"""
+␀
+ ␀
@@ -⟨number⟩,2 +⟨number⟩,3 @@⏎+␀⏎ ␀
""",
    "phonetics *": r"""
␀ [⟨sounds⟩]
␀ /⟨sounds⟩/
/⟨sounds⟩/ ␀
""",
    "keycaps and emoji *": r"""
⟨emoji⟩ ␀
␀ ⟨emoji⟩⟨emoji⟩
␀⟨emoji⟩
⟨emoji⟩␀
""",
}
SPANS: dict[str, str] = {
    "placeholders of C": r"""
%s
%d
%lu
%5.2f
%-10s
%#x
%'d
%m
%zu
%%
%Id
%.1f%%
%⟨digit⟩$s
%⟨digit⟩$d
%@
""",
    "placeholders of Python": r"""
%(⟨name⟩)s
%(⟨name⟩)d
%(⟨name⟩).2f
{⟨name⟩}
{⟨digit⟩}
{}
{⟨name⟩!r}
{⟨name⟩:.2f}
{⟨name⟩:>10}
{⟨name⟩.x[0]}
""",
    "placeholders of Qt": "%⟨digit⟩\n%1⟨digit⟩\n%L⟨digit⟩\n%n\n%Ln",
    "placeholders of web pages": r"""
{{⟨name⟩}}
{{ ⟨name⟩ }}
{{{⟨name⟩}}}
${⟨name⟩}
{ $⟨name⟩ }
#{⟨name⟩}
:⟨name⟩
@:⟨name⟩
$t(⟨name⟩)
[[⟨name⟩_1]]
{0:N2}
""",
    "placeholders of shells": r"""
$⟨name⟩
$⟨digit⟩
%USER_⟨digit⟩%
__⟨name⟩__
%{⟨name⟩}
$(⟨name⟩_1)
@⟨name⟩@
<%= ⟨name⟩ %>
""",
    "placeholders of ICU": r"""
{⟨name⟩, number}
{⟨name⟩, date, short}
{⟨name⟩, plural, one {# x1} other {# x2}}
{⟨name⟩, select, a {x1} other {x2}}
""",
    "identifiers": "⟨identifier⟩",
    "codes": "⟨code⟩",
    "phone numbers": "⟨phone⟩",
    "shortcodes": ":smile:\n:tada:\n:+1:\n:white_check_mark:\n:flag-de:\n:x1:",
    "unknown words": "⟨word⟩",
    "words in letters *": "⟨torn⟩",
    "addresses": r"""
https://a.org/x/⟨number⟩?y=1#z
www.x⟨number⟩.example.com
ann.x+⟨number⟩@a.org
/usr/lib/x⟨number⟩/y.so
C:\x\y⟨number⟩.txt
~/x⟨number⟩/y
src/x⟨number⟩.py
""",
    "written code": r"""
`x_⟨number⟩`
`rm -r x⟨number⟩`
get_x⟨number⟩()
user_name
x⟨number⟩.y()
--opt-⟨number⟩
x⟨number⟩::y
$x_{⟨number⟩}$
0x4a⟨number⟩
""",
    "points of markup": '<br/>\n<img src="x.png"/>\n&nbsp;\n<0/>',
    "emoji *": "1️⃣\n👍🏽\n✅\n🇫🇷\n👩\u200d💻\n❤️\n™️\n🏴\U000e0067\U000e0062\U000e007f",
}


def framed(draw: Random, pairs: Sequence[Pair], frame: str) -> Drawn:
    """A frame with known texts."""
    chosen = [draw.choice(_clear(pairs, frame, slot.start())) for slot in re.finditer(SLOT, frame)]
    slots = zip(re.finditer(SLOT, frame), chosen, strict=True)
    targets = [_unstopped(pair, frame[slot.end() : slot.end() + 1]) for slot, pair in slots]
    source = _filled(frame, [pair.source for pair in chosen])
    return source, [_filled(frame, targets)], chosen


def _unstopped(pair: Pair, following: str) -> str:
    """The translation without a stop that the source lacks, if another mark follows."""
    added = following in {*".,:;!?…"} and pair.source[-1].isalnum()
    return pair.target.removesuffix(".") if added else pair.target


def _clear(pairs: Sequence[Pair], frame: str, slot: int) -> Sequence[Pair]:
    """The pairs that nobody can take for a part of the frame, as "{Search}" is a placeholder."""
    before, after = frame[max(slot - 1, 0) : slot], frame[slot + 1 : slot + 2]
    if frame[slot + 1 : slot + 3] == f" {SLOT}":
        return [pair for pair in pairs if pair.source[-1] == "."] or pairs
    if before == "[":  # numbers in brackets are a reference
        pairs = [pair for pair in pairs if any(map(str.isalpha, pair.source))] or pairs
    words = [pair for pair in pairs if " " in pair.source or before not in ("{", "|", "_")]
    return [pair for pair in words if after != "." or pair.source[-1] != "."] or pairs


def _filled(frame: str, texts: Sequence[str]) -> str:
    rest = iter(texts)
    return re.sub(SLOT, lambda _: next(rest), frame)


def inside(draw: Random, pairs: Sequence[Pair], span: str) -> Drawn:
    """A span, or a span in brackets, between two words of a known text."""
    pair = draw.choice([pair for pair in pairs if " " in pair.source])
    shown = draw.choice((span, span, span, f"({span})"))
    place = draw.randint(1, pair.source.count(" "))
    places = [place] if pair.aligned else range(pair.target.count(" ") + 2)
    targets = [_with(pair.target, each, shown) for each in places]
    if not pair.aligned and pair.target.endswith("."):
        targets.append(f"{pair.target[:-1]} {shown}.")
    templates = [
        Pair(_with(pair.source, place, symbol), _with(pair.target, place, symbol))
        for symbol in (FIRST, f"({FIRST})")
        if pair.aligned
    ]
    return _with(pair.source, place, shown), targets, [pair, *templates]


def _with(text: str, place: int, span: str) -> str:
    """The text with a span before the word ``place``, counted from 0."""
    words = text.split(" ")
    return " ".join([*words[:place], span, *words[place:]])


# Families of their own ---------------------------------------------------------------------------


@cache
def _brackets() -> list[str]:
    """All pairs of opening and closing brackets below U+3100."""
    kinds = [unicodedata.category(chr(code)) for code in range(0x3100)]
    return [
        chr(code) + chr(code + step)
        for code, kind in enumerate(kinds[:-2])
        if kind == "Ps" and not unicodedata.decomposition(chr(code))
        for step in (1, 2)
        if kinds[code + step] == "Pe"
    ]


def signs_around(draw: Random) -> str:
    emphasis = ("*", "**", "***", "_", "__", "~", "~~", "||", "==", "+", "^", "''", "'''")
    if draw.random() < 0.4:
        sign = draw.choice(emphasis)
        return f"{sign}{SLOT}{sign}"
    return SLOT.join(draw.choice([*6 * ["()", "[]", "{}"], *_brackets()]))


def quotes_around(draw: Random) -> str:
    pairs = ('""', "''", "“”", "‘’", "„“", "»«", "«»", "‹›", "「」", "『』")
    return SLOT.join(draw.choice(pairs))


def nested(draw: Random) -> str:
    """A frame of signs and markup in lists, cells, lines or rules."""
    outer = ("list marks", "dialogue dashes", "cells between bars", "rules", "lines")
    inner = ("line ends", "subtitles", "markup around a text")
    frame = drawn(draw, FRAMES[draw.choice(outer)])
    signs = [
        draw.choice((signs_around, quotes_around))(draw),
        drawn(draw, FRAMES[draw.choice(inner)]),
    ]
    draw.shuffle(signs)
    return frame.replace(SLOT, signs[0]).replace(SLOT, signs[1])


def around_a_word(draw: Random, pairs: Sequence[Pair], signs: tuple[str, str]) -> Drawn:
    """A pair of signs around a word of a known text, but not around the last one."""
    pair = draw.choice([pair for pair in pairs if " " in pair.source])
    inner = enumerate(pair.source.split(" ")[:-1])
    place = draw.choice([n for n, word in inner if any(map(str.isalnum, word))])

    def around(text: str, place: int, signs: tuple[str, str]) -> str:
        words = text.split(" ")
        words[place] = words[place].join(signs)
        return " ".join(words)

    def anywhere(text: str) -> Iterator[str]:
        """The signs around any words, with the marks at their end or without."""
        ends = [match.end() for match in re.finditer(r"\w(?=\W|$)|\S(?=\s|$)", text)]
        starts = [match.start() for match in re.finditer(r"(?<!\S)\S", text)]
        for start, end in product(starts, ends):
            if start < end:
                yield text[:start] + text[start:end].join(signs) + text[end:]

    known = [pair]
    if pair.aligned:
        known.append(Pair(*(around(side, place, (FIRST, SECOND)) for side in pair[:2])))
    targets = [around(pair.target, place, signs)] if pair.aligned else anywhere(pair.target)
    return around(pair.source, place, signs), targets, known


def markup_around_a_word(draw: Random, pairs: Sequence[Pair]) -> Drawn:
    name = draw.choice(("b", "i", "em", "0", "x1", 'a href="https://a.org"'))
    return around_a_word(draw, pairs, (f"<{name}>", f"</{name.split()[0]}>"))


def emphasis_around_a_word(draw: Random, pairs: Sequence[Pair]) -> Drawn:
    sign = draw.choice(("*", "**", "_", "~~", "'''"))
    return around_a_word(draw, pairs, (sign, sign))


def placeholders_that_change_places(draw: Random, _pairs: Sequence[Pair]) -> Drawn:
    """Placeholders with names or numbers, in a language of another order, such as Turkish."""
    forms = ("%({})s", "{{{}}}", "${{{}}}", "{{{{{}}}}}", "%{{{}}}")
    form, names = draw.choice([(form, _NAMES) for form in forms] + [("%{}$s", "12"), ("%{}", "12")])
    first, second = (form.format(name) for name in draw.sample(names, 2))
    known = Pair(f"Search {FIRST} in {SECOND} now.", f"Suche in {SECOND} jetzt {FIRST}.")
    source, target = (side.replace(FIRST, first).replace(SECOND, second) for side in known[:2])
    return source, [target], [known]


_LETTER = r"[A-Za-z](?=\w)"  # not the last of a word


def accelerators(draw: Random, pairs: Sequence[Pair]) -> Drawn:
    """The sign goes to the start of a word, or its letter follows in parentheses."""
    pair = draw.choice([pair for pair in pairs if re.search(_LETTER, pair.source)])
    place, sign = draw.choice([*re.finditer(_LETTER, pair.source)]).start(), draw.choice("_&")
    targets = [
        f"{pair.target[: match.start()]}{sign}{pair.target[match.start() :]}"
        for match in re.finditer(r"(?<!\w)\w", pair.target)
    ]
    body, stop = re.fullmatch(r"(.*?)([.:…]*)", pair.target).groups()
    letter = pair.source[place].upper()
    targets += [f"{body}{gap}({sign}{letter}){stop}" for gap in ("", " ")]
    return f"{pair.source[:place]}{sign}{pair.source[place:]}", targets, [pair]


_TWINS = {"-": "‐‑−–", "'": "’‘ʼ", "fi": "ﬁ", "fl": "ﬂ", "ffi": "ﬃ", " ": "\u00a0\u202f\u2009"}
_CAPITAL_AS = (0x1D400, 0x1D468, 0x1D5A0, 0x1D5D4, 0x1D670, 0xFF21)  # mathematical, fullwidth


def twins_of_characters(draw: Random, pairs: Sequence[Pair]) -> Drawn:
    """The text in other characters, which the model reads as the characters that it knows."""
    pair = draw.choice(pairs)
    fitting = [known for known in _TWINS if known in pair.source]
    if fitting and draw.random() < 0.6:
        known = draw.choice(fitting)
        return pair.source.replace(known, draw.choice(_TWINS[known])), [pair.target], [pair]
    first = draw.choice(_CAPITAL_AS)
    small = first + (32 if first == _CAPITAL_AS[-1] else 26)
    zero = 0xFF10 if first == _CAPITAL_AS[-1] else 0x1D7CE
    letters = {65 + n: first + n for n in range(26)} | {97 + n: small + n for n in range(26)}
    letters |= {48 + n: zero + n for n in range(10)}
    return pair.source.translate(letters), [pair.target], [pair]


WORDS = ("Search in now.", "It begins at min today.")  # of texts of their own
UNITS = {"h": "Uhr", "ha": "und", "t": "Mal", "m": "Meter", "l": "links", "min": "kurz"}


def numbers_with_a_unit_letter(draw: Random, _pairs: Sequence[Pair]) -> Drawn:
    """Whether "20 h" is a span or a time depends on the model, which knows the whole text."""
    number, (unit, word) = draw.randint(2, 99), draw.choice([*UNITS.items()])
    pair = Pair(f"It begins at {number} {unit} today.", f"Es beginnt um {number} {word} heute.")
    return pair.source, [pair.target], [pair]


def lines_of_numbers(draw: Random, pairs: Sequence[Pair]) -> Drawn:
    """The sources of this model have letters, so a line or cell without one is no text."""
    number = draw.choice(
        ("12", "3.50", "1,200", "12/5/2002", "42 %", "$ 12.50", "1 2 3", "??", "—")
    )
    frame = draw.choice(("␀\n{}\n␀", "{}\n␀", "␀\n\n{}", "␀\t{}", "| ␀ | {} |"))
    return framed(draw, pairs, frame.replace("{}", number))


_NUMBERS = frozenset(
    ("changelogs", "chats", "clauses of law", "recipes", "chess", "logs", "differences of files")
)


def _of_frames(name: str, draw_frame: Callable[[Random], str]) -> Family:
    def make(draw: Random, pairs: Sequence[Pair]) -> Drawn:
        return framed(draw, pairs, draw_frame(draw))

    name, named = name.removesuffix(" *"), not name.endswith("*")
    return Family(name, make, named=named, numbers=name in _NUMBERS)


def _of_spans(name: str, forms: str) -> Family:
    def make(draw: Random, pairs: Sequence[Pair]) -> Drawn:
        return inside(draw, pairs, drawn(draw, forms))

    named, numbers = not name.endswith("*"), name == "phone numbers"  # beside numbers, more of it
    return Family(f"{name.removesuffix(' *')} inside", make, "inside", named, numbers=numbers)


def _families() -> Iterator[Family]:
    yield _of_frames("signs around", signs_around)
    yield _of_frames("quotes around", quotes_around)
    yield _of_frames("nesting", nested)
    for name, forms in FRAMES.items():
        family = _of_frames(name, lambda draw, forms=forms: drawn(draw, forms))
        yield replace(family, stub=f"{SLOT} {SLOT}" in forms)  # of texts that end in a full stop
    yield Family("accelerators", accelerators, "inside")
    yield Family("twins of characters", twins_of_characters)
    yield Family("numbers with a unit letter", numbers_with_a_unit_letter, stub=True)
    yield Family("lines of numbers", lines_of_numbers, stub=True)
    for name, forms in SPANS.items():
        yield _of_spans(name, forms)
    yield Family("markup around a word", markup_around_a_word, "inside")
    yield Family("emphasis around a word", emphasis_around_a_word, "inside")
    changing = placeholders_that_change_places
    yield Family("placeholders that change places", changing, "inside", stub=True)


FAMILIES: dict[str, Family] = {family.name: family for family in _families()}
