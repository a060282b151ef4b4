"""The pool of keys: what is copied, what is forgotten, and that a state is a value."""

import pytest
import torch

from glassformer.model.fast.beam_cache import KeyPool, PooledState
from glassformer.model.fast.decoder import PreparedTransformer

SENTENCES, SOURCE, D_MODEL, LAYERS, SPARE = 3, 5, 14, 2, 8


@pytest.fixture(autouse=True)
def no_gradients():
    with torch.inference_mode():
        yield


@pytest.fixture
def moves(monkeypatch):
    """What each new pool copied: (sentences, keys of each)."""
    copies = []
    moved = KeyPool.moved

    def counted(pool, sentences, keys, spare):
        copies.append(tuple(keys.shape))
        return moved(pool, sentences, keys, spare)

    monkeypatch.setattr(KeyPool, "moved", counted)
    return copies


@pytest.fixture
def fast(build):
    return PreparedTransformer(build(max_length=101, num_decoder_layers=2))


def started(fast, sentences):
    return fast.start(fast.encode(sentences(*[SOURCE] * SENTENCES)))


def walked(fast, state, steps, rows=None):
    """So many steps, before each of which the rows are picked anew."""
    for _ in range(steps):
        if rows is not None:
            state = state.select_beams(rows(state))
        tokens = torch.full((state.sentences * state.width,), 7)
        _, state = fast.step(tokens, state)
    return state


def places(sentences, width, chosen):
    """Rows by their places in each sentence."""
    return torch.arange(sentences)[:, None] * width + torch.tensor(chosen)


def test_one_target_a_sentence_copies_each_key_a_few_times_only(fast, sentences, moves):
    state = walked(fast, started(fast, sentences), 100)

    assert state.ancestry is None
    assert sum(keys for _, keys in moves) < 3 * 100  # the plain form: 100 * 99 / 2
    assert state.pool.room < 1.5 * 100 + SPARE


def test_beams_that_change_places_copy_no_keys(fast, sentences, moves):
    width = 5
    state = walked(fast, started(fast, sentences).select_beams(places(3, 1, [0] * width)), 1)
    moves.clear()
    before = state.pool

    swapped = state.select_beams(places(3, width, [4, 0, 0, 2, 1]))
    wider = state.select_beams(places(3, width, [0, 0, 1, 1, 2, 2, 3]))

    assert swapped.pool is wider.pool is before
    assert all(new is old for new, old in zip(wider.memory, state.memory, strict=True))
    assert (wider.width, moves) == (7, [])


def test_keys_without_descendants_are_forgotten(fast, sentences, moves):
    """All beams come from the first each time: what is kept is one target, not five."""
    width, steps = 5, 60
    state = started(fast, sentences).select_beams(places(3, 1, [0] * width))
    state = walked(fast, state, steps, lambda _: places(3, width, [0] * width))

    kept = [keys for _, keys in moves]
    assert all(keys <= steps + width for keys in kept)
    assert len(moves) <= steps / SPARE + 1
    assert state.pool.room <= 1.5 * steps + width * SPARE
    plain = width * steps * (steps - 1) / 2
    assert sum(kept) < plain / 20


def test_beams_that_never_meet_keep_all_their_keys(fast, sentences):
    width, steps = 3, 20
    state = started(fast, sentences).select_beams(places(3, 1, [0] * width))
    state = walked(fast, state, steps)

    sees = state.ancestry == 0
    assert sees.sum(dim=2).eq(steps).all()  # its own token of each step
    assert sees.sum(dim=1).le(1).all()  # nobody else's


def test_sentences_that_leave_take_their_keys_along(fast, sentences, moves):
    state = walked(fast, started(fast, sentences), 4)
    moves.clear()

    left = state.select(torch.tensor([2, 0]))

    assert moves == [(2, 4)]
    for block in range(LAYERS):
        assert left.cache(block).equal(state.cache(block)[[2, 0]])
        assert left.memory[block].equal(state.memory[block][[2, 0]])
    assert left.length == state.length == 4


def test_two_that_come_after_one_state_do_not_write_over_each_other(fast, sentences):
    state = walked(fast, started(fast, sentences), 3)
    one, other = torch.tensor([4, 5, 6]), torch.tensor([7, 8, 9])

    _, first = fast.step(one, state)
    kept = [first.cache(block).clone() for block in range(LAYERS)]
    _, second = fast.step(other, state)

    assert first.pool is state.pool
    assert second.pool is not state.pool
    for block in range(LAYERS):
        assert first.cache(block).equal(kept[block])
        assert not second.cache(block)[:, :, -1].isclose(kept[block][:, :, -1]).all()
        assert second.cache(block)[:, :, :-1].equal(kept[block][:, :, :-1])


def test_a_moved_pool_holds_the_chosen_keys_in_their_order():
    blocks = [torch.randn(SENTENCES, 2, 7, D_MODEL) for _ in range(LAYERS)]
    sentences, keys = torch.tensor([2, 0]), torch.tensor([[6, 1, 4], [0, 0, 5]])

    new = KeyPool(blocks, 7).moved(sentences, keys, 11)

    assert (new.written, new.room) == (3, 14)
    for block, old in zip(new.blocks, blocks, strict=True):
        assert block[0, :, :3].equal(old[2][:, [6, 1, 4]])
        assert block[1, :, :3].equal(old[0][:, [0, 0, 5]])


def test_a_mask_lets_all_heads_see_the_ancestors(fast, sentences):
    state = started(fast, sentences)
    assert isinstance(state, PooledState)
    assert state.mask is None
    state = walked(fast, state.select_beams(places(3, 1, [0, 0])), 1)
    hidden = -torch.inf
    assert state.mask.tolist() == [[[[0.0, hidden], [hidden, 0.0]]]] * SENTENCES
