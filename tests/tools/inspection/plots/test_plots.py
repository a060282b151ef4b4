import builtins
import importlib
import io
import sys
from itertools import combinations, pairwise, product
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import glassformer
from glassformer.model.masks import padding_mask, target_mask
from glassformer.model.positions import sinusoidal_positions
from glassformer.support.errors import InputError, UsageError
from glassformer.tools.inspection.attention_of import attention_of
from glassformer.tools.inspection.plots import attention, tensors
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
    source, target, cross = tensors.plot_mask(source=WORDS, target=["<s>", "Two", "men"]).axes
    assert shown(source).tolist() == [[1, 1, 1, 0]] * 4
    assert shown(target).tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    assert shown(cross).tolist() == [[1, 1, 1, 0]] * 3
    assert words(cross.get_xticklabels()) == WORDS
    assert words(cross.get_yticklabels()) == ["<s>", "Two", "men"]


def test_a_mask_alone():
    assert shown(tensors.plot_mask(source=WORDS).axes[0])[:, 3].tolist() == [0] * 4
    alone = shown(tensors.plot_mask(target=["<s>", "a", "<pad>"]).axes[0])
    assert alone.tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 0]]


def test_the_masks_of_a_batch_have_the_ids_beside_them():
    ids = torch.tensor([[5, 6, 7], [8, 9, 0]])
    for mask in (padding_mask(ids, 0), target_mask(ids, 0)):
        for sentence, axes in enumerate(tensors.plot_mask(mask, ids).axes):
            expected = mask[sentence, 0].expand(3, 3)
            np.testing.assert_array_equal(shown(axes), expected.numpy())
            for labels in (axes.get_xticklabels(), axes.get_yticklabels()):
                assert words(labels) == [str(number) for number in ids[sentence].tolist()]


# Maps of any shape

SIZES = st.integers(1, 4)


@given(
    leading=st.lists(SIZES, max_size=2),
    lengths=st.tuples(SIZES, SIZES),
    labels=st.sampled_from(["none", "tokens", "ids", "an array", "of each sentence"]),
    plot=st.sampled_from([tensors.plot_mask, tensors.plot_attention]),
    lists=st.booleans(),
)
def test_each_map_of_any_shape_is_a_panel(leading, lengths, labels, plot, lists):
    shape, is_mask = (*leading, *lengths), plot is tensors.plot_mask
    values = torch.rand(shape) > 0.5 if is_mask else torch.rand(shape)
    sentences = leading[0] if len(leading) == 2 or (leading and is_mask) else 1
    tokens = {
        "none": lambda _: None,
        "tokens": lambda length: [f"t{place}" for place in range(length)],
        "ids": torch.arange,
        "an array": np.arange,
        "of each sentence": lambda length: torch.arange(sentences * length).view(-1, length),
    }[labels]
    figure_ = plot(values.tolist() if lists else values, *map(tokens, lengths))
    panels = [axes for axes in figure_.axes if axes.images]
    assert len(panels) == values[..., 0, 0].numel()
    for place, matrix in enumerate(values.reshape(-1, *lengths)):
        np.testing.assert_array_equal(shown(panels[place]), matrix.numpy())
        drawn, sentence = words(panels[place].get_yticklabels()), place * sentences // len(panels)
        if labels == "of each sentence" and drawn:
            expected = tokens(lengths[0])[sentence].tolist()
            assert drawn == [str(number) for number in expected]
    assert words(panels[0].get_yticklabels())


@given(
    call=st.sampled_from(["plot_mask", "plot_attention", "plot_positions", "plot_similarity"]),
    axes=st.integers(0, 6),
)
def test_another_number_of_axes_is_one_line_with_the_name(call, axes):
    fits = {"plot_mask": (2, 3, 4), "plot_attention": (2, 3, 4)}.get(call, (2,))
    values = torch.ones([2] * axes, dtype=torch.bool if call == "plot_mask" else None)
    if axes not in fits:
        with pytest.raises(ValueError, match=rf"^{call}: expected a tensor \(.*choose a part.*$"):
            getattr(glassformer, call)(values)


