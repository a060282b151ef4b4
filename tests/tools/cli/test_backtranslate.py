"""Pairs out of text in one language: all lines, resumed lines, and pairs that are left out."""

import pytest

from glassformer import Translator
from glassformer.tools.cli import backtranslate as module
from glassformer.tools.cli.main import main

LINES = ["A dog runs.", "Two men sit in the snow.", "", "An old hat.", "x y z"]


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "mono.txt"
    path.write_text("\n".join(LINES) + "\n", "utf-8")
    return path


@pytest.fixture
def translate(bundle_directory, text, tmp_path):
    """Runs the command with options; gives the pairs that it wrote."""

    def made(*words):
        out = tmp_path / "pairs.tsv"
        assert (
            main(["backtranslate", str(bundle_directory), str(text), "--out", str(out), *words])
            == 0
        )
        return [tuple(line.split("\t")) for line in out.read_text("utf-8").splitlines()]

    return made


def expected(bundle_directory, lines=LINES, **options):
    found = Translator.load(bundle_directory).translate(lines, **{"beam": 1, **options})
    texts = [" ".join(each.text.split()) for each in found]
    return [(source, line) for source, line in zip(texts, lines, strict=True) if source and line]


def test_each_line_is_the_target_of_its_translation(translate, bundle_directory, tmp_path, capsys):
    assert translate() == expected(bundle_directory)
    assert capsys.readouterr().out == f"{tmp_path / 'pairs.tsv'}: 4 pairs of 5 lines\n"
    assert translate("--beam", "3") == expected(bundle_directory, beam=3)
    assert not list(tmp_path.glob("*.partial"))


def test_the_other_engine_makes_the_same_pairs(translate):
    assert translate("--device", "cpu", "--engine", "ctranslate2") == translate()


def test_a_kill_loses_no_finished_line(translate, bundle_directory, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(module, "_AT_ONCE", 1)
    wanted, inner, calls = expected(bundle_directory), Translator.translate, []

    def killed(translator, texts, **options):
        calls.extend(texts)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return inner(translator, texts, **options)

    monkeypatch.setattr(Translator, "translate", killed)
    command = ["backtranslate", str(bundle_directory), str(tmp_path / "mono.txt")]
    assert main([*command, "--out", str(tmp_path / "pairs.tsv")]) == 130
    with (tmp_path / "pairs.tsv.partial").open("ab") as file:
        file.write(b"half a li")
    assert translate() == wanted
    assert calls == [*LINES[:3], *LINES[2:]]
    assert "continuing after line 2" in capsys.readouterr().err


def test_drawn_translations_are_the_same_again(translate):
    first = translate("--sample", "--seed", "3")
    assert translate("--sample", "--seed", "3") == first
    assert translate("--sample", "--seed", "4") != first


def test_unsure_pairs_are_left_out(translate):
    assert len(translate("--confidence", "0.999")) < 4
    assert len(translate("--max-lines", "2")) == 2


def test_other_options_do_not_continue_a_begun_file(text, tmp_path, capsys, bundle_directory):
    partial = tmp_path / "pairs.tsv.partial"
    partial.write_text('{"beam": 7}\n')
    command = ["backtranslate", str(bundle_directory), str(text), "--out"]
    assert main([*command, str(tmp_path / "pairs.tsv")]) == 1
    assert capsys.readouterr().err == (
        f"glassformer: error: {partial} was begun with other options: remove the file, or give"
        " another --out\n"
    )


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["--sample", "--beam", "3", "--out", "a.tsv"], 2, "--sample draws, --beam searches"),
        (["--out", "a.txt"], 2, "--out a.txt: expected a name that ends in .tsv"),
        (["--out", "nowhere/a.tsv"], 1, "no directory"),
    ],
)
def test_wrong_calls_are_one_line(words, status, message, bundle_directory, text, capsys):
    assert main(["backtranslate", str(bundle_directory), str(text), *words]) == status
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
