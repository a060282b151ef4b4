"""Protected spans: what is one, what only looks like one, and what a translation loses."""

import re

from hypothesis import given
from hypothesis import strategies as st

from glassformer.data.protected import lost_spans, protected_spans
from tests.tables import every

FAMILY = "👩\u200d👩\u200d👧🏽"
ICU = "{n, plural, one {# item} other {# items}}"


def found(text):
    return [(span.kind, text[span.start : span.end]) for span in protected_spans(text)]


@every(
    ("kind", "text", "spans"),
    [
        (
            "placeholder",
            "Hi {name}, {0} of {user.age:.2f}{}",
            ["{name}", "{0}", "{user.age:.2f}", "{}"],
        ),
        ("placeholder", "{{ x }} a{{x}}b {{{raw}}}", ["{{ x }}", "{{x}}", "{{{raw}}}"]),
        ("placeholder", "${HOME} #{a} %{b} {% end %}", ["${HOME}", "#{a}", "%{b}", "{% end %}"]),
        ("placeholder", ICU + "!", [ICU]),
        ("placeholder", "%s has 5 %d%% of %1$s", ["%s", "%d", "%%", "%1$s"]),
        ("placeholder", "%-5.2f, %(name)s, %ld %@", ["%-5.2f", "%(name)s", "%ld", "%@"]),
        ("placeholder", "%Y-%m, %dkm, %ss %user%", ["%Y", "%m", "%d", "%s", "%user%"]),
        ("placeholder", "$1 or $2.", ["$1", "$2"]),
        ("url", "See https://a.org/x?q=1&r=%20#top.", ["https://a.org/x?q=1&r=%20#top"]),
        ("url", "(http://a.org/b_(c)), www.b.com!", ["http://a.org/b_(c)", "www.b.com"]),
        ("url", "[text](https://a.org/x) <ftp://b.c/d>", ["https://a.org/x", "ftp://b.c/d"]),
        ("url", "见https://a.org/x。好", ["https://a.org/x"]),
        ("email", "Mail a.b+c@mail.example.org, or x@y.de.", ["a.b+c@mail.example.org", "x@y.de"]),
        ("email", "a_b@c.org, x", ["a_b@c.org"]),
        ("path", "/my_a/b_c my_dir/my_file.py", ["/my_a/b_c", "my_dir/my_file.py"]),
        ("tag", "<b>x</b><br/>", ["<b>", "</b>", "<br/>"]),
        (
            "tag",
            '<a href="http://x.y/z" id=3> <!-- {x} -->',
            ['<a href="http://x.y/z" id=3>', "<!-- {x} -->"],
        ),
        ("tag", "a&nbsp;b &#39; &lt;", ["&nbsp;", "&#39;", "&lt;"]),
        ("code", "Run `ls {x} | wc` or ``a`b`` now", ["`ls {x} | wc`", "``a`b``"]),
        (
            "placeholder",
            "$Username, $t(a.b) $x; @:msg.x",
            ["$Username", "$t(a.b)", "$x", "@:msg.x"],
        ),
        ("placeholder", "__VAR__ and :name (:count)", ["__VAR__", ":name", ":count"]),
        ("tag", "<0>Click</0> <12/>", ["<0>", "</0>", "<12/>"]),
        ("reference", "as in [1], [2, 3] and [4–6][^7]", ["[1]", "[2, 3]", "[4–6]", "[^7]"]),
        ("name", "@anna, @bo.c_d. #Tag1 #日本", ["@anna", "@bo.c_d", "#Tag1", "#日本"]),
        ("code", "user_name, get_user() a.b()", ["user_name", "get_user()", "a.b()"]),
        ("path", "/usr/lib/x. ~/a.txt, (./b/c)", ["/usr/lib/x", "~/a.txt", "./b/c"]),
        ("path", r"src/main.py C:\a\b.c", ["src/main.py", r"C:\a\b.c"]),
        ("version", "v2, v1.10.2; 3.12.1, 2.0.0-rc1 (10.0.0.1)", None),
        (
            "emphasis",
            "**two** _men_ run ''fast''",
            ["**", "**", "_", "_", "''", "''"],
        ),
        ("measure", "5 km, 3.5 GHz; 1,200 mAh -4°C", ["5 km", "3.5 GHz", "1,200 mAh", "-4°C"]),
        ("measure", "−5 °C (–3 km) 3-5 km, 7–8 km", ["−5 °C", "–3 km", "3-5 km", "7–8 km"]),
        (
            "emoji",
            f"{FAMILY} 👍🏽 🇩🇪🇫🇷 3️⃣x❤️ ©️ 😀😀",
            [FAMILY, "👍🏽", "🇩🇪🇫🇷", "3️⃣", "❤️", "©️", "😀😀"],
        ),
    ],
)
def test_spans_are_found_whole(kind, text, spans):
    spans = spans or re.findall(r"[^ ,;()]+", text)
    assert found(text) == [(kind, span) for span in spans]


