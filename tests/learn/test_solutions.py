"""Learners' files: each attempt of docs/walk.md, and each solution of solutions.md.

``python tests/learn/test_solutions.py`` writes the answers of the checks into both anew.
"""

import ast
import io
import re
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import pytest
from rich.console import Console

from glassformer.learn.examine import verdict_on
from glassformer.learn.folder import Folder
from glassformer.learn.lesson import LESSONS, lesson, lessons
from glassformer.learn.words import print_verdict
from glassformer.learn.worker import answer_on

WALK = Path(__file__).parents[2] / "docs" / "walk.md"
SOLUTIONS = Path(__file__).with_name("solutions.md")
SECTION = re.compile(r"^## Lesson (\d+): .*$", re.MULTILINE)
SOLUTION = re.compile(
    r"^(\w+): ([^\n]*)\n```python\n(.*?)```\n(?:check: ([^\n]*)\n)?", re.MULTILINE | re.DOTALL
)
STEP = re.compile(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", re.DOTALL)


def sections(page):
    """The text of each lesson's section, by the lesson's number."""
    parts = SECTION.split(page)[1:]
    return dict(zip(parts[0::2], parts[1::2], strict=True))


def answers(number, section, directory):
    """The page's answer to each attempt, and the check's. An attempt changes some functions."""
    chosen = lesson(number)
    file = directory / chosen.file_name
    text = chosen.template
    for attempt, shown in STEP.findall(section):
        text = filled(text, attempt)
        file.write_text(text, encoding="utf-8")
        out = io.StringIO()
        verdict = verdict_on(chosen, file, answer_on(file, chosen.name))
        print_verdict(Console(file=out, width=98), chosen, verdict)
        yield shown, "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())


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
def test_the_answers_are_those_of_the_check(number, tmp_path):
    section = sections(WALK.read_text(encoding="utf-8"))[number]
    *wrong, (_, last) = answers(number, section, tmp_path)
    assert wrong
    for shown, answer in wrong:
        # Python 3.12 and newer put it in the second way.
        words = "max() arg is an empty sequence", "max() iterable argument is empty"
        assert answer.replace(*words[::-1]) == shown
    assert last.splitlines()[0].endswith(": right")


def right_file(chosen):
    """The learner's file at the end of the walk."""
    text = chosen.template
    for attempt, _ in STEP.findall(sections(WALK.read_text(encoding="utf-8"))[str(chosen.number)]):
        text = filled(text, attempt)
    return text


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
    calls = result.stdout.split("calls of these parts: ")[1].splitlines()[0].split(", ")
    # The search is greedy, and target_mask calls the subsequent_mask of its own file.
    uncalled = {call.rsplit(" ", 1)[0] for call in calls if call.endswith(" 0")}
    assert uncalled <= {"beam_search", "BlockState.select", "subsequent_mask"}


def solutions():
    """Each wrong solution: its lesson, what is wrong, its functions, and the check's outcome."""
    return SOLUTION.findall(SOLUTIONS.read_text(encoding="utf-8"))


def outcome(name, code, directory):
    """The verdict in a line: the mistakes, or its kind and its first line."""
    chosen = lesson(name)
    file = directory / chosen.file_name
    file.write_text(filled(right_file(chosen), code), encoding="utf-8")
    verdict = verdict_on(chosen, file, answer_on(file, name))
    if verdict.mistakes:
        return " or ".join(" + ".join(mistake) for mistake in verdict.mistakes)
    return " ".join((verdict.outcome, *verdict.lines[:1]))


@pytest.mark.parametrize(("name", "wrong", "code", "shown"), solutions())
def test_the_outcome_of_a_solution(name, wrong, code, shown, tmp_path):
    assert (shown == "right") == wrong.startswith("right")
    assert outcome(name, code, tmp_path) == shown


def write():
    """Write the check's answers in the place of those that the two pages have."""
    page = WALK.read_text(encoding="utf-8")
    wrong = SOLUTIONS.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        for number, section in sections(page).items():
            for shown, answer in answers(number, section, directory):
                page = page.replace(shown, answer) if shown else page
        for lesson_name, text, code, _ in solutions():
            head = f"{lesson_name}: {text}\n```python\n{code}```\n"
            before = re.escape(head) + r"(?:check: [^\n]*\n)?"
            after = f"{head}check: {outcome(lesson_name, code, directory)}\n"
            wrong = re.sub(before, after.replace("\\", r"\\"), wrong)
    WALK.write_text(page, encoding="utf-8")
    SOLUTIONS.write_text(wrong, encoding="utf-8")


if __name__ == "__main__":
    write()
