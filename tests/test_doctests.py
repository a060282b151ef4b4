"""Every example in a docstring under ``src/glassformer`` does what it says; none is skipped.

The examples are found in the source text, not in the imported objects: the shape checks that the
tests run under wrap functions, and doctest's own finder passes over what is wrapped. Strings that
stand under a constant or a field, which document it, are read too.
"""

import ast
import doctest
import importlib
import pkgutil
from pathlib import Path

import glassformer

MODULES = sorted(
    ["glassformer"]
    + [found.name for found in pkgutil.walk_packages(glassformer.__path__, "glassformer.")]
)


def examples_of(source: str, *, name: str, path: str, names: dict) -> list[doctest.DocTest]:
    """The doctests in all free-standing strings of a module's source."""
    parser = doctest.DocTestParser()
    strings = [
        node.value
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    ]
    found = [
        parser.get_doctest(string.value, names, name, path, string.lineno - 1) for string in strings
    ]
    return [test for test in found if test.examples]


def failures_of(tests: list[doctest.DocTest]) -> list[str]:
    """What the examples that fail print."""
    runner = doctest.DocTestRunner(verbose=False)
    reports: list[str] = []
    for test in tests:
        runner.run(test, out=reports.append)
    return reports


def test_the_examples_of_each_module_hold():
    reports: list[str] = []
    for name in MODULES:
        module = importlib.import_module(name)
        path, names = Path(module.__file__), dict(vars(module))
        source = path.read_text("utf-8")
        reports += failures_of(examples_of(source, name=name, path=str(path), names=names))

    assert not reports, "".join(reports)


def test_every_file_is_walked():
    root = Path(glassformer.__file__).parent
    files = {
        ".".join(["glassformer", *path.relative_to(root).with_suffix("").parts])
        for path in root.rglob("*.py")
    }

    assert {name.removesuffix(".__init__") for name in files} == set(MODULES)


def test_an_example_that_fails_is_found_wherever_it_stands():
    source = '''
"""
>>> 1 + 1
2
"""
LIMIT = 3
"""
>>> LIMIT
4
"""
def double(x):
    """
    >>> double(2)
    5
    """
    return 2 * x
class Counter:
    def up(self):
        """
        >>> import warnings
        >>> warnings.warn("old")
        """
'''
    names: dict = {}
    exec(compile(source, "synthetic", "exec"), names)

    tests = examples_of(source, name="synthetic", path="synthetic.py", names=names)
    reports = "".join(failures_of(tests))

    assert len(tests) == 4
    assert 'File "synthetic.py", line 8' in reports
    assert 'File "synthetic.py", line 13' in reports
    assert "UserWarning: old" in reports
    assert "line 3," not in reports
