import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from glassformer.config import ModelConfig
from glassformer.data.batches import make_batch, plan_batches, shift
from glassformer.data.corpus import Pair
from glassformer.data.subword_training import train_tokenizer
from glassformer.data.token_store import Packed, pack
from glassformer.model.transformer import Transformer


def natural_lengths(pairs: int) -> tuple[np.ndarray, np.ndarray]:
    """Lengths like those of captions: skewed, and the sides alike but not equal."""
    chance = np.random.default_rng(0)
    source = np.clip(chance.gamma(9.0, 1.6, pairs).round(), 2, 80).astype(np.int32)
    target = np.clip((source * chance.normal(1.05, 0.2, pairs)).round(), 2, 80).astype(np.int32)
    return source, target


def size(rows: np.ndarray, source: np.ndarray, target: np.ndarray) -> int:
    return len(rows) * int(source[rows].max() + 1 + target[rows].max() + 1)


LENGTHS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=60)


@given(LENGTHS, st.integers(1, 300), st.integers(0, 2**32), st.integers(0, 1000))
def test_every_row_is_in_one_batch_and_no_batch_beyond_the_budget(lengths, tokens, seed, epoch):
    source, target = np.array(lengths, dtype=np.int64).reshape(-1, 2).T
    plan = plan_batches(source, target, tokens=tokens, seed=seed, epoch=epoch)
    rows = np.concatenate([np.zeros(0, np.int64), *plan])
    assert sorted(rows.tolist()) == list(range(len(lengths)))
    for batch in plan:
        assert len(batch) >= 1
        assert size(batch, source, target) <= tokens or len(batch) == 1


def test_the_plan_is_a_function_of_seed_and_epoch():
    source, target = natural_lengths(2000)

    def plan(seed, epoch):
        batches = plan_batches(source, target, tokens=1024, seed=seed, epoch=epoch)
        return [rows.tolist() for rows in batches]

    assert plan(1, 0) == plan(1, 0)
    others = [plan(1, 0), plan(1, 1), plan(2, 0), plan(2, 1)]
    assert all(a != b for place, a in enumerate(others) for b in others[:place])


@pytest.mark.parametrize("tokens", [1024, 2048, 4096])
def test_at_least_95_percent_of_the_places_hold_tokens(tokens):
    source, target = natural_lengths(30_000)
    plan = plan_batches(source, target, tokens=tokens, seed=1, epoch=0)
    useful = int((source + 1 + target + 1).sum())
    assert useful >= 0.95 * sum(size(rows, source, target) for rows in plan)
    assert useful >= 0.93 * tokens * len(plan)  # and the batches are full


def test_sentences_meet_others_in_the_next_epoch():
    source, target = natural_lengths(20_000)
    first, second = (
        plan_batches(source, target, tokens=2048, seed=1, epoch=epoch) for epoch in (0, 1)
    )
    home = np.empty(len(source), dtype=np.int64)
    for number, rows in enumerate(second):
        home[rows] = number
    together = [(np.bincount(home[rows]) ** 2).sum() / len(rows) ** 2 for rows in first]
    assert np.mean(together) < 0.3


def test_short_and_long_batches_are_mixed():
    source, target = natural_lengths(20_000)
    plan = plan_batches(source, target, tokens=2048, seed=1, epoch=0)
    means = np.array([source[rows].mean() for rows in plan])
    assert abs(np.corrcoef(means, np.arange(len(means)))[0, 1]) < 0.2


def test_a_million_pairs_are_planned_and_none_at_all():
    source, target = natural_lengths(1_000_000)
    assert sum(map(len, plan_batches(source, target, tokens=8192, seed=0, epoch=0))) == 1_000_000
    nothing = np.zeros(0, dtype=np.int32)
    assert plan_batches(nothing, nothing, tokens=10, seed=0, epoch=0) == []


@pytest.fixture(scope="module")
def packed(tmp_path_factory) -> Packed:
    pairs = [Pair("a b c", "x"), Pair("c", "x y"), Pair("b b", "y y x")]
    tokenizer = train_tokenizer([" ".join(pair) for pair in pairs], vocab_size=300)
    return pack(pairs, tokenizer, tokenizer, tmp_path_factory.mktemp("data") / "p", max_tokens=50)


