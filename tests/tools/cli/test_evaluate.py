"""The command ``evaluate``, with files, with a stand-in for a bundle, and with wrong calls."""

import gzip
import json
import math
import os
import sys
import types
from dataclasses import dataclass
from pathlib import Path

import pytest

from glassformer.evaluation import corpus_scores
from glassformer.support.errors import InputError, UsageError
from glassformer.tools.cli.evaluate import EvaluateOptions, run
from glassformer.tools.cli.loading import LoadingOptions
from glassformer.tools.cli.options import parse_options
from tests.tables import every

REFERENCES = ["Ein Mann mit einem Hut.", "Ein Hund läuft über das Gras.", "Leute im Schnee."]
HYPOTHESES = ["Ein Mann mit einem Hut.", "Ein Hund rennt über Gras.", "Leute in Schnee."]


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return path


@pytest.fixture
def hypotheses(tmp_path):
    return write(tmp_path / "out.txt", HYPOTHESES)


@pytest.fixture
def references(tmp_path):
    return write(tmp_path / "ref.de", REFERENCES)


@dataclass
class Echo:
    """A translator whose translations are the source's letters in capitals."""

    directory: Path
    beams: list[int]
    bundle = types.SimpleNamespace(languages=("en", "zh"))

    def translate(self, texts, *, beam=5):
        self.beams.append(beam)
        return [types.SimpleNamespace(text=text.upper()) for text in texts]

    def score(self, sources, targets):
        assert len(sources) == len(targets)
        return [-math.log(4) * count for count in self.count_tokens(targets)]

    def count_tokens(self, targets):
        return [len(target) + 1 for target in targets]


@pytest.fixture
def beams(monkeypatch):
    """Puts the stand-in where the translator is loaded from; gives the beams that it was asked."""
    asked: list[int] = []
    monkeypatch.setattr(LoadingOptions, "load", lambda _, directory, **__: Echo(directory, asked))
    return asked


def call(*arguments) -> int:
    return run(parse_options(EvaluateOptions, [str(argument) for argument in arguments]))


def test_files_are_scored_and_the_language_taken_from_the_name(hypotheses, references, capsys):
    assert call("--hypotheses", hypotheses, "--references", references) == 0

    assert capsys.readouterr().out == f"{corpus_scores(HYPOTHESES, REFERENCES, language='de')}\n"


def test_the_language_is_found_before_a_gzip_ending(hypotheses, tmp_path, capsys):
    packed = tmp_path / "ref.de.gz"
    packed.write_bytes(gzip.compress("".join(f"{line}\n" for line in REFERENCES).encode()))

    assert call("--hypotheses", hypotheses, "--references", packed) == 0

    assert "tok:moses-de" in capsys.readouterr().out


def test_without_a_language_it_is_said_that_the_paper_ruler_needs_one(hypotheses, capsys):
    assert call("--hypotheses", hypotheses, "--references", hypotheses) == 0

    assert "no paper ruler: it needs --language" in capsys.readouterr().out


def test_without_its_extra_the_paper_ruler_names_it(hypotheses, references, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "sacremoses", None)

    assert call("--hypotheses", hypotheses, "--references", references) == 0

    said = "no paper ruler: this needs sacremoses: pip install 'glassformer[ruler]'"
    assert said in capsys.readouterr().out


def test_json_holds_the_same_scores_and_nothing_else(hypotheses, references, capsys):
    assert call("--hypotheses", hypotheses, "--references", references, "--json") == 0

    values = json.loads(capsys.readouterr().out)
    assert values == corpus_scores(HYPOTHESES, REFERENCES, language="de").as_dict()


def test_a_baseline_is_compared(hypotheses, references, tmp_path, capsys):
    baseline = write(tmp_path / "baseline.txt", ["nichts"] * 3)
    files = "--hypotheses", hypotheses, "--references", references, "--baseline", baseline

    assert call(*files) == 0
    assert "paired bootstrap" in capsys.readouterr().out
    assert call(*files, "--json") == 0
    compared = json.loads(capsys.readouterr().out)["comparison"]["bleu"]
    assert compared["baseline"] < compared["system"]
    assert compared["difference"] == compared["system"] - compared["baseline"]


