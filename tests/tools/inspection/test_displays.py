"""What the package gives is short in a terminal, and a picture or a table in a notebook."""

import json
import struct
from pathlib import Path
from typing import get_type_hints

import torch
from hypothesis import given
from hypothesis import strategies as st

import glassformer
from glassformer.config import ModelConfig
from glassformer.evaluation import Scores
from glassformer.model.transformer import Transformer
from glassformer.text_engine import Translation
from glassformer.tools.inspection.capture import Capture, capture
from glassformer.tools.inspection.figure1 import figure1
from glassformer.tools.inspection.plots import canvas
from glassformer.tools.inspection.trace.build import trace
from glassformer.training.train import Run
from tests.notebooks import in_notebook
from tests.tables import every

TEXTS = st.text(max_size=3000)
NUMBERS = st.floats()
SCORES = st.builds(
    Scores,
    sentences=st.integers(0, 10**12),
    bleu=NUMBERS,
    chrf=NUMBERS,
    exact_match=NUMBERS,
    loss=st.none() | NUMBERS,
    signatures=st.dictionaries(st.just("bleu"), TEXTS),
)
TRANSLATIONS = st.builds(
    Translation, TEXTS, NUMBERS, st.lists(st.builds(Translation, TEXTS, NUMBERS)).map(tuple)
)
RUNS = st.builds(Run, TEXTS.map(Path), st.just({}) | SCORES.map(Scores.as_dict), st.none() | SCORES)
CAPTURES = st.lists(TEXTS, max_size=99).map(Capture)
PLOTS = [name for name in glassformer.__all__ if name.startswith("plot_")]


def check_display(item, most=2000):
    assert len(repr(item)) < most, repr(item)[:200]
    html = item._repr_html_()
    assert html.startswith("<table")
    assert html.count("<tr>") == min(len(item.records()), 200) + 1 + (len(item.records()) > 200)


@given(SCORES | TRANSLATIONS | RUNS | CAPTURES)
def test_records_of_any_size_are_short(item):
    check_display(item)


@given(st.integers(1, 9), st.integers(1, 9), st.sampled_from(["pre", "post"]), st.integers(1, 99))
def test_a_model_s_summary_has_all_its_parameters(encoder, decoder, norm, length):
    sizes = {"d_model": 8, "num_heads": 2, "d_ff": 12, "norm": norm}
    layers = {"num_encoder_layers": encoder, "num_decoder_layers": decoder}
    model = Transformer(ModelConfig(source_vocab_size=37, target_vocab_size=41, **sizes, **layers))
    boxes = figure1(model, length, 5)
    check_display(boxes)
    *rows, total = boxes.records()

    assert total["parameters"] == sum(weight.numel() for weight in model.parameters())
    assert total["parameters"] == sum(row["parameters"] for row in rows)
    assert sum(row["layers"] for row in rows) == len(boxes)
    assert repr(boxes).splitlines()[-1].split() == ["all", f"{total['parameters']:,}"]


def test_a_trace_and_a_capture_show_themselves(beginner):
    translator = beginner()
    traced = trace(translator, "A dog runs across the grass. " * 9)
    with torch.no_grad(), capture(translator.model) as seen:
        translator.model(torch.tensor([[5, 6, 3]]), torch.tensor([[2, 7, 8, 9]]))

    check_display(traced)
    check_display(seen)
    assert len(traced.records()) == len(traced.steps)
    assert [row["probability"] for row in traced.records()] == [
        step.written.probability for step in traced.steps
    ]
    calls = {row["sublayer"]: row["weights"] for row in seen.records()}
    assert calls["decoder.blocks.1.cross_attention"] == (1, 2, 4, 3)
    assert calls["decoder.blocks.1.feed_forward"] is None


def test_the_page_of_a_trace_holds_its_trace(beginner):
    traced = trace(beginner(), "An old hat.")
    stored = traced.page().partition('id="stored">')[2].partition("</script>")[0]

    assert json.loads(stored)["trace"] == json.loads(traced.to_json())


@every("name", PLOTS)
def test_each_plot_gives_a_figure_that_shows_itself(name):
    assert get_type_hints(getattr(glassformer, name))["return"] is canvas.Figure


def test_each_figure_is_a_picture_in_a_notebook():
    for figure in (canvas.new_figure(3, 2), canvas.sheet(3, 2)[0]):
        png = figure._repr_png_()
        assert png.startswith(b"\x89PNG")
        assert struct.unpack(">II", png[16:24]) == (300, 200)


def test_a_figure_shows_itself_in_the_cell(monkeypatch):
    outputs = in_notebook(monkeypatch)
    figure = glassformer.plot_figure2()
    figure.show()

    assert [output.shown for output in outputs] == [figure]


def test_a_script_prints_and_opens_the_picture(monkeypatch, capsys, tmp_path):
    opened = []
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr("glassformer.tools.inspection.plots.canvas.open_in_browser", opened.append)
    glassformer.plot_figure2().show()
    [file] = tmp_path.glob("*.png")

    assert capsys.readouterr().out == f"the picture: {file}\n"
    assert opened == [file.as_uri()]
    assert file.read_bytes() == glassformer.plot_figure2()._repr_png_()
