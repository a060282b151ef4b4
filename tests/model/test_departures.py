"""Departures from the paper that tutorials make without knowing: each is built here and caught.

One check guards ours and is shown to fail on the faulty variant, so it is known that it can.
"""

import math
from collections import Counter

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from glassformer.model import masks
from glassformer.model.attention import fused_attention, scaled_dot_product_attention
from glassformer.model.positions import sinusoidal_positions
from tests.tables import every

SOFT = {"rtol": 0, "atol": 1e-9}


def caught(check, *faulty: object) -> None:
    with pytest.raises(AssertionError):
        check(*faulty)


# Modules used twice


def parameter_count_is_the_paper_s(model: nn.Module) -> None:
    """Counted from sections 3.1 to 3.4: each sublayer has a norm and weights of its own."""
    d, d_ff, vocab = 14, 19, 23
    norm, attention = 2 * d, 4 * (d * d + d)
    network = d * d_ff + d_ff + d_ff * d + d
    encoder, decoder = attention + network + 2 * norm, 2 * attention + network + 3 * norm
    expected = vocab * d + 2 * encoder + 3 * decoder
    assert sum(parameter.numel() for parameter in model.parameters()) == expected


def each_parameter_has_one_place(model: nn.Module) -> None:
    """But for the embedding, which section 3.4 shares."""
    places = Counter(parameter for _, parameter in model.named_parameters(remove_duplicate=False))
    assert [p for p, uses in places.items() if uses > 1] == [model.source_embedding.weight]


def weights_that_are_loaded_are_all_there(model: nn.Module) -> None:
    torch.manual_seed(0)
    state = {name: torch.randn_like(x) for name, x in model.state_dict().items()}
    state["target_embedding.weight"] = state["source_embedding.weight"]
    model.load_state_dict(state)
    assert all(x.equal(state[name]) for name, x in model.state_dict().items())


def share_one_norm(model: nn.Module) -> None:
    for block in [*model.encoder.blocks, *model.decoder.blocks]:
        for residual in block.children():
            residual.norm = block.self_attention.norm


def share_one_attention(model: nn.Module) -> None:
    for block in model.decoder.blocks:
        block.cross_attention.sublayer = block.self_attention.sublayer


@every("share", [share_one_norm, share_one_attention])
@every(
    "check",
    [
        parameter_count_is_the_paper_s,
        each_parameter_has_one_place,
        weights_that_are_loaded_are_all_there,
    ],
)
def test_a_module_used_for_several_sublayers(build, check, share):
    model = build()
    check(model)
    share(model)
    caught(check, model)


# The scale


def scores_are_divided_by_the_root_of_d_k(attend) -> None:
    """The values are the identity, so the output is the weights; their logs are the scores."""
    generator = torch.Generator().manual_seed(0)
    for d_k in (1, 5, 16, 64):
        query, key = (torch.randn(n, d_k, generator=generator, dtype=torch.float64) for n in (3, 7))
        output, _ = attend(query, key, torch.eye(7, dtype=torch.float64))
        scores = output.log() * d_k**0.5
        differences = scores - scores[:, :1]
        products = query @ key.T
        torch.testing.assert_close(differences, products - products[:, :1], **SOFT)


def scaled_by_d_k(query, key, value):
    return (query @ key.T / query.size(-1)).softmax(-1) @ value, None


def fused_scaled_by_d_k(query, key, value):
    return F.scaled_dot_product_attention(query, key, value, scale=1 / query.size(-1)), None


def unscaled(query, key, value):
    return (query @ key.T).softmax(-1) @ value, None


@pytest.mark.parametrize("faulty", [scaled_by_d_k, fused_scaled_by_d_k, unscaled])
def test_another_scale_of_the_scores(faulty):
    scores_are_divided_by_the_root_of_d_k(scaled_dot_product_attention)
    scores_are_divided_by_the_root_of_d_k(fused_attention)
    caught(scores_are_divided_by_the_root_of_d_k, faulty)


# The positions


def angles_follow_the_paper(positions) -> None:
    """Pair i turns by 10000^(-2i/d_model) from one position to the next."""
    table = positions(3, 22).double()
    for i in range(11):
        for position in range(3):
            angle = math.atan2(table[position, 2 * i], table[position, 2 * i + 1])
            expected = position * 10000 ** (-2 * i / 22)
            assert math.isclose(angle, expected, rel_tol=1e-5, abs_tol=1e-12)