def test_a_bundle_translates_and_is_scored(tmp_path, beams, capsys):
    source = write(tmp_path / "source.en", ["ein mann mit einem hut.", "zwei", "drei"])
    target = write(tmp_path / "target.de", ["EIN MANN MIT EINEM HUT.", "x", "y"])
    output = tmp_path / "output.txt"

    arguments = tmp_path, source, target, "--beam", "3", "--out", output, "--json"
    assert call(*arguments) == 0

    values = json.loads(capsys.readouterr().out)
    assert beams == [3]
    assert values["exact_match"] == pytest.approx(100 / 3)
    assert values["perplexity"] == pytest.approx(4)
    assert output.read_bytes() == b"EIN MANN MIT EINEM HUT.\nZWEI\nDREI\n"
    assert not list(tmp_path.glob("*.partial"))


@pytest.mark.parametrize("name", ["pairs.tsv", "pairs.jsonl"])
def test_a_file_of_pairs_holds_source_and_target(tmp_path, beams, capsys, name):
    pairs = [("ein hund.", "EIN HUND."), ("zwei", "x")]
    lines = {
        "pairs.tsv": ["\t".join(pair) for pair in pairs],
        "pairs.jsonl": [json.dumps({"source": s, "target": t}) for s, t in pairs],
    }

    assert call(tmp_path, write(tmp_path / name, lines[name]), "--json") == 0

    assert json.loads(capsys.readouterr().out)["exact_match"] == 50
    assert beams == [5]


def test_of_several_references_any_may_be_met(hypotheses, references, tmp_path, capsys):
    other = write(tmp_path / "other.de", HYPOTHESES)

    assert call("--hypotheses", hypotheses, "--references", references, other, "--json") == 0

    values = json.loads(capsys.readouterr().out)
    expected = corpus_scores(HYPOTHESES, [REFERENCES, HYPOTHESES], language="de").as_dict()
    assert values == expected
    assert values["bleu"] == pytest.approx(100)
    assert "nw:2" in values["signatures"]["chrf++"]


def test_a_reference_too_long_for_the_model_costs_the_loss_alone(
    tmp_path, beams, capsys, monkeypatch
):
    def refuse(*_):
        raise InputError("pair 1 has 2,000 subwords on a side")

    monkeypatch.setattr(Echo, "score", refuse)
    source = write(tmp_path / "source.en", ["eins zwei drei vier"])
    target = write(tmp_path / "target.de", ["EINS ZWEI DREI VIER"])

    assert call(tmp_path, source, target, "--json") == 0

    said = capsys.readouterr()
    assert said.err == "glassformer: no loss: pair 1 has 2,000 subwords on a side\n"
    values = json.loads(said.out)
    assert values["exact_match"] == 100
    assert values["loss"] is None
    assert beams == [5]


def test_lengths_that_differ_are_named_with_their_files(hypotheses, references, tmp_path, beams):
    short = write(tmp_path / "short.txt", HYPOTHESES[:2])

    for arguments in (
        ("--hypotheses", short, "--references", references),
        ("--hypotheses", hypotheses, "--references", references, "--baseline", short),
        (tmp_path, short, references),
    ):
        with pytest.raises(InputError) as caught:
            call(*arguments)
        assert str(caught.value).startswith(f"{short} has 2 lines and {references} has 3: ")
        assert not isinstance(caught.value, UsageError)
    assert beams == []


def test_a_file_that_is_not_there_is_named(references, tmp_path):
    with pytest.raises(InputError, match=r"absent\.txt"):
        call("--hypotheses", tmp_path / "absent.txt", "--references", references)


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ([], "nothing"),
        (["bundle", "source", "target", "--references", "r"], "BUNDLE, SOURCE, TARGET, --ref"),
        (["--hypotheses", "h"], "--hypotheses"),
        (["--hypotheses", "h", "--references", "r", "--out", "o"], "--hypotheses, --references"),
    ],
)
def test_a_call_that_is_neither_of_the_two_is_refused(arguments, found):
    with pytest.raises(UsageError) as caught:
        call(*arguments)

    message = str(caught.value)
    assert message.startswith(f"evaluate was given {found}")
    assert "BUNDLE SOURCE TARGET" in message
    assert "--hypotheses FILE --references FILE" in message


