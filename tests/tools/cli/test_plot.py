import json
import os
import threading

import pytest
import torch

from glassformer.bundle import Bundle, save_bundle
from glassformer.config import ModelConfig
from glassformer.data.subword_training import train_tokenizer
from glassformer.model.transformer import Transformer
from glassformer.support.errors import InputError, UsageError
from glassformer.tools.cli import plot
from glassformer.tools.cli.options import parse_options
from tests.tables import every


def call(*arguments: object) -> int:
    words = [str(argument) for argument in arguments]
    return plot.run(parse_options(plot.OPTIONS[words[0]], words[1:]))


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    """A random translator."""
    tokenizer = train_tokenizer(["two men walk", "zwei Männer gehen"], vocab_size=320)
    torch.manual_seed(1)
    sizes = {"d_model": 8, "num_heads": 2, "d_ff": 8, "max_length": 64}
    layers = {"num_encoder_layers": 2, "num_decoder_layers": 1, "positions": "learned"}
    vocabulary = dict.fromkeys(("source_vocab_size", "target_vocab_size"), tokenizer.vocab_size)
    model = Transformer(ModelConfig(**(sizes | layers | vocabulary)))
    directory = tmp_path_factory.mktemp("bundle")
    save_bundle(Bundle(model, tokenizer, tokenizer), directory)
    return directory


@pytest.fixture
def run_directory(tmp_path):
    record = {"kind": "update", "update": 1, "loss": 4.0, "learning_rate": 0.1, "seconds": 60.0}
    lines = [json.dumps(record | {"update": number}) for number in (1, 2)]
    (tmp_path / "metrics.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    "arguments",
    [
        ["masks", "--source", "A dog runs", "--target", "Ein Hund rennt"],
        ["masks", "--target", "Ein Hund", "--padding", 0],
        ["positions", "--length", 20, "--offset", 3],
        ["positions", "--columns", 0, 1, "--layout", "halves", "--apart", 2],
        ["positions", "--rows", 0, 50],
        ["positions", "--view", "heatmap", "--frequencies", "tensor2tensor"],
        ["schedule", "--d-model", 128, "--warmup", 100, "--updates", 500],
    ],
)
def test_each_picture_is_written_and_named(arguments, tmp_path, capsys):
    out = tmp_path / "picture.svg"
    assert call(*arguments, "--out", out) == 0
    assert capsys.readouterr().out == f"wrote {out}\n"
    assert "<svg" in out.read_text(encoding="utf-8")


def test_a_picture_without_a_name_has_its_kinds(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert call("positions", "--length", 5, "--d-model", 4) == 0
    assert capsys.readouterr().out == "wrote positions.png\n"
    assert [path.name for path in tmp_path.iterdir()] == ["positions.png"]


def test_a_picture_goes_through_a_pipe_or_a_link(tmp_path):
    pipe, link = tmp_path / "pipe.svg", tmp_path / "link.svg"
    os.mkfifo(pipe)
    link.symlink_to(tmp_path / "target")
    pictures: list[bytes] = []
    reader = threading.Thread(target=lambda: pictures.append(pipe.read_bytes()), daemon=True)
    reader.start()

    for out in (pipe, link):
        assert call("masks", "--source", "A dog", "--out", out) == 0

    reader.join(timeout=60)
    assert pipe.is_fifo()
    assert link.is_symlink()
    assert pictures == [(tmp_path / "target").read_bytes()]
    assert b"<svg" in pictures[0]


def test_training(run_directory):
    assert call("training", run_directory, "--out", run_directory / "a.png") == 0
    assert (run_directory / "a.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("folder", ["other", "a-long-name-" * 20])
def test_several_trainings_have_a_table_of_their_scores(run_directory, tmp_path, capsys, folder):
    other = tmp_path / folder
    other.mkdir()
    score = {"kind": "score", "update": 2, "name": "test", "bleu": 30.0}
    lines = (run_directory / "metrics.jsonl").read_text()
    (other / "metrics.jsonl").write_text(f"{lines}{json.dumps(score)}\n")

    out = tmp_path / "both.png"
    assert call("training", run_directory, other, "--out", out) == 0
    assert out.read_bytes().startswith(b"\x89PNG")
    head, first, second, *_ = (line.split() for line in capsys.readouterr().out.splitlines())
    assert (head, first[-1], second[-1]) == (["run", "test"], "-", "30.00")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--target", "zwei Männer", "--part", "encoder"],
        ["--target", "zwei", "--layer", 1, "--head", 2],
        ["--target", "zwei", "--head", "mean", "--part", "decoder"],
    ],
)
def test_attention_of_a_bundle(bundle, tmp_path, capsys, arguments):
    out = tmp_path / "a.svg"
    assert call("attention", bundle, "two men walk", *arguments, "--out", out) == 0
    assert capsys.readouterr().out == f"wrote {out}\n"
    assert out.exists()


