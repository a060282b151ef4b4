"""The commands and examples of README and of the reading guide run, on small files made here."""

import re
import shlex
import signal
import subprocess
import urllib.request
from pathlib import Path

import pytest

from glassformer.tools.cli.main import main
from glassformer.tools.learn.folder import Folder
from glassformer.tools.phrasebook.book import oracle, phrasebook
from tests.lessons import RIGHT, folder_with
from tests.processes import Command

pytestmark = pytest.mark.usefixtures("without_shape_types")
ROOT = Path(__file__).parent.parent
PAGES = ("README.md", "docs/reading.md")  # in this order: README's commands train runs/en-de
# Commands that other tests run, or that belong to the reader's own shell.
SKIPPED = ("make ", ". .venv", "glassformer learn check")
SMALL = shlex.split("--d-model 16 --num-heads 2 --num-encoder-layers 1 --num-decoder-layers 1")


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


def output_until(pattern: str, command: Command) -> re.Match[str]:
    """Read what the command prints until the pattern stands there."""
    output = ""
    while not (found := re.search(pattern, output)):
        line = command.stdout.readline()
        assert line, output + command.stderr.read()
        output += line
    return found


def serve(words: list[str]) -> None:
    """The server answers at the address that it prints, and ends well after SIGTERM."""
    browser = ["--no-browser"] if words[0] == "look" else []
    with Command([*words, *browser, "--port", "0"]) as command:
        address = output_until(r"http://127\.0\.0\.1:\d+\S*", command)[0]
        with urllib.request.urlopen(address, timeout=30) as page:
            assert b"<html" in page.read()
        command.send(signal.SIGTERM)
        assert command.wait() == 0


def watch(words: list[str]) -> None:
    """The watch writes the lessons and judges the first; Ctrl-C ends it."""
    with Command(words) as command:
        output_until("not written yet", command)
        command.send(signal.SIGINT)
        assert command.wait() == 130


def test_every_other_command_runs(workplace, monkeypatch, capfd):
    """A command runs in this process, or in one that forks: a new one loads torch for seconds."""
    monkeypatch.chdir(workplace)
    others = [command for command in commands() if not command.startswith(SKIPPED)]
    assert len(others) >= 12
    for command in others:
        echo, pipe, last = command.rpartition(" | ")
        program, *words = shlex.split(last, comments=True)
        assert program == "glassformer"
        if re.fullmatch(r"glassformer (look|serve) \S+", command):
            serve(words)
            continue
        if re.fullmatch(r"glassformer learn \S+", command):
            watch(words)
            continue
        if words[:2] == ["learn", "train"]:
            words += ["--size", "100", "--epochs", "0.1"]
        if words[0] == "train":  # as many validations as a page needs
            words += [*SMALL, "--updates", "10", "--validations", "1"]
        Path("input").write_bytes(subprocess.check_output(echo, shell=True) if pipe else b"")
        with Path("input").open() as piped:
            monkeypatch.setattr("sys.stdin", piped)
            assert main(words) == 0, f"{command}\n{capfd.readouterr()}"


def shown(first: str) -> list[str]:
    """The lines of README's output that begins with this text."""
    return next(block for block in blocks("text") if block.startswith(first)).splitlines()


def test_the_demo_prints_what_readme_shows(tmp_path, monkeypatch, capsys):
    """A demo that learns nothing prints the same lines, with wrong translations."""
    drawn, asks, typed, answer = shown("attention of ")
    phrase, right = typed.removeprefix("> "), answer.removesuffix("  (right)")
    assert oracle(phrase, source="en", target="de") == right
    typed_lines = iter([phrase, ""])
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda _: next(typed_lines))
    monkeypatch.chdir(tmp_path)

    assert main(["demo", "--size", "100", "--epochs", "0.1"]) == 0

    [picture, question, judged] = capsys.readouterr().out.splitlines()[-4:-1]
    assert picture.partition(" to ")[2] == drawn.partition(" to ")[2]
    assert question == asks
    assert judged.endswith(f"  (wrong: {right})")


def test_the_checks_print_what_readme_shows(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    unmasked = RIGHT.replace("masked_softmax(scores, mask)", "scores.softmax(-1)")
    unscaled = RIGHT.replace(" / math.sqrt(query.size(-1))", "")
    folder_with(tmp_path / "my-transformer", unmasked)
    folder_with(tmp_path / "hand-ins" / "ada")
    folder_with(tmp_path / "hand-ins" / "ben", unscaled)
    Folder(tmp_path / "hand-ins" / "eva").make()

    for words, lines in (
        (["my-transformer", "attention"], shown("1. ")),
        (["hand-ins"], shown("ada")),
    ):
        assert main(["learn", "check", *words]) == 1
        assert capsys.readouterr().out.splitlines()[: len(lines)] == lines


def test_the_python_examples_run(workplace, monkeypatch):
    monkeypatch.chdir(workplace)
    examples = blocks("python")
    assert len(examples) >= 2
    for example in examples:
        exec(compile(example, "example", "exec"), {"__name__": "example"})


WRITTEN = re.findall(r'directory / "(.+?)"', (ROOT / "docs/pages.py").read_text("utf-8"))
WRITTEN.append("_static/look.html")  # by docs/conf.py


def test_readme_is_short():
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 110


def test_links_and_files_exist():
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), ROOT / "CONTRIBUTING.md"]:
        text = page.read_text(encoding="utf-8")
        for target in re.findall(r"(?:\]\(|href=\"|src=\")(?!http)([^)#\"]+)[)\"]", text):
            written = target.removeprefix("generated/") in WRITTEN  # by the site's build
            assert written or (page.parent / target).exists(), f"{page.name}: {target}"
    for page in PAGES:
        text = re.sub(r"```.*?```", "", (ROOT / page).read_text("utf-8"), flags=re.DOTALL)
        for path in re.findall(r"`((?:[a-z_0-9]+/)*[a-z_0-9]+\.py)`", text):
            place = ROOT / path if path.startswith("tests/") else ROOT / "src/glassformer" / path
            assert place.is_file(), f"{page}: {path}"
