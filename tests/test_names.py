"""Each closed set of names is one ``Literal``; code that needs the list takes its ``get_args``."""

import ast
from collections import defaultdict
from pathlib import Path
from typing import get_args

import pytest

from glassformer.config import Markup, presets
from glassformer.model import blocks
from glassformer.tools.cli.plot import Part
from glassformer.tools.documents.files.formats import FORMATS
from glassformer.tools.inspection.trace.schema import AttentionPart
from glassformer.tools.interchange.hugging_face.configuration import Settings
from glassformer.training.setup.options import Preset

PACKAGE = Path(__file__).parents[1] / "src" / "glassformer"
THEIRS = get_args(Settings.model_fields["activation"].annotation)
SECOND = {  # the sets that stand in a second place knowingly
    # The command line's help must not wait for torch and matplotlib: a test below holds these.
    "tools/cli/plot.py": {"cross, decoder, encoder", "minutes, updates"},
    # CTranslate2's names:
    "tools/interchange/ctranslate2/reading/configuration.py": {"decoder, encoder"},
}


def sets_of_names(source):
    """The closed sets of names that a file spells: whether as a Literal, and the names."""
    for node in ast.walk(ast.parse(source)):
        literal = isinstance(node, ast.Subscript) and ast.unparse(node.value) == "Literal"
        values = node.slice if literal else node
        if isinstance(values, ast.Tuple | ast.List | ast.Set):
            names = [getattr(value, "value", None) for value in values.elts]
            if len(names) > 1 and all(isinstance(name, str) for name in names):
                yield literal, ", ".join(sorted(names))


def spelt_twice(sources):
    """The names of each Literal that several files spell, as a Literal or otherwise."""
    places, literals = defaultdict(set), set()
    for file, source in sources.items():
        for literal, names in sets_of_names(source):
            literals |= {names} if literal else set()
            if names not in SECOND.get(file, ()):
                places[names].add(file)
    return {names: sorted(places[names]) for names in literals if len(places[names]) > 1}


def test_no_set_of_names_is_spelt_twice():
    sources = {
        path.relative_to(PACKAGE).as_posix(): path.read_text("utf-8")
        for path in sorted(PACKAGE.rglob("*.py"))
        if "lessons" not in path.parts  # a learner's file stands alone
    }

    assert spelt_twice(sources) == {}, "import the one Literal, or take get_args of it"


@pytest.mark.parametrize("second", ['N = ("b", "a")', 'def f(x: Literal["a", "b"]): ...'])
def test_a_second_spelling_is_found(second):
    found = spelt_twice({"one.py": 'N = Literal["a", "b"]', "two.py": second, "three.py": "1"})

    assert found == {"a, b": ["one.py", "two.py"]}


@pytest.mark.parametrize(
    ("names", "others"),
    [
        (Part, get_args(AttentionPart)),
        (Markup, set(FORMATS) - {"txt"}),
        (Preset, presets),
        (blocks.Activation, blocks.ACTIVATIONS),
        (blocks.Activation, {*THEIRS} - {"silu"}),  # their second name of swish
    ],
)
def test_tables_have_an_entry_for_each_name(names, others):
    assert set(get_args(names)) == set(others)