def test_the_attentions_of_transformers_are_layers():
    layers = tuple(torch.rand(3, 1, 2, 5, 7).softmax(-1))
    panels = tensors.plot_attention(layers).axes[:6]
    for panel, (layer, head) in zip(panels, product(range(3), range(2)), strict=True):
        assert panel.get_title() == f"layer {layer + 1}, head {head + 1}"
        np.testing.assert_array_equal(shown(panel), layers[layer][0, head])
    assert tensors.plot_attention([*layers], rows="block").axes[5].get_title() == "block 3, head 2"
    with pytest.raises(ValueError, match=r"got \(3, 4, 2, 5, 7\): choose a part of a larger one"):
        tensors.plot_attention(tuple(torch.rand(3, 4, 2, 5, 7)))


def test_names_of_panels_are_one_for_each():
    panels = tensors.plot_attention(torch.ones(2, 1, 3, 3), rows=["a", "b"]).axes[:2]
    assert [axes.get_title() for axes in panels] == ["a", "b"]
    with pytest.raises(ValueError, match="plot_attention: 1 × 3 names for 1 × 2 maps"):
        tensors.plot_attention(torch.ones(2, 3, 3), columns=["a", "b", "c"])


@every(
    ("call", "given", "message"),
    [
        ("plot_mask", (), "plot_mask: expected a mask, or tokens: source="),
        ("plot_mask", (torch.ones(2, 2),), "plot_mask: a mask is boolean, .* as mask == 1"),
        ("plot_mask", (torch.ones(2, 3) > 0, "ab", "ab"), "plot_mask: 1 × 2 key labels for 1 × 3"),
        ("plot_attention", (torch.ones(2, 2) > 0,), "plot_attention: .* draw it with plot_mask"),
        ("plot_attention", (torch.ones(2, 3), "abc"), "plot_attention: 1 × 3 query labels for 1"),
        ("plot_attention", (torch.ones(2, 3, 4, 4), [*"ab"] * 2, [list("abcd")] * 3), "3 × 4 key"),
        ("plot_attention", (torch.ones(601, 1, 1, 1),), "plot_attention: 601 maps, .* at most 600"),
        ("plot_attention", (torch.ones(0, 4),), r"got \(0, 4\)"),
        ("plot_mask", (["A", "dog"], ["Ein"]), r"plot_mask: expected a tensor \(q_len, k_len\) or"),
        ("plot_attention", ([[1.0], [1.0, 2.0]],), r"plot_attention: expected a tensor \(q_len"),
        ("plot_similarity", (torch.ones(3, 2), "ab"), "plot_similarity: 2 labels for 3 vectors"),
        ("plot_positions", (torch.ones(2, 4), torch.ones(3, 4)), "a position for each token"),
        ("plot_positions", (torch.ones(2, 4), torch.ones(2, 5)), "plot_positions: embeddings"),
    ],
)
def test_what_does_not_fit_is_one_line_with_the_name(call, given, message):
    with pytest.raises((TypeError, ValueError), match=message) as raised:
        getattr(glassformer, call)(*given)
    assert "\n" not in str(raised.value)


# Positions


def test_curves_are_columns_or_rows_of_the_table():
    table = sinusoidal_positions(30, 20, offset=3)
    axes = tensors.plot_positions(table, labels=range(3, 33), columns=(4, 7)).axes[0]
    assert [line.get_label() for line in axes.lines] == ["column 4", "column 7"]
    np.testing.assert_array_equal(axes.lines[1].get_ydata(), table[:, 7].numpy())
    assert axes.lines[1].get_xdata()[0] == 3
    spread = tensors.plot_positions(table, rows=range(30), apart=2).axes[0]
    for place, line in enumerate(spread.lines):
        np.testing.assert_allclose(line.get_ydata(), table[place].numpy() - 2 * place, atol=1e-6)
    assert words(spread.get_yticklabels()) == [f"position {place}" for place in range(30)]
    for index in (-1, 20):
        with pytest.raises(ValueError, match=rf"column {index}: .* columns 0 to 19"):
            tensors.plot_positions(table, columns=(index,))


