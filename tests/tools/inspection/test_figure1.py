import pytest
import torch

from glassformer.config import ModelConfig
from glassformer.model.transformer import Transformer
from glassformer.tools.inspection.capture import capture
from glassformer.tools.inspection.figure1 import figure1

SIZES = {
    "source_vocab_size": 23,
    "target_vocab_size": 23,
    "d_model": 14,
    "num_heads": 2,
    "d_ff": 19,
    "num_encoder_layers": 2,
    "num_decoder_layers": 3,
}


def build(**options) -> Transformer:
    return Transformer(ModelConfig(**(SIZES | options))).eval()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"norm": "pre", "tying": "target"},
        {"tying": "none", "output_bias": True, "target_vocab_size": 29},
        {"positions": "learned", "max_length": 31, "embedding_norm": True},
    ],
    ids=["paper", "pre-norm", "untied", "learned"],
)
def test_the_parts_together_have_all_parameters_once(options):
    model = build(**options)
    parts = figure1(model, 5, 3)
    assert sum(part.parameters for part in parts) == sum(w.numel() for w in model.parameters())
    for part in parts:
        shared = part.shared_with is not None
        assert shared == (part.title in ("Output Embedding", "Linear") and part.parameters == 0)
    names = {part.name for part in parts}
    assert {part.shared_with for part in parts} - {None} <= names


def test_each_part_is_found_in_the_model_by_its_name():
    model = build(norm="pre", tying="none")
    for part in figure1(model, 5, 3)[:-1]:
        module = model.get_submodule(part.name)
        whole = sum(weight.numel() for weight in module.parameters())
        within = [one for one in figure1(model, 5, 3) if one.name.startswith(part.name)]
        assert whole == sum(one.parameters for one in within)


def test_the_shapes_are_those_of_a_run():
    model = build(norm="pre")
    with torch.no_grad(), capture(model) as seen:
        logits = model(torch.tensor([[5, 6, 7, 8, 3]]), torch.tensor([[2, 9, 4]]))
    parts = {part.name: part for part in figure1(model, 5, 3)}
    for name, sublayer in seen.items():
        assert parts[name].input_shape == list(sublayer.input.shape[1:])
        assert parts[name].output_shape == list(sublayer.output.shape[1:])
        if "attention" in name:
            assert parts[name].inner_shape == list(sublayer.weights.shape[1:])
        else:
            assert parts[name].inner_shape == [parts[name].input_shape[0], 19]
    assert parts["softmax"].output_shape == list(logits.shape[1:])
    assert list(parts)[:4] == [
        "source_embedding",
        "source_positions",
        "encoder.blocks.0.self_attention",
        "encoder.blocks.0.self_attention.norm",
    ]
    assert list(parts)[-3:] == ["decoder.norm", "output", "softmax"]


def test_the_boxes_with_a_learners_parts_are_marked():
    parts = {
        "model.attention.scaled_dot_product_attention": "yours",
        "model.masks.subsequent_mask": "mistake causal-reversed",
        "model.blocks.FeedForward.forward": "yours",
    }
    boxes = {box.name: box.own for box in figure1(build(), 5, 3, parts=parts)}
    assert boxes["encoder.blocks.1.self_attention"] == "yours"
    assert boxes["decoder.blocks.0.cross_attention"] == "yours"
    assert boxes["decoder.blocks.0.self_attention"] == "mistake causal-reversed"
    assert boxes["decoder.blocks.2.feed_forward"] == "yours"
    assert boxes["decoder.blocks.2.feed_forward.norm"] is None
    assert boxes["source_embedding"] is None
    assert not any(box.own for box in figure1(build(), 5, 3))
