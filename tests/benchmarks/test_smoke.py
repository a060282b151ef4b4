"""Each figure once, on toy sizes, from the command line to its JSON file."""

import json
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from runpy import run_path
from types import SimpleNamespace

import pytest

from benchmarks import decoding, environments, gpu, pairs, quality, training
from benchmarks.__main__ import main
from benchmarks.peers import measure
from glassformer.tools.cli.main import main as glassformer
from glassformer.tools.phrasebook.book import phrasebook

PEERS = Path(measure.__file__).parent
PLAIN = {"precision": "float32", "compiled": False}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder with Multi30k's file names: a few phrases each."""
    directory = tmp_path_factory.mktemp("data")
    book = phrasebook(seed=3, size=200)
    parts = {"train": book.train, "val": book.validation[:8], "test": book.test[:8]}
    for name, phrases in parts.items():
        for code, side in (("en", "source"), ("de", "target")):
            lines = "".join(f"{getattr(phrase, side)}\n" for phrase in phrases)
            (directory / f"{name}.{code}").write_text(lines, encoding="utf-8")
    return directory


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    """The programs run in this process, but for one that imports little."""
    for peer in ("torch_nn", "marian", "ctranslate2"):
        monkeypatch.setitem(environments.REQUIREMENTS, peer, ())  # the tests have these packages
    for module in (training, decoding):
        monkeypatch.setattr(module, "matrix_peak", lambda _: {"float32": 1e9, "bf16": 1e8})
    as_process = pairs.run

    def run(contender, **_):
        if contender.environment == "ctranslate2":
            return as_process(contender)
        measure.job.clear()
        measure.job.update(contender.job)
        with redirect_stdout(StringIO()) as output:
            run_path(str(PEERS / f"{contender.module}.py"), run_name="__main__")
        return json.loads(output.getvalue().splitlines()[-1])

    monkeypatch.setattr(pairs, "run", run)
    yield
    measure.job.clear()


@pytest.fixture
def figure(tmp_path, data):
    """Measures one figure with small settings and returns its JSON file."""
    common = ("--data", data, "--out", tmp_path, "--work", tmp_path / "work", "--threads", 1)

    def measured(name, stored, *words):
        assert main(list(map(str, (name, *common, *words)))) == 0
        return json.loads((tmp_path / stored).read_text("utf-8"))

    return measured


def test_training(figure, monkeypatch):
    monkeypatch.setattr(training, "settings_of", lambda *_: [PLAIN])
    words = ("--sizes", "tiny", "--peers", "torch_nn", "--updates", 1, "--warm", 1)

    figures = figure("training", "training-tiny.json", *words, "--batch-tokens", 128, "--rounds", 1)

    ((ours, theirs),) = figures["peers"][0]["rounds"]
    assert ours["tokens"] == theirs["tokens"] > 50
    assert figures["flops_per_update"] > 1e8


def test_decoding(figure, bundle_directory, monkeypatch):
    everything = decoding._engines

    def some(task, computes):
        ours, peer, _, raw, *_ = everything(task, computes)
        return [ours, peer[:1], raw[:1]]

    monkeypatch.setattr(decoding, "_engines", some)
    words = ("--bundle", bundle_directory, "--ways", "file", "--beams", 2, "--rounds", 1)

    figures = figure("decoding", "decoding-file-beam2.json", *words, "--sentences", 4)

    names = ["Glassformer", "Hugging Face", "CTranslate2 float32"]
    assert [name.split(" (")[0] for name in figures["engines"]] == names
    assert [row[0] for row in figures["rows"]] == figures["engines"]
    # Two of the four never end, and the programs' limits differ.
    assert [row[4] for row in figures["rows"]] == ["100.0 %", "50.0 %", "50.0 %"]
    assert all(report["sentences"] == 4 for report in figures["rounds"][0])


def test_gpu(figure, monkeypatch):
    """Two programs; a call of the command itself tries compiled peers and decoding too."""
    programs, two = gpu._programs, ("Glassformer (padded)", "torch.nn.Transformer (eager)")
    chosen = lambda job: [each for each in programs(job) if str(each) in two]  # noqa: E731
    monkeypatch.setattr(gpu, "_programs", chosen)
    words = ("--device", "cpu", "--tiny", "--warm", 1, "--updates", 2)

    figures = figure("gpu", "gpu-tiny.json", *words, "--stages", "small", "profile")

    ours, theirs, *again = figures["small"]
    assert ours["tokens"] == theirs["tokens"] > 100
    assert ours["slowest_update"] >= ours["median_update"] > 0
    assert [report["program"] for report in again] == [theirs["program"], ours["program"]]
    whole, *longest = figures["profile"]
    assert 0 < whole["busy_share"] <= 1
    assert len(longest) == 40
    assert whole["kernels_per_update"] > sum(report["each"] for report in longest) > 100


def test_quality(figure, tmp_path, monkeypatch):
    few = ["--updates", "2", "--d-model", "16", "--d-ff", "16", "--vocab-size", "300"]

    def trained(words, **_):
        return SimpleNamespace(returncode=glassformer([*words[3:], *few]))

    monkeypatch.setattr(quality, "subprocess", SimpleNamespace(run=trained))

    figures = figure("quality", "quality.json", "--run", tmp_path / "run")

    assert figures["validations"][-1]["seconds"] < 60 * figures["minutes"]
    assert "BLEU" in figures["about"]["test"]


@pytest.mark.usefixtures("nightly")
def test_serving(figure, bundle_directory):
    words = ("--bundle", bundle_directory, "--clients", 1, 2, "--seconds", 0.5)

    figures = figure("serving", "serving.json", *words)

    assert [load["clients"] for load in figures["loads"]] == [1, 2]
    assert all(load["longest_ms"] >= load["median_ms"] > 0 for load in figures["loads"])