@every("layout", ["interleaved", "halves"])
@every("d_model", [2, 4, 20, 128])
def test_chosen_columns_are_pairs_of_sine_and_cosine(d_model, layout):
    table = sinusoidal_positions(9, d_model, layout=layout)
    columns = tensors.wave_columns(d_model, layout)
    for sine, cosine in zip(columns[::2], columns[1::2], strict=True):
        radius = table[:, sine] ** 2 + table[:, cosine] ** 2
        np.testing.assert_allclose(radius, np.ones(9), atol=1e-6)


def test_heat_map_shows_the_table_at_its_positions():
    table = sinusoidal_positions(7, 6, layout="halves", offset=5)
    axes = tensors.plot_positions(table, labels=range(5, 12)).axes[0]
    np.testing.assert_array_equal(shown(axes), table.numpy())
    assert set(words(axes.get_yticklabels())) <= {str(place) for place in range(5, 12)}


OPTIONS = {
    tensors.plot_positions: {
        "embedded": torch.ones(6, 4),
        "labels": list("abcdef"),
        "columns": (1, 2),
        "rows": (3, 5),
        "apart": 2.0,
    },
    tensors.plot_mask: {
        "mask": torch.eye(3, dtype=torch.bool),
        "queries": list("abc"),
        "keys": list("xyz"),
        "source": WORDS,
        "target": ["<s>", "Two"],
        "title": "a title",
    },
    tensors.plot_similarity: {"labels": list("abcdef"), "to": 2, "zoom": range(1, 4), "title": "t"},
}


@pytest.mark.parametrize("plot", OPTIONS)
def test_no_argument_is_dropped(plot):
    """Each option of a call that is not refused changes the picture."""
    table = () if plot is tensors.plot_mask else (sinusoidal_positions(6, 4),)
    pictures = {}
    for size in range(4):
        for names in map(frozenset, combinations(OPTIONS[plot], size)):
            try:
                drawn = plot(*table, **{name: OPTIONS[plot][name] for name in names})
            except ValueError:
                continue
            buffer = io.BytesIO()
            drawn.savefig(buffer, format="raw", dpi=40)
            pictures[names] = buffer.getvalue()
            for name in names:
                assert pictures.get(names - {name}) != pictures[names], (names, name)
    assert len(pictures) > 4


def test_three_heat_maps_are_embedding_position_and_sum():
    table, embedded = sinusoidal_positions(9, 6), torch.randn(2, 5, 6)
    panels = tensors.plot_positions(table, embedded, torch.arange(10).view(2, 5)).axes[:6]
    for sentence in range(2):
        of_sentence = panels[3 * sentence : 3 * sentence + 3]
        expected = (embedded[sentence], table[:5], embedded[sentence] + table[:5])
        for axes, values in zip(of_sentence, expected, strict=True):
            np.testing.assert_allclose(shown(axes), values.numpy(), atol=1e-6)
        ids = [str(number) for number in range(5 * sentence, 5 * sentence + 5)]
        assert words(of_sentence[0].get_yticklabels()) == ids
    assert len({axes.images[0].get_clim() for axes in panels}) == 1


# Similarity


