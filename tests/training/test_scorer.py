"""The time of the final searches: each has its share, and the last one all that is left."""

from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from glassformer.training.scorer import Scorer, validations_of_the_end
from glassformer.training.setup.prepare import Prepared
from glassformer.training.time_limit import Deadline


def prepared(valid, test=0, general=0):
    """What a scorer reads of a run with so many pairs; a beam of 4 costs two greedy searches."""
    sizes = {"validation": valid, "test": test, "general": general}
    texts = {name: range(size) for name, size in sizes.items()}
    run = Mock(Prepared, texts=texts, config=SimpleNamespace(beam=4))
    run.valid, run.test, run.general = texts.values()
    run.start = SimpleNamespace(parent="a bundle" if general else None)
    return run


PENALTY_AND_SCORES = ["validation", "validation"]


@pytest.mark.parametrize(
    ("texts", "searches", "expected"),
    [
        ({}, PENALTY_AND_SCORES, [1 / 2, 1]),
        ({"test": 20}, [*PENALTY_AND_SCORES, "test"], [1 / 4, 1 / 3, 1]),
        (
            {"general": 10},
            [*PENALTY_AND_SCORES, "general", "validation", "general"],
            [1 / 5, 1 / 4, 1 / 3, 1 / 2, 1],
        ),
    ],
)
def test_each_search_has_its_share_of_the_time_that_is_left(texts, searches, expected):
    run = prepared(10, **texts)
    scorer = Scorer(run, Deadline(60.0, clock=lambda: 0.0))

    shares = [scorer._share(len(run.texts[name])).left / 60 for name in searches]

    assert shares == pytest.approx(expected)
    cost = sum(2 * len(run.texts[name]) for name in searches)
    assert validations_of_the_end(run) == pytest.approx(1 + cost / 10)
