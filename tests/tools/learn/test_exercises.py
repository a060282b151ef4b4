"""The harder exercises: independent oracles, solutions as people write them, and their place.

``exercises.md`` has the solutions, right ones and wrong ones, with their verdicts.
"""

import io
import json
import math
import re
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from sacrebleu.metrics import CHRF
from torch.nn import functional as F

from glassformer import Sampling, Translator, scaled_dot_product_attention
from glassformer.tools.cli.main import main
from glassformer.tools.learn import examine
from glassformer.tools.learn.check import measure, probes_of, values_of
from glassformer.tools.learn.edits import solution
from glassformer.tools.learn.examine import verdict_on
from glassformer.tools.learn.folder import Folder
from glassformer.tools.learn.hand_ins import cells_of
from glassformer.tools.learn.lesson import (
    EVERY,
    EXERCISES,
    LESSONS,
    known_mistakes,
    lesson,
    lessons,
)
from glassformer.tools.learn.lessons.grouped.plain import grouped_attention, pooled
from glassformer.tools.learn.lessons.minimum_risk.plain import minimum_risk, overlap
from glassformer.tools.learn.lessons.relative.plain import clipped_distances, relative_attention
from glassformer.tools.learn.lessons.rotary.plain import rotary_angles, rotary_attention, rotated
from glassformer.tools.learn.lessons.running.plain import running_attention, running_sum
from glassformer.tools.learn.parts import learned_parts
from glassformer.tools.learn.status import print_status
from glassformer.tools.learn.watch import watch
from glassformer.tools.learn.worker import answer_on
from tests import own_parts
from tests.test_own_parts import SPACE
from tests.tools.learn.test_solutions import SOLUTION, filled

SOLUTIONS = SOLUTION.findall(Path(__file__).with_name("exercises.md").read_text("utf-8"))


def right_file(chosen):
    """The learner's file with the right solution of each hole."""
    return filled(chosen.template, "\n\n".join(chosen.solutions().values()))


def verdict_of(chosen, text, directory):
    file = directory / chosen.file_name
    file.write_text(text, encoding="utf-8")
    return verdict_on(chosen, file, answer_on(file, chosen.name))


@pytest.mark.parametrize("name", EXERCISES)
def test_a_file_with_the_right_solution_passes(name, tmp_path):
    chosen = lesson(name)
    assert verdict_of(chosen, chosen.template, tmp_path).outcome == "empty"
    assert verdict_of(chosen, right_file(chosen), tmp_path).outcome == "right"


@pytest.mark.parametrize("name", EXERCISES)
def test_the_record_and_the_probes_fit(name):
    chosen, check = lesson(name), probes_of(name)
    assert list(check) == list(chosen.holes)
    assert chosen.source
    assert not chosen.section
    assert not chosen.hints
    every = [probe for probes in check.values() for probe in probes]
    assert len({probe.__name__ for probe in every}) == len(every)
    assert len(measure(every, solution(chosen))) == len(every)


@pytest.mark.parametrize("name", EXERCISES)
def test_the_verdict_on_each_solution(name, tmp_path, subtests):
    chosen = lesson(name)
    for _, wrong, code, shown in (each for each in SOLUTIONS if each[0] == name):
        with subtests.test(wrong=wrong):
            verdict = verdict_of(chosen, filled(right_file(chosen), code), tmp_path)
            assert verdict.outcome == shown
            assert (shown == "right") == wrong.startswith("right:")
            line = r"Line \d+: |TypeError: the function returns 2 values"
            if shown == "error":
                assert re.match(line, verdict.lines[0])
            elif shown != "right":
                said = ("; right is ", "You change ", "Your memory grows")
                assert any(each in line for each in said for line in verdict.lines)


def test_there_are_many_wrong_solutions_and_some_unusual_ones():
    counts = Counter((name, shown == "right") for name, _, _, shown in SOLUTIONS)
    assert all(counts[name, False] >= 6 and counts[name, True] >= 3 for name in EXERCISES)
    text = Path(__file__).with_name("exercises.md").read_text("utf-8")
    assert len(SOLUTIONS) == text.count("```python")


def test_two_values_in_the_place_of_one_are_named():
    probe = probes_of("rotary")["rotary_attention"][0]
    wrong = SimpleNamespace(rotary_attention=lambda *inputs: scaled_dot_product_attention(*inputs))
    with pytest.raises(TypeError, match="the function returns 2 values; expected the output"):
        values_of(probe, wrong)


# --- Independent oracles, and the numbers in the texts.