def test_similarity_is_the_cosine_of_each_pair_and_with_one():
    vectors = torch.randn(7, 5)
    cosines = torch.cosine_similarity(vectors[:, None], vectors[None], dim=-1).numpy()
    third = tensors.plot_similarity(torch.randn(90, 5), zoom=range(1, 90, 3)).axes[0]
    assert set(words(third.get_xticklabels())) <= {str(number) for number in range(1, 90, 3)}
    assert third.get_xticklabels()
    whole = tensors.plot_similarity(vectors, "abcdefg").axes[0]
    np.testing.assert_allclose(shown(whole), cosines, atol=1e-5)
    part = tensors.plot_similarity(vectors, "abcdefg", zoom=range(2, 5)).axes[0]
    np.testing.assert_allclose(shown(part), cosines[2:5, 2:5], atol=1e-5)
    assert words(part.get_xticklabels()) == ["c", "d", "e"]
    for axes in tensors.plot_similarity(vectors, torch.arange(7), to=3, zoom=range(2, 5)).axes:
        assert axes.get_ylabel() == "cosine with 3"
        np.testing.assert_allclose(axes.lines[0].get_ydata(), cosines[3], atol=1e-5)
    assert axes.get_xlim() == (2, 4)


@every("choice", [{"to": 7}, {"to": -1}, {"zoom": range(5, 9)}, {"zoom": range(-2, 3)}])
def test_similarity_refuses_indices_of_no_vector(choice):
    with pytest.raises(ValueError, match=r"plot_similarity: .* give indices from 0 to 6"):
        tensors.plot_similarity(torch.randn(7, 5), **choice)


# Attention


def test_a_single_map_shows_weights_and_words():
    weights = torch.rand(2, 3).softmax(dim=-1)
    axes = tensors.plot_attention(weights, ["a", "b"], ["x", "y", "z"]).axes[0]
    np.testing.assert_array_equal(shown(axes), weights.numpy())
    assert words(axes.get_xticklabels()) == ["x", "y", "z"]
    assert [int(text.get_text()) for text in axes.texts] == [
        round(100 * value) for row in weights.tolist() for value in row
    ]


def test_maps_are_layers_by_heads_on_one_scale():
    weights = torch.rand(2, 3, 4, 5)
    panels = tensors.plot_attention(weights, list("abcd"), list("vwxyz"), rows="layer").axes[:6]
    for axes in panels:
        assert axes.images[0].get_clim() == pytest.approx((0.0, weights.max().item()))
    assert [axes.get_title() for axes in panels[2:4]] == ["layer 1, head 3", "layer 2, head 1"]


def test_scores_before_the_softmax_are_red_below_zero_and_their_infinities_are_no_scale():
    scores = torch.tensor([[1.0, -2.0], [float("-inf"), float("nan")]])
    image = tensors.plot_attention(scores).axes[0].images[0]
    assert (image.get_cmap().name, image.get_clim()) == (figure.SIGNED, (-2, 2))


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
    figure_, weights = attention.plot_attention_of(of_sentence, **choice), of_sentence.weights
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
        attention.plot_attention_of(attention_of(parts, source, "zwei"), **choice)


# What the pictures share


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_saved_pictures_are_the_same_each_time(tmp_path, suffix):
    for name in ("a", "b"):
        figure.save(tensors.plot_mask(target=WORDS), tmp_path / f"{name}.{suffix}")
    content = (tmp_path / f"a.{suffix}").read_bytes()
    assert content == (tmp_path / f"b.{suffix}").read_bytes()
    assert content.startswith(b"\x89PNG" if suffix == "png" else b"<?xml")


def test_saving_refuses(tmp_path):
    picture = tensors.plot_mask(target=WORDS)
    with pytest.raises(UsageError, match=r"m\.pdf: expected .* \.png or \.svg"):
        figure.save(picture, tmp_path / "m.pdf")
    with pytest.raises(UsageError, match="m: expected a name that ends in"):
        figure.save(picture, tmp_path / "m")
    with pytest.raises(OSError, match=r"m\.png"):
        figure.save(picture, tmp_path / "no" / "m.png")


@pytest.mark.parametrize("tokens", [["one"], LONG, ["漢字", "\u0007", "ไทย", "$a_1$ $b$", ""]])
def test_any_words_and_any_number_of_them_are_drawn_without_overlap(tokens):
    weights = torch.rand(len(tokens), len(tokens))
    figure_ = tensors.plot_attention(weights, tokens, tokens)
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
    axes = tensors.plot_attention(torch.rand(400, 400), tokens, tokens).axes[0]
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
