"""Pictures of a trace: what they draw is what the trace says, at any length and in any script."""

from itertools import combinations

import numpy as np
import pytest
import torch
from matplotlib.text import Text

from glassformer.bundle import Bundle
from glassformer.config import ModelConfig
from glassformer.data.subword_training import train_tokenizer
from glassformer.data.words import Link
from glassformer.model.transformer import Transformer
from glassformer.tools.inspection.attention_of import attention_of
from glassformer.tools.inspection.plots import alignment, attention, figure1, lettering
from glassformer.tools.inspection.trace.build import trace
from glassformer.tools.inspection.trace.schema import Query
from glassformer.translator import Translator

TEXTS = ["two men walk in the snow", "zwei Männer gehen im Schnee", "ein Mann geht"]


def parts_of(norm="post"):
    tokenizer = train_tokenizer(TEXTS * 3, vocab_size=320)
    torch.manual_seed(5)
    sizes = {"d_model": 12, "num_heads": 3, "d_ff": 8, "max_length": 1024, "norm": norm}
    layers = {"num_encoder_layers": 1, "num_decoder_layers": 2, "dropout": 0.0}
    vocabulary = dict.fromkeys(("source_vocab_size", "target_vocab_size"), tokenizer.vocab_size)
    model = Transformer(ModelConfig(**(sizes | layers | vocabulary))).eval()
    with torch.no_grad():
        for weight in model.parameters():  # bolder than at the start of a training
            weight.mul_(2.0)
    return Translator(Bundle(model, tokenizer, tokenizer))


def traced(parts, text, said, top=4):
    ids = [*parts.target_tokenizer.encode(said), parts.target_tokenizer.eos_id]
    return trace(parts, Query(text, beam=2, forced_prefix=ids, top=top))


@pytest.fixture(scope="module")
def parts():
    return parts_of()


@pytest.fixture(scope="module")
def seen(parts):
    return traced(parts, "two men walk", "zwei Männer gehen")


def shown(axes):
    return np.ma.filled(np.ma.asarray(axes.images[0].get_array(), dtype=float), np.nan)


def texts(axes):
    return [text.get_text() for text in axes.texts]


def words(ticks):
    return [tick.get_text() for tick in ticks]


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_figure_1_has_the_shapes_and_all_parameters(norm):
    found = traced(parts_of(norm), "two men", "ein Mann")
    drawn = texts(figure1.plot_figure1(found).axes[0])
    total = sum(part.parameters for part in found.figure)
    assert f"Figure 1 of this model: {total:,} parameters" in drawn
    source, target = len(found.source.pieces), len(found.target.pieces)
    assert f"{target} × 12, inside 3 × {target} × {source}" in drawn  # the cross-attention
    assert {"1 ×", "2 ×"} <= set(drawn)
    assert drawn.count("Norm: 24 parameters") == (5 if norm == "pre" else 0)
    assert drawn.count("Add & Norm: 24 parameters") == (0 if norm == "pre" else 5)
    assert drawn.count("+") == (5 if norm == "pre" else 0)


def test_lines_join_the_words_of_their_links():
    links = [Link((0, 3), (4, 7), 0.9), Link((4, 7), (0, 3), 0.2)]
    axes = alignment.plot_alignment("one two six", "eins"[:3] + " zwo", links).axes[0]
    heights = {text.get_text(): text.get_position()[1] for text in axes.texts}
    ends = [tuple(line.get_ydata()) for line in axes.lines]
    assert ends == [
        (heights["two"], heights["ein"]),  # the surest is drawn last
        (heights["one"], heights["zwo"]),
    ]
    with pytest.raises(ValueError, match=r"\(1, 3\) is no word of the source"):
        alignment.plot_alignment("one", "eins", [Link((1, 3), (0, 4))])


@pytest.mark.parametrize("many", [1, 7])
def test_no_two_texts_overlap(parts, many):
    text = " ".join(["two men walk in the snow"] * many)
    picture = figure1.plot_figure1(traced(parts, text, text))
    picture.draw_without_rendering()
    picture.draw_without_rendering()
    boxes = [text.get_window_extent() for text in picture.axes[0].texts if text.get_text().strip()]
    whole = picture.bbox
    assert all(whole.x0 - 1 <= box.x0 and box.x1 <= whole.x1 + 1 for box in boxes)
    for one, other in combinations([box.shrunk(0.9, 0.8) for box in boxes], 2):
        assert not one.overlaps(other)


def test_a_character_that_no_font_has_is_noted(monkeypatch, parts, seen):
    heads = attention_of(parts, seen.source.text, seen.target.text)
    assert "□" not in "".join(
        t.get_text() for t in attention.plot_attention_of(heads).findobj(Text)
    )
    monkeypatch.setattr(lettering, "_in_a_font", lambda one: one.isascii() or one in "…·□")
    for picture in (attention.plot_attention_of(heads), figure1.plot_figure1(seen)):  # Männer
        texts_drawn = [text.get_text() for text in picture.findobj(Text)]
        assert any("□" in text and len(text) < 20 for text in texts_drawn)
        picture.draw_without_rendering()
        axes_box = picture.axes[0].get_window_extent()
        note = next(t for t in picture.texts if "no installed font" in t.get_text())
        assert note.get_window_extent().y1 <= axes_box.y1
