"""The shapes of an attention, in figure 2 and in the lesson, are those of a real pass."""

import re

import pytest
import torch

from glassformer.model.attention import MultiHeadAttention
from glassformer.tools.inspection.plots.figure2 import attention_shapes, plot_figure2
from glassformer.tools.learn.lesson import lesson
from tests.tables import every


def shapes_of_a_pass(d_model, num_heads, *, batch, q_len, k_len):
    attention = MultiHeadAttention(d_model, num_heads)
    query, key = torch.zeros(batch, q_len, d_model), torch.zeros(batch, k_len, d_model)
    queries = attention.split(attention.query(query))
    keys, values = attention.project_keys_and_values(key, key)
    output, weights = attention.with_weights(query, key)
    heads = weights @ values
    joint = attention.merge(heads)
    tensors = {"query": query, "key": key, "projected": attention.query(query)}
    tensors |= {"queries": queries, "keys": keys, "values": values}
    tensors |= {"scores": queries @ keys.mT, "weights": weights, "heads": heads}
    tensors |= {"joint": joint, "output": output}
    return {name: tuple(tensor.shape) for name, tensor in tensors.items()}


@pytest.mark.parametrize(("d_model", "num_heads"), [(14, 1), (22, 11)])
def test_figure_2_shows_them_in_the_order_of_the_sums(d_model, num_heads):
    lengths = {"batch": 2, "q_len": 7, "k_len": 13}
    shapes = shapes_of_a_pass(d_model, num_heads, **lengths)
    query, key = torch.zeros(2, 7, d_model), torch.zeros(2, 13, d_model)
    walked = attention_shapes(MultiHeadAttention(d_model, num_heads), query, key)
    assert list(walked.items()) == list(shapes.items())
    figure = plot_figure2(d_model, num_heads, **lengths)
    drawn = re.findall(r"\(\d+(?:, \d+)+\)", "".join(t.get_text() for t in figure.axes[0].texts))
    scaled = ["queries", "keys", "scores", "weights", "heads"]
    joint = ["query", "key", "projected", "queries", "heads", "joint", "output"]
    assert drawn == [str(shapes[name]) for name in scaled + joint]


@every(("num_heads", "d_model", "size"), [(96, 12_288, 2_048), (10_000, 10**9, 10**9)])
def test_the_results_of_large_sizes_stand_beside_the_boxes(num_heads, d_model, size):
    figure = plot_figure2(d_model, num_heads, batch=size, q_len=size, k_len=size)
    [axes] = figure.axes
    figure.draw_without_rendering()
    texts = [text for text in axes.texts if text.get_text() and text.get_ha() == "left"]
    results = [text.get_window_extent() for text in texts]
    boxes = [box.get_window_extent() for box in axes.patches]
    assert len(results) == len(boxes) == 10
    for result in results:
        assert result.x1 < figure.bbox.x1
        assert not [box for box in boxes if result.overlaps(box)]


@every(
    ("sizes", "message"),
    [
        ({"num_heads": 3}, "d_model 10 is not divisible by num_heads 3"),
        ({"q_len": 0}, "plot_figure2 takes a whole number from 1 as q_len, got 0"),
        ({"k_len": 7.0}, "plot_figure2 takes a whole number from 1 as k_len, got 7.0"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(sizes, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        plot_figure2(**{"d_model": 10, "num_heads": 5} | sizes)


def test_the_lesson_shows_them():
    lines = re.findall(r"^#     (\w+) .*\((batch .*)\)$", lesson("heads").template, re.MULTILINE)
    shown = {name: tuple(map(int, re.findall(r" (\d+)", axes))) for name, axes in lines}
    assert shown == shapes_of_a_pass(512, 8, batch=2, q_len=5, k_len=7)