def drawn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("theirs", [own_parts.rotated, SPACE["rotated"]])
def test_rotary_positions_are_those_of_an_own_part_in_another_layout(theirs):
    x = drawn(2, 3, 5, 14)
    halves = torch.cat((x[..., 0::2], x[..., 1::2]), -1)
    turned = rotated(x, rotary_angles(torch.arange(4, 9), 14))
    ours = torch.cat((turned[..., 0::2], turned[..., 1::2]), -1)
    assert torch.allclose(ours, theirs(halves, start=4), atol=1e-5)


@given(place=st.integers(0, 500), other=st.integers(0, 500), shift=st.integers(0, 1000))
def test_rotary_scores_depend_on_the_difference_of_positions(place, other, shift):
    query, key = drawn(1, 14), drawn(1, 14, seed=1)

    def score(one, two):
        angles = rotary_angles(torch.tensor([one, two]), 14)
        return (rotated(query, angles[:1]) * rotated(key, angles[1:])).sum()

    assert torch.isclose(score(place, other), score(place + shift, other + shift), atol=1e-9)


def test_numbers_of_the_rotary_text():
    angles = rotary_angles(torch.tensor([0, 3]), 4)
    assert torch.allclose(angles, torch.tensor([[0, 0], [3, 0.03]], dtype=torch.float64))
    turned = rotated(torch.tensor([[1.0, 2, 3, 4]]), torch.tensor([[0, math.pi / 2]]))
    assert torch.allclose(turned, torch.tensor([[1.0, 2, -4, 3]]))
    query, value = torch.tensor([[[[1.0, 0.0]]]]), torch.tensor([[[[10.0], [20.0]]]])
    output = rotary_attention(query, query.expand(1, 1, 2, 2), value)
    assert output.item() == pytest.approx(15.8, abs=0.05)
    exact = rotary_angles(torch.tensor([1_000_000]), 64)
    rough = 1e6 / 10_000 ** (torch.arange(0, 64, 2).float() / 64)
    assert 0.01 < (exact - rough).abs().max() < 0.1


def test_a_step_with_a_cache_is_the_last_row_of_the_whole():
    query, key, value = drawn(2, 3, 7, 14), drawn(2, 3, 7, 14, seed=1), drawn(2, 3, 7, 5, seed=2)
    table, causal = drawn(5, 14, seed=3), torch.ones(7, 7).tril().bool()
    whole = rotary_attention(query, key, value, causal)
    assert torch.allclose(rotary_attention(query[:, :, 6:], key, value), whole[:, :, 6:])
    whole = relative_attention(query, key, value, table, causal)
    assert torch.allclose(relative_attention(query[:, :, 6:], key, value, table), whole[:, :, 6:])


@pytest.mark.parametrize("groups", [1, 2, 3, 6])
def test_grouped_queries_are_those_of_torch(groups):
    query, key, value = drawn(2, 6, 5, 8), drawn(2, groups, 7, 8), drawn(2, groups, 7, 4, seed=2)
    mask = drawn(2, 1, 5, 7, seed=3) > -1
    theirs = F.scaled_dot_product_attention(query, key, value, mask, enable_gqa=True)
    assert torch.allclose(grouped_attention(query, key, value, mask), theirs)
    if groups == 6:
        ours, _ = scaled_dot_product_attention(query, key, value, mask)
        assert torch.allclose(ours, theirs)


def test_pooling_equal_heads_changes_no_output():
    x, weights, groups = drawn(3, 5, 8), [drawn(2, 4, 8, seed=seed) for seed in (1, 2)], 2
    query = drawn(3, 6, 5, 4, seed=3)
    by_head = [weight.repeat_interleave(3, dim=0).flatten(0, 1) for weight in weights]
    key, value = ((x @ each.T).unflatten(-1, (6, 4)).transpose(1, 2) for each in by_head)
    whole, _ = scaled_dot_product_attention(query, key, value)
    by_group = [pooled(each, 6, groups) for each in by_head]
    key, value = ((x @ each.T).unflatten(-1, (2, 4)).transpose(1, 2) for each in by_group)
    assert torch.allclose(grouped_attention(query, key, value), whole)


def test_numbers_of_the_text_on_grouped_queries():
    weight = torch.tensor([[1.0], [3.0], [10.0], [20.0]])
    assert pooled(weight, 4, 2).tolist() == [[2], [15]]
    seven = torch.full((1, 1, 1, 1), 7.0, dtype=torch.float64)
    output = grouped_attention(drawn(1, 2, 1, 4), drawn(1, 1, 1, 4), seven)
    assert output.flatten().tolist() == [7, 7]
    bytes_kept = 32 * 1000 * 6 * (8 * 64 * 2) * 2
    assert bytes_kept == pytest.approx(393e6, rel=1e-3)


