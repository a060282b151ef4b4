"""The settings that a nightly run draws are within the bounds of what must work."""

import random
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.settings import LONGEST, drawn_settings


@given(st.integers(), st.sampled_from(["/tmp", "/var/tmp/of-a-user"]))
def test_drawn_settings(seed, temporary):
    settings = drawn_settings(random.Random(seed), temporary)
    assert len(temporary) + 2 <= len(settings["TMPDIR"]) <= LONGEST
    assert 40 <= int(settings["COLUMNS"]) <= 250
    assert not Path(settings.get("HOME", "/nonexistent")).exists()
