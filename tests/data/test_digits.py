"""Forms of numbers: a model reads the forms of its training, and no other."""

import re

from hypothesis import given
from hypothesis import strategies as st

from glassformer.data.corpus import Pair
from glassformer.data.digits import joints_of, unknown_numbers
from glassformer.data.known import Known
from tests.tables import every

LEARNT = ("15:30", "3rd", "1,250.00", "50%", "A-10", "2036")
FORM = st.from_regex(
    r"[0-9]{1,4}|[a-z]{1,5}|[0-9]{1,2}[:.,/-][0-9]{2}|[a-z]-[0-9]{2}", fullmatch=True
)


def numbers_in(text, learnt):
    joints = frozenset().union(*map(joints_of, learnt))
    return [match.group() for match in re.finditer(unknown_numbers(joints), text)]


@given(st.lists(FORM, min_size=1, max_size=6))
def test_a_form_of_the_training_is_read(forms):
    assert numbers_in(" ".join(forms), forms) == []


@every(
    ("number", "unknown"),
    [
        ("9:45", []),
        ("2nd", []),
        ("9,000.5", []),
        ("7%", []),
        ("B-2", []),
        ("12345", ["12345"]),
        ("9/45", ["9/45"]),
        ("C3PO", ["C3PO"]),
        ("5°", ["5°"]),
        ("2-0", ["2-0"]),
        ("(9/45).", ["9/45"]),
        ("x;9/45;y", ["9/45"]),
        ("1.A man", []),
        ("型号9/45号", ["9/45"]),
        ("1\ufe0f\u20e3", []),
    ],
)
def test_a_number_is_opaque_if_the_training_had_no_number_of_its_form(number, unknown):
    assert numbers_in(number, LEARNT) == unknown


@every("text", ["1," * 20_000, "a1" * 20_000, "1" + "-" * 40_000 + "1", "a.b" * 15_000 + "1"])
def test_a_long_text_of_signs_comes_to_an_end(text):
    Known.of([Pair(" ".join(LEARNT), "x")] * 9).spans_in(text)
