"""Both starts can take each other's place."""

import inspect

import pytest

from glassformer.training.setup.start import Parent, Scratch

METHODS = [name for name, value in vars(Scratch).items() if inspect.isfunction(value)]
METHODS = [name for name in METHODS if not name.startswith("_")]


@pytest.mark.parametrize("name", METHODS)
def test_both_starts_take_the_same_values(name):
    scratch, parent = (inspect.signature(getattr(start, name)) for start in (Scratch, Parent))
    assert len(scratch.parameters) == len(parent.parameters)


def test_both_starts_answer_the_same_questions():
    questions = {*METHODS, "normalisation", "languages", "parent", "parts"}
    for start in (Scratch, Parent):
        assert questions <= {*dir(start), *start.__dataclass_fields__}