@every(
    "text",
    [
        "It costs $1,000, $1.50, US$5, $12 or CA$3.",
        "100 % sicher, 50%off, 100% sure, 5 % den, a %discount",
        "e.g. this, i.e. that, a.m. or p.m., example.org",
        "March 4, 2030 at 6:14 PM for 1,910.83 zlotys, 3.14 or 12-5",
        "the set {a, b} and { or } or { x } or {",
        "if a < b and c > d, <3, x <y and z> w",
        "it's a 'quote' `and one tick, AT&T; R&D",
        "5 men, 3 tons, 7 mice, 4 hats, 2 A",
        "© 2024 ACME™ → 5 × 3 • “x” ¿?",
        "C# a@b user@host # 1 #1 @ home; note: this, 5:30 :) x:y",
        "and/or he/she, km/h, 1/2, 3/4/2030, w/o, a // b",
        "4.3.2030, 25.09.02, 1.234.567 [menu] [ 1 ] f(x)",
    ],
)
def test_what_only_looks_like_a_span_is_none(text):
    assert found(text) == []


def test_inner_braces_are_found_in_unbalanced_ones():
    assert found("{a{b}c") == [("placeholder", "{b}")]
    assert found("}{{c}") == [("placeholder", "{c}")]


HOSTILE = ["<", "<a ", "{", "{n,plural {", "`", "a@", "http://", "%", "😀\u200d", "a/", "/a.", "a_"]
HOSTILE += ["[1,", "#1", "@a.", ":a", "1.", "a.b", "v1.", "__a", "-", "$t(", "C:\\"]


@every("unit", HOSTILE)
def test_hostile_text_is_searched(unit):
    """The bounds of the patterns hold: without them these texts take minutes."""
    text = unit * 20_000

    spans = protected_spans(text)

    assert all(0 <= span.start < span.end <= len(text) for span in spans)


@given(st.text(alphabet="{}%$1s <>/ab`@.:htp😀👍🏽\u200d&;5km-_#[]()v", max_size=40))
def test_spans_are_in_order_and_do_not_overlap(text):
    ends = [place for span in protected_spans(text) for place in (span.start, span.end)]

    assert ends == sorted(ends)
    assert all(span.start < span.end for span in protected_spans(text))
    assert lost_spans(text, text) == []


@every(
    ("source", "target", "lost"),
    [
        ("{a} {a}", "{a}", ["{a}"]),
        ("{a}", "{b}", ["{a}"]),
        ("{a}", "{a} {a}", []),
        ("Pay $1 now", "Zahle $1,50", ["$1"]),
        ("3.5 GHz and 1,200 km", "3,5 GHz und 1.200 Kilometer", []),
        ("5 km", "5 км", []),
        ("5 km", "15 km", ["5 km"]),
        ("5 km and 5 km", "5 km", ["5 km"]),
        ("5 km", "5", ["5 km"]),
        ("5 km", "5 – 7", ["5 km"]),
        ("-5 °C", "\u22125 °C", []),
        ("-5 °C", "5 °C", ["-5 °C"]),
        ("5 °C", "-5 °C", ["5 °C"]),
        ("3-5 km", "3–5 km", []),
        ("3-5 km", "3 bis 5 km", []),
        ("3-5 km", "3 5 m", ["3-5 km"]),
        ("3-5 km", "5 km", ["3-5 km"]),
        ("no span", "", []),
    ],
)
def test_lost_spans(source, target, lost):
    assert lost_spans(source, target) == lost
