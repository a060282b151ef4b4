"""Each figure once, on toy sizes, from the command line to its JSON file."""

import json

import pytest
import torch

from benchmarks import decoding, environments, ranks, training, unclean
from benchmarks.__main__ import main
from benchmarks.peers import translate_command
from glassformer.bundle import Bundle, save_bundle
from glassformer.config import ModelConfig
from glassformer.data.phrasebook.book import phrasebook
from glassformer.data.tokenizer import train_tokenizer
from glassformer.model.transformer import Transformer

PLAIN = {"precision": "float32", "compiled": False}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder with Multi30k's file names: a few phrases each."""
    directory = tmp_path_factory.mktemp("data")
    book = phrasebook(seed=3, size=400)
    parts = {"train": book.train[:200], "val": book.validation, "test": book.test}
    for name, phrases in parts.items():
        for code, side in (("en", "source"), ("de", "target")):
            lines = "".join(f"{getattr(phrase, side)}\n" for phrase in phrases)
            (directory / f"{name}.{code}").write_text(lines, encoding="utf-8")
    return directory


@pytest.fixture(scope="module")
def bundle(tmp_path_factory, data):
    """A translator without training."""
    texts = (data / "train.en").read_text("utf-8").splitlines()
    tokenizer = train_tokenizer(texts, vocab_size=300)
    torch.manual_seed(5)
    sizes = {"d_model": 16, "num_heads": 2, "d_ff": 24}
    layers = {"num_encoder_layers": 1, "num_decoder_layers": 1}
    vocabularies = dict.fromkeys(("source_vocab_size", "target_vocab_size"), tokenizer.vocab_size)
    model = Transformer(ModelConfig(**vocabularies, **sizes, **layers)).eval()
    directory = tmp_path_factory.mktemp("bundle")
    save_bundle(Bundle(model, tokenizer, tokenizer, languages=("en", "de")), directory)
    return directory


@pytest.fixture
def figure(tmp_path, data, monkeypatch):
    """Runs one figure with small settings and returns its JSON file."""
    for peer in ("torch_nn", "marian", "ctranslate2"):
        monkeypatch.setitem(environments.REQUIREMENTS, peer, ())  # the tests have these packages
    for module in (training, decoding):
        monkeypatch.setattr(module, "matrix_peak", lambda _: {"float32": 1e9, "bf16": 1e8})
    monkeypatch.setattr("benchmarks.options.HERE", tmp_path)
    common = ("--data", data, "--out", tmp_path, "--threads", 1, "--pairs", 1)

    def run(name, stored, *words):
        assert main(list(map(str, (name, *common, *words)))) == 0
        return json.loads((tmp_path / stored).read_text("utf-8"))

    return run


def test_training(figure, monkeypatch):
    monkeypatch.setattr(training, "settings_of", lambda *_: [PLAIN])
    words = ("--sizes", "tiny", "--peers", "torch_nn", "--updates", 1, "--warm", 1)

    figures = figure("training", "training-tiny.json", *words, "--batch-tokens", 128)

    ((ours, theirs),) = figures["peers"][0]["pairs"]
    assert ours["tokens"] == theirs["tokens"] > 50
    assert figures["flops_per_update"] > 1e8


def test_decoding(figure, bundle, monkeypatch):
    everything = decoding._engines

    def some(task, _):
        engines = everything(task, ["float32"])
        names = ("Glassformer", "Hugging Face", "CTranslate2 float32")
        return {name: engines[name][:1] for name in names}

    monkeypatch.setattr(decoding, "_engines", some)
    words = ("--bundle", bundle, "--ways", "file", "--beams", 2, "--sentences", 4)

    figures = figure("decoding", "decoding-file-beam2.json", *words)

    assert [row[0] for row in figures["rows"]] == figures["engines"]
    assert figures["rows"][0][5] == "100.0 %"  # ours beside ours
    assert all(report["sentences"] == 4 for report in figures["rounds"][0])


def test_the_command_is_timed_with_its_start(bundle, monkeypatch):
    job = {"bundle": str(bundle), "beam": 1, "device": "cpu", "threads": 1, "engine": "torch"}
    monkeypatch.setattr(translate_command, "job", {**job, "compute": "float32"})

    seconds, lines = translate_command.seconds_of(["May 4", "May 5"])

    assert seconds > 0
    assert len(lines) == 2


def test_quality(figure, tmp_path):
    figures = figure("quality", "quality.json", "--run", tmp_path / "run", "--minutes", 0.1)

    assert figures["validations"][-1]["minutes"] <= figures["minutes"]
    assert "BLEU" in figures["about"]["test"]


def test_serving(figure, bundle):
    words = ("--bundle", bundle, "--clients", 1, 2, "--seconds", 1)

    figures = figure("serving", "serving.json", *words)

    assert [load["clients"] for load in figures["loads"]] == [1, 2]
    assert all(load["longest_ms"] >= load["median_ms"] > 0 for load in figures["loads"])


def test_unclean_text_in_three_tables(data, bundle, capsys, monkeypatch):
    few = dict(list(unclean.FAULTS.items())[:2])  # a model without training writes long texts
    monkeypatch.setattr(unclean, "FAULTS", few)
    files = [str(data / f"test.{code}") for code in ("en", "de")]

    assert unclean.main([str(bundle), *files, "--sentences", "5", "--spans", "7"]) == 0

    rows = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines()]
    assert [row[1] for row in rows if row[0] == "2 a line"] == ["4"]
    assert set(unclean.FAULTS) <= {row[0] for row in rows}
    assert [row[1::2] for row in rows if row[0] == "all"] == [["7", "7"]]


def test_the_updates_of_a_rank(data, tmp_path, monkeypatch):
    for owner, name in ((ranks.BatchStream, "next_batches"), (ranks.Ranks, "sum")):
        monkeypatch.setattr(owner, name, getattr(owner, name))  # to be restored
    for name in ("gradient", "step"):
        monkeypatch.setattr(ranks.Learner, name, getattr(ranks.Learner, name))
    monkeypatch.setenv("RANK", "0")
    texts = [str(data / f"train.{code}") for code in ("en", "de")]
    sizes = ["--preset", "tiny", "--d-model", "16", "--d-ff", "16", "--vocab-size", "300"]
    rest = ["--updates", "5", "--validations", "1", "--beam", "1", "--device", "cpu"]

    out = ["--out", str(tmp_path / "run")]
    assert ranks.rank(tmp_path, ["train", *texts, *sizes, *rest, *out]) == 0

    processes, speed, *times, share, loss = ranks._row(tmp_path, first=tmp_path)
    assert (processes, share, loss) == ("1", "1.000", "0e+00, 0e+00, 0e+00")
    update, input_, computing, talking = (float(ms.replace(",", "")) for ms in times)
    assert update == pytest.approx(input_ + computing + talking, abs=0.3)
    assert float(speed.replace(",", "")) > 0
