"""The whole model: its size, its tying, what changes nothing, and what it refuses."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from glassformer.config import ModelConfig, presets
from glassformer.model.masks import padding_mask, target_mask
from glassformer.model.positions import sinusoidal_positions
from glassformer.model.transformer import Transformer
from tests.tables import every

CLOSE = {"rtol": 0, "atol": 1e-12}


def count(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def on_meta(**options: object) -> Transformer:
    with torch.device("meta"):
        return Transformer(ModelConfig(**options))


@pytest.mark.parametrize(("preset", "size"), [("base", 63_082_496), ("big", 214_245_376)])
def test_the_paper_s_models_have_their_size(preset, size):
    vocabulary = {"source_vocab_size": 37_000, "target_vocab_size": 37_000}
    assert count(on_meta(**vocabulary, **presets[preset])) == size


@every("preset", presets)
def test_every_preset_is_a_valid_model(preset):
    config = ModelConfig(source_vocab_size=97, target_vocab_size=97, **presets[preset])
    assert on_meta(**config.model_dump()).config == config


@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_each_side_has_its_own_greatest_length(build, positions):
    model = build(max_length=5, source_max_length=11, positions=positions)
    assert (model.config.max_length_of_source, model.config.longest_source) == (11, 3)
    assert build(max_length=50, source_max_length=11).config.longest_source == 10
    source, target = torch.full((1, 11), 7), torch.full((1, 5), 7)
    assert model(source, target).shape[:2] == (1, 5)
    with pytest.raises(ValueError, match="12 tokens is longer than the 11 positions"):
        model(torch.full((1, 12), 7), target)
    with pytest.raises(ValueError, match="6 tokens is longer than the 5 positions"):
        model(source, torch.full((1, 6), 7))


@pytest.mark.parametrize(
    ("tying", "matrices"),
    [("none", 3), ("target", 2), ("embeddings", 2), ("three-way", 1)],
)
def test_tying_shares_as_many_matrices_as_it_says(build, sentences, tying, matrices):
    model = build(tying=tying)
    shared = {
        model.source_embedding.weight,
        model.target_embedding.weight,
        model.output_weight,
    }
    assert len(shared) == matrices
    assert (model.output_weight is model.target_embedding.weight) == (
        tying in ("target", "three-way")
    )
    assert count(model) - count(build()) == (matrices - 1) * 23 * 14
    model(sentences(5, 3), sentences(7, 5)).square().sum().backward()
    assert all(parameter.grad.any() for parameter in model.parameters())


def test_a_three_way_matrix_learns_from_all_three_of_its_uses(build, sentences):
    """Its gradient is the sum of those of three separate matrices of the same values."""
    grads = {}
    for tying in ("three-way", "none"):
        model = build(tying="none")
        with torch.no_grad():
            for part in (model.target_embedding, model.output):
                part.weight.copy_(model.source_embedding.weight)
        if tying == "three-way":
            state = {name: x for name, x in model.state_dict().items() if name != "output.weight"}
            model = build(tying=tying)
            model.load_state_dict(state)
        model(sentences(5, 3), sentences(7, 5)).square().sum().backward()
        names = ("source_embedding.weight", "target_embedding.weight", "output.weight")
        own = dict(model.named_parameters())
        grads[tying] = sum(own[name].grad for name in names if name in own)
    torch.testing.assert_close(grads["three-way"], grads["none"])


def test_output_bias_is_added_to_the_logits(build, sentences):
    model = build(output_bias=True)
    before = model(sentences(5), sentences(7))
    with torch.no_grad():
        model.output_bias += torch.arange(23.0, dtype=torch.float64)
    after = model(sentences(5), sentences(7))
    torch.testing.assert_close(after - before, torch.arange(23.0).double().expand(1, 7, 23))


@given(
    st.permutations([2, 3, 5, 7]),
    st.integers(0, 5),
    st.integers(0, 4),
    st.sampled_from(["post", "pre"]),
)
def test_padding_and_batch_order_change_nothing(build, sentences, order, more, wide, norm):
    """Each sentence alone gives what it gives beside others, padded, in any order."""
    model = build(norm=norm)
    lengths, target_lengths = (11, 2, 7, 5), (3, 13, 5, 7)
    alone = [
        (sentences(a, seed=i), sentences(b, seed=i + 10))
        for i, (a, b) in enumerate(zip(lengths, target_lengths, strict=True))
    ]
    ranks = sorted(range(4), key=lambda row: order[row])
    source = torch.zeros(4, 11 + more, dtype=torch.long)
    target = torch.zeros(4, 13 + wide, dtype=torch.long)
    for row, rank in enumerate(ranks):
        source[row, : lengths[rank]], target[row, : target_lengths[rank]] = alone[rank]
    logits, memory = model(source, target), model.encode(source)
    for row, rank in enumerate(ranks):
        one, own = alone[rank]
        states = memory.states[row, : lengths[rank]]
        torch.testing.assert_close(states, model.encode(one).states[0], **CLOSE)
        torch.testing.assert_close(logits[row, : target_lengths[rank]], model(one, own)[0], **CLOSE)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_the_future_changes_nothing_in_the_past(build, sentences, norm):
    model, source, target = build(norm=norm), sentences(5, 3), sentences(13, 13, seed=4)
    before = model(source, target)
    for position in range(13):
        changed = target.clone()
        changed[:, position:] = (changed[:, position:] + 1) % 19 + 4
        after = model(source, changed)
        torch.testing.assert_close(after[:, :position], before[:, :position], **CLOSE)
        assert not after[:, position].allclose(before[:, position])


def test_every_word_of_the_source_changes_every_logit_and_padding_none(build, sentences):
    model, source, target = build(), sentences(5, 11), sentences(7, 7, seed=4)
    before = model(source, target)
    for position in range(11):
        changed = source.clone()
        changed[1, position] = (changed[1, position] + 1) % 19 + 4
        difference = (model(changed, target) - before).abs()
        assert (difference[1].amax(-1) > 1e-9).all()
        assert not difference[0].any()


def test_without_positions_a_source_would_be_a_bag_of_words(build, sentences):
    model, source, target = build(), sentences(7), sentences(5, seed=4)
    ordered, turned = model(source, target), model(source.flip(1), target)
    assert not ordered.allclose(turned)
    model.source_positions.table.zero_()
    torch.testing.assert_close(
        model(source, target), model(source.flip(1), target), rtol=0, atol=1e-12
    )


def test_masks_are_made_from_the_pad_id(build, sentences):
    model, source, target = build(pad_id=9), sentences(5, 5), sentences(7, 7, seed=4)
    source[0, 3:], target[0, 4:] = 9, 9
    own = {"source_mask": padding_mask(source, 9), "target_mask": target_mask(target, 9)}
    assert model(source, target).equal(model(source, target, **own))
    assert model.encode(source).mask.equal(own["source_mask"])
    everything = {"source_mask": torch.ones(2, 1, 1, 5, dtype=torch.bool)}
    assert not model(source, target, **everything)[0].allclose(model(source, target)[0])
    local = {"source_mask": torch.eye(5, dtype=torch.bool)}  # the encoder's alone
    assert model.encode(source, **local).mask.equal(own["source_mask"])
    past_only = {"target_mask": torch.eye(7, dtype=torch.bool)}
    assert not model(source, target, **past_only).allclose(model(source, target))


def test_dropout_is_off_in_evaluation_and_seeded_while_training(build, sentences):
    model, source, target = build(dropout=0.3), sentences(5, 3), sentences(7, 5)
    assert model(source, target).equal(model(source, target))
    assert model(source, target).equal(build(dropout=0.0)(source, target))
    model.train()
    torch.manual_seed(0)
    first, second = model(source, target), model(source, target)
    torch.manual_seed(0)
    again = model(source, target)
    assert first.equal(again)
    assert not first.allclose(second)
    model.eval()


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("embedding_norm", [False, True])
def test_every_norm_has_the_epsilon_of_the_config(build, norm, embedding_norm):
    model = build(norm=norm, embedding_norm=embedding_norm, norm_epsilon=0.125)
    norms = [module for module in model.modules() if isinstance(module, nn.LayerNorm)]
    assert len(norms) == 2 * 2 + 3 * 3 + 2 * (norm == "pre") + 2 * embedding_norm
    assert {module.eps for module in norms} == {0.125}


@pytest.mark.parametrize("option", ["attention_dropout", "activation_dropout"])
def test_each_dropout_of_the_blocks_reaches_them(build, sentences, option):
    source, target = sentences(5, 3), sentences(7, 5)
    model = build(dropout=0.0, **{option: 0.5}).train()
    torch.manual_seed(0)
    assert not model(source, target).allclose(model.eval()(source, target))


@pytest.mark.parametrize("embedding_norm", [False, True])
def test_dropout_follows_the_embeddings_once_and_their_norm(build, embedding_norm):
    model = build(dropout=0.5, embedding_norm=embedding_norm)
    for positions in (model.source_positions, model.target_positions):
        embedded = torch.ones(5, 29, 14, dtype=torch.float64)
        whole = positions.eval()(embedded)
        torch.manual_seed(0)
        dropped = positions.train()(embedded)
        kept = dropped != 0
        assert 0.4 < kept.double().mean() < 0.6
        torch.testing.assert_close(dropped[kept], 2 * whole[kept])


def test_positions_are_those_of_the_config(build):
    options = {"layout": "halves", "frequencies": "tensor2tensor", "offset": 3}
    model = build(**{f"position_{name}": value for name, value in options.items()})
    table = sinusoidal_positions(31, 14, **options).double()
    assert model.source_positions.table.equal(table)
    assert model.target_positions.table.equal(table)


def test_a_seed_repeats_the_initial_weights():
    models = []
    for seed in (0, 0, 1):
        torch.manual_seed(seed)
        models.append(Transformer(ModelConfig(**SMALL)).state_dict())
    one, same, other = models
    assert all(one[name].equal(same[name]) for name in one)
    assert not one["source_embedding.weight"].equal(other["source_embedding.weight"])


SMALL = {
    "source_vocab_size": 23,
    "target_vocab_size": 23,
    "d_model": 32,
    "num_heads": 2,
    "d_ff": 64,
    "num_encoder_layers": 1,
    "num_decoder_layers": 1,
}


def test_initial_matrices_are_xavier_uniform_and_biases_zero():
    torch.manual_seed(0)
    model = Transformer(ModelConfig(**SMALL, tying="none"))
    for module in model.modules():
        if isinstance(module, nn.Linear):
            limit = (6 / sum(module.weight.shape)) ** 0.5
            assert 0.95 * limit < module.weight.abs().max() <= limit
            assert module.bias is None or not module.bias.any()
        if isinstance(module, nn.LayerNorm):
            assert (module.weight == 1).all()
    assert model.target_embedding.weight.std().item() == pytest.approx(32**-0.5, rel=0.1)
