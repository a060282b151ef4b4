"""The walk through the shapes is that of a real pass, and the lesson shows it."""

import pytest
import torch

from glassformer.inspection.attention_shapes import attention_shapes
from glassformer.learn.lesson import lesson
from glassformer.model.attention import MultiHeadAttention


@pytest.mark.parametrize(("d_model", "num_heads"), [(15, 3), (14, 1), (22, 11)])
def test_the_shapes_are_those_of_a_pass(d_model, num_heads):
    steps = {
        step.tensor: step
        for step in attention_shapes(d_model, num_heads, batch=2, q_len=7, k_len=13)
    }
    attention = MultiHeadAttention(d_model, num_heads)
    query, key = torch.zeros(2, 7, d_model), torch.zeros(2, 13, d_model)
    output, weights = attention.with_weights(query, key, key)
    keys, values = attention.project_keys_and_values(key, key)

    tensors = {"output": output, "weights": weights, "keys": keys, "values": values}
    tensors |= {"queries": attention.split(query), "query": query, "key": key, "joint": output}
    for name, tensor in tensors.items():
        assert tuple(steps[name].axes.values()) == tensor.shape, name
    assert steps["heads"].axes == steps["queries"].axes
    assert steps["scores"].axes == {"batch": 2, "heads": num_heads, "q_len": 7, "k_len": 13}


def test_sizes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="d_model 10 is not divisible by num_heads 3"):
        attention_shapes(10, 3, batch=2, q_len=5, k_len=7)


def test_the_lesson_shows_this_walk():
    steps = attention_shapes(512, 8, batch=2, q_len=5, k_len=7)
    walk = "\n".join(f"#     {step}" for step in steps)
    assert walk in lesson("heads").template
