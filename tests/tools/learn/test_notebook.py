"""A notebook is a lesson's file in cells: all that reads a file reads it."""

import ast
import json
import re
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.support.errors import UsageError
from glassformer.tools.cli.main import main
from glassformer.tools.learn import examine
from glassformer.tools.learn.examine import checked_once
from glassformer.tools.learn.folder import Folder
from glassformer.tools.learn.lesson import EVERY, LESSONS, lesson, lessons
from glassformer.tools.learn.messages import hint_text
from glassformer.tools.learn.notebook import Folded, check
from glassformer.tools.learn.source import code_of
from glassformer.tools.learn.worker import answer_on
from tests.lessons import ATTENTION, HOLE, RIGHT
from tests.tables import every
from tests.tools.learn.test_solutions import attempts, filled

FOLDERS = ("files", "notebooks", "from-notebooks")
# What people write between the lesson's cells; none of it is the lesson's code.
EXPERIMENTS = (
    *("%matplotlib inline", "!ls", "1 / 0", "half = 0.5; print(half)", "for _ in 'ab':\n    pass"),
    *(
        "def broken(:",
        "%%time\nsum(range(9))",
        "if True:\n    %pip list",
        "nul = '\0'",
        "raise SystemExit",
    ),
)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """The checks run in this process, as in ``cli/test_learn.py``, and write there."""
    worker = SimpleNamespace(answer=lambda chosen, file: answer_on(file, chosen.name))
    monkeypatch.setattr(examine, "Worker", lambda: nullcontext(worker))
    monkeypatch.chdir(tmp_path)


def code_cells(notebook):
    return [each for each in notebook["cells"] if each["cell_type"] == "code"]


def run(cells):
    """Run cells as a notebook does, each with its entry in ``In``; return the last one's value."""
    namespace = {"In": [""]}
    for cell in cells:
        namespace["In"].append(cell)
        *statements, last = ast.parse(re.sub("%pip.*", "pass", cell)).body
        exec(compile(ast.Module(statements, []), "cell", "exec"), namespace)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), namespace)
        else:
            exec(compile(ast.Module([last], []), "cell", "exec"), namespace)
    return value


def notebook_with(chosen, text):
    """The lesson's notebook with the code ``text``, as Jupyter saves it."""
    notebook = json.loads(chosen.notebook)
    cell = code_cells(notebook)[1]
    cell["source"] = text.splitlines(keepends=True)
    cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": ["a print\n"]}]
    return notebook


def states(chosen):
    """A learner's file: at the beginning, with a first attempt, and right."""
    text = chosen.template
    yield text
    for attempt, _ in attempts().get(str(chosen.number), ()):
        text = filled(text, attempt)
        yield text


@every("name", EVERY)
def test_file_notebook_and_running_notebook_have_one_answer(name, tmp_path, capsys):
    """Verdict, hints, solution and answers."""
    chosen = lesson(name)
    folders = [Folder(tmp_path / each) for each in FOLDERS]
    files, notebooks, _ = folders
    for folder in folders:
        folder.path.mkdir(exist_ok=True)
    for text in [*states(chosen)][-2:]:
        file = files.path / chosen.file_name
        file.write_text(text, encoding="utf-8")
        notebook = notebook_with(chosen, text)
        stored = (notebooks.path / chosen.file_name).with_suffix(".ipynb")
        stored.write_text(json.dumps(notebook), encoding="utf-8")
        verdict = checked_once(files, chosen)
        assert checked_once(notebooks, chosen) == verdict

        capsys.readouterr()
        folded = run("".join(cell["source"]) for cell in code_cells(notebook))
        right = verdict.outcome == "right"
        assert set(verdict.lines) <= set(capsys.readouterr().out.splitlines())
        assert [each.learned(chosen) for each in folders] == [right] * 3
        hints = [f"{title}:\n{text}" for title, text in folded.items() if "Hint" in title]
        numbers = () if right or not chosen.hints else (1, 2, 3)
        assert hints == [hint_text(chosen, verdict.hole, number) for number in numbers]
        solutions = []
        for folder in folders:
            assert main(["learn", "solution", str(folder.path), name]) == 0
            solutions.append(capsys.readouterr().out)
        assert solutions == [solutions[0]] * 3
        assert folded["Solution and answers" if right else "Solution"].rstrip() in solutions[0]


def test_a_hint_on_a_notebook(tmp_path, capsys):
    assert main(["learn", "--notebook", str(tmp_path)]) == 0
    assert main(["learn", "hint", str(tmp_path), "beam", "--number", "3"]) == 0
    assert "Hint 3 of 3, penalty:\n" in capsys.readouterr().out


