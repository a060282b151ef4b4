"""A translator of a learner's parts: ``learn train``, and ``--parts`` of translate and look."""

import hashlib
import io
import json
import re
import sys
from contextlib import redirect_stderr, redirect_stdout
from types import SimpleNamespace

import pytest

from glassformer.parts import FAST, PLAIN
from glassformer.tools.cli.main import main
from glassformer.tools.learn.folder import Folder
from glassformer.tools.learn.lesson import lesson
from glassformer.tools.learn.parts import mistaken_parts, own_parts
from glassformer.translator import Translator

pytestmark = pytest.mark.usefixtures("without_shape_types")
TINY = ["--size", "100", "--epochs", "0.1"]
HOLE = "    raise NotImplementedError\n"
ATTENTION = """\
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.size(-1))
    weights = masked_softmax(scores, mask)
    return weights @ value, weights
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder whose first lesson is right, and not checked yet."""
    folder = Folder(tmp_path_factory.mktemp("mine"))
    folder.make()
    file = folder.file(lesson("attention"))
    file.write_text(file.read_text("utf-8").replace(HOLE, ATTENTION), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def trained(folder):
    """The directory of a translator with the learner's attention, and what its training prints."""
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(out):
        assert main(["learn", "train", str(folder.path), *TINY]) == 0
    return SimpleNamespace(directory=folder.path / "translator", text=out.getvalue())


def test_it_prints_whose_each_part_is(trained):
    first, *others = trained.text.splitlines()
    assert first == "yours: attention"
    assert others[0].startswith("the package's: padding, causal, ")
    # Whose the parts are, the data, the model: then the training begins.
    assert next(n for n, line in enumerate(others) if line.startswith("after ")) < 11
    assert "never run, because torch has a LayerNorm: layer_norm" in others
    assert "beam search with 4: " in trained.text


def test_its_end_says_what_was_learned_what_ran_and_what_to_try_before_any_table(trained, folder):
    end = trained.text[: trained.text.index("exact match on held-out years")].splitlines()[-5:]
    assert re.match(
        r"From 100 pairs and no rule, .* learned to write \d+\.\d % of \d+ phrases", end[0]
    )
    assert end[1] == "Your parts of these lessons ran in it: attention."
    assert end[3] == f"glassformer learn train {folder.path} --mistake causal-missing"
    other = f"{folder.path}/translator-causal-missing"
    assert end[4] == f"glassformer learn compare {trained.directory} {other}"


def test_right_parts_train_the_very_same_translator(trained, tmp_path):
    empty = tmp_path / "empty"
    Folder(empty).make()
    assert main(["learn", "train", str(empty), *TINY]) == 0
    weights = (trained.directory / "model.safetensors").read_bytes()
    assert (empty / "translator" / "model.safetensors").read_bytes() == weights


def test_the_bundle_holds_the_parts_as_text(trained, folder):
    source = folder.file(lesson("attention")).read_bytes()
    assert (trained.directory / "parts" / "01_attention.py").read_bytes() == source
    record = json.loads((trained.directory / "parts" / "parts.json").read_text("utf-8"))
    assert record == [
        {
            "place": "model.attention.scaled_dot_product_attention",
            "mistakes": [],
            "file": "01_attention.py",
            "sha256": hashlib.sha256(source).hexdigest(),
        }
    ]
    card = (trained.directory / "README.md").read_text("utf-8")
    assert "- parts: model.attention.scaled_dot_product_attention (yours)\n" in card


def test_a_bundle_never_runs_its_parts(trained):
    part = trained.directory / "parts" / "01_attention.py"
    source = part.read_bytes()
    part.write_text("raise SystemExit('the part ran')\n", encoding="utf-8")
    try:
        for parts in (FAST, PLAIN):
            Translator.load(trained.directory, parts=parts).translate(["March 4, 2030"])
    finally:
        part.write_bytes(source)


@pytest.fixture
def translated(capfd, monkeypatch, tmp_path):
    """What the command ``translate`` prints for a line."""

    def run(directory, *words):
        with (tmp_path / "text").open("w+", encoding="utf-8") as text:
            text.write("March 4, 2030\n")
            text.seek(0)
            monkeypatch.setattr(sys, "stdin", text)
            assert main(["translate", str(directory), *words]) == 0
        return capfd.readouterr()

    return run


def test_translate_with_the_folders_parts(trained, folder, translated):
    own = translated(trained.directory, "--parts", str(folder.path))
    plain = translated(trained.directory, "--plain")

    line = f"parts of {folder.path}, by the plain path: attention"
    assert (line in own.err.splitlines(), line in plain.err) == (True, False)
    assert own.out == plain.out


def test_look_with_the_folders_parts(trained, folder, tmp_path, capsys):
    page = tmp_path / "page.html"
    words = ["--text", "March 4, 2030", "--out", str(page), "--parts", str(folder.path)]
    assert main(["look", str(trained.directory), *words]) == 0
    assert "by the plain path: attention\n" in capsys.readouterr().err
    assert '"own":"yours"' in page.read_text("utf-8").replace(" ", "")


def test_parts_need_the_plain_path(trained, folder, capsys):
    words = ["--parts", str(folder.path), "--quantization", "bfloat16"]
    assert main(["translate", str(trained.directory), *words]) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.endswith("quantization 'bfloat16': only the fast decoder has it: leave it out")
    words = ["--parts", str(folder.path), "--engine", "ctranslate2"]
    assert main(["translate", str(trained.directory), *words]) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.endswith("engine ctranslate2 has forms of its own: leave plain and parts out")


@pytest.fixture(scope="module")
def mistaken(folder):
    """The directory of a translator with the learner's attention and a mistake in the mask."""
    words = ["--mistake", "padding-inverted", *TINY]
    assert main(["learn", "train", str(folder.path), *words]) == 0
    return folder.path / "translator-padding-inverted"


def test_a_right_learners_bundle_has_the_packages_names(trained):
    assert json.loads((trained.directory / "config.json").read_text("utf-8"))["parts"] == {}
    texts = ["March 4, 2030"]
    fast, plain = (Translator.load(trained.directory, parts=each) for each in (FAST, PLAIN))
    assert fast.translate(texts)[0].text == plain.translate(texts)[0].text


@pytest.mark.parametrize("words", [[], ["--plain"]], ids=str)
def test_translate_runs_the_mistakes_of_a_bundle(mistaken, translated, words):
    config = json.loads((mistaken / "config.json").read_text("utf-8"))
    assert config["parts"] == {"model": "Transformer with padding-inverted"}
    parts = own_parts(mistaken_parts(["padding-inverted"]))
    right = Translator.load(mistaken, parts=parts).translate(["March 4, 2030"])[0].text

    printed = translated(mistaken, *words)

    line = f"parts of {mistaken}, by the plain path: padding_mask (a mistake)\n"
    assert (printed.err, printed.out) == (line, f"{right}\n")


def test_look_shows_the_mistakes_of_a_bundle(mistaken, tmp_path, capsys):
    page = tmp_path / "page.html"
    assert main(["look", str(mistaken), "--text", "March 4, 2030", "--out", str(page)]) == 0
    assert "by the plain path: padding_mask (a mistake)" in capsys.readouterr().err
    assert '"own":"mistakepadding-inverted"' in page.read_text("utf-8").replace(" ", "")


@pytest.mark.parametrize(
    "words",
    [
        ["evaluate", "BUNDLE", "TEXT", "TEXT"],
        ["serve", "BUNDLE"],
        ["export", "BUNDLE", "OUT"],
        ["train", "TEXT", "TEXT", "--from", "BUNDLE", "--out", "OUT"],
    ],
    ids=lambda words: words[0],
)
def test_other_commands_refuse_a_bundle_with_mistakes(mistaken, refused, tmp_path, words):
    text = tmp_path / "text.en"
    text.write_text("March 4, 2030\n", encoding="utf-8")
    paths = {"BUNDLE": mistaken, "TEXT": text, "OUT": tmp_path / "out"}

    status, line = refused(*(paths.get(word, word) for word in words))

    assert status == 1
    assert line == (
        f"{mistaken} was trained with 'model Transformer with padding-inverted': give parts with"
        " that name (in Python), or train anew with the package's parts"
    )


def test_parts_of_no_folder(trained, tmp_path, refused):
    status, line = refused("translate", trained.directory, "--parts", tmp_path)
    assert status == 1
    assert line == f"{tmp_path} has no lessons; this makes them: glassformer learn {tmp_path}"


def test_other_parts_need_another_directory(trained, folder, refused):
    words = ["--mistake", "scale-missing", "--out", trained.directory, *TINY]
    status, line = refused("learn", "train", folder.path, *words)
    assert status == 1
    assert line.startswith(f"{trained.directory} has other parts: remove the directory")


def test_a_mistake_that_cannot_train_is_one_line(folder, tmp_path, capsys):
    words = ["--mistake", "padding-as-numbers", "--out", str(tmp_path / "wrong"), *TINY]
    assert main(["learn", "train", str(folder.path), *words]) == 1
    printed = capsys.readouterr()
    assert "mistake padding-as-numbers: padding_mask\n" in printed.out
    assert "mistake padding-as-numbers" in printed.out
    assert printed.err.splitlines()[-1].startswith(
        "glassformer: error: with these parts the translator fails: TypeError: a mask must be"
    )


def test_a_translator_and_a_mistake_side_by_side(trained, folder, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("glassformer.tools.cli.compare_translators._PHRASES", 240)
    assert main(["learn", "train", str(folder.path), "--mistake", "scale-missing", *TINY]) == 0
    capsys.readouterr()
    words = [str(trained.directory), "scale-missing", "--out", str(tmp_path / "compared")]
    assert main(["learn", "compare", *words]) == 0
    printed = capsys.readouterr().out
    assert printed.splitlines()[:2] == [
        f"{trained.directory}: own lessons: attention",
        f"{trained.directory}-scale-missing: mistakes: scale-missing",
    ]
    assert "exact match" in printed
    for picture in ("losses", "attention"):
        assert (tmp_path / "compared" / f"{picture}.png").read_bytes().startswith(b"\x89PNG")


def test_a_mistake_that_is_not_trained(trained, folder, refused):
    status, line = refused("learn", "compare", trained.directory, "scale-times-root")
    assert status == 1
    assert line.endswith(f": glassformer learn train {folder.path} --mistake scale-times-root")


def test_a_translator_with_itself(trained, refused):
    status, line = refused("learn", "compare", trained.directory, trained.directory)
    assert (status, line.endswith("expected two different names")) == (1, True)
