"""README's commands and examples do what README says, on small files made here."""

import os
import re
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from glassformer.data.phrasebook.book import phrasebook

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    """README's code blocks in one language."""
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


@pytest.fixture(scope="module")
def workplace(tmp_path_factory):
    """A directory with the files that README's commands name: a few phrases each."""
    directory = tmp_path_factory.mktemp("readme")
    book = phrasebook(seed=3, size=240)
    for name, phrases in (
        ("train", book.train[:8]),
        ("valid", book.validation),
        ("test", book.test),
    ):
        for side in ("source", "target"):
            text = "".join(f"{getattr(phrase, side)}\n" for phrase in phrases)
            code = {"source": "en", "target": "de"}[side]
            (directory / f"{name}.{code}").write_text(text, encoding="utf-8")
    return directory


def test_the_commands_of_make_exist():
    commands = [line for block in blocks("sh") for line in block.splitlines()]
    targets = [line.split()[1] for line in commands if line.startswith("make ")]
    assert {"demo", "test"} <= set(targets)
    for target in targets:
        done = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr


def served(command: str, workplace: Path, environment: dict[str, str]) -> None:
    """It answers where it says it does, and ends well when it is asked to."""
    quietly = command.strip() + (" --no-browser" if "look" in command else "") + " --port 0"
    with subprocess.Popen(
        quietly.split(),
        cwd=workplace,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            said = ""
            while not (found := re.search(r"http://127\.0\.0\.1:\d+\S*", said)):
                line = process.stdout.readline()
                assert line, said
                said += line
            with urllib.request.urlopen(found[0], timeout=30) as page:
                assert b"<html" in page.read()
            process.terminate()
            assert process.wait(timeout=30) == 0
        finally:
            process.kill()


def test_every_other_command_runs(workplace):
    environment = dict(os.environ, PATH=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    skipped = ("make ", ". .venv", "git clone", "cd ")
    commands = [
        line.split("  #")[0]
        for block in blocks("sh")
        for line in block.replace("\\\n", " ").splitlines()
        if line and not line.startswith(skipped) and not line.startswith("#")
    ]
    assert len(commands) >= 4
    for command in commands:
        if re.fullmatch(r"glassformer (look|serve) \S+", command.strip()):
            served(command, workplace, environment)
            continue
        done = subprocess.run(
            command,
            shell=True,
            cwd=workplace,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"


def test_the_python_examples_run(workplace, monkeypatch):
    monkeypatch.chdir(workplace)
    for block in blocks("python"):
        exec(compile(block, "README.md", "exec"), {"__name__": "readme"})
