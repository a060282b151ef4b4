"""The measured damage of mistakes, as checks and pages tell it."""

import pytest

from glassformer.learn.damage import damage, damage_text
from glassformer.learn.lesson import known_mistakes


def test_the_table_has_known_mistakes_and_percentages():
    table = damage()
    assert set(table) <= {"", *known_mistakes()}
    shares = [share for scores in table.values() for share in scores.values() if share is not None]
    assert all(0 <= share <= 100 for share in shares)
    assert None not in table[""].values()


@pytest.mark.parametrize(
    ("scores", "text"),
    [
        ({1: 12.3}, "12 % right with it, 79 to 94 % with right parts."),
        ({1: 0.0, 2: 30.4}, "0 to 30 % right with it, 79 to 94 % with right parts."),
        ({1: None}, "it ends with an error."),
    ],
)
def test_the_sentence(monkeypatch, scores, text):
    table = {"": {1: 94.3, 2: 78.8}, "a-mistake": scores}
    monkeypatch.setattr("glassformer.learn.damage.damage", lambda: table)
    assert damage_text("a-mistake") == f"Measured on dates and amounts: {text}"
    assert damage_text("another") is None
