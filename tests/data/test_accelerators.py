"""Marks of keys leave a label before the translation, and come back: one for one."""

import re

from hypothesis import given
from hypothesis import strategies as st

from glassformer.data.accelerators import (
    accelerator_sign,
    with_accelerator,
    with_key,
    without_accelerator,
)
from glassformer.data.protected import protected_spans
from tests.tables import every

WORDS = st.text(st.sampled_from("abcdeéß"), min_size=2, max_size=6)
SIGNS = st.sampled_from("_&")
ENDS = st.sampled_from(["", "…", ":", " %s", " (%1$d)", " {name}", " &lt;b&gt;", "\tCtrl+O"])
# A sign in these parts is no mark, and a mark never goes into such a part.
OPAQUE = ["%s", "%1$s", "{name}", "%(size)d", "&amp;", "<b>", "https://a.org/x_y", "$HOME_DIR"]
STRANGE = [
    "打开",
    "खोलें",
    "…",
    ":",
    "12",
    "x_y",
    "_z",
    "&a",
    "R&B",
    "x&&&b",
    "a__b",
    "my_file_name",
    "Ω",
    "ªß",
    "'",
]


def shown(text):
    """The text without protected spans, but of code, whose rule takes "Cu_t" for a name."""
    for span in reversed(protected_spans(text)):
        if span.kind not in ("code", "emphasis"):
            text = f"{text[: span.start]} {text[span.end :]}"
    return text


def marks(text, sign):
    return len(re.findall(rf"{sign}(?=[^\W_])", shown(text)))


@st.composite
def labels(draw):
    """A label with one mark, the same label without the mark, and the sign."""
    words, sign, end = draw(st.lists(WORDS, min_size=1, max_size=4)), draw(SIGNS), draw(ENDS)
    word = draw(st.integers(0, len(words) - 1))
    place = draw(st.integers(0, len(words[word]) - 1))
    plain = " ".join(words) + end
    place += len(" ".join([*words[:word], ""]))
    return plain[:place] + sign + plain[place:], plain, sign


@given(labels(), st.lists(WORDS | st.sampled_from(OPAQUE + STRANGE), max_size=5).map(" ".join))
def test_one_mark_goes_and_one_mark_comes(label, target):
    source, plain, sign = label

    assert without_accelerator(source, sign) == plain
    assert marks(with_accelerator(target, source, sign), sign) == bool(target)
    assert marks(with_accelerator(target, plain, sign), sign) == 0


@given(
    labels(), st.lists(WORDS | st.sampled_from([*OPAQUE, "打开", "…"]), min_size=1).map(" ".join)
)
def test_the_rest_of_the_translation_stays(label, target):
    source, _, sign = label
    marked = with_accelerator(target, source, sign)
    length = len(marked) - len(target)

    assert length in (1, 4, 5)
    assert any(marked[:n] + marked[n + length :] == target for n in range(len(target) + 1))


@given(st.text("a打…. \t", max_size=6), st.integers(0, 6))
def test_no_mark_goes_into_the_beginning_that_somebody_has_typed(target, least):
    assert with_key(target, "_", "a", least=least).startswith(target[:least])


@given(labels())
def test_a_label_that_nobody_translates_keeps_the_key(label):
    source, plain, sign = label
    place = source.index(sign)
    if place == 0 or source[place - 1] == " ":
        again = with_accelerator(plain, source, sign)
        assert again[again.index(sign) + 1] == source[place + 1]


@every(
    ("target", "source", "sign", "expected"),
    [
        ("Ausschneiden", "Cu_t", "_", "_Ausschneiden"),
        ("Seitenleiste anzeigen", "Show Side_bar", "_", "_Seitenleiste anzeigen"),
        ("Datei öffnen", "&Open File", "&", "&Datei öffnen"),
        ("Öffnen", "_Öffne", "_", "_Öffnen"),
        ("%s sichern", "_Save %s", "_", "%s _sichern"),
        ("<b>Datei</b> sichern", "<b>_Save</b>", "_", "<b>Datei</b> _sichern"),
        ("&lt; zeigen", "&Look", "&", "&lt; &zeigen"),
        ("l'ouvrir", "_Open", "_", "l'_ouvrir"),
        ("打开…", "_Open…", "_", "打开(_O)…"),
        ("名前:\tCtrl+N", "&Name:\tCtrl+N", "&", "名前(&N):\tCtrl+N"),
        ("Nº de página", "_Page", "_", "Nº de _página"),
        ("%s", "_Go to %s", "_", "%s (_G)"),
        ("Suchen & Ersetzen", "&Find && Replace", "&", "&Suchen && Ersetzen"),
        ("_Invented Mark", "Plain", "_", "Invented Mark"),
        ("S&&rr", "Plain", "&", "Srr"),
        ("&Ja\n&Nein", "&Yes\n&No", "&", "&Ja\n&Nein"),  # several marks are left to the model
        ("", "_Open", "_", ""),
    ],
)
def test_where_a_mark_goes(target, source, sign, expected):
    assert with_accelerator(target, source, sign) == expected


@every(
    ("text", "sign"),
    [
        ("my_file_name", "_"),
        ("Num_Lock", "_"),
        ("GTK_THEME", "_"),
        ("_emphasis_", "_"),
        ("R&B and AT&T", "&"),
        ("&amp; &#38; &nbsp;", "&"),
        ("see https://a.org/?a=1&b=2", "&"),
        ("black & white", "&"),
        ("%_d", "_"),
        ("Type `Cu_t` to cut", "_"),
        ("A long sentence of a manual has names such as gnc_numeric, and tells about " * 2, "_"),
    ],
)
def test_names_and_entities_have_no_mark(text, sign):
    assert without_accelerator(text, sign) == text
    assert with_accelerator(text, text, sign) == text


@every(
    ("texts", "sign"),
    [
        (["_Open", "Cu_t", "Set user_name", "Shut _down", "_Save"], "_"),
        (["&File", "Co&dec", "Fish & chips", "&Edit"], "&"),
        (["user_name", "file_name", "_exit"], ""),
        (["&lt;a&gt;", "AT&T", "x && y"], ""),
        (["_emphasis_", "__init__"], ""),
        ([], ""),
    ],
)
def test_a_catalogue_tells_its_sign(texts, sign):
    assert accelerator_sign(texts) == sign
