"""What all tests run with: a time limit, checks of shapes, tables of cases, the part of --fast."""

from contextlib import contextmanager
from types import SimpleNamespace

import pytest
import torch
from jaxtyping import TypeCheckError

from glassformer.model.attention import MultiHeadAttention
from glassformer.model.masks import check_mask, padding_mask
from tests.fast import SLOW, TESTS, is_slow
from tests.shapes import FIRST
from tests.tables import every


def test_a_test_that_hangs_ends(pytestconfig):
    assert 0 < pytestconfig.getini("faulthandler_timeout") <= 900
    assert pytestconfig.getini("faulthandler_exit_on_timeout")
    assert pytestconfig.getoption("maxworkerrestart") == "0"


def test_functions_and_methods_refuse_a_tensor_of_another_shape():
    with pytest.raises(TypeCheckError, match="padding_mask"):
        padding_mask(torch.tensor([5, 6, 0]), 0)
    with pytest.raises(TypeCheckError, match="forward"):
        MultiHeadAttention(6, 2)(*[torch.zeros(3, 5, 6)] * 2, torch.zeros(2, 5, 6))


def test_the_first_calls_in_a_test_are_checked_and_then_one_in_as_many():
    refused = []
    for call in range(1, 3 * FIRST):
        try:
            padding_mask(torch.tensor([5, 6, 0]), 0)
        except TypeCheckError:
            refused.append(call)
        except ValueError:  # the function's own
            pass
    assert refused == [*range(1, FIRST + 1), 2 * FIRST]


def test_a_function_without_a_tensor_is_not_wrapped():
    assert hasattr(padding_mask, "__wrapped__")
    assert not hasattr(check_mask, "__wrapped__")


def test_a_table_checks_each_row_and_reports_those_that_fail():
    checked, failed = [], []

    @contextmanager
    def subtest(**values):
        try:
            yield
        except AssertionError:
            failed.append(values)

    @every(("one", "other"), [(1, 1), (1, 2), (3, 3), (4, 5)])
    def check(one, other):
        checked.append(one)
        assert one == other

    check(SimpleNamespace(test=subtest))

    assert checked == [1, 1, 3, 4]
    assert failed == [{"one": 1, "other": 2}, {"one": 4, "other": 5}]


def test_fast_keeps_a_part_of_every_room():
    for room in TESTS.iterdir():
        files = list(room.rglob("test_*.py"))
        assert room.name == "system" or not files or not all(map(is_slow, files)), room


def test_fast_names_files_and_tests_that_are_there():
    for slow in SLOW:
        name, _, test = slow.partition("::")
        assert (TESTS / name).exists(), slow
        assert not test or f"def {test}(" in (TESTS / name).read_text("utf-8"), slow
