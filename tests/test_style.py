"""The rules of style that ruff does not hold: sizes, public names, and what must stand nowhere."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

from tests.tables import every

ROOT = Path(__file__).parents[1]
MAX_FUNCTION_LINES = 60

# Put together here, so that this file does not hold what it looks for.
UNFINISHED = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME"]) + r")\b")
MACHINE_PATH = re.compile(r"(?<![\w.~$}])/(?:" + "|".join(["work", "tmp", "root"]) + r")/")


def project_files() -> list[Path]:
    """What belongs to the project: tracked, or new and not ignored."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout.decode()
    return [ROOT / name for name in sorted(listed.split("\0")) if (ROOT / name).is_file()]


def text_of(path: Path) -> str:
    """The file's text; none for a picture or another binary file."""
    raw = path.read_bytes()
    return "" if b"\0" in raw else raw.decode("utf-8")


def long_functions(text: str) -> list[str]:
    return [
        f"{node.lineno}: {node.name} has {node.end_lineno - node.lineno + 1} lines, "
        f"at most {MAX_FUNCTION_LINES}"
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno - node.lineno + 1 > MAX_FUNCTION_LINES
    ]


def nothing_public(text: str) -> list[str]:
    """A module with code that does not say which of its names are for others."""
    body = ast.parse(text).body
    code = [
        node
        for node in body
        if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
    ]
    named = [
        target.id
        for node in body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    ]
    return ["1: no __all__"] if code and "__all__" not in named else []


def unfinished(text: str) -> list[str]:
    return [
        f"{number}: {line.strip()}"
        for number, line in enumerate(text.splitlines(), start=1)
        if UNFINISHED.search(line)
    ]


def machine_paths(text: str) -> list[str]:
    return [
        f"{number}: {line.strip()}"
        for number, line in enumerate(text.splitlines(), start=1)
        if MACHINE_PATH.search(line)
    ]


def python(path: Path) -> bool:
    return path.suffix == ".py"


def module(path: Path) -> bool:
    """A lesson's files are no modules: the learner's is copied, others are read by fixed names."""
    other = path.name == "__main__.py" or path.match("lessons/*/*.py")
    return python(path) and path.is_relative_to(ROOT / "src") and not other


def anything(path: Path) -> bool:
    return path.name not in {"LICENSE", "CHANGELOG.md"}


RULES = [
    (long_functions, python),
    (nothing_public, module),
    (unfinished, anything),
    (machine_paths, anything),
]


@pytest.mark.parametrize(("check", "applies"), RULES, ids=[check.__name__ for check, _ in RULES])
def test_the_project_keeps_the_rule(check, applies):
    found = [
        f"{path.relative_to(ROOT)}:{offence}"
        for path in filter(applies, project_files())
        for offence in check(text_of(path))
    ]

    assert not found, "\n" + "\n".join(found)


def test_the_files_are_found():
    names = {path.relative_to(ROOT).as_posix() for path in project_files()}

    assert {"pyproject.toml", "src/glassformer/support/errors.py", "tests/test_style.py"} <= names


@every(
    ("check", "kept", "broken", "line"),
    [
        (
            long_functions,
            "def f():\n" + "    a = 1\n" * 59,
            "b = 2\nclass C:\n  async def f():\n" + "    a = 1\n" * 60,
            3,
        ),
        (nothing_public, '"""Only words."""\n', '"""Words."""\nimport os\n', 1),
        (nothing_public, '__all__ = ["a"]\na = 1\n', "a = 1\n", 1),
        (unfinished, "# mastodons, todos\n", "a = 1  # TO" + "DO: more\n", 1),
        (machine_paths, "see framework/tmp/x and ~/tmp/x\n", "\nopen('/tm" + "p/x')\n", 2),
    ],
)
def test_an_offence_is_found_at_its_line(check, kept, broken, line):
    assert check(kept) == []
    assert [offence.split(":")[0] for offence in check(broken)] == [str(line)]