@given(lengths=st.lists(st.integers(1, 4), min_size=1, max_size=6), seed=st.integers(0, 99))
def test_a_running_softmax_is_a_softmax_whatever_the_blocks(lengths, seed):
    keys = sum(lengths)
    query, key, value = drawn(2, 3, 4), 30 * drawn(2, keys, 4, seed=seed), drawn(2, keys, 5)
    mask = drawn(2, 3, keys, seed=seed + 1) > 0
    parts = (each.split(lengths, dim) for each, dim in ((key, -2), (value, -2), (mask, -1)))
    output = running_attention(query, zip(*parts, strict=True))
    whole, _ = scaled_dot_product_attention(query, key, value, mask)
    assert torch.allclose(output, whole)


@given(st.lists(st.floats(-800, 800), min_size=1, max_size=30))
def test_a_running_sum_is_a_logsumexp(scores):
    largest, total = running_sum(iter(scores))
    whole = torch.tensor(scores, dtype=torch.float64).logsumexp(0).item()
    assert largest + math.log(total) == pytest.approx(whole)


def test_numbers_of_the_text_on_the_running_softmax():
    assert running_sum([1, 3, 2]) == (3, pytest.approx(1.503, abs=0.001))
    key, value = torch.tensor([[0.0], [math.log(3)]]), torch.tensor([[10.0], [20.0]])
    blocks = ((key[each], value[each], None) for each in (slice(1), slice(1, 2)))
    assert running_attention(torch.ones(1, 1), blocks).item() == pytest.approx(17.5)
    assert sum(1 / number for number in range(1, 1001)) == pytest.approx(7.49, abs=0.01)


@pytest.mark.parametrize(("q_len", "k_len", "most"), [(5, 5, 2), (2, 7, 3), (1, 9, 1), (4, 4, 9)])
def test_relative_positions_are_equation_4_pair_by_pair(q_len, k_len, most):
    query, key, value = (drawn(2, 3, n, 4, seed=n) for n in (q_len, k_len, k_len))
    table = drawn(2 * most + 1, 4, seed=9)
    scores = torch.empty(2, 3, q_len, k_len, dtype=torch.float64)
    for row in range(q_len):
        for j in range(k_len):
            distance = max(-most, min(most, j - (k_len - q_len + row)))
            vector = key[..., j, :] + table[distance + most]
            scores[..., row, j] = (query[..., row, :] * vector).sum(-1) / 2
    output = relative_attention(query, key, value, table)
    assert torch.allclose(output, scores.softmax(-1) @ value)


def test_numbers_of_the_text_on_relative_positions():
    assert clipped_distances(2, 3, 1).tolist() == [[0, 1, 2], [0, 0, 1]]
    key, value = torch.zeros(1, 1, 2, 1), torch.tensor([[[[10.0], [20.0]]]])
    table = torch.tensor([[0.0], [math.log(3)], [5.0]])
    output = relative_attention(torch.ones(1, 1, 1, 1), key, value, table)
    assert output.item() == pytest.approx(17.5)
    one = relative_attention(*(drawn(1, 1, 5, 4, seed=n) for n in range(3)), drawn(1, 4))
    plain, _ = scaled_dot_product_attention(*(drawn(1, 1, 5, 4, seed=n) for n in range(3)))
    assert torch.allclose(one, plain)  # one vector for all distances changes nothing


@given(st.text("abc", max_size=9), st.text("abc", max_size=9))
def test_the_overlap_of_words_is_a_chrf_of_letters(hypothesis, reference):
    words = " ".join(hypothesis), " ".join(reference)
    if hypothesis and reference:
        score = CHRF(char_order=1, word_order=0, beta=1).sentence_score(hypothesis, [reference])
        assert overlap(*words) == pytest.approx(score.score / 100)
    else:
        assert overlap(*words) == (hypothesis == reference)


def test_numbers_of_the_text_on_minimum_risk():
    assert overlap("the cat sat", "the cat ran") == pytest.approx(0.667, abs=0.001)
    assert minimum_risk(["a b", "a b", "c"], overlap) == ("a b", [0.5, 0.5, 0])
    texts = ["a", "b", "c", "b"]
    assert minimum_risk(texts, lambda one, other: float(one == other))[0] == "b"


def test_a_translator_draws_the_samples_that_the_text_names(bundle_directory):
    translator = Translator.load(bundle_directory)
    [drawn_twenty] = translator.translate(["A dog runs."], sampling=Sampling(), n_best=20)
    assert len([drawn_twenty.text, *drawn_twenty.alternatives]) == 20


