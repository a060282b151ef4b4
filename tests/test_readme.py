"""The commands and examples of README and of the reading guide run, on small files made here."""

import os
import re
import shlex
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from glassformer.cli.main import main
from glassformer.data.phrasebook.book import phrasebook

pytestmark = pytest.mark.usefixtures("without_shape_types")
ROOT = Path(__file__).parent.parent
PAGES = ("README.md", "docs/reading.md")  # in this order: README's commands train runs/en-de
# A page or program that other tests start, or that belongs to the reader's own shell.
SKIPPED = ("make ", ". .venv")


def blocks(language: str) -> list[str]:
    """The code blocks of all pages in one language."""
    pages = [(ROOT / page).read_text(encoding="utf-8") for page in PAGES]
    return [
        block
        for page in pages
        for block in re.findall(rf"```{language}\n(.*?)```", page, flags=re.DOTALL)
    ]


def commands() -> list[str]:
    lines = [line for block in blocks("sh") for line in block.splitlines()]
    return [line.split("  #")[0].strip() for line in lines]


@pytest.fixture(scope="module")
def workplace(tmp_path_factory):
    """A directory with the files that the commands name: a few phrases each."""
    directory = tmp_path_factory.mktemp("readme")
    book = phrasebook(seed=3, size=240)
    for name, phrases in (
        ("train", book.train[:8]),
        ("valid", book.validation[:4]),
        ("test", book.test[:4]),
    ):
        for code, side in (("en", "source"), ("de", "target")):
            text = "".join(f"{getattr(phrase, side)}\n" for phrase in phrases)
            (directory / f"{name}.{code}").write_text(text, encoding="utf-8")
    return directory


def test_the_commands_of_make_exist():
    targets = [command.split()[1] for command in commands() if command.startswith("make ")]
    assert {"demo", "test"} <= set(targets)
    for target in targets:
        make = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, check=False)
        assert make.returncode == 0, make.stderr


def serve(command: str, workplace: Path, environment: dict[str, str]) -> None:
    """The server answers at the address that it prints, and ends well after SIGTERM."""
    words = [*command.split(), *(["--no-browser"] if "look" in command else []), "--port", "0"]
    with subprocess.Popen(
        words,
        cwd=workplace,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            output = ""
            while not (address := re.search(r"http://127\.0\.0\.1:\d+\S*", output)):
                line = process.stdout.readline()
                assert line, output
                output += line
            with urllib.request.urlopen(address[0], timeout=30) as page:
                assert b"<html" in page.read()
            process.terminate()
            assert process.wait(timeout=30) == 0
        finally:
            process.kill()


def watch(command: str, workplace: Path, environment: dict[str, str]) -> None:
    """The watch writes the lessons and judges the first; Ctrl-C ends it."""
    # A shell starts a job in the background with SIGINT ignored; children would ignore it too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with subprocess.Popen(
        command.split(), cwd=workplace, env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            output = ""
            while "not written yet" not in output:
                line = process.stdout.readline()
                assert line, output
                output += line
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=30) == 130
        finally:
            process.kill()


def run_in_shell(command: str, workplace: Path, environment: dict[str, str]) -> None:
    process = subprocess.run(
        command,
        shell=True,
        cwd=workplace,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, f"{command}\n{process.stdout}\n{process.stderr}"


def test_every_other_command_runs(workplace, monkeypatch, capfd):
    """A plain command runs in this process: a new one loads torch for seconds."""
    monkeypatch.chdir(workplace)
    environment = dict(os.environ, PATH=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    others = [command for command in commands() if not command.startswith(SKIPPED)]
    assert len(others) >= 12
    for command in others:
        if re.fullmatch(r"glassformer (look|serve) \S+", command):
            serve(command, workplace, environment)
            continue
        if re.fullmatch(r"glassformer learn \S+", command):
            watch(command, workplace, environment)
            continue
        if command.startswith("glassformer learn train"):
            command += " --size 200 --epochs 0.1"
        if command.startswith("glassformer train"):
            command += " --updates 10 --validations 1"  # as many as a page needs
        words = shlex.split(command, comments=True)
        if words[0] == "glassformer" and not {"|", "<", ">"} & set(words):
            assert main(words[1:]) == 0, f"{command}\n{capfd.readouterr()}"
        else:
            run_in_shell(command, workplace, environment)


def test_the_python_examples_run(workplace, monkeypatch):
    monkeypatch.chdir(workplace)
    examples = blocks("python")
    assert len(examples) >= 2
    for example in examples:
        exec(compile(example, "example", "exec"), {"__name__": "example"})


def test_links_and_files_exist():
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), ROOT / "CONTRIBUTING.md"]:
        text = page.read_text(encoding="utf-8")
        for target in re.findall(r"\]\((?!http)([^)#]+)\)", text):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
    for page in PAGES:
        text = re.sub(r"```.*?```", "", (ROOT / page).read_text("utf-8"), flags=re.DOTALL)
        for path in re.findall(r"`((?:[a-z_0-9]+/)*[a-z_0-9]+\.py)`", text):
            place = ROOT / path if path.startswith("tests/") else ROOT / "src/glassformer" / path
            assert place.is_file(), f"{page}: {path}"
