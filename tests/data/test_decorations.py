"""The law of layout: a decoration stays, and the text inside is translated as if it stood alone.

``python -m tests.data.decoration_figures`` counts the families by all ways, and shows what fails.
"""

import os
import re
from functools import cache
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.translator import Translator
from tests.data.decoration_figures import counted, is_right, names_for, plain_pairs, translated
from tests.data.decorations import FAMILIES, SLOT, Pair
from tests.data.exact_translator import INVENTED, PAIRS, exact_translator
from tests.data.ways import WAYS
from tests.tables import every

# The number of right cases of 100 by Python, the command, the server and the page. The tests assert
# every case of a family with 100; a better cut raises the numbers.
TODAY: dict[str, tuple[int, int, int, int]] = {
    "signs around": (0, 0, 0, 0),
    "quotes around": (0, 0, 0, 0),
    "nesting": (0, 0, 0, 0),
    "list marks": (86, 92, 92, 0),
    "line ends": (52, 57, 57, 54),
    "dialogue dashes": (34, 34, 34, 0),
    "rules": (86, 86, 86, 69),
    "leaders": (0, 0, 0, 0),
    "cells between bars": (41, 41, 41, 0),
    "cells between tabs": (69, 69, 69, 69),
    "cells between spaces": (43, 43, 43, 43),
    "lines": (100, 100, 100, 100),
    "lines of white space": (100, 0, 100, 100),
    "literal escapes": (0, 0, 0, 0),
    "subtitles": (0, 0, 0, 0),
    "markup around a text": (0, 100, 79, 0),
    "identifiers beside": (0, 0, 0, 0),
    "codes beside": (13, 15, 15, 11),
    "phone numbers beside": (31, 31, 31, 27),
    "shortcodes beside": (4, 21, 30, 3),
    "unknown words beside": (0, 0, 0, 0),
    "unknown signs beside": (36, 66, 66, 29),
    "placeholders beside": (5, 65, 67, 5),
    "addresses beside": (0, 74, 74, 0),
    "lines after spans": (5, 81, 82, 5),
    "changelogs": (25, 49, 47, 0),
    "chats": (0, 0, 0, 0),
    "quoted mail": (65, 65, 65, 16),
    "forms": (12, 20, 20, 3),
    "clauses of law": (16, 33, 33, 0),
    "recipes": (11, 11, 11, 11),
    "chess": (0, 0, 0, 0),
    "chords": (0, 20, 20, 0),
    "marks of direction": (0, 0, 0, 0),
    "CSV": (0, 0, 0, 0),
    "settings files": (0, 23, 12, 0),
    "hashtags": (0, 100, 100, 0),
    "BBCode": (0, 0, 0, 0),
    "LaTeX": (5, 5, 11, 5),
    "colours of a terminal": (0, 0, 0, 0),
    "wikis": (0, 14, 5, 0),
    "comments in code": (16, 16, 16, 0),
    "breadcrumbs": (0, 0, 0, 0),
    "logs": (0, 18, 0, 0),
    "notes and citations": (32, 74, 74, 16),
    "times of songs": (21, 21, 21, 21),
    "templates": (0, 29, 15, 0),
    "differences of files": (29, 29, 29, 0),
    "phonetics": (0, 0, 0, 0),
    "keycaps and emoji": (22, 100, 100, 22),
    "accelerators": (0, 0, 0, 0),
    "twins of characters": (42, 42, 42, 42),
    "numbers with a unit letter": (100, 24, 24, 100),
    "lines of numbers": (84, 84, 84, 59),
    "placeholders of C inside": (24, 92, 92, 24),
    "placeholders of Python inside": (32, 100, 100, 32),
    "placeholders of Qt inside": (0, 32, 32, 0),
    "placeholders of web pages inside": (35, 92, 92, 35),
    "placeholders of shells inside": (17, 63, 63, 17),
    "placeholders of ICU inside": (0, 100, 100, 0),
    "identifiers inside": (0, 0, 0, 0),
    "codes inside": (0, 0, 0, 0),
    "phone numbers inside": (0, 0, 0, 0),
    "shortcodes inside": (0, 0, 0, 0),
    "unknown words inside": (0, 0, 0, 0),
    "addresses inside": (0, 100, 100, 0),
    "written code inside": (11, 48, 48, 11),
    "points of markup inside": (0, 100, 100, 0),
    "emoji inside": (0, 100, 100, 0),
    "markup around a word": (0, 100, 100, 0),
    "emphasis around a word": (0, 0, 0, 0),
    "placeholders that change places": (76, 0, 0, 76),
}
_WAYS = ("python", "command", "server", "page")
HOLDS = {
    way: [name for name, counts in TODAY.items() if counts[place] == 100]
    for place, way in enumerate(_WAYS)
}
BUNDLES = "GLASSFORMER_DECORATED"
"""The variable that names trained bundles for the nightly profile, with os.pathsep between."""
LEAST = {"edge": 1.0, "inside": 0.85}
SEEDS = st.integers(0, 2**32)


