"""Attention against loops over scalars, against itself in another form, and at its edges."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from glassformer.model.attention import (
    MultiHeadAttention,
    fused_attention,
    masked_softmax,
    scaled_dot_product_attention,
)
from tests.tables import every

HEADS, D_HEAD, BATCH, Q_LEN, K_LEN = 3, 5, 2, 7, 11
D_MODEL = HEADS * D_HEAD

forms = pytest.mark.parametrize("attend", [scaled_dot_product_attention, fused_attention])


def draws(*shape: int, seed: int = 0, grad: bool = False) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_(grad)


def random_mask(*shape: int, share: float = 0.6, seed: int = 0) -> torch.Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed)) < share


def module(**options: object) -> MultiHeadAttention:
    torch.manual_seed(1)
    return MultiHeadAttention(D_MODEL, HEADS, **options).double()


def inputs(*, grad: bool = False) -> tuple[torch.Tensor, ...]:
    lengths = (Q_LEN, K_LEN, K_LEN)
    return tuple(
        draws(BATCH, length, D_MODEL, seed=i, grad=grad) for i, length in enumerate(lengths)
    )


def slow_attention(query, key, value, mask):
    """Equation 1 with Python numbers, one query at a time."""
    output = []
    for i, q in enumerate(query):
        allowed = [j for j in range(len(key)) if mask[i][j]]
        scores = [sum(a * b for a, b in zip(q, key[j], strict=True)) for j in allowed]
        powers = [math.exp(score / math.sqrt(len(q))) for score in scores]
        shares = [power / sum(powers) for power in powers]
        output.append(
            [
                sum(s * value[j][d] for s, j in zip(shares, allowed, strict=True))
                for d in range(len(value[0]))
            ]
        )
    return output


def test_explicit_attention_is_equation_1():
    query, key, value = draws(5, 3), draws(7, 3, seed=1), draws(7, 2, seed=2)
    mask = random_mask(5, 7)
    mask[2] = False
    output, _ = scaled_dot_product_attention(query, key, value, mask)
    slow = slow_attention(query.tolist(), key.tolist(), value.tolist(), mask.tolist())
    torch.testing.assert_close(output, torch.tensor(slow, dtype=torch.float64))


@given(
    st.permutations([2, 3, 5, 7, 11, 13]),
    st.sampled_from(["none", "full", "queries", "keys"]),
    st.floats(0.0, 1.0),
    st.integers(0, 99),
)
def test_explicit_equals_fused(axes, kind, share, seed):
    batch, heads, q_len, k_len, d_key, d_value = axes
    query, key = draws(batch, heads, q_len, d_key), draws(batch, heads, k_len, d_key, seed=1)
    value = draws(batch, heads, k_len, d_value, seed=2)
    shape = {
        "full": (batch, heads, q_len, k_len),
        "queries": (q_len, k_len),
        "keys": (batch, 1, 1, k_len),
    }
    mask = None if kind == "none" else random_mask(*shape[kind], share=share, seed=seed)
    explicit, weights = scaled_dot_product_attention(query, key, value, mask)
    fused, none = fused_attention(query, key, value, mask)
    torch.testing.assert_close(fused, explicit)
    assert none is None
    if mask is None:
        mask = torch.tensor(True)
    allowed = mask.expand(batch, heads, q_len, k_len)
    torch.testing.assert_close(weights.sum(-1), allowed.any(-1).double())
    assert (weights[~allowed] == 0).all()
    assert (weights >= 0).all()


@forms
def test_a_query_that_sees_nothing_reads_zeros_and_has_no_gradient(attend):
    query, key, value = (draws(2, 5, 3, seed=i, grad=True) for i in range(3))
    mask = torch.ones(5, 5, dtype=torch.bool)
    mask[1] = False
    output, weights = attend(query, key, value, mask)
    assert weights is None or (weights[:, 1] == 0).all()
    assert (output[:, 1] == 0).all()
    output.square().sum().backward()
    assert (query.grad[:, 1] == 0).all()
    assert all(x.grad.isfinite().all() and x.grad.any() for x in (query, key, value))


@pytest.mark.parametrize("mask_share", [None, 0.3])
def test_explicit_and_fused_have_the_same_gradients(mask_share):
    mask = None if mask_share is None else random_mask(7, 11, share=mask_share)
    grads = []
    for attend in (fused_attention, scaled_dot_product_attention):
        leaves = draws(2, 7, 3, grad=True), draws(2, 11, 3, seed=1, grad=True)
        value = draws(2, 11, 5, seed=2, grad=True)
        attend(*leaves, value, mask)[0].square().sum().backward()
        grads.append([leaf.grad for leaf in (*leaves, value)])
    torch.testing.assert_close(*grads)


@pytest.mark.parametrize("masked", [False, True])
def test_joint_projections_equal_a_matrix_for_each_head(masked):
    """Section 3.2.2 as printed: W_i^Q, W_i^K, W_i^V for each head, then W^O."""
    attention, (query, key, value) = module(), inputs()
    mask = random_mask(BATCH, 1, Q_LEN, K_LEN) if masked else None
    heads = []
    for i in range(HEADS):
        own = slice(i * D_HEAD, (i + 1) * D_HEAD)
        parts = [
            x @ linear.weight[own].T + linear.bias[own]
            for x, linear in zip(
                (query, key, value), (attention.query, attention.key, attention.value), strict=True
            )
        ]
        head_mask = None if mask is None else mask[:, 0]
        heads.append(scaled_dot_product_attention(*parts, head_mask)[0])
    expected = torch.cat(heads, -1) @ attention.output.weight.T + attention.output.bias
    torch.testing.assert_close(attention(query, key, value, mask), expected)


@forms
@every("share", [None, 0.5, 0.0])
def test_with_weights_equals_forward(share, attend):
    attention, of = module(attention=attend), inputs()
    mask = None if share is None else random_mask(BATCH, HEADS, Q_LEN, K_LEN, share=share)
    output, weights = attention.with_weights(*of, mask)
    assert weights.shape == (BATCH, HEADS, Q_LEN, K_LEN)
    torch.testing.assert_close(output, attention(*of, mask))
    assert attention.attention is attend


def test_with_weights_drops_none_and_leaves_the_training_mode():
    attention, of = module(dropout=0.9), inputs()
    exact = module()(*of)

    torch.testing.assert_close(attention.with_weights(*of)[0], exact)
    assert attention.training


def test_a_key_left_out_is_the_query_and_a_value_left_out_is_the_key():
    attention, (query, key, _) = module(), inputs()

    assert attention(query).equal(attention(query, query, query))
    assert attention(query, key).equal(attention(query, key, key))
    mask = random_mask(Q_LEN, Q_LEN)
    assert attention(query, mask=mask).equal(attention(query, query, query, mask))
    assert attention.with_weights(query)[1].shape == (BATCH, HEADS, Q_LEN, Q_LEN)


def test_one_s_own_attention_computes_each_head():
    """A function of four arguments: ``dropout`` comes only if weights are dropped."""

    def colder(query, key, value, mask):
        weights = masked_softmax(4 * query @ key.mT, mask)
        return weights @ value, weights

    attention, of = module(attention=colder), inputs()
    queries, (keys, values) = (
        attention.split(attention.query(of[0])),
        attention.project_keys_and_values(*of[1:]),
    )
    heads = (4 * queries @ keys.mT).softmax(-1) @ values

    torch.testing.assert_close(attention(*of), attention.output(attention.merge(heads)))
    output, weights = attention.with_weights(*of)
    assert output.equal(attention(*of))
    torch.testing.assert_close(weights, (4 * queries @ keys.mT).softmax(-1))


def test_weights_that_nobody_returns_are_one_line():
    def kernel(query, key, value, mask):
        return fused_attention(query, key, value, mask)

    class Silent(MultiHeadAttention):
        def attend(self, query, *_):
            return self.output(query)

    of = inputs()
    with pytest.raises(ValueError, match="kernel returns None for the weights: return a tensor"):
        module(attention=kernel).with_weights(*of)
    with pytest.raises(ValueError, match="Silent never calls its attention: it has no weights"):
        Silent(D_MODEL, HEADS).double().with_weights(*of)


def test_training_in_bfloat16_on_a_cpu_takes_the_quick_backward():
    """It is the plain form's: the kernel's is 15 times as slow there."""
    x = draws(2, 5, 3).bfloat16().requires_grad_()

    assert fused_attention(x, x, x)[1] is not None
    assert fused_attention(x.detach(), x.detach(), x.detach())[1] is None


def test_nothing_to_see_leaves_only_the_output_bias_and_finite_gradients():
    attention, of = module(), inputs(grad=True)
    mask = torch.zeros(BATCH, 1, 1, K_LEN, dtype=torch.bool)
    output = attention(*of, mask)
    torch.testing.assert_close(output, attention.output.bias.expand_as(output))
    output.square().sum().backward()
    grads = [parameter.grad for parameter in attention.parameters()] + [x.grad for x in of]
    assert all(grad.isfinite().all() for grad in grads)


def test_attention_over_no_keys_is_zero():
    query, none = draws(2, 5, 3), draws(2, 0, 3)
    for attend in (fused_attention, scaled_dot_product_attention):
        assert (attend(query, none, none)[0] == 0).all()


def test_attention_sees_a_set_of_keys_and_answers_each_query_alone():
    attention, (query, key, value) = module(), inputs()
    output = attention(query, key, value)
    shuffled = torch.randperm(K_LEN, generator=torch.Generator().manual_seed(5))
    torch.testing.assert_close(attention(query, key[:, shuffled], value[:, shuffled]), output)
    torch.testing.assert_close(attention(query[:, 3:4], key, value), output[:, 3:4])


def test_split_and_merge_are_each_other_s_inverse():
    attention, x = module(), draws(BATCH, Q_LEN, D_MODEL)
    heads = attention.split(x)
    assert heads.shape == (BATCH, HEADS, Q_LEN, D_HEAD)
    assert heads[1, 2, 3].equal(x[1, 3, 2 * D_HEAD :])
    assert attention.merge(heads).equal(x)


@forms
def test_weight_dropout_only_while_training_seeded_and_right_in_the_mean(attend):
    attention, of = module(dropout=0.4, attention=attend), inputs()
    exact = module(attention=attend)(*of)
    assert attention.eval()(*of).equal(exact)
    attention.train()
    torch.manual_seed(0)
    first, second = attention(*of), attention(*of)
    assert not first.allclose(second)
    torch.manual_seed(0)
    assert attention(*of).equal(first)
    mean = torch.stack([attention(*of) for _ in range(400)]).mean(0)
    torch.testing.assert_close(mean, exact, atol=0.1, rtol=0)


@pytest.mark.parametrize(
    ("d_model", "num_heads", "message"),
    [
        (14, 4, r"d_model 14 is not divisible by num_heads 4 \(remainder 2\)"),
        (12, 48, "their order is d_model, num_heads, d_ff"),
    ],
)
def test_heads_must_divide_the_width(d_model, num_heads, message):
    with pytest.raises(ValueError, match=message):
        MultiHeadAttention(d_model, num_heads)


@forms
def test_wrong_masks_are_refused_by_both_forms(attend):
    call, of = module(attention=attend), inputs()
    with pytest.raises(ValueError, match=r"\(7, 12\) does not fit .*\(2, 3, 7, 11\)"):
        call(*of, torch.ones(Q_LEN, K_LEN + 1, dtype=torch.bool))
    with pytest.raises(TypeError, match=r"must be boolean .*got torch.float64"):
        call(*of, torch.zeros(Q_LEN, K_LEN, dtype=torch.float64))
