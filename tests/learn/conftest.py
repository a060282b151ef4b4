"""The checks run as learners run them: without the shapes' types, which tests elsewhere hold."""

import jaxtyping
import pytest


@pytest.fixture(autouse=True, scope="module")
def without_shape_types():
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", before)