translator = cache(exact_translator)  # hypothesis would print a fixture


def wrong_cases(seed, way):
    draw = Random(seed)
    chosen = [FAMILIES[name].case(draw, PAIRS) for name in HOLDS[way]]
    written = translated(translator(), chosen, way)
    pairs = zip(chosen, written, strict=True)
    return [(case.family, case.source, text) for case, text in pairs if not is_right(case, text)]


@pytest.mark.parametrize("way", ["python", "command"])
@given(seed=SEEDS)
def test_what_holds_today(way, seed):
    assert wrong_cases(seed, way) == []


@pytest.mark.parametrize("way", ["server", "page"])
def test_what_holds_today_by_slower_ways(way):
    assert wrong_cases(1, way) == []


@every("way", [way for way in WAYS if way != "page"])
def test_a_plain_text_is_the_same_by_all_ways(way):
    written = WAYS[way](translator(), [pair.source for pair in PAIRS])

    assert written == [pair.target for pair in PAIRS]


def test_the_table_names_all_families():
    assert [*TODAY] == [*FAMILIES]


@given(seed=SEEDS)
def test_a_case_is_a_decorated_text(seed):
    draw = Random(seed)
    for family in FAMILIES.values():
        case = family.case(draw, PAIRS)
        assert SLOT not in case.source
        assert not re.search("⟨[a-z]+′*⟩", case.source)
        assert case.source not in {pair.source for pair in case.pairs} or family.stub, case
        assert case.targets


def test_an_exact_translator_knows_its_texts_and_symbols_alone():
    engine = exact_translator().engine
    engine.learn([Pair("Two \ue000 run.", "Zwei \ue000 rennen.")])

    texts = [PAIRS[0].source, "Two {x} run.", "Two \ue007 run.", "Two +x run.", "{x} run."]

    expected = [PAIRS[0].target, "Zwei {x} rennen.", "Zwei \ue007 rennen.", INVENTED, INVENTED]
    assert [engine.answer(text) for text in texts] == expected


def test_decorations_of_trained_bundles(request):
    """Prints all families with wrong cases, and fails for those that must hold."""
    if request.config.getoption("--hypothesis-profile") != "nightly":
        pytest.skip("only the nightly profile reads trained bundles")
    if not (named := os.environ.get(BUNDLES)):
        pytest.skip(f"no trained bundle: name the demo's and others in {BUNDLES}")
    failing = []
    for directory in map(Path, named.split(os.pathsep)):
        translator = Translator.load(directory, device="cpu", engine="auto")
        names, pairs = names_for(translator), plain_pairs(directory, translator)
        counts = counted(translator, pairs, names, way="python", count=50)
        for name, count in counts.items():
            if count.right < LEAST[FAMILIES[name].where] * count.all:
                case, written = count.wrong
                print(line := f"{directory}: {name}: {count} %: {case.source!r} -> {written!r}")
                failing += [line] if name in HOLDS["python"] else []
    assert not failing, "\n" + "\n".join(failing)
