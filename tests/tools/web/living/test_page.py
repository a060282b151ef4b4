"""A page that holds its translator, as a file: its policy, its modules, its size."""

import json
import re
from dataclasses import replace
from types import SimpleNamespace

import pytest

from glassformer.bundle import load_bundle
from glassformer.data.preprocessing import Preprocessing
from glassformer.tools.cli.main import main
from glassformer.tools.web import living_page

TEXT = "An old hat."


def policy(file):
    text = file.read_text("utf-8")
    content = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', text)[1]
    return dict(part.split(" ", 1) for part in content.split("; "))


@pytest.mark.parametrize("face", ["look", "translate"])
def test_the_policy_allows_webassembly_and_else_what_a_stored_page_does(
    face, files, run_directory, tmp_path
):
    stored = tmp_path / "stored.html"
    assert main(["look", str(run_directory), "--text", "A hat.", "--out", str(stored)]) == 0
    plain, alive = ({**policy(file)} for file in (stored, files[face]))

    assert plain.keys() == alive.keys()
    assert alive["default-src"] == "'none'"  # connect-src too
    hashes = r"'strict-dynamic' 'sha256-\S+' 'sha256-\S+'"
    assert re.fullmatch(hashes, plain["script-src"])
    assert re.fullmatch(rf"{hashes} 'wasm-unsafe-eval'", alive["script-src"])
    assert "engine/transformer.js" not in stored.read_text("utf-8")


@pytest.mark.parametrize("face", ["look", "translate"])
def test_the_engine_stands_in_the_server_s_place(face, files):
    text = files[face].read_text("utf-8")
    modules = json.loads(re.search(r'type="importmap">(.*)</script>', text)[1])["imports"]
    assert {"engine/local.js", "engine/file.js"} < modules.keys()
    assert "look/server.js" not in modules
    assert "<noscript>" not in text
    assert text.count('id="unstarted"') == 1


def test_the_first_sentence_is_the_one_asked_for_and_each_stands_once(run_directory, tmp_path):
    out = tmp_path / "look.html"
    words = ["look", str(run_directory), "--live", "--out", str(out), "--text"]
    for text, examples in (
        ("An old hat.", ["An old hat.", "A <i>dog</i> runs."]),
        ("Snow.", ["Snow.", "An old hat.", "A <i>dog</i> runs."]),
    ):
        assert main([*words, text]) == 0
        record = json.loads(re.search(r'id="about">(.*)</script>', out.read_text("utf-8"))[1])
        assert record["examples"] == examples
        assert record["first"]["asked"]["text"] == text


def test_a_page_that_is_large_says_so_and_one_too_large_is_refused(
    run_directory, tmp_path, monkeypatch, capsys
):
    words = ["export", str(run_directory), str(tmp_path / "a.html"), "--to", "page"]
    assert main(words) == 0
    assert "too large" not in capsys.readouterr().out

    monkeypatch.setattr(living_page, "_SMALL", 10_000)
    for command in (
        [*words[:2], str(tmp_path / "b.html"), *words[3:]],
        ["look", str(run_directory), "--live", "--out", str(tmp_path / "c.html")],
    ):
        assert main(command) == 0
        printed = capsys.readouterr().out
        assert " MB" in printed
        assert "note: the file is too large for most mail" in printed

    monkeypatch.setattr(living_page, "_MOST", 10_000)
    assert main([*words[:2], str(tmp_path / "d.html"), *words[3:]]) == 2
    error = capsys.readouterr().err
    assert "browsers open at most" in error
    assert "use 'glassformer serve'" in error
    assert not (tmp_path / "d.html").exists()


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["--live"], "--live writes a file: give its name with --out"),
        (["--live", "--out", "a.html", "--beam", "3"], "--live takes no"),
        (["--live", "--out", "a.html", "--length-penalty", "0"], "--live takes no"),
        (["--live", "--out", "a.html", "--glossary", "t.tsv"], "--live takes no --glossary"),
        (["--exact", "float32", "--text", "A", "--out", "a.html"], "only a page with --live has w"),
    ],
)
def test_options_that_do_not_go_together_are_one_line(options, error, run_directory, capsys):
    assert main(["look", str(run_directory), *options]) == 2
    said = capsys.readouterr().err
    assert error in said
    assert said.count("\n") == 1


def test_the_model_reads_a_part_of_each_random_text():
    """A text of which nothing is read has no translation: Python and the page refuse it."""

    class Tokenizer:
        vocab_size = 4

        def decode(self, ids):
            return "".join("12.a"[index] for index in ids[:1])

        def encode_batch(self, texts):
            return [[0] for _ in texts]

    bundle = SimpleNamespace(source_tokenizer=Tokenizer(), preprocessing=Preprocessing())
    assert living_page._random(bundle) == ["a", "a", "a"]


def test_facts_of_several_values_are_for_people(run_directory):
    bundle = load_bundle(run_directory)
    bundle = replace(bundle, about={"data": ["a.en", "a.de"], "test": {"BLEU": 37.4}})
    facts = living_page.about(bundle, [TEXT])["facts"]
    assert facts == {"data": "a.en · a.de", "test": "BLEU (37.4)"}


def test_an_existing_file_stays(run_directory, tmp_path, capsys):
    out = tmp_path / "page.html"
    out.write_text("mine")
    assert main(["export", str(run_directory), str(out), "--to", "page"]) == 2
    assert f"{out} exists: give a new file" in capsys.readouterr().err
    assert out.read_text() == "mine"
