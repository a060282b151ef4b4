"""Positions against slow scalar formulas, and what the paper says of them."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from glassformer.model.positions import PositionalEncoding, sinusoidal_positions


def slow_table(length, d_model, *, layout, frequencies, offset):
    """Section 3.5 in scalars: PE(pos, 2i) = sin, PE(pos, 2i+1) = cos of pos / 10000^(2i/d)."""
    table = [[0.0] * d_model for _ in range(length)]
    half = d_model // 2
    for row in range(length):
        for i in range(half):
            if frequencies == "paper":
                angle = (row + offset) / 10000 ** (2 * i / d_model)
            else:  # get_timing_signal_1d of tensor2tensor
                increment = math.log(10000) / max(half - 1, 1)
                angle = (row + offset) * math.exp(i * -increment)
            even, odd = (2 * i, 2 * i + 1) if layout == "interleaved" else (i, half + i)
            table[row][even], table[row][odd] = math.sin(angle), math.cos(angle)
    return torch.tensor(table, dtype=torch.float64).reshape(length, d_model)


@given(
    st.integers(0, 17),
    st.integers(1, 13).map(lambda half: 2 * half),
    st.sampled_from(["interleaved", "halves"]),
    st.sampled_from(["paper", "tensor2tensor"]),
    st.integers(0, 5000),
)
def test_sinusoids_are_the_formula(length, d_model, layout, frequencies, offset):
    options = {"layout": layout, "frequencies": frequencies, "offset": offset}
    table = sinusoidal_positions(length, d_model, **options)
    assert table.dtype == torch.float32
    slow = slow_table(length, d_model, **options)
    torch.testing.assert_close(table.double(), slow, atol=1e-7, rtol=0)


def test_tensor2tensor_reaches_a_rate_of_one_in_ten_thousand_and_the_paper_does_not():
    for frequencies, reached in [("tensor2tensor", True), ("paper", False)]:
        table = sinusoidal_positions(
            1, 14, layout="halves", frequencies=frequencies, offset=10_000
        ).double()
        # At position 10,000 an angle of rate 1/10000 is 1.
        assert math.isclose(table[0, 6], math.sin(1), rel_tol=1e-7) == reached
        assert math.isclose(table[0, 13], math.cos(1), rel_tol=1e-7) == reached


def test_the_longest_wavelength_of_the_paper():
    rate = 10000 ** (-2 * 6 / 14)
    assert sinusoidal_positions(2, 14)[1, 12].item() == pytest.approx(math.sin(rate), rel=1e-6)


def test_halves_hold_the_same_columns_in_another_order():
    paper, halves = (
        sinusoidal_positions(7, 10, layout=layout) for layout in ("interleaved", "halves")
    )
    assert torch.cat((paper[:, 0::2], paper[:, 1::2]), 1).equal(halves)


def test_similarity_depends_on_the_distance_alone():
    """Section 3.5: PE(pos + k) is a linear function of PE(pos), a rotation by k."""
    table = sinusoidal_positions(23, 22).double()
    products = table @ table.T
    for distance in range(23):
        diagonal = products.diagonal(distance)
        torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal), atol=1e-5, rtol=0)
    assert products[0].argmax() == 0


def test_learned_positions_begin_at_the_offset_and_alone_are_learned():
    positions = PositionalEncoding(6, kind="learned", max_length=11, offset=2)
    assert positions.table.shape == (13, 6)
    embedded = torch.randn(3, 5, 6)
    torch.testing.assert_close(positions(embedded), embedded + positions.table[2:7])
    positions(embedded).sum().backward()
    assert positions.table.grad.sum(1).tolist() == [0.0] * 2 + [18.0] * 5 + [0.0] * 6


@pytest.mark.parametrize("kind", ["sinusoidal", "learned"])
def test_a_later_start_reads_later_rows(kind):
    positions = PositionalEncoding(6, kind=kind, max_length=11, offset=2)
    embedded = torch.randn(3, 11, 6)
    parts = positions(embedded[:, :4]), positions(embedded[:, 4:], start=4)
    assert torch.cat(parts, 1).equal(positions(embedded))


def test_sinusoids_of_the_module_take_its_options_and_are_no_parameters():
    options = {"layout": "halves", "frequencies": "tensor2tensor", "offset": 3}
    positions = PositionalEncoding(6, max_length=11, **options)
    expected = sinusoidal_positions(5, 6, **options).expand(2, 5, 6)
    assert positions(torch.zeros(2, 5, 6)).equal(expected)
    assert not list(positions.parameters())
    assert not positions.state_dict()


def test_the_type_of_the_embeddings_stays():
    assert PositionalEncoding(6)(torch.zeros(1, 2, 6, dtype=torch.float64)).dtype == torch.float64


def test_dropout_follows_the_sum_while_training():
    positions = PositionalEncoding(14, dropout=0.5)
    whole = positions.eval()(torch.ones(5, 31, 14))
    torch.manual_seed(0)
    dropped = positions.train()(torch.ones(5, 31, 14))
    kept = dropped != 0
    assert 0.4 < kept.float().mean() < 0.6
    torch.testing.assert_close(dropped[kept], 2 * whole[kept])


@pytest.mark.parametrize("kind", ["sinusoidal", "learned"])
def test_too_long_a_sequence_is_refused_and_the_longest_is_not(kind):
    positions = PositionalEncoding(6, kind=kind, max_length=11, offset=2)
    positions(torch.zeros(1, 11, 6))
    message = "a sequence of 14 tokens is longer than the 11 positions by 3"
    with pytest.raises(ValueError, match=message):
        positions(torch.zeros(1, 14, 6))
    with pytest.raises(ValueError, match="12 tokens is longer than the 11 positions by 1"):
        positions(torch.zeros(1, 1, 6), start=11)


@pytest.mark.parametrize("d_model", [7, 1])
def test_an_odd_width_is_refused(d_model):
    message = f"d_model must be even, as sine-cosine pairs are, got {d_model}"
    with pytest.raises(ValueError, match=message):
        sinusoidal_positions(5, d_model)
    with pytest.raises(ValueError, match=message):
        PositionalEncoding(d_model)


@pytest.mark.usefixtures("own_messages")
@pytest.mark.parametrize(
    ("option", "known"),
    [
        ("layout", "interleaved, halves"),
        ("frequencies", "paper, tensor2tensor"),
        ("kind", "sinusoidal, learned"),
    ],
)
def test_an_unknown_choice_is_refused_with_the_known_ones(option, known):
    with pytest.raises(ValueError, match=f"{option} 'halfs': expected {known}"):
        PositionalEncoding(6, **{option: "halfs"})