def test_a_batch_by_hand(packed):
    a, b, c = packed.source[0].tolist()
    x, y = packed.target[1].tolist()
    batch = make_batch(packed, np.array([0, 2, 1]))
    assert batch.source.tolist() == [[a, b, c, 3], [b, b, 3, 0], [c, 3, 0, 0]]
    assert batch.target.tolist() == [[2, x, 3, 0], [2, y, y, x], [2, x, y, 3]]
    assert batch.labels.tolist() == [[x, 3, 0, 0], [y, y, x, 3], [x, y, 3, 0]]
    assert batch.tokens == (4 + 3 + 2) + (2 + 4 + 3)
    assert batch.target_tokens == 2 + 4 + 3
    assert {t.dtype for t in (batch.source, batch.target, batch.labels)} == {torch.int64}


def test_backwards_the_source_is_what_is_said(packed):
    a, b, c = packed.source[0].tolist()
    x, y = packed.target[1].tolist()
    batch = make_batch(packed, np.array([0, 2, 1]), slice(0, 2), backwards=True)
    assert batch.source.tolist() == [[x, 3, 0, 0], [y, y, x, 3]]
    assert batch.target.tolist() == [[2, a, b, c], [2, b, b, 3]]
    assert batch.labels.tolist() == [[a, b, c, 3], [b, b, 3, 0]]
    assert (batch.tokens, batch.target_tokens) == (18, 4 + 3 + 2)


def test_labels_are_the_target_one_step_on_and_counts_are_those_of_the_tensors(packed):
    for rows in plan_batches(
        packed.source.lengths, packed.target.lengths, tokens=20, seed=0, epoch=0
    ):
        batch = make_batch(packed, rows)
        assert torch.equal(batch.target[:, 1:], batch.labels[:, :-1])
        assert (batch.target[:, 0] == 2).all()
        assert batch.target_tokens == int((batch.labels != 0).sum())
        assert batch.tokens == int((batch.source != 0).sum()) + batch.target_tokens


def test_an_end_symbol_among_the_inputs_changes_no_loss():
    """After a shorter sentence the decoder reads its end symbol; with padding there, the
    probabilities of all real labels are the same."""
    labels = torch.tensor([[7, 8, 9, 5, 3], [7, 3, 0, 0, 0], [8, 9, 3, 0, 0]])
    target = shift(labels, bos=2)
    padded = target.masked_fill(labels == 0, 0)
    assert not torch.equal(target, padded)
    config = ModelConfig(
        source_vocab_size=11, target_vocab_size=11, d_model=8, num_heads=2, d_ff=16, dropout=0.0
    )
    model = Transformer(config).eval()

    logits, padded_logits = model(labels, target), model(labels, padded)

    assert torch.equal(logits[labels != 0], padded_logits[labels != 0])
    assert not torch.equal(logits, padded_logits)


def test_the_shift_leaves_the_labels_alone():
    labels = torch.tensor([[7, 3, 0]])
    shift(labels, bos=2)[:] = 5
    assert labels.tolist() == [[7, 3, 0]]
    assert shift(labels[:0], bos=2).shape == (0, 3)


def test_the_symbols_are_the_tokenizers(packed):
    symbols = {
        "source": {"pad": 90, "bos": 91, "eos": 92},
        "target": {"pad": 80, "bos": 81, "eos": 82},
    }
    other = Packed(packed.directory, dataclasses.replace(packed.meta, symbols=symbols))
    batch = make_batch(other, np.array([0, 1]))
    assert batch.source[1, 1:].tolist() == [92, 90, 90]
    assert batch.target[0, [0, -1]].tolist() == [81, 82]
    assert batch.labels[0, 1:].tolist() == [82, 80]
    turned = make_batch(other, np.array([0, 1]), backwards=True)
    assert turned.source[0].tolist()[1:] == [82, 80]
    assert turned.labels[1].tolist()[1:] == [92, 90, 90]


def test_to_moves_every_tensor_and_keeps_the_counts(packed):
    batch = make_batch(packed, np.array([0, 1]))
    moved = batch.to("meta")
    assert {moved.source.device.type, moved.target.device.type, moved.labels.device.type} == {
        "meta"
    }
    assert (moved.tokens, moved.target_tokens) == (batch.tokens, batch.target_tokens)


def test_a_batch_owns_its_memory(packed):
    batch = make_batch(packed, np.array([0]))
    batch.source.zero_()
    assert packed.source[0].min() > 3
