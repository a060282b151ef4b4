"""The law of layout: a decoration stays, and the text inside is translated as if it stood alone.

``python -m tests.data.decoration_figures`` counts all families by all ways.
"""

import os
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.translator import Translator
from tests.data.decoration_figures import (
    counted,
    is_right,
    names_for,
    plain_pairs,
    table,
    translated,
)
from tests.data.decorations import FAMILIES, SLOT, cases, drawn
from tests.data.exact_translator import INVENTED, PAIRS, exact_translator
from tests.data.ways import WAYS

# The families of which every case is right by a way today.
HOLDS: dict[str, set[str]] = {way: set() for way in WAYS}
BUNDLES = "GLASSFORMER_DECORATED"  # the variable that names bundles, with os.pathsep between


@pytest.fixture(scope="module")
def translator():
    return exact_translator()


@pytest.mark.parametrize("way", ["python", "command", "server"])
@given(draw=st.randoms(use_true_random=False))
def test_what_holds_today(translator, way, draw):
    chosen = list(drawn(draw, PAIRS, sorted(HOLDS[way])))
    for case, written in zip(chosen, translated(translator, chosen, way), strict=True):
        assert is_right(case, written), (case.family, case.source, written, case.targets)
