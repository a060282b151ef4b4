"""docs/walk.md: each attempt gets the answer that the page has, and the last one is right.

``python tests/learn/test_walk.py`` writes the answers into the page anew.
"""

import ast
import io
import re
import tempfile
import textwrap
from pathlib import Path

import pytest
from rich.console import Console

from glassformer.learn.examine import verdict_on
from glassformer.learn.lesson import LESSONS, lesson
from glassformer.learn.words import print_verdict
from glassformer.learn.worker import answer_on

PAGE = Path(__file__).parents[2] / "docs" / "walk.md"
SECTION = re.compile(r"^## Lesson (\d+): .*$", re.MULTILINE)
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
        methods = node.body if isinstance(node, ast.ClassDef) else [node]
        for method in methods:
            body = "\n".join(attempt.splitlines()[method.body[0].lineno - 1 : method.end_lineno])
            path = [node.name, method.name] if method is not node else [node.name]
            template = with_body(template, path, textwrap.dedent(body))
    return template


def with_body(template, path, body):
    """The file with this body in the function of this path, below its docstring."""
    node = ast.parse(template)
    for name in path:
        node = next(each for each in node.body if getattr(each, "name", None) == name)
    first = node.body[1 if ast.get_docstring(node) else 0]
    lines = template.splitlines()
    lines[first.lineno - 1 : node.end_lineno] = [textwrap.indent(body, " " * first.col_offset)]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("number", [str(number + 1) for number in range(len(LESSONS))])
def test_the_answers_are_those_of_the_check(number, tmp_path):
    section = sections(PAGE.read_text(encoding="utf-8"))[number]
    *wrong, (_, last) = answers(number, section, tmp_path)
    assert wrong
    for shown, answer in wrong:
        assert answer == shown
    assert last.splitlines()[0].endswith(": right")


def write():
    """Write the check's answers in the place of the page's."""
    page = PAGE.read_text(encoding="utf-8")
    for number, section in sections(page).items():
        with tempfile.TemporaryDirectory() as directory:
            for shown, answer in answers(number, section, Path(directory)):
                page = page.replace(shown, answer) if shown else page
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    write()
