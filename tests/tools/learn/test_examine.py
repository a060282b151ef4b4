"""A learner's file, whatever it does: the verdict is true.

A file that ends Python, runs for ever or changes torch runs in a process of its own here, too.
"""

import errno
import shutil
from types import SimpleNamespace

import numpy as np
import pytest

from glassformer.support.errors import InputError
from glassformer.tools.learn import examine as examine_module
from glassformer.tools.learn import folder as folder_module
from glassformer.tools.learn.check import probes_of
from glassformer.tools.learn.examine import Worker, checked_verdict, verdict_on
from glassformer.tools.learn.folder import Folder
from glassformer.tools.learn.judge import Judge
from glassformer.tools.learn.lesson import lesson
from glassformer.tools.learn.source import body_of, read_source
from glassformer.tools.learn.worker import answer_on
from tests.lessons import ATTENTION, HOLE, RIGHT
from tests.tables import every


@pytest.fixture
def file_of(tmp_path):
    """The first lesson's file with this body in its hole, and these last lines."""

    def file_of(body=RIGHT, end=""):
        file = tmp_path / ATTENTION.file_name
        file.write_text(ATTENTION.template.replace(HOLE, body) + end, encoding="utf-8")
        return file

    return file_of


@pytest.fixture
def verdict_of(file_of):
    """The verdict on such a file, which runs in this process."""

    def verdict(body=RIGHT, end=""):
        file = file_of(body, end)
        return verdict_on(ATTENTION, file, answer_on(file, ATTENTION.name))

    return verdict


@pytest.fixture
def verdict_of_a_worker(file_of):
    """The verdict on such a file, which runs in a process of its own."""

    def verdict(body=RIGHT, end=""):
        file = file_of(body, end)
        with Worker() as worker:
            return verdict_on(ATTENTION, file, worker.answer(ATTENTION, file))

    return verdict


def test_a_mistake_by_its_name(verdict_of):
    verdict = verdict_of(RIGHT.replace(" / math.sqrt(query.size(-1))", ""))
    assert verdict.mistakes == (("scale-missing",),)
    assert verdict.lines[0] == "The scores are not divided by √d_k."
    assert "query [[3, 1]]" in verdict.lines[-1]
    assert verdict.hole == "scaled_dot_product_attention"


def test_a_hole(verdict_of):
    verdict = verdict_of(HOLE)
    assert verdict.outcome == "empty"
    assert verdict.lines == ("scaled_dot_product_attention is not written yet.",)


def test_a_mark_beside_the_learners_lines_is_named(verdict_of):
    verdict = verdict_of(HOLE + RIGHT)
    assert verdict.outcome == "empty"
    line = 1 + ATTENTION.template.splitlines().index(HOLE.rstrip("\n"))
    assert verdict.lines == (f"Line {line} still has {HOLE.strip()}: delete it.",)
    assert verdict.hole == "scaled_dot_product_attention"


def test_prints_are_shown_and_a_flood_of_them_is_cut(verdict_of):
    verdict = verdict_of('    print("scores", 7)\n' + RIGHT)
    assert verdict.printed.startswith("scores 7\n")
    verdict = verdict_of("    for _ in range(2_000): print('flood' * 100)\n" + RIGHT)
    assert verdict.outcome == "right"
    assert len(verdict.printed) == 2_000


def test_a_print_is_shown_once_though_each_probe_runs_twice(file_of):
    for name, begin in (("one", ""), ("all", "    print('again')\n")):
        answer = answer_on(file_of(begin + RIGHT), ATTENTION.name)
        probes = next(iter(probes_of(ATTENTION.name).values()))
        calls = sum(1 + bool(getattr(each, "situation", {}).get("asked")) for each in probes)
        assert answer["printed"].count("again") == (calls if begin else 0), name


def test_an_error_with_its_line_and_the_shapes_there(verdict_of):
    verdict = verdict_of("    scores = query @ key\n" + RIGHT)
    assert verdict.outcome == "error"
    text = "\n".join(verdict.lines)
    assert "scores = query @ key" in text
    assert "query is (1, 2)\nkey is (3, 2)\nThe input: query [[300, 100]]" in text


@every(
    ("body", "words"),
    [
        ("    return (\n", "SyntaxError"),
        ("    import sys; sys.exit(0)\n", "SystemExit"),
        ("    raise KeyboardInterrupt\n", "KeyboardInterrupt"),
        ("    return query @ key.transpose(-2, -1)\n", "returns Tensor; expected output, weights"),
        (
            "    query @ key.transpose(-2, -1)\n",
            "returns nothing: a return is missing",
        ),
        ("    return torch_zeros\n", "NameError"),
        ("    return scaled_dot_product_attention(query, key, value, mask)\n", "RecursionError"),
    ],
)
def test_what_fails_is_an_error_in_words(verdict_of, body, words):
    verdict = verdict_of(body)
    assert verdict.outcome == "error"
    assert words in "\n".join(verdict.lines)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("    import os; os._exit(0)\n", "ended Python"),
        ("    input()\n", "a check has no keyboard"),
        ("    big = bytearray(20 << 30)\n", "MemoryError"),
    ],
)
def test_what_takes_the_process_along_is_an_error_in_words(verdict_of_a_worker, body, words):
    verdict = verdict_of_a_worker(body)
    assert verdict.outcome == "error"
    assert words in "\n".join(verdict.lines)


