"""Packed batches: each pair once in an epoch, the tensors of padded batches, and equal updates."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from glassformer.config import ModelConfig
from glassformer.data.batches import make_batch
from glassformer.data.token_store import Sentences
from glassformer.parts import FAST, PLAIN, Packing
from glassformer.training.optimiser import Learner, adam_of

VOCAB = 19
PAD, BOS, EOS = 0, 2, 3
LENGTHS = st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=12)
CLOSE = partial(torch.testing.assert_close, rtol=0, atol=1e-10)


def corpus(lengths, seed=1):
    """A packed corpus of random sentences, whose sides have different start symbols."""
    draw = np.random.default_rng(seed)
    sides = []
    for column in np.array(lengths).T:
        ids = draw.integers(5, VOCAB, column.sum(), dtype=np.uint16)
        sides.append(Sentences(ids, np.append(0, column.cumsum())))
    symbols = {"pad": PAD, "eos": EOS}
    meta = SimpleNamespace(
        symbols={"source": symbols | {"bos": 4}, "target": symbols | {"bos": BOS}}
    )
    return SimpleNamespace(source=sides[0], target=sides[1], meta=meta)


def lengths_of(packed):
    return packed.source.lengths, packed.target.lengths


@given(LENGTHS, st.integers(1, 120), st.integers(0, 2**32), st.integers(0, 99))
def test_every_pair_is_in_one_batch_and_has_room(lengths, tokens, seed, epoch):
    packed = corpus(lengths)
    shape = Packing.of(packed, tokens)
    sides = lengths_of(packed)

    plan = shape.plan(*sides, seed=seed, epoch=epoch)

    assert sorted(np.concatenate(plan).tolist()) == list(range(len(lengths)))
    for pairs in plan:
        assert len(pairs) >= 1
        assert all((side[pairs] + 1).sum() <= shape.rows * shape.width for side in sides)
        shape.batch(packed, pairs)  # an error if a pair has no room
    again = shape.plan(*sides, seed=seed, epoch=epoch)
    assert [pairs.tolist() for pairs in again] == [pairs.tolist() for pairs in plan]


def test_a_pair_that_has_no_room_is_named():
    lengths = np.array([3, 20])
    with pytest.raises(ValueError, match="a pair has more tokens on a side than 8 places"):
        Packing(rows=9, width=8).plan(lengths, lengths, seed=1, epoch=0)


def test_few_places_hold_no_token():
    draw = np.random.default_rng(0)
    source = np.clip(draw.gamma(9.0, 1.6, 30_000).round(), 2, 80).astype(np.int64)
    target = np.clip((source * draw.normal(1.05, 0.2, 30_000)).round(), 2, 80).astype(np.int64)
    packed = SimpleNamespace(
        source=SimpleNamespace(lengths=source), target=SimpleNamespace(lengths=target)
    )
    for tokens in (4_096, 25_000):  # the target is 5 % longer, so its places fill first
        shape = Packing.of(packed, tokens)
        plan = shape.plan(source, target, seed=1, epoch=0)
        used = int((source + target + 2).sum())
        assert used >= 0.92 * 2 * shape.rows * shape.width * len(plan)


@given(LENGTHS, st.integers(16, 900), st.booleans())
def test_a_batch_has_the_sentences_of_the_padded_batch_end_to_end(lengths, tokens, backwards):
    packed = corpus(lengths)
    shape, sizes = Packing.of(packed, tokens), set()
    for rows in shape.plan(*lengths_of(packed), seed=1, epoch=0):
        batch = shape.batch(packed, rows, backwards=backwards)
        padded = make_batch(packed, rows, backwards=backwards)
        assert (batch.tokens, batch.target_tokens) == (padded.tokens, padded.target_tokens)
        sizes.add(tuple((name, each.shape, each.dtype) for name, each in batch.tensors.items()))
        row_of = {}
        for name, pairs, positions in (
            ("source", batch.source_pairs, batch.source_positions),
            ("target", batch.target_pairs, batch.target_positions),
            ("labels", batch.target_pairs, batch.target_positions),
        ):
            for number, expected in enumerate(getattr(padded, name), start=1):
                in_rows, columns = (pairs == number).nonzero().T.tolist()
                assert {row_of.setdefault(number, in_rows[0])} == {*in_rows}
                assert columns == list(range(columns[0], columns[0] + len(columns)))
                sentence = getattr(batch, name)[in_rows, columns]
                assert sentence.tolist() == expected[: len(columns)].tolist()
                if name == "labels":
                    assert sentence[-1] == EOS
                    assert not expected[len(columns) :].any()
                assert positions[in_rows, columns].tolist() == list(range(len(columns)))
            assert not getattr(batch, name)[pairs == 0].any()
    assert len(sizes) == 1


def model_of(parts=FAST, **changes):
    torch.manual_seed(3)
    sizes = {"source_vocab_size": VOCAB, "target_vocab_size": VOCAB, "d_model": 8, "num_heads": 2}
    layers = {"d_ff": 12, "num_encoder_layers": 2, "num_decoder_layers": 2, "dropout": 0.0}
    model = parts.build(ModelConfig(**{**sizes, **layers, **changes}))
    with torch.no_grad():
        for weight in model.parameters():
            weight += 0.1 * torch.randn_like(weight)
    return model


SETTINGS = st.fixed_dictionaries(
    {
        "norm": st.sampled_from(["post", "pre"]),
        "tying": st.sampled_from(["none", "target", "embeddings", "three-way"]),
        "positions": st.sampled_from(["sinusoidal", "learned"]),
        "position_offset": st.sampled_from([0, 2]),
        "embedding_norm": st.booleans(),
        "scale_embeddings": st.booleans(),
        "output_bias": st.booleans(),
        "activation": st.sampled_from(["relu", "gelu", "swish"]),
    }
)


@given(LENGTHS, st.integers(16, 60), SETTINGS, st.booleans(), st.sampled_from([PLAIN, FAST]))
def test_an_update_is_that_of_padded_batches(lengths, tokens, settings, backwards, parts):
    packed = corpus(lengths)
    packing = Packing.of(packed, tokens)
    plan = packing.plan(*lengths_of(packed), seed=1, epoch=0)
    gradients = []
    for form in ("padded", "packed"):
        model = model_of(parts if form == "padded" else FAST, **settings).double()
        losses = parts.losses if form == "padded" else packing.losses
        learner = Learner(
            model,
            adam_of([*model.parameters()]),
            losses=partial(losses, smoothing=0.1),
        )
        make = make_batch if form == "padded" else packing.batch
        gradients.append(
            learner.gradient([make(packed, rows, backwards=backwards) for rows in plan])
        )

    (expected, expected_losses), (found, losses) = gradients
    CLOSE(losses.double(), expected_losses.double(), atol=1e-6)
    CLOSE(found, expected)