def test_the_help_is_folded_and_complete():
    cells = [each["source"] for each in code_cells(json.loads(ATTENTION.notebook))]
    folded = run(cells)
    titles = [f"Hint {number} of 3, {ATTENTION.title}" for number in (1, 2, 3)]
    assert list(folded) == [*titles, "Solution"]
    assert repr(folded) == ""
    html = folded._repr_html_()
    assert html.count("<details>") == 4
    assert "open" not in html.split("<pre")[0]
    folded = run([each.replace(HOLE.rstrip(), RIGHT.rstrip()) for each in cells])
    assert list(folded) == ["Solution and answers"]
    assert all(each.answer in folded["Solution and answers"] for each in ATTENTION.questions)


def test_a_text_in_html_is_no_markup():
    assert "<b>" not in Folded({"<b>": "a < b"})._repr_html_()


@given(st.data())
def test_experiments_are_not_the_lessons_code(data):
    """Cells may lie between, be split, and have run before: the definitions stay the same."""
    chosen = data.draw(st.sampled_from([*lessons(EVERY)]))
    cells, end = [], 0
    for node in ast.parse(chosen.template).body:
        text = "\n".join(chosen.template.splitlines()[end : node.end_lineno])
        joined = end and cells and data.draw(st.booleans())
        cells[-1:] = [f"{cells[-1]}\n{text}"] if joined else [*cells[-1:], text]
        end = node.end_lineno
    early = data.draw(st.lists(st.sampled_from(cells), max_size=2))
    noisy = []
    for cell in cells:
        noisy += [*data.draw(st.lists(st.sampled_from(EXPERIMENTS), max_size=2)), cell]
    assert ast.dump(ast.parse(code_of(noisy))) == ast.dump(ast.parse(code_of([chosen.template])))
    again = [*noisy, *early]
    assert ast.dump(ast.parse(code_of(again))) == ast.dump(ast.parse(code_of(noisy)))


@every("name", LESSONS)
def test_the_notebook_has_the_whole_lesson(name):
    chosen = lesson(name)
    notebook = json.loads(chosen.notebook)
    assert (notebook["nbformat"], notebook["metadata"]["kernelspec"]["language"]) == (4, "python")
    cells = notebook["cells"]
    assert [cell["cell_type"] for cell in cells[:2]] == ["markdown", "code"]
    assert not any(line.startswith("# %%") for cell in cells for line in cell["source"].split("\n"))
    code = code_of(cell["source"] for cell in code_cells(notebook))
    assert ast.dump(ast.parse(code)) == ast.dump(ast.parse(code_of([chosen.template])))


def test_a_folder_of_notebooks(tmp_path):
    """They are written once; each counts as begun, learned and reset as a file does."""
    folder = Folder(tmp_path / "lessons")
    assert main(["learn", "--notebook", str(folder.path)]) == 0
    assert len(list(folder.path.glob("*.ipynb"))) == len(EVERY)
    assert folder.make() == folder.make(".ipynb") == []
    file = folder.file(ATTENTION)
    assert folder.untouched(ATTENTION)
    file.write_text(json.dumps(json.loads(file.read_text("utf-8"))), encoding="utf-8")
    assert folder.untouched(ATTENTION)
    notebook = notebook_with(ATTENTION, ATTENTION.template.replace(HOLE, RIGHT))
    file.write_text(json.dumps(notebook), encoding="utf-8")
    assert not folder.untouched(ATTENTION)
    assert main(["learn", "check", str(folder.path), "attention"]) == 0
    code_cells(notebook)[1]["outputs"] = []
    file.write_text(json.dumps(notebook), encoding="utf-8")
    assert folder.learned_names() == {"attention"}
    assert main(["learn", "reset", str(folder.path), "attention"]) == 0
    assert folder.untouched(ATTENTION)
    assert json.loads(file.with_name(file.name + ".old").read_text("utf-8")) == notebook


@every(
    "content",
    ["", "[]", "{}", '{"cells": 5}', '{"cells": [5]}', '{"cells": [{"cell_type": "code"}]}'],
)
def test_a_damaged_notebook_is_an_error_in_words(content, tmp_path):
    folder = Folder(tmp_path)
    (tmp_path / ATTENTION.file_name).with_suffix(".ipynb").write_text(content, encoding="utf-8")
    assert not folder.untouched(ATTENTION)
    assert not folder.learned(ATTENTION)
    verdict = checked_once(folder, ATTENTION)
    assert (verdict.outcome, verdict.hole) == ("error", "")


def test_a_cell_that_has_not_run_is_asked_for(capsys):
    install, _, last = (each["source"] for each in code_cells(json.loads(ATTENTION.notebook)))
    run([install, last])
    assert f"{next(iter(ATTENTION.holes))} is missing: " in capsys.readouterr().out


def test_outside_of_a_notebook_the_check_says_so():
    with pytest.raises(UsageError, match="in a notebook, write check"):
        check("attention", {})