def test_an_error_of_the_file_itself(verdict_of):
    verdict = verdict_of(end="\nundefined_name\n")
    assert verdict.outcome == "error"
    assert "undefined_name" in verdict.lines[0]


def test_one_endless_computation_is_ended_and_its_line_is_named(verdict_of_a_worker, monkeypatch):
    monkeypatch.setattr(examine_module, "SECONDS", 1)
    verdict = verdict_of_a_worker("    pow(3, 10 ** 10)\n")
    assert verdict.outcome == "error"
    assert "runs for ever" in verdict.lines[0]
    assert verdict.lines[0].endswith(", pow(3, 10 ** 10)")


def test_a_file_that_cannot_be_ended_from_inside_is_ended(verdict_of_a_worker, monkeypatch):
    monkeypatch.setattr(examine_module, "SECONDS", 1)
    monkeypatch.setattr(examine_module, "_STARTING", 3)
    verdict = verdict_of_a_worker(
        "    import faulthandler; faulthandler.cancel_dump_traceback_later()\n"
        "    import threading; threading.Event().wait()\n"
    )
    assert verdict.lines == ("Your code runs for ever, or far too long.",)


def test_a_thread_of_the_learners_delays_no_verdict(file_of):
    """The process ends by itself, not by its time limit."""
    file = file_of(
        end="\nimport threading\nthreading.Thread(target=threading.Event().wait).start()\n"
    )
    with Worker() as worker:
        assert verdict_on(ATTENTION, file, worker.answer(ATTENTION, file)).outcome == "right"
        assert worker._process.returncode == 0


def test_a_missing_function(verdict_of, tmp_path):
    verdict = verdict_of(end="\ndel scaled_dot_product_attention\n")
    assert "scaled_dot_product_attention is missing" in verdict.lines[0]
    reset = f"glassformer learn reset {tmp_path} attention"
    assert verdict.lines[1:] == ("This makes the file anew, and keeps your version:", reset)


def test_the_packages_own_function_is_not_the_learners(verdict_of):
    verdict = verdict_of(HOLE, "\nfrom glassformer import scaled_dot_product_attention\n")
    assert verdict.outcome == "error"
    assert verdict.lines[0].startswith(
        "scaled_dot_product_attention is missing: the file has no function"
    )


def test_a_decorated_function_is_the_learners(verdict_of):
    end = "\nimport functools\n"
    end += "scaled_dot_product_attention = functools.cache(scaled_dot_product_attention)\n"
    assert verdict_of(end=end).outcome == "right"


def test_a_patched_torch_changes_nothing_here(verdict_of_a_worker, verdict_of):
    patch = "\nimport torch\ntorch.Tensor.softmax = lambda self, dim: self * 0\n"
    verdict = verdict_of_a_worker(RIGHT, patch)
    assert verdict.outcome in ("law", "difference", "mistake")
    assert verdict_of().outcome == "right"


def test_a_wrong_mask_argument_is_seen_in_the_smallest_probe(verdict_of):
    verdict = verdict_of(RIGHT.replace("masked_softmax(scores, mask)", "scores.softmax(-1)"))
    assert verdict.mistakes == (("mask-not-used",),)


def test_a_file_that_is_not_there(tmp_path):
    message = f"none.py: no such file; this makes it: glassformer learn {tmp_path}$"
    with Worker() as worker, pytest.raises(InputError, match=message):
        worker.answer(ATTENTION, tmp_path / "none.py")


def test_a_right_file_is_learned_until_it_is_edited(tmp_path):
    folder = Folder(tmp_path / "lessons")
    assert len(folder.make()) > 1
    assert folder.next_lesson() == ATTENTION
    file = folder.file(ATTENTION)
    file.write_text(ATTENTION.template.replace(HOLE, RIGHT), encoding="utf-8")
    here = SimpleNamespace(answer=lambda chosen, file: answer_on(file, chosen.name))
    assert checked_verdict(folder, ATTENTION, here).outcome == "right"
    assert folder.learned(ATTENTION)
    assert folder.next_lesson() == lesson("2")
    assert folder.next_lesson(after=lesson("15")) == lesson("2")
    assert folder.make() == []
    file.write_text(file.read_text(encoding="utf-8") + "# more\n", encoding="utf-8")
    assert not folder.learned(ATTENTION)
    shutil.rmtree(folder.path)
    assert not folder.learned(ATTENTION)


