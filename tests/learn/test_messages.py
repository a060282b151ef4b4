"""The sentences of a verdict: numbers that differ, and the page that a learner reads."""

import io

import numpy as np
import pytest
from rich.console import Console

from glassformer.learn.judge import Judge
from glassformer.learn.lesson import Lesson, lesson
from glassformer.learn.messages import hint_text, print_verdict, solution_text
from glassformer.learn.verdict import Verdict

ATTENTION = lesson("attention")


def printed(verdict):
    out = io.StringIO()
    print_verdict(Console(file=out, width=60), lesson(verdict.lesson), verdict, "h: hint 2 of 3")
    return out.getvalue()


def test_a_wrong_verdict_has_its_lines_the_prints_and_a_hint():
    text = printed(
        Verdict(
            "attention",
            "law",
            ("A law.",),
            hole="scaled_dot_product_attention",
            printed="scores 7\n",
        )
    )
    assert text.splitlines() == [
        "1. Scaled dot-product attention: not right yet",
        "Your file prints:",
        "  scores 7",
        "A law.",
        "h: hint 2 of 3",
    ]


def test_a_hole_that_is_done_is_acknowledged():
    text = printed(Verdict("heads", "empty", ("…",), hole="MultiHeadAttention.merge"))
    line = "MultiHeadAttention.split right · now MultiHeadAttention.merge"
    assert " ".join(text.split()).startswith(f"4. Many heads: not written yet {line} (2 of")


def test_a_solution_is_a_diff_of_the_code_alone():
    text = solution_text(ATTENTION, ATTENTION.template)
    assert "+    weights = masked_softmax(scores, mask)" in text
    assert "-    raise NotImplementedError" in text
    assert "Equation 1" not in text
    assert "+    weights = masked_softmax(scores, mask)" in solution_text(ATTENTION, "def broken(:")


def test_a_hint_is_on_one_hole():
    title, text = hint_text(lesson("subwords"), "encode", 3).splitlines()
    assert title == "Hint 3 of 3, encode:"
    assert text == "subwords = characters(word); for pair in merges: subwords = …"
    title, *_ = hint_text(ATTENTION, "scaled_dot_product_attention", 1).splitlines()
    assert title == "Hint 1 of 3, Scaled dot-product attention:"


def test_a_lesson_has_hints_on_each_hole():
    record = lesson("padding").model_dump() | {"mistakes": {}}
    del record["hints"]["masked_softmax"]
    with pytest.raises(ValueError, match=r"hints of \['padding_mask'\]: expected the holes"):
        Lesson(**record)


def test_a_mistake_has_its_name_the_paper_the_effect_and_a_number():
    judge = Judge.of(ATTENTION, "scaled_dot_product_attention")
    lines = judge.verdict(judge.results(("mask-not-used",))).lines
    assert lines[0] == "The mask is not used."
    assert lines[1].startswith("Section 3.2.3")
    assert lines[2].startswith("In a translator: ")
    number = "Your weights[1, 0, 0, 0] is 0.2006; right is 0.4102 (105 of 210 numbers differ)."
    assert lines[3] == number
    assert lines[4].startswith("The input: the same, with a mask (2, 1, 1, 7)")


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda weights: weights[0], "The shape of your weights is (2,); right is (1, 2)."),
        (lambda weights: weights > 0, "The type of your weights is bool; right is float64."),
        (lambda weights: weights * 0, "Your weights: [[0, 0]]; right is [[0.8044, 0.1956]]."),
        (
            lambda weights: weights + 1e-6,
            "Your weights: [[0.804430683, 0.195571317]]; right is [[0.804429683, 0.195570317]].",
        ),
    ],
)
def test_the_first_number_that_differs(change, line):
    judge = Judge.of(ATTENTION, "scaled_dot_product_attention")
    results = {probe: dict(values) for probe, values in judge.right.items()}
    results["one_query"]["weights"] = change(np.array(results["one_query"]["weights"]))
    verdict = judge.verdict(results)
    assert verdict.outcome in ("difference", "law")
    assert line in verdict.lines


def test_numbers_that_differ_late_have_more_digits():
    judge = Judge.of(ATTENTION, "scaled_dot_product_attention")
    results = {probe: dict(values) for probe, values in judge.right.items()}
    results["one_query"]["output"] = results["one_query"]["output"] + 3e-8
    line = "Your output: [[11.9557032049]]; right is [[11.9557031749]]."
    assert judge.verdict(results).lines[0] == line