# --- Their place beside the lessons.


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The files as they are at first; a check runs them in this process."""
    here = SimpleNamespace(answer=lambda chosen, file: answer_on(file, chosen.name))
    monkeypatch.setattr(examine, "Worker", lambda: nullcontext(here))
    folder = Folder(tmp_path / "lessons")
    folder.make()
    return folder


def learn(folder, names):
    for name in names:
        chosen = lesson(name)
        text = right_file(chosen) if name in EXERCISES else chosen.template
        folder.file(chosen).write_text(text, encoding="utf-8")
        folder.note_right(chosen, text.encode())


def test_their_files_follow_those_of_the_lessons(folder):
    names = sorted(path.name for path in folder.path.glob("*.py"))
    assert names[14:17] == ["15_whole.py", "16_rotary.py", "17_grouped.py"]
    assert names[-1] == "20_minimum_risk.py"
    assert lesson("16") == lesson("rotary")


def test_a_folder_of_an_older_program_gets_their_files(folder):
    for chosen in lessons(EXERCISES):
        folder.file(chosen).unlink()
    folder.file(lesson("attention")).write_text("mine", encoding="utf-8")
    assert Folder(folder.path).checked().make() == [
        folder.file(each) for each in lessons(EXERCISES)
    ]
    assert folder.file(lesson("attention")).read_text(encoding="utf-8") == "mine"


def test_a_check_of_an_older_folder_says_how_to_get_the_file(tmp_path, capsys):
    Folder(tmp_path).reset(lesson("attention"))
    assert main(["learn", "check", str(tmp_path), "rotary"]) == 1
    line = f"16_rotary.py: no such file; this makes it: glassformer learn {tmp_path}"
    assert line in capsys.readouterr().err


def test_the_walk_counts_the_lessons_alone(folder):
    learn(folder, LESSONS)
    assert folder.next_lesson() is None
    learn(folder, EXERCISES)
    assert folder.learned_names() == set(EVERY)
    folder.file(lesson("padding")).write_text("changed", encoding="utf-8")
    assert folder.next_lesson() == lesson("padding")
    assert len(cells_of([])) == len(LESSONS)


def test_a_translator_is_trained_without_them(folder):
    learn(folder, EXERCISES)
    assert learned_parts(folder) == []
    assert not set(EXERCISES) & {each.name for each in known_mistakes().values()}


def test_the_watch_names_them_after_the_last_lesson(folder):
    learn(folder, LESSONS)
    out = io.StringIO()
    watch(folder, Console(file=out, width=80))
    assert out.getvalue().splitlines()[1:] == [
        "Harder exercises without hints follow: rotary, grouped, running, relative, ",
        "minimum_risk",
        "The watch checks each of them at a save.",
    ]


def test_the_status_has_a_line_for_them(folder):
    learn(folder, ["grouped"])
    out = io.StringIO()
    print_status(Console(file=out, width=80), folder)
    line = "Harder: [ ] rotary  [x] grouped  [ ] running  [ ] relative  [ ] minimum_risk"
    assert line in out.getvalue().splitlines()


def test_check_hint_and_solution_of_one(folder, capsys):
    assert main(["learn", "check", str(folder.path), "16"]) == 1
    printed = capsys.readouterr().out
    assert printed.startswith("16. Rotary positions: not written yet\n")
    following = f"Next: glassformer learn solution {folder.path} rotary\n"
    assert printed.endswith(following)
    assert main(["learn", "hint", str(folder.path), "rotary"]) == 0
    no_hints = "Rotary positions: a harder exercise has no hints.\n"
    assert capsys.readouterr().out == no_hints + following
    assert main(["learn", "solution", str(folder.path), "rotary"]) == 0
    assert "+cos, sin = angles.cos().to(x.dtype), angles.sin()" in capsys.readouterr().out
    learn(folder, ["minimum_risk"])
    assert main(["learn", "check", str(folder.path), "minimum_risk", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["outcome"] == "right"


def test_a_list_has_them_under_their_own_heading(capsys):
    assert main(["learn", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    heading = lines.index("Harder exercises, without hints")
    assert lines[heading - 2].startswith("    Afterwards you know how figure 1")
    title = "16. Rotary positions (Su et al. 2021, section 3.2, 40 minutes, hard)"
    assert lines[heading + 1] == title


def test_lessons_have_a_section_and_hints_as_before():
    assert all(each.section and each.hints and each.mistakes for each in lessons())
    assert [each.number for each in lessons(EVERY)] == list(range(1, 21))