def test_a_folder_for_reading_alone_gets_its_verdict(file_of, monkeypatch):
    folder = Folder(file_of().parent)
    here = SimpleNamespace(answer=lambda chosen, file: answer_on(file, chosen.name))

    def refuse(path, _):
        raise OSError(errno.EROFS, "Read-only file system", str(path))

    monkeypatch.setattr(folder_module, "write_atomically", refuse)
    verdict = checked_verdict(folder, ATTENTION, here)
    assert verdict.outcome == "right"
    note = f"Not noted as learned: {folder.path / '.learned.json'}: Read-only file system"
    assert verdict.lines == (note,)


OUTPUT = RIGHT.replace("return weights @ value, weights", "output = weights @ value")


@pytest.mark.parametrize(
    "cut",
    [
        "    return output.detach(), weights.detach()\n",
        "    return output.data, weights.data\n",
        "    return tuple(torch.from_numpy(x.detach().numpy()) for x in (output, weights))\n",
    ],
)
def test_a_part_that_nothing_learns_through_is_not_right(verdict_of, cut):
    verdict = verdict_of(OUTPUT + cut, "import torch\n")
    assert verdict.outcome == "law"
    assert verdict.lines[0].startswith("Nothing learns through your code")


def test_a_part_that_learns_from_some_inputs_alone_is_not_right(verdict_of):
    verdict = verdict_of(RIGHT.replace("weights @ value,", "weights.detach() @ value,"))
    assert verdict.outcome == "law"
    assert verdict.lines[:2] == (
        "All your values are right, and the gradients with respect to value.",
        "A gradient is wrong with respect to query and key.",
    )
    assert verdict.lines[2] == "No gradient comes back to query and key through your output."


def test_two_calls_that_differ_are_not_right(verdict_of):
    dropped = RIGHT.replace("weights @ value", "torch.dropout(weights, 0.1, True) @ value")
    verdict = verdict_of(dropped, "import torch\n")
    assert verdict.outcome == "law"
    assert verdict.lines[0].startswith("Two calls with the same input give different values")


def test_an_error_is_shown_at_the_line_of_the_hole(verdict_of):
    body = RIGHT.replace("masked_softmax(scores, mask)", "helper(scores)")
    verdict = verdict_of(body, "\n\ndef helper(scores):\n    return scores.no_such_method()\n")
    assert verdict.lines[0].endswith("weights = helper(scores)")


@every("encoding", ["utf-8-sig", "latin-1", "cp1252", "utf-16"])
@every("line", ["\n", "\r\n"])
def test_a_file_in_any_encoding_is_judged(file_of, encoding, line):
    file = file_of(RIGHT, '"""größer"""\n')
    text = file.read_text(encoding="utf-8").replace("√", "").replace("\n", line)
    file.write_bytes(text.encode(encoding, "replace"))
    assert verdict_on(ATTENTION, file, answer_on(file, ATTENTION.name)).outcome == "right"
    assert body_of(read_source(file), "scaled_dot_product_attention").startswith("scores = query @")


def test_a_file_that_is_no_text_has_an_error_without_a_line(file_of):
    file = file_of(end="\0")
    verdict = verdict_on(ATTENTION, file, answer_on(file, ATTENTION.name))
    assert verdict.outcome == "error"
    assert "null bytes" in verdict.lines[0]


def test_a_file_of_the_name_of_a_library_does_not_take_its_place(file_of, monkeypatch):
    file = file_of()
    (file.parent / "torch.py").write_text("raise ImportError('not torch')\n")
    monkeypatch.chdir(file.parent)
    with Worker() as worker:
        assert verdict_on(ATTENTION, file, worker.answer(ATTENTION, file)).outcome == "right"


def test_an_answer_that_is_none_ends_in_a_verdict(tmp_path):
    """A file can write its own answer, or the lines at which it has stopped."""
    file = tmp_path / "01_attention.py"
    file.write_text("x = 1\n")

    forged = verdict_on(lesson("attention"), file, {})
    beyond = verdict_on(
        lesson("attention"), file, {"log": 'Timeout\n  File "01_attention.py", line 5001 in f'}
    )

    assert (forged.outcome, forged.lines) == (
        "error",
        ("No check can read the file's answer (KeyError: 'results').",),
    )
    assert beyond.lines == ("Your code runs for ever, or far too long: it was at line 5001",)


def test_none_in_the_place_of_numbers_is_said():
    judge = Judge.of(lesson("attention"), "scaled_dot_product_attention")
    results = {name: dict(values) for name, values in judge.right.items()}
    for values in results.values():
        values["weights"] = np.asarray("None")

    verdict = judge.verdict(results)

    assert verdict.outcome == "difference"
    assert verdict.lines[0].startswith("Your weights: None; right are numbers of shape (")
