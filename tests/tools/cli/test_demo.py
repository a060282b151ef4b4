"""``demo`` end to end, so small that it learns nothing; and its judgement with a stand-in."""

import io
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from types import SimpleNamespace

import pytest

from glassformer.bundle import load_bundle
from glassformer.tools.cli.demo import DemoOptions, _ask
from glassformer.tools.cli.main import main
from glassformer.tools.phrasebook.book import phrasebook
from glassformer.training.loop import Stopped
from tests.tables import every

SMALL = ["--size", "120", "--epochs", "0.5"]


@pytest.fixture(scope="module")
def shown(tmp_path_factory) -> SimpleNamespace:
    """The demo's output on a first call, and on a second one that has a phrase to judge."""
    directory = tmp_path_factory.mktemp("demo")
    patch = pytest.MonkeyPatch()
    said = []
    patch.setenv("COLUMNS", "140")
    for more in ([], ["--phrase", "March 4, 2030", "hello there"]):
        if more:  # one picture is enough
            patch.setattr("glassformer.tools.cli.demo._draw", lambda *_: None)
        out = io.StringIO()
        with redirect_stdout(out), redirect_stderr(out):
            assert main(["demo", "--out", str(directory), *SMALL, *more]) == 0
        said.append(out.getvalue())
    patch.undo()
    return SimpleNamespace(first=said[0], second=said[1], directory=directory / "en-de")


def test_phrases_turn_before_the_eyes(shown):
    book = phrasebook(source="en", target="de", seed=1, size=120)

    assert "translation so far" in shown.first
    table = " ".join(shown.first.split())
    assert "% of 5 phrases with unseen years are right" in table
    assert "wrong" in table
    assert any(phrase.target in table for phrase in book.validation)


def test_the_score_is_over_the_held_out_years_by_kind(shown):
    book = phrasebook(source="en", target="de", seed=1, size=120)

    last = shown.first[shown.first.index("exact match on held-out years") :]
    rows = [line.strip("│ \n").split("│") for line in last.splitlines() if line.startswith("│")]
    counts = {kind.strip(): int(count) for kind, count, _ in rows}
    assert counts.pop("all") == len(book.test)
    assert sum(counts.values()) == len(book.test)
    assert set(counts) == {phrase.kind for phrase in book.test}


def test_there_is_a_picture_of_the_attention(shown):
    assert (shown.directory / "attention.png").read_bytes().startswith(b"\x89PNG")
    assert str(shown.directory / "attention.png") in shown.first


def test_its_last_line_leads_to_a_page(shown):
    page = shown.first.splitlines()[-1].rpartition(" ")[2]
    assert (Path(__file__).parents[3] / page).is_file()


def test_its_phrases_are_files_for_the_other_commands(shown):
    lines = (shown.directory / "phrases" / "train.tsv").read_text("utf-8").splitlines()

    assert len(lines) == 120
    assert all(line.count("\t") == 1 for line in lines)


def test_its_bundle_has_phrases_of_the_book_as_examples(shown):
    book = phrasebook(source="en", target="de", seed=1, size=120)

    examples = load_bundle(shown.directory).examples
    assert 0 < len(examples) <= 3
    assert set(examples) <= {phrase.source for phrase in book.validation}


def test_a_second_call_does_not_train_again(shown):
    assert "translation so far" not in shown.second
    assert "exact match on held-out years" in shown.second


def test_ones_own_phrase_is_judged_right_or_wrong(shown):
    lines = shown.second.splitlines()

    mine = next(line for line in lines if line.startswith("March 4, 2030  ->  "))
    assert mine.endswith("(wrong: 4. März 2030)")
    other = next(line for line in lines if line.startswith("hello there  ->  "))
    assert other.endswith("(not in the phrasebook: it has no right translation to compare)")


@pytest.mark.parametrize("last", ["", EOFError], ids=str)
def test_a_terminal_asks_until_an_empty_line_or_the_end(monkeypatch, capsys, last):
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    lines = iter([" March 4, 2030 ", last])

    def typed(_):
        line = next(lines)
        if line is EOFError:
            raise EOFError
        return line

    monkeypatch.setattr("builtins.input", typed)
    translator = SimpleNamespace(translate=lambda _: [SimpleNamespace(text="4. März 2030")])

    _ask(translator, DemoOptions())

    assert capsys.readouterr().out.splitlines()[1:] == ["4. März 2030  (right)"]


@every(
    ("words", "message"),
    [
        (["--source", "xx"], "language 'xx': the CLDR has no such locale"),
        (["--target", "german"], "language 'german': the CLDR has no such locale"),
        (["--size", "99"], "--size '99': expected at least 100"),
        (["--size", "99999999"], "--size '99999999': expected at most 200000"),
        (["--epochs", "0"], "--epochs '0': expected more than 0"),
        (["--sice", "200"], "unknown option --sice (did you mean '--size'?)"),
        (["german"], "unexpected 'german': expected [OPTIONS]"),
    ],
)
def test_a_wrong_call_is_one_line_and_2(tmp_path, refused, words, message):
    small = [] if words[0] in ("--size", "german") else SMALL[:2]

    status, line = refused("demo", "--out", tmp_path, *small, *words)

    assert status == 2
    assert line.startswith(message)


def test_it_can_be_stopped(tmp_path, monkeypatch, capsys):
    def train(*_, **__):
        raise Stopped(7, 2)

    monkeypatch.setattr("glassformer.training.train.train", train)

    assert main(["demo", "--out", str(tmp_path), *SMALL]) == 130
    assert "stopped and saved at update 7" in capsys.readouterr().err
