"""What a Transformer refuses, and that the message names what and by how much."""

import pytest
import torch

from glassformer.model.attention import fused_attention
from glassformer.model.fast.decoder import PreparedTransformer


@pytest.mark.usefixtures("own_messages")
def test_sources_and_targets_must_be_pairs(build, sentences):
    with pytest.raises(ValueError, match="source has 3 sentences and target 2: they must be pairs"):
        build()(sentences(5, 5, 5), sentences(7, 7))


def test_ids_outside_the_vocabulary(build, sentences):
    model, good = build(tying="none", target_vocab_size=29), sentences(5)
    with pytest.raises(ValueError, match=r"id 23 is outside the vocabulary of 23 \(ids 0 to 22\)"):
        model(good + torch.tensor([0, 0, 0, 0, 23 - int(good[0, 4])]), good)
    with pytest.raises(ValueError, match="id 29 is outside the vocabulary of 29"):
        model(good, torch.tensor([[2, 28, 29]]))
    with pytest.raises(ValueError, match="id -1 is outside the vocabulary of 29"):
        model.step(torch.tensor([-1]), model.start(model.encode(good)))


@pytest.mark.parametrize(
    ("masks", "error", "message"),
    [
        (
            {"source_mask": torch.ones(2, 1, 1, 6, dtype=torch.bool)},
            ValueError,
            r"\(2, 1, 1, 6\) does not fit scores of shape \(2, 2, 5, 5\)",
        ),
        (
            {"source_mask": torch.ones(2, 1, 5, dtype=torch.bool)},  # sentences taken for heads
            ValueError,
            r"\(2, 1, 5\) does not fit scores of shape \(2, 2, 5, 5\)",
        ),
        (
            {"target_mask": torch.ones(7, 5, dtype=torch.bool)},
            ValueError,
            r"\(7, 5\) does not fit scores of shape \(2, 2, 7, 7\)",
        ),
        (
            {"target_mask": torch.ones(2, 1, 1, 7, dtype=torch.bool)},
            ValueError,
            r"\(2, 1, 1, 7\) shows the future: give a row for each of the 7 queries",
        ),
        ({"source_mask": torch.zeros(2, 1, 1, 5)}, TypeError, "boolean .* got torch.float32"),
        ({"target_mask": torch.ones(7, 7).long()}, TypeError, "boolean .* got torch.int64"),
    ],
)
@pytest.mark.usefixtures("own_messages")
def test_masks_of_a_wrong_shape_or_type(build, sentences, masks, error, message):
    with pytest.raises(error, match=message):
        build()(sentences(5, 3), sentences(7, 5), **masks)


@pytest.mark.parametrize("decoder", [lambda model: model, PreparedTransformer])
@pytest.mark.usefixtures("own_messages")
def test_a_step_reads_a_token_for_each_row(build, sentences, decoder):
    model = decoder(build())
    state = model.start(model.encode(sentences(5, 5, 5)))
    with pytest.raises(ValueError, match="1 tokens for a state of 3 rows: give one for each"):
        model.step(torch.tensor([2]), state)


@pytest.mark.parametrize("values", [3, 9])
@pytest.mark.usefixtures("own_messages")
def test_keys_and_values_must_be_pairs(values):
    with pytest.raises(ValueError, match=f"6 keys and {values} values must be pairs"):
        fused_attention(torch.zeros(2, 4), torch.zeros(6, 4), torch.zeros(values, 4))
