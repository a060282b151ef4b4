"""The picture of figure 1 with a learner's parts in it."""

from dataclasses import replace
from itertools import combinations

import pytest

from glassformer.config import ModelConfig
from glassformer.model.transformer import Transformer
from glassformer.tools.inspection.figure1 import figure1
from glassformer.tools.inspection.plots.figure1 import plot_boxes

FEET = {"encoder": ("a source", "two pieces"), "decoder": ("a target", "two pieces")}


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_the_owner_of_a_part_stands_beside_no_other_text(norm):
    vocabulary = {"source_vocab_size": 11, "target_vocab_size": 11}
    sizes = {"d_model": 8, "num_heads": 2, "d_ff": 16}
    layers = {"num_encoder_layers": 1, "num_decoder_layers": 2}
    model = Transformer(ModelConfig(**vocabulary, **sizes, **layers, norm=norm))
    own = [replace(box, own="mistake causal-reversed") for box in figure1(model, 2, 2)]
    picture = plot_boxes(own, FEET)
    picture.draw_without_rendering()
    texts = [text for text in picture.axes[0].texts if text.get_text()]  # arrows have none
    shown = [box for box in own if box.layer != 1]
    assert [text.get_text() for text in texts].count("mistake causal-reversed") == len(shown)
    extents = [text.get_window_extent().shrunk(0.9, 0.8) for text in texts]
    pairs = combinations(zip(texts, extents, strict=True), 2)
    overlapping = [
        (a.get_text(), b.get_text()) for (a, one), (b, other) in pairs if one.overlaps(other)
    ]
    assert overlapping == []
