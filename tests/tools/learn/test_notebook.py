"""Lessons as notebooks: every cell runs, and the last one gives the verdict."""

import json

import torch

from glassformer.tools.learn.check import check_of
from glassformer.tools.learn.lesson import EVERY, LESSONS, lesson
from glassformer.tools.learn.notebook import check, notebook_of, write_notebooks
from tests.tables import every

HOLE = "    raise NotImplementedError"
BODY = """\
    scores = query @ key.transpose(-2, -1)
    weights = masked_softmax(scores, mask)
    return weights @ value, weights
"""


def run(cells):
    """Run the code cells in one namespace, as a notebook does."""
    namespace = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            exec(cell["source"], namespace)


def test_the_last_cell_names_the_mistake(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    cells = notebook_of(lesson("attention"))["cells"]
    for cell in cells:
        cell["source"] = cell["source"].replace(HOLE, "    print('a print')\n" + BODY)
    run(cells)
    printed = capsys.readouterr().out
    assert "The scores are not divided by √d_k." in printed
    assert "\x1b" not in printed
    # Each probe runs twice, and its print is shown once.
    [probes] = check_of("attention").probes.values()
    assert printed.count("a print") == len(probes)


@every("name", LESSONS)
def test_a_notebook_holds_the_lesson(name, capsys):
    cells = notebook_of(lesson(name))["cells"]
    assert cells[0]["cell_type"] == "markdown"
    assert not any(line.startswith("# %%") for cell in cells for line in cell["source"].split("\n"))
    run(cells)
    assert "not written yet" in capsys.readouterr().out


def test_notebooks_are_written_once(tmp_path):
    files = write_notebooks(tmp_path)
    assert len(files) == len(EVERY)
    assert json.loads(files[0].read_text(encoding="utf-8"))["nbformat"] == 4
    files[0].write_text("mine", encoding="utf-8")
    assert write_notebooks(tmp_path) == []
    assert files[0].read_text(encoding="utf-8") == "mine"


def test_a_notebook_names_two_calls_that_differ(capsys):
    def attend(query, key, value, _mask=None):
        weights = torch.softmax(query @ key.mT, -1)
        return torch.dropout(weights, 0.5, True) @ value, weights

    check("attention", {"scaled_dot_product_attention": attend})
    assert "Two calls with the same input" in " ".join(capsys.readouterr().out.split())
