"""The sentences of a verdict: numbers that differ, and the page that a learner reads."""

import io
import os
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from glassformer.tools.learn.check import probes_of
from glassformer.tools.learn.folder import Folder
from glassformer.tools.learn.judge import Judge
from glassformer.tools.learn.lesson import Lesson, lesson, lessons
from glassformer.tools.learn.messages import hint_text, next_command, print_solution, print_verdict
from glassformer.tools.learn.verdict import Verdict
from tests.lessons import ATTENTION

ONE_QUERY = probes_of("attention")["scaled_dot_product_attention"][0].__name__


def printed(verdict):
    out = io.StringIO()
    print_verdict(Console(file=out, width=80), lesson(verdict.lesson), verdict)
    return out.getvalue()


def solution(*arguments, width=80):
    out = io.StringIO()
    print_solution(Console(file=out, width=width), *arguments)
    return out.getvalue()


def test_a_wrong_verdict_has_its_lines_and_the_prints():
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
    ]


@pytest.mark.parametrize("prints", ["1\n" * 99, "1" * 2000, ("1" * 99 + "\n") * 20])
def test_long_prints_leave_the_verdict_on_the_screen(prints):
    text = printed(Verdict("attention", "law", ("A law.",), printed=prints))
    assert len(text.splitlines()) <= 10
    assert max(map(len, text.splitlines())) <= 80
    assert "…\nA law.\n" in text


@pytest.mark.parametrize(
    ("hole", "line"),
    [
        ("MultiHeadAttention.attend", "project_keys_and_values right · now attend (4 of 4)"),
        ("Encoder.forward", "EncoderBlock.forward right · now Encoder.forward (2 of 2)"),
    ],
)
def test_a_hole_that_is_done_is_acknowledged(hole, line):
    name = next(each.name for each in lessons() if hole in each.holes)
    assert printed(Verdict(name, "empty", ("…",), hole=hole)).splitlines()[1] == line


def test_a_solution_is_a_diff_of_the_bodies():
    text = solution(ATTENTION, ATTENTION.template)
    assert text.startswith(
        "--- your scaled_dot_product_attention\n"
        "+++ glassformer.model.attention.scaled_dot_product_attention\n"
        "-raise NotImplementedError\n"
        "+scores = query @ key.transpose(-2, -1) / math.sqrt(query.size(-1))\n"
    )
    assert all(question.answer in " ".join(text.split()) for question in ATTENTION.questions)


@pytest.mark.parametrize("file", ["def broken(:", "nul\0", ""])
def test_a_solution_beside_a_file_without_the_hole(file):
    assert "\n+weights = masked_softmax(scores, mask)\n" in solution(ATTENTION, file)


def test_a_solution_names_each_name_that_only_the_package_has():
    assert "does without them: F, dropout\n" in solution(ATTENTION, ATTENTION.template, width=99)
    assert "does without" not in solution(lesson("encoder"), lesson("encoder").template)


def test_a_solution_beside_right_code_says_so():
    out = io.StringIO()
    print_solution(Console(file=out), ATTENTION, ATTENTION.template, right=True)
    assert out.getvalue().startswith("Your code is right;")


def test_a_solution_of_one_hole_shows_no_other_and_no_answer():
    heads = lesson("heads")
    text = solution(heads, heads.template, "MultiHeadAttention.merge")
    assert "+return heads.transpose(-3, -2).flatten(-2)" in text
    assert "num_heads" not in text
    assert heads.questions[0].answer[:9] not in text


def test_the_packages_own_body_has_no_diff():
    right = "def penalty(length, alpha):\n    return ((5 + length) / 6) ** alpha\n"
    text = solution(lesson("beam"), right, "penalty")
    assert text.startswith("Your penalty is the package's.")


@pytest.mark.parametrize("width", [40, 60, 80])
def test_answers_are_broken_between_words(width):
    text = solution(ATTENTION, ATTENTION.template, width=width)
    assert all(len(line) <= width for line in text.partition("Multiply all")[2].splitlines())
    assert ATTENTION.questions[1].answer in " ".join(text.split())


def test_the_next_command_works_for_any_folder():
    folder = Folder(Path("my own & parts"))
    quoted = "glassformer learn hint 'my own & parts' attention"
    assert next_command(folder, ATTENTION, 0) == f"Next: {quoted}"
    assert next_command(folder, ATTENTION, 2) == f"Next: {quoted} --number 3"
    assert next_command(folder, ATTENTION, 3) == f"Next: {quoted.replace('hint', 'solution')}"


def test_commands_are_quoted_for_the_shell_of_windows(monkeypatch):
    folder = Folder(Path("my parts"))
    monkeypatch.setattr(os, "name", "nt")
    assert folder.command("status") == 'glassformer learn status "my parts"'
    assert folder.command() == 'glassformer learn "my parts"'


def test_a_hint_is_on_one_hole():
    assert hint_text(lesson("subwords"), "encode", 3).splitlines() == [
        "Hint 3 of 3, encode:",
        "subwords = characters(word)",
        "for pair in merges: subwords = …",
    ]
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
    seen, number, situation = lines[3:]
    assert seen == "A number of your weights should be 0: 1 at [0, 2]."
    assert number == "Your weights: [[0, 0, 1]]; right is [[1, 0, 0]]."
    assert situation.endswith("value [[10], [20], [30]], mask [[True, True, False]].")


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
    results[ONE_QUERY]["weights"] = change(np.array(results[ONE_QUERY]["weights"]))
    verdict = judge.verdict(results)
    assert verdict.outcome in ("difference", "law")
    assert line in verdict.lines


def test_numbers_that_differ_late_have_more_digits():
    judge = Judge.of(ATTENTION, "scaled_dot_product_attention")
    results = {probe: dict(values) for probe, values in judge.right.items()}
    results[ONE_QUERY]["output"] = results[ONE_QUERY]["output"] + 3e-8
    line = "Your output: [[11.9557032049]]; right is [[11.9557031749]]."
    assert judge.verdict(results).lines[2] == line
