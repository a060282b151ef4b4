"""Learners' files: each attempt of walk.md and each solution of solutions.md gets its verdict.

The two files have the verdicts' names: a better sentence of a check breaks nothing.
"""

import ast
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from glassformer.tools.learn.adapters import UNUSED
from glassformer.tools.learn.examine import verdict_on
from glassformer.tools.learn.folder import Folder
from glassformer.tools.learn.lesson import LESSONS, lesson, lessons
from glassformer.tools.learn.worker import answer_on

HERE = Path(__file__).parent
CODE = r"```python\n(.*?)```\ncheck: ([^\n]*)\n"
SECTION = re.compile(r"^## Lesson (\d+)$", re.MULTILINE)
ATTEMPT = re.compile(CODE, re.DOTALL)
SOLUTION = re.compile(rf"^(\w+): ([^\n]*)\n{CODE}", re.MULTILINE | re.DOTALL)


def attempts():
    """The attempts at each lesson with their verdicts, by the lesson's number."""
    _, *parts = SECTION.split((HERE / "walk.md").read_text(encoding="utf-8"))
    numbers, texts = parts[0::2], parts[1::2]
    return dict(zip(numbers, map(ATTEMPT.findall, texts), strict=True))


def solutions():
    """Each solution: its lesson, what is wrong with it, its functions, and the verdict."""
    return SOLUTION.findall((HERE / "solutions.md").read_text(encoding="utf-8"))


def right_file(chosen):
    """The learner's file at the end of the walk."""
    text = chosen.template
    for attempt, _ in attempts()[str(chosen.number)]:
        text = filled(text, attempt)
    return text


def verdict_of(chosen, text, directory):
    """The verdict on a file, by name: the mistakes, or the outcome."""
    file = directory / chosen.file_name
    file.write_text(text, encoding="utf-8")
    verdict = verdict_on(chosen, file, answer_on(file, chosen.name))
    if verdict.mistakes:
        return " or ".join(" + ".join(mistake) for mistake in verdict.mistakes)
    return verdict.outcome


def filled(template, attempt):
    """The learner's file with the attempt's functions in the place of those before."""
    for node in ast.parse(attempt).body:
        source = ast.get_source_segment(attempt, node)
        if isinstance(node, ast.Import | ast.ImportFrom):
            template = f"{source}\n{template}"
        elif isinstance(node, ast.ClassDef):
            for method in node.body:
                template = with_function(template, attempt, method, [node.name, method.name])
        elif f"def {node.name}(" in template:
            template = with_function(template, attempt, node, [node.name])
        else:
            template += f"\n\n{source}\n"
    return template


def with_function(template, attempt, new, path):
    """The file with a function's new body below its docstring; with its head if names differ."""
    old = ast.parse(template)
    for name in path:
        old = next(each for each in old.body if getattr(each, "name", None) == name)
    body = "\n".join(attempt.splitlines()[new.body[0].lineno - 1 : new.end_lineno])
    lines = template.splitlines()
    first = old.body[1 if ast.get_docstring(old) else 0]
    indent = " " * first.col_offset
    lines[first.lineno - 1 : old.end_lineno] = [textwrap.indent(textwrap.dedent(body), indent)]
    if [each.arg for each in old.args.args] != [each.arg for each in new.args.args]:
        head = f"{indent[4:]}def {new.name}({ast.unparse(new.args)}):"
        lines[old.lineno - 1 : old.body[0].lineno - 1] = [head]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("number", [str(number + 1) for number in range(len(LESSONS))])
def test_the_verdict_on_each_attempt(number, tmp_path):
    chosen, steps = lesson(number), attempts()[number]
    text, verdicts = chosen.template, []
    for attempt, _ in steps:
        text = filled(text, attempt)
        verdicts.append(verdict_of(chosen, text, tmp_path))
    assert verdicts == [shown for _, shown in steps]
    assert [verdict == "right" for verdict in verdicts] == [False] * (len(steps) - 1) + [True]


@pytest.mark.parametrize("name", LESSONS)
def test_the_verdict_on_each_solution(name, tmp_path, subtests):
    chosen = lesson(name)
    for _, wrong, code, shown in (each for each in solutions() if each[0] == name):
        with subtests.test(wrong=wrong):
            assert (shown == "right") == wrong.startswith("right")
            assert verdict_of(chosen, filled(right_file(chosen), code), tmp_path) == shown


def test_every_solution_is_read():
    text = (HERE / "solutions.md").read_text(encoding="utf-8")
    assert len(solutions()) == text.count("```python") > 70


def test_all_parts_of_the_walk_train_a_translator(tmp_path):
    """In a process of its own, which has imported nothing before."""
    folder = Folder(tmp_path / "walk")
    folder.path.mkdir()
    for chosen in lessons():
        text = right_file(chosen)
        folder.file(chosen).write_text(text, encoding="utf-8")
        folder.note_right(chosen, text.encode())
    command = [sys.executable, "-m", "glassformer", "learn", "train", folder.path]
    result = subprocess.run(
        [*command, "--size", "100", "--epochs", "0.1"], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    assert "the package's" not in result.stdout
    used = (each.name for each in lessons() if not set(each.holes.values()) <= UNUSED.keys())
    assert f"Your parts of these lessons ran in it: {', '.join(used)}.\n" in result.stdout
