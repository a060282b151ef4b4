import builtins
import importlib
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from glassformer.model.positions import sinusoidal_positions
from glassformer.support.errors import InputError, UsageError
from glassformer.tools.inspection.attention_of import attention_of
from glassformer.tools.inspection.plots import attention, masks, positions
from glassformer.tools.inspection.plots import canvas as figure
from tests.tables import every

WORDS = ["Zwei", "Männer", "gehen", "<pad>"]
LONG = [f"Wort{number}" for number in range(38)] + [
    "Donaudampfschifffahrtsgesellschaft",
    "$5 und $6",
]


def shown(axes):
    """The matrix of a picture."""
    return np.asarray(axes.images[0].get_array())


def words(ticks):
    return [tick.get_text() for tick in ticks]


# Masks


def test_masks_are_those_of_the_paper():
    source, target, cross = masks.plot_masks(WORDS, ["<s>", "Two", "men"]).axes
    assert shown(source).tolist() == [[1, 1, 1, 0]] * 4
    assert shown(target).tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    assert shown(cross).tolist() == [[1, 1, 1, 0]] * 3
    assert words(cross.get_xticklabels()) == WORDS
    assert words(cross.get_yticklabels()) == ["<s>", "Two", "men"]
    assert (cross.get_xlabel(), cross.get_ylabel()) == ("key (source)", "query (target)")


def test_a_mask_alone():
    assert shown(masks.plot_masks(WORDS).axes[0])[:, 3].tolist() == [0] * 4
    alone = shown(masks.plot_masks(target=["<s>", "a", "<pad>"]).axes[0])
    assert alone.tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 0]]
    with pytest.raises(ValueError, match="a target, or both"):
        masks.plot_masks()


# Positions


def test_lines_are_columns_of_the_table():
    axes = positions.plot_position_lines(30, 20, columns=(4, 7), offset=3).axes[0]
    table = sinusoidal_positions(30, 20, offset=3).numpy()
    assert [line.get_label() for line in axes.lines] == ["column 4", "column 7"]
    np.testing.assert_array_equal(axes.lines[1].get_ydata(), table[:, 7])
    assert axes.get_title(loc="left").endswith("offset 3")
    with pytest.raises(ValueError, match=r"column 20: the table has columns 0 to 19"):
        positions.plot_position_lines(30, 20, columns=(20,))


@every("layout", ["interleaved", "halves"])
@every("d_model", [2, 4, 20, 128])
def test_chosen_columns_are_pairs_of_sine_and_cosine(d_model, layout):
    lines = positions.plot_position_lines(9, d_model, layout=layout).axes[0].lines
    for sine, cosine in zip(lines[::2], lines[1::2], strict=True):
        radius = sine.get_ydata() ** 2 + cosine.get_ydata() ** 2
        np.testing.assert_allclose(radius, np.ones(9), atol=1e-6)


def test_heat_map_shows_the_table_at_its_positions():
    axes = positions.plot_position_heatmap(7, 6, layout="halves", offset=5).axes[0]
    np.testing.assert_array_equal(
        shown(axes), sinusoidal_positions(7, 6, layout="halves", offset=5).numpy()
    )
    assert axes.get_ylim() == (11.5, 4.5)


# Attention


def test_head_shows_weights_and_words():
    weights = torch.rand(2, 3).softmax(dim=-1)
    axes = attention.plot_attention_head(weights, ["a", "b"], ["x", "y", "z"]).axes[0]
    np.testing.assert_array_equal(shown(axes), weights.numpy())
    assert words(axes.get_xticklabels()) == ["x", "y", "z"]
    assert [int(text.get_text()) for text in axes.texts] == [
        round(100 * value) for row in weights.tolist() for value in row
    ]
    with pytest.raises(ValueError, match="2 queries and 3 keys, but 3 query labels and 2 key"):
        attention.plot_attention_head(weights, ["x", "y", "z"], ["a", "b"])