@pytest.mark.parametrize("part", ["encoder", "decoder"])
def test_a_title_of_the_grid_can_be_typed(bundle, part):
    """The panel named "layer 2, head 1" is the picture of ``--layer 2 --head 1``."""
    given = {"bundle": bundle, "text": "two men", "target": "zwei Männer", "part": part}
    panels = [axes for axes in plot.AttentionOptions(**given).draw().axes if axes.images]
    titles = [panel.get_title() for panel in panels]
    layers = 2 if part == "encoder" else 1
    assert titles == [f"layer {n}, head {m}" for n in range(1, layers + 1) for m in (1, 2)]
    for panel, title in zip(panels, titles, strict=True):
        layer, head = (int(words.split()[1]) for words in title.split(", "))
        alone = plot.AttentionOptions(**given, layer=layer, head=head).draw()
        assert alone.get_suptitle().endswith(title)
        weights = [axes.images[0].get_array().tolist() for axes in (panel, alone.axes[0])]
        assert weights[0] == weights[1]


@pytest.mark.parametrize("words", [[], ["--layer", 1, "--head", 2]])
def test_a_bundle_is_traced_and_its_answer_said(bundle, tmp_path, capsys, words):
    out = tmp_path / "picture.svg"
    assert call("alignment", bundle, "two men", *words, "--beam", 1, "--out", out) == 0
    assert capsys.readouterr().out.startswith("translation: ")
    assert out.exists()


def test_attention_over_the_bundles_own_translation(bundle, tmp_path, capsys):
    from glassformer.translator import Translator

    expected = Translator.load(bundle).translate(["two men"])[0].text
    assert call("attention", bundle, "two men", "--head", "mean", "--out", tmp_path / "a.svg") == 0
    assert capsys.readouterr().out.startswith(f"translation: {expected}\n")


def test_the_bundles_tokens(bundle):
    figure = plot.MasksOptions(source="two twomen", bundle=bundle, padding=0).draw()
    labels = [tick.get_text() for tick in figure.axes[0].get_xticklabels()]
    assert labels[:2] == ["two", "two"]
    assert labels[-1] == "</s>"


@every(
    ("arguments", "error", "message"),
    [
        (["masks"], UsageError, "give a sentence with --source"),
        (["masks", "--source", " "], UsageError, "--source ' ': expected a sentence"),
        (
            ["masks", "--source", "a", "--padding", -1],
            UsageError,
            "--padding '-1': expected at least 0",
        ),
        (["positions", "--d-model", 7], UsageError, "--d-model '7': expected a multiple of 2"),
        (["positions", "--length", 0], UsageError, "--length '0': expected at least 1"),
        (["positions", "--columns", 128], UsageError, "column 128: .* columns 0 to 127"),
        (
            ["positions", "--view", "heatmap", "--rows", 1],
            UsageError,
            "a heatmap has all columns and rows: leave --columns and --rows out",
        ),
        (["positions", "--columns", 1, "--rows", 1], UsageError, "columns and rows: give one"),
        (["positions", "--view", "heatmap", "--apart", 2], UsageError, "give columns or rows too"),
        (["schedule", "--warmup", 1, 2], UsageError, "--warmup has 2 values and --d-model 3"),
        (
            ["schedule", "--d-model", 8, "--warmup", 0],
            UsageError,
            "--warmup '0': expected at",
        ),
        (["training", "nowhere"], InputError, "nowhere: not a run"),
        (["attention", "nowhere", "two"], InputError, "nowhere: not a bundle"),
        (["attention", "nowhere", ""], UsageError, "source sentence is empty"),
        (["schedule", "--out", "s.pdf"], UsageError, r"s\.pdf: .* \.png or \.svg"),
        (
            ["figure1", "nowhere", "two", "--out", "no/a.png"],
            InputError,
            "--out no/a.png: there is no directory",
        ),
        (["figure1"], UsageError, "BUNDLE is missing"),
        (["figure1", "nowhere"], UsageError, "TEXT is missing"),
        (["figure1", "a", "two", "--beam", 101], UsageError, "--beam '101': expected at most 100"),
    ],
)
def test_bad_calls_are_one_clear_line(arguments, error, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=message) as raised:
        call(*arguments)
    assert "\n" not in str(raised.value)
    assert list(tmp_path.iterdir()) == []


def test_bad_values_for_a_bundle(bundle, tmp_path):
    out = ("--out", tmp_path / "a.png")
    for kind, layer in (("attention", 9), ("alignment", 0)):
        with pytest.raises(UsageError, match=f"layer {layer}: expected 1 to 1; layers count from"):
            call(kind, bundle, "two men", "--layer", layer, *out)
    for kind in ("attention", "alignment"):
        with pytest.raises(UsageError, match=r"^head 0: expected 1 to 2; heads count from 1"):
            call(kind, bundle, "two men", "--layer", 1, "--head", 0, *out)
