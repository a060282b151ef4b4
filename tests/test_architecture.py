"""Imports go one way: each part of the program knows only the parts below it.

    cli, web
    translator, interchange, inspection, learn      (and glassformer itself, which names them)
    training                                        (knows all that stands below)
    alignment
    text_engine                                     (knows the searches)
    decoding | evaluation | significance
    bundle
    model | data                                    (which do not know each other)
    config, devices, files, threads
    errors

Imports inside functions count as well: late or not, they are knowledge.
"""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src"

LAYERS = (
    {"errors"},
    {"config", "devices", "files", "threads"},
    {"model", "data"},
    {"bundle"},
    {"decoding", "evaluation", "significance"},
    {"text_engine"},
    {"alignment"},
    {"training"},
    {"translator", "interchange", "inspection", "learn"},
    {"glassformer"},
    {"cli", "web", "__main__"},
)
# Neighbours in a layer do not know each other, but for these.
NEIGHBOURS = {
    ("significance", "evaluation"),
    ("translator", "interchange"),  # an engine of another's is one of the translator's
    ("translator", "inspection"),  # a translation tells which word was made from which
    ("cli", "web"),
    ("__main__", "cli"),
}
# Decoding works on any step function, so that it knows no model and no data.
STRANGERS = {("decoding", "model"), ("decoding", "data"), ("decoding", "bundle")}


def part_of(module: str) -> str:
    """The part that a module belongs to: ``glassformer.model.masks`` to ``model``."""
    return [*module.split("."), ""][1] or "glassformer"


def may_import(importer: str, imported: str) -> bool:
    """Whether one part may know another."""
    height = {part: index for index, parts in enumerate(LAYERS) for part in parts}
    if importer == imported:
        return True
    if imported not in height or importer not in height:
        return False
    if height[importer] == height[imported]:
        return (importer, imported) in NEIGHBOURS
    return height[imported] < height[importer] and (importer, imported) not in STRANGERS


def imports_of(path: Path, source: Path) -> list[tuple[int, str]]:
    """Line and full name of everything of this program that a file imports."""
    package = list(path.relative_to(source).parent.parts)
    found = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            origin = ".".join([*base, *filter(None, [node.module])])
            # What is imported may be a module of its own: `from glassformer import model`.
            names = [
                name if is_module(name, source) else origin
                for name in (f"{origin}.{alias.name}" for alias in node.names)
            ]
        else:
            continue
        found += [(node.lineno, name) for name in names if name.split(".")[0] == "glassformer"]
    return found


def is_module(name: str, source: Path) -> bool:
    path = source.joinpath(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


def offences(source: Path) -> list[str]:
    """``file:line`` of every import that goes the wrong way."""
    found = []
    for path in sorted(source.rglob("*.py")):
        relative = path.relative_to(source)
        importer = part_of(".".join(relative.with_suffix("").parts).removesuffix(".__init__"))
        for line, name in imports_of(path, source):
            if not may_import(importer, part_of(name)):
                found.append(f"{relative}:{line}: {importer} may not import {name}")
    return found


def test_imports_go_one_way():
    found = offences(SOURCE)

    assert not found, "\n" + "\n".join(found)


def test_every_part_has_its_layer():
    parts = {path.stem for path in (SOURCE / "glassformer").glob("*.py")} - {"__init__"}
    parts |= {path.parent.name for path in (SOURCE / "glassformer").glob("*/__init__.py")}

    unknown = parts - set.union(*LAYERS)
    assert not unknown, f"give these parts a layer: {sorted(unknown)}"


@pytest.mark.parametrize(
    ("file", "statement", "offends"),
    [
        ("model/masks.py", "from glassformer.data.corpus import Pair", True),
        ("data/batches.py", "import glassformer.model", True),
        ("data/batches.py", "from glassformer.config import ModelConfig", False),
        ("config.py", "from glassformer.errors import InputError", False),
        ("errors.py", "from glassformer import config", True),
        ("errors.py", "from . import config", True),
        ("model/masks.py", "from ..bundle import Bundle", True),
        ("model/masks.py", "from .attention import attention", False),
        ("model/masks.py", "def f():\n    from glassformer.translator import Translator", True),
        ("decoding/beam.py", "from glassformer.model import transformer", True),
        ("decoding/beam.py", "from glassformer.training.loss import loss", True),
        ("training/loop.py", "from glassformer.decoding.beam import beam_search", False),
        ("translator.py", "from glassformer.cli.main import main", True),
        ("bundle.py", "from glassformer import Transformer", True),
        ("__init__.py", "from glassformer.translator import Translator", False),
        ("__init__.py", "from glassformer.cli.main import main", True),
        ("cli/main.py", "from glassformer.translator import Translator", False),
        ("data/corpus.py", "from pathlib import Path\nimport modelling, data", False),
        ("data/corpus.py", "from glassformer.novelty import new", True),
    ],
)
def test_an_import_the_wrong_way_is_found(tmp_path, file, statement, offends):
    for package in ("", "model", "data", "decoding", "training", "cli"):
        (tmp_path / "glassformer" / package).mkdir(exist_ok=True)
    (tmp_path / "glassformer" / "config.py").touch()
    (tmp_path / "glassformer" / file).write_text(f'"""A file."""\n\n{statement}\n', "utf-8")
    last = 3 + statement.count("\n")

    found = offences(tmp_path)

    assert [line.split(": ")[0] for line in found] == [f"glassformer/{file}:{last}"] * offends
