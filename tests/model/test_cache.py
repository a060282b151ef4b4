"""Decoding step by step: the same logits as all at once, and a state that is a value."""

import pytest
import torch

VARIANTS = [
    {},
    {"norm": "pre", "tying": "none", "output_bias": True},
    {"positions": "learned", "position_offset": 2, "embedding_norm": True, "activation": "gelu"},
    {"position_layout": "halves", "scale_embeddings": False, "activation": "swish"},
]
LENGTHS = (11, 3, 7, 1, 5)


def steps(model, state, target):
    """Logits of each step, stacked as forward gives them, and the last state."""
    logits = []
    for tokens in target.unbind(1):
        row, state = model.step(tokens, state)
        logits.append(row)
    return torch.stack(logits, 1), state


@pytest.mark.parametrize("options", VARIANTS)
def test_cached_decoding_gives_the_logits_of_forward(build, sentences, options):
    model = build(**options)
    source, target = sentences(*LENGTHS), sentences(*[13] * 5, seed=4)
    logits, state = steps(model, model.start(model.encode(source)), target)
    torch.testing.assert_close(logits, model(source, target), rtol=0, atol=1e-12)
    assert state.length == 13


@pytest.mark.parametrize("rows", [[2, 0, 4, 1, 3], [1, 1, 1, 0, 3, 3, 4], [2], [4, 2]])
def test_selected_rows_go_on_as_if_they_had_been_there_from_the_start(build, sentences, rows):
    """As a beam does: some rows die, others split, and each reads its own next token."""
    model, chosen = build(), torch.tensor(rows)
    source, first = sentences(*LENGTHS), sentences(*[5] * 5, seed=4)
    rest = sentences(*[7] * len(rows), seed=5)
    _, state = steps(model, model.start(model.encode(source)), first)
    logits, _ = steps(model, state.select(chosen), rest)
    whole = model(source[chosen], torch.cat((first[chosen], rest), 1))
    torch.testing.assert_close(logits, whole[:, 5:], rtol=0, atol=1e-12)


def test_select_reorders_every_tensor_of_the_state(build, sentences):
    model, rows = build(), torch.tensor([2, 2, 0])
    state = model.start(model.encode(sentences(*LENGTHS)))
    _, state = model.step(torch.tensor([2, 5, 6, 7, 8]), state)
    chosen = state.select(rows)
    assert chosen.memory_mask.equal(state.memory_mask[rows])
    for new, old in zip(chosen.blocks, state.blocks, strict=True):
        for name in ("self_keys", "self_values", "memory_keys", "memory_values"):
            assert getattr(new, name).equal(getattr(old, name)[rows])
    assert chosen.length == state.length == 1


def test_selecting_no_row_is_allowed(build, sentences):
    model = build()
    state = model.start(model.encode(sentences(3, 5))).select(torch.tensor([], dtype=torch.long))
    logits, _ = model.step(torch.tensor([], dtype=torch.long), state)
    assert logits.shape == (0, 23)


def test_a_step_leaves_the_state_that_it_was_given_as_it_was(build, sentences):
    model = build()
    before = model.start(model.encode(sentences(3, 5)))
    one, after = model.step(torch.tensor([2, 2]), before)
    again, _ = model.step(torch.tensor([2, 2]), before)
    assert one.equal(again)
    assert (before.length, after.length) == (0, 1)
    left, _ = model.step(torch.tensor([7, 8]), after)
    model.step(torch.tensor([9, 9]), after)
    assert model.step(torch.tensor([7, 8]), after)[0].equal(left)


def test_keys_of_the_memory_are_computed_once(build, sentences):
    model = build()
    state = model.start(model.encode(sentences(3, 5)))
    _, after = model.step(torch.tensor([2, 2]), state)
    for new, old in zip(after.blocks, state.blocks, strict=True):
        assert new.memory_keys is old.memory_keys
        assert new.memory_values is old.memory_values
    shapes = [(block.self_keys.shape, block.memory_keys.shape) for block in after.blocks]
    assert shapes == [((2, 2, 1, 7), (2, 2, 5, 7))] * 3


def test_a_source_without_any_word_decodes_to_finite_logits(build, sentences):
    model, source = build(), sentences(5, 0)
    target = sentences(7, 7, seed=4)
    logits, _ = steps(model, model.start(model.encode(source)), target)
    assert logits.isfinite().all()
    torch.testing.assert_close(logits, model(source, target), rtol=0, atol=1e-12)


def test_stepping_past_the_last_position_is_refused(build, sentences):
    model = build(max_length=5)
    _, state = steps(model, model.start(model.encode(sentences(3))), sentences(5, seed=4))
    with pytest.raises(ValueError, match="6 tokens is longer than the 5 positions by 1"):
        model.step(torch.tensor([7]), state)