def doubled_exponent(length: int, d_model: int) -> Tensor:
    """``arange(0, d_model, 2)`` is 2i already; this doubles it once more."""
    two_i = torch.arange(0, d_model, 2, dtype=torch.float64)
    angles = torch.arange(length)[:, None] / 10000 ** (2 * two_i / d_model)
    return torch.stack((angles.sin(), angles.cos()), -1).flatten(1)


def cosines_at_their_own_exponent(length: int, d_model: int) -> Tensor:
    """Column 2i+1 with (2i+1)/d_model where the paper has 2i/d_model."""
    column = torch.arange(d_model, dtype=torch.float64)
    angles = torch.arange(length)[:, None] / 10000 ** (column / d_model)
    return torch.where(column % 2 == 0, angles.sin(), angles.cos())


@pytest.mark.parametrize("faulty", [doubled_exponent, cosines_at_their_own_exponent])
def test_another_exponent_in_the_positions(faulty):
    angles_follow_the_paper(sinusoidal_positions)
    caught(angles_follow_the_paper, faulty)


# The masks


def true_means_may_attend(attend) -> None:
    """A query that may attend to one key reads that key's value."""
    generator = torch.Generator().manual_seed(0)
    query, key, value = (torch.randn(5, 3, generator=generator) for _ in range(3))
    output, _ = attend(query, key, value, torch.eye(5, dtype=torch.bool))
    torch.testing.assert_close(output, value)


def test_a_mask_that_says_what_is_hidden():
    def opposite(query, key, value, mask):
        return scaled_dot_product_attention(query, key, value, ~mask)

    true_means_may_attend(scaled_dot_product_attention)
    true_means_may_attend(fused_attention)
    caught(true_means_may_attend, opposite)


def padding_changes_nothing(model: nn.Module, source: Tensor, target: Tensor) -> None:
    pad = torch.zeros(len(source), 3, dtype=torch.long)
    padded = model(torch.cat((source, pad), 1), torch.cat((target, pad), 1))
    torch.testing.assert_close(padded[:, : target.size(1)], model(source, target), **SOFT)


def the_future_changes_nothing(model: nn.Module, source: Tensor, target: Tensor) -> None:
    changed = target.clone()
    changed[:, 4:] = (changed[:, 4:] + 1) % 19 + 4
    earlier, after = (model(source, read)[:, :4] for read in (target, changed))
    torch.testing.assert_close(earlier, after, **SOFT)


def steps_give_forward(model: nn.Module, source: Tensor, target: Tensor) -> None:
    state, whole = model.start(model.encode(source)), model(source, target)
    for position, tokens in enumerate(target.unbind(1)):
        logits, state = model.step(tokens, state)
        torch.testing.assert_close(logits, whole[:, position], **SOFT)


def causal_mask_is_j_at_most_i() -> None:
    made = masks.subsequent_mask(7)
    assert made.tolist() == [[j <= i for j in range(7)] for i in range(7)]


def test_a_padding_mask_that_marks_the_padding(build, sentences, monkeypatch):
    model, pair = build(), (sentences(5, 5), sentences(7, 7, seed=4))
    padding_changes_nothing(model, *pair)
    ours = masks.padding_mask
    monkeypatch.setattr(masks, "padding_mask", lambda tokens, pad: ~ours(tokens, pad))
    caught(padding_changes_nothing, model, *pair)


def upside_down(length: int, *, device: object = None) -> Tensor:
    """``i <= j``: the future instead of the past."""
    return torch.ones(length, length, dtype=torch.bool, device=device).triu()


def without_itself(length: int, *, device: object = None) -> Tensor:
    """``j < i``: the past without the present."""
    return torch.ones(length, length, dtype=torch.bool, device=device).tril(-1)


def one_ahead(length: int, *, device: object = None) -> Tensor:
    """``j <= i + 1``: the word to be predicted is read."""
    return torch.ones(length, length, dtype=torch.bool, device=device).tril(1)


@pytest.mark.parametrize(
    ("faulty", "checks"),
    [
        (upside_down, [the_future_changes_nothing, steps_give_forward]),
        (one_ahead, [the_future_changes_nothing, steps_give_forward]),
        (without_itself, [steps_give_forward]),
    ],
)
def test_another_triangle(build, sentences, monkeypatch, faulty, checks):
    model, pair = build(), (sentences(5, 3), sentences(7, 7, seed=4))
    causal_mask_is_j_at_most_i()
    for check in checks:
        check(model, *pair)
    monkeypatch.setattr(masks, "subsequent_mask", faulty)
    caught(causal_mask_is_j_at_most_i)
    for check in checks:
        caught(check, model, *pair)