def test_one_file_that_is_no_file_of_pairs_is_refused():
    with pytest.raises(
        UsageError,
        match="source: no format of pairs has this ending: give TARGET too, or a file of",
    ):
        call("bundle", "source")


def test_a_beam_of_nothing_is_refused():
    with pytest.raises(UsageError, match="--beam '0': expected at least 1"):
        call("bundle", "source", "target", "--beam", "0")


CHINESE = ["我喜欢猫和狗，也喜欢鱼。", "他们在公园里慢慢地跑步。", "今天的天气非常好啊。"]


@every("name", ["zh", "zh-CN", "zh_CN", "cmn", "zho", "zho_Hans", "Chinese"])
def test_any_name_of_a_language_without_spaces_counts(tmp_path, name, capsys):
    hypotheses = write(tmp_path / "out.txt", [CHINESE[0][:-2] + "。", *CHINESE[1:]])
    expected = corpus_scores(hypotheses.read_text("utf-8").splitlines(), CHINESE, language="zh")
    assert expected.bleu > 50

    ending = write(tmp_path / f"ref.{name}", CHINESE)
    call("--hypotheses", hypotheses, "--references", ending)
    by_ending = capsys.readouterr()
    plain = write(tmp_path / "ref.txt", CHINESE)
    call("--hypotheses", hypotheses, "--references", plain, "--language", name)

    assert by_ending == capsys.readouterr() == (f"{expected}\n", "")
    assert "TER" not in by_ending.out
    assert "paper ruler" not in by_ending.out


def test_references_without_spaces_and_blank_ones_are_said(tmp_path, capsys):
    path = write(tmp_path / "out.txt", ["", *CHINESE])
    call("--hypotheses", path, "--references", path)

    assert capsys.readouterr().err.splitlines() == [
        "glassformer: 1 reference of 4 blank: no translation is right",
        "glassformer: most references have no spaces between words, so BLEU means nothing: give"
        " --language, such as zh",
    ]


def test_references_too_short_for_bleu_are_said(tmp_path, capsys):
    path = write(tmp_path / "out.txt", ["Open", "Save all", "Close the window"])
    call("--hypotheses", path, "--references", path)

    assert capsys.readouterr().err == (
        "glassformer: hardly any reference has four words, and BLEU counts groups of four:"
        " compare chrF++\n"
    )


@pytest.mark.usefixtures("beams")
def test_the_bundle_knows_its_language(tmp_path, capsys):
    path = write(tmp_path / "a.txt", CHINESE)

    call(tmp_path, path, path)

    assert "|tok:zh|" in capsys.readouterr().out


def test_a_misspelt_language_names_the_nearest(hypotheses, references):
    with pytest.raises(UsageError, match=r"--language 'dee': expected .* \(did you mean 'de'\?\)"):
        call("--hypotheses", hypotheses, "--references", references, "--language", "dee")


def test_an_output_that_cannot_be_written_is_refused_before_the_work(references, tmp_path, beams):
    for output, reason in ((tmp_path, "a directory"), (tmp_path / "no" / "file", "no directory")):
        with pytest.raises(InputError, match=reason):
            call(tmp_path, references, references, "--out", output)
    assert beams == []


@pytest.mark.usefixtures("beams")
def test_an_output_that_fails_while_written_is_named(references, tmp_path, refused):
    out = tmp_path / "out.txt"
    (tmp_path / ".out.txt.partial").mkdir()

    status, line = refused("evaluate", tmp_path, references, references, "--out", out)

    assert (status, line.split(": ")[0]) == (1, str(out))


@pytest.mark.usefixtures("beams")
def test_an_output_that_is_a_pipe_or_a_link_stays_one(references, tmp_path):
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(tmp_path / "target")
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)  # waits for nobody

    for output in (pipe, link):
        assert call(tmp_path, references, references, "--out", output) == 0

    assert pipe.is_fifo()
    assert link.is_symlink()
    with os.fdopen(reader, "rb") as received:
        assert received.read() == (tmp_path / "target").read_bytes() != b""
