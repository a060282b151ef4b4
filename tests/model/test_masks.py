"""Masks against their definition, element by element, and the refusal of wrong ones."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from glassformer.model.masks import check_mask, padding_mask, subsequent_mask, target_mask
from tests.tables import every

token_rows = st.integers(1, 7).flatmap(
    lambda length: st.lists(
        st.lists(st.integers(0, 3), min_size=length, max_size=length), min_size=1, max_size=5
    )
)


@given(token_rows, st.sets(st.integers(0, 3), min_size=1, max_size=2))
def test_padding_mask_hides_every_pad_and_nothing_else(rows, pads):
    mask = padding_mask(torch.tensor(rows), sorted(pads))
    assert mask.shape == (len(rows), 1, 1, len(rows[0]))
    assert mask.dtype == torch.bool
    assert mask[:, 0, 0].tolist() == [[token not in pads for token in row] for row in rows]


def test_one_pad_id_and_a_list_of_one_are_the_same():
    tokens = torch.tensor([[0, 5, 0], [5, 9, 9]])
    assert padding_mask(tokens, 9).equal(padding_mask(tokens, [9]))


@pytest.mark.parametrize("length", [0, 1, 2, 13])
def test_subsequent_mask_is_j_at_most_i(length):
    mask = subsequent_mask(length)
    assert mask.shape == (length, length)
    assert mask.tolist() == [[j <= i for j in range(length)] for i in range(length)]


def test_subsequent_mask_refuses_a_negative_length():
    with pytest.raises(ValueError, match=r"from 0, such as .* got -2"):
        subsequent_mask(-2)


def test_masks_are_made_where_the_tokens_are():
    tokens = torch.zeros(3, 5, dtype=torch.long, device="meta")
    assert subsequent_mask(5, device="meta").is_meta
    assert target_mask(tokens, 0).is_meta


@given(token_rows)
def test_target_mask_is_both_conditions_at_once(rows):
    mask = target_mask(torch.tensor(rows), 0)
    length = len(rows[0])
    assert mask.shape == (len(rows), 1, length, length)
    assert mask[:, 0].tolist() == [
        [[j <= i and row[j] != 0 for j in range(length)] for i in range(length)] for row in rows
    ]


@every("shape", [(5, 7), (1, 7), (5, 1), (2, 1, 1, 7), (1, 1, 5, 7), (2, 3, 5, 7)])
def test_two_axes_or_all_of_them_are_accepted(shape):
    check_mask(torch.ones(shape, dtype=torch.bool), (2, 3, 5, 7))


@every("shape", [(), (7,), (7, 5), (5, 6), (3, 5, 7), (3, 1, 7), (3, 3, 5, 7), (1, 2, 3, 5, 7)])
def test_any_other_mask_is_refused_with_both_shapes(shape):
    with pytest.raises(ValueError, match="does not fit scores") as raised:
        check_mask(torch.ones(shape, dtype=torch.bool), (2, 3, 5, 7))
    assert str(shape) in str(raised.value)
    assert "(2, 3, 5, 7)" in str(raised.value)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.uint8])
def test_a_mask_of_numbers_is_refused_with_its_type(dtype):
    with pytest.raises(TypeError, match=rf"must be boolean \(True = may attend\), got {dtype}"):
        check_mask(torch.ones(5, 7, dtype=dtype), (5, 7))


@pytest.mark.usefixtures("own_messages")
def test_what_is_no_mask_and_no_batch_is_refused():
    with pytest.raises(TypeError, match=r"a mask must be a boolean tensor, got list"):
        check_mask([[True]], (1, 1))
    with pytest.raises(ValueError, match=r"tokens must be a tensor \(batch, len\), got \(3,\)"):
        padding_mask(torch.tensor([5, 6, 0]), 0)