def test_grid_is_layers_by_heads_on_one_scale():
    weights = torch.rand(2, 3, 4, 5)
    figure_ = attention.plot_attention_grid(weights, list("abcd"), list("vwxyz"))
    panels = figure_.axes[:6]
    for number, axes in enumerate(panels):
        np.testing.assert_array_equal(shown(axes), weights[number // 3, number % 3].numpy())
        assert axes.images[0].get_clim() == pytest.approx((0.0, weights.max().item()))
    assert [axes.get_title() for axes in panels[2:4]] == ["layer 1, head 3", "layer 2, head 1"]


@every(
    ("choice", "titles"),
    [
        ({}, [f"layer {row}, head {column}" for row in (1, 2) for column in (1, 2, 3)]),
        ({"layer": 1}, [f"layer 2, head {column}" for column in (1, 2, 3)]),
        ({"head": 2}, ["layer 1, head 3", "layer 2, head 3"]),
        ({"layer": 1, "head": 2}, "layer 2, head 3"),
        ({"layer": 0, "head": "mean"}, "layer 1, mean of heads"),
        ({"head": "mean"}, "mean over all layers and heads"),
    ],
)
def test_chosen_layers_and_heads(parts, choice, titles):
    of_sentence = attention_of(parts, "two men", "zwei", part="encoder")
    figure_, weights = attention.plot_attention(of_sentence, **choice), of_sentence.weights
    layer, head = choice.get("layer", slice(None)), choice.get("head", slice(None))
    expected = weights[layer].mean(dim=-3) if head == "mean" else weights[layer][..., head, :, :]
    if choice == {"head": "mean"}:
        expected = expected.mean(dim=0)
    pictures = [shown(axes) for axes in figure_.axes if axes.images]
    np.testing.assert_allclose(np.stack(pictures), expected.reshape(-1, 3, 3), atol=1e-6)
    if isinstance(titles, str):
        assert figure_.get_suptitle() == f"Encoder's self-attention: {titles}"
    else:
        assert [axes.get_title() for axes in figure_.axes if axes.images] == titles


@pytest.mark.parametrize(
    ("source", "choice", "error", "message"),
    [
        ("two", {"layer": 9}, UsageError, "layer 10: expected 1 to 1; layers count from 1"),
        ("two", {"head": 3}, UsageError, "head 4: expected 1 to 3; heads count from 1"),
        ("two", {"head": -1}, UsageError, "head 0: expected 1 to 3"),
        (" ", {}, InputError, "the source sentence is empty"),
        (
            "two men " * 11 + "two men",
            {},
            InputError,
            "the source has 25 subwords, and this model has positions for 20",
        ),
    ],
)
def test_attention_refuses(parts, source, choice, error, message):
    with pytest.raises(error, match=message):
        attention.plot_attention(attention_of(parts, source, "zwei"), **choice)


# What the pictures share


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_saved_pictures_are_the_same_each_time(tmp_path, suffix):
    for name in ("a", "b"):
        figure.save(masks.plot_masks(target=WORDS), tmp_path / f"{name}.{suffix}")
    content = (tmp_path / f"a.{suffix}").read_bytes()
    assert content == (tmp_path / f"b.{suffix}").read_bytes()
    assert content.startswith(b"\x89PNG" if suffix == "png" else b"<?xml")


def test_saving_refuses(tmp_path):
    picture = masks.plot_masks(target=WORDS)
    with pytest.raises(UsageError, match=r"m\.pdf: expected .* \.png or \.svg"):
        figure.save(picture, tmp_path / "m.pdf")
    with pytest.raises(UsageError, match="m: expected a name that ends in"):
        figure.save(picture, tmp_path / "m")
    with pytest.raises(OSError, match=r"m\.png"):
        figure.save(picture, tmp_path / "no" / "m.png")


@pytest.mark.parametrize("tokens", [["one"], LONG, ["漢字", "\u0007", "ไทย", "$a_1$ $b$", ""]])
def test_any_words_and_any_number_of_them_are_drawn_without_overlap(tokens):
    weights = torch.rand(len(tokens), len(tokens))
    figure_ = attention.plot_attention_head(weights, tokens, tokens)
    figure_.draw_without_rendering()  # a missing glyph or no room would warn: an error here
    figure_.draw_without_rendering()
    for labels in (figure_.axes[0].get_xticklabels(), figure_.axes[0].get_yticklabels()):
        boxes = [label.get_window_extent() for label in labels]
        assert not any(one.overlaps(other) for one, other in pairwise(boxes))
        whole = figure_.bbox
        assert all(whole.x0 <= box.x0 and box.x1 <= whole.x1 for box in boxes)
        assert all(whole.y0 <= box.y0 and box.y1 <= whole.y1 for box in boxes)


def test_labels_are_thinned_where_not_even_small_letters_fit():
    tokens = [str(number) for number in range(400)]
    axes = attention.plot_attention_head(torch.rand(400, 400), tokens, tokens).axes[0]
    drawn = words(axes.get_xticklabels())
    assert 40 < len(drawn) < 400
    assert drawn == [str(int(tick)) for tick in axes.get_xticks()]


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    import_ = builtins.__import__

    def without(name, *arguments):
        if name.split(".")[0] == "matplotlib":
            raise ModuleNotFoundError(name=name)
        return import_(name, *arguments)

    monkeypatch.delitem(sys.modules, "glassformer.tools.inspection.plots.canvas")
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(InputError, match=r"needs matplotlib: pip install 'glassformer\[plot\]'"):
        importlib.import_module("glassformer.tools.inspection.plots.canvas")


def test_pyplot_is_not_used():
    sources = Path(figure.__file__).parent.glob("*.py")
    assert not any("pyplot" in source.read_text(encoding="utf-8") for source in sources)
