"""The checks run as learners run them: without the shapes' types, which tests elsewhere hold."""

import pytest


@pytest.fixture(autouse=True, scope="module")
def as_learners_run_them(without_shape_types):
    """Each test of this folder."""
