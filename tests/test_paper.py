"""The paper in one sitting: the files of the page, its stored notebook, and its training loop."""

import ast
import importlib
import importlib.util
import re
from pathlib import Path

import pytest
import torch

import glassformer

ROOT = Path(__file__).parents[1]
PACKAGE = Path(glassformer.__file__).parent
PAGE = (ROOT / "docs" / "paper.md").read_text("utf-8")
FILES = re.findall(r"^:load: \.\./src/glassformer/(\S+)$", PAGE, re.MULTILINE)
MOST_LINES = 1600
# Records of files that are not on the page: its text says what a reader needs to know of them.
TOLD = {"ModelConfig", "ModelParts", "PAPER", "joined", "configured", "OutputRules", "Batch"}
SUPPORT = {"glassformer.config", "glassformer.support"}  # checks, defaults and messages


@pytest.fixture
def paper_notebook(monkeypatch):
    pytest.importorskip("myst_nb")
    monkeypatch.syspath_prepend(ROOT / "docs")
    return importlib.import_module("paper_notebook")


def test_the_stored_notebook_is_the_page_of_today(paper_notebook):
    nbformat = importlib.import_module("nbformat")
    stored = nbformat.read(paper_notebook.NOTEBOOK, as_version=4).cells
    cells = paper_notebook.new_notebook().cells
    same = [(cell.cell_type, cell.source) for cell in stored]
    assert same == [(cell.cell_type, cell.source) for cell in cells], "run `make notebook`"
    runs = [cell for cell in stored if cell.cell_type == "code"]
    assert [cell.execution_count for cell in runs] == [*range(1, len(runs) + 1)]
    assert not [out for cell in runs for out in cell.outputs if out.output_type == "error"]


def test_the_files_of_the_page_can_be_read_in_one_sitting():
    lines = sum(len((PACKAGE / file).read_text("utf-8").splitlines()) for file in FILES)
    assert lines <= MOST_LINES


def test_the_files_of_the_page_need_no_others():
    """An imported name stands earlier on the page, is a check or a message, or is told of."""
    shown, missing = {"glassformer.model"}, []
    for file in FILES:
        shown.add("glassformer." + file.removesuffix(".py").replace("/", "."))
        for node in ast.walk(ast.parse((PACKAGE / file).read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module.startswith("glassformer"):
                home = node.module
                if home not in shown and not any(map(home.startswith, SUPPORT)):
                    missing += [f"{file}: {alias.name}" for alias in node.names]
    assert not [each for each in missing if each.split()[1] not in TOLD]
    assert all(f"`{name}`" in PAGE for name in TOLD)


def test_the_loop_of_the_page_learns():
    spec = importlib.util.spec_from_file_location("loop", ROOT / "examples" / "training_loop.py")
    loop = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loop)
    torch.manual_seed(1)
    loop.random.seed(1)
    model = loop.new_model()
    before = accuracy(loop, model)
    loop.train(model, loop.TRAINING, updates=60, batch=16, warmup=60)
    assert before < 0.1
    assert accuracy(loop, model) > 0.4
    assert not {str(pair) for pair in loop.TEST} & {str(pair) for pair in loop.TRAINING}


def accuracy(loop, model):
    """The share of right next tokens of the test pairs."""
    source, labels = map(loop.ids, zip(*loop.TEST, strict=True))
    logits = model(source, loop.shift(labels, bos=2))
    return glassformer.token_accuracy(logits, labels)
