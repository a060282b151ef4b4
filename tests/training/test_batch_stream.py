"""Which batches are read: every one of an epoch once, whatever the updates and ranks."""

import numpy as np
import pytest
import torch

from glassformer.training import batch_stream as reading
from glassformer.training.batch_stream import BatchStream, epoch_plan, seed_update
from glassformer.training.checkpoint import RunState
from glassformer.training.setup.prepare import prepare


def plan_of(config, packed, epoch=0):
    return epoch_plan(packed, epoch, tokens=config.batch_tokens, seed=config.seed)


def test_all_batches_are_read_once_an_epoch_across_updates(made, monkeypatch):
    read = []
    inner = reading.make_batch
    monkeypatch.setattr(
        reading,
        "make_batch",
        lambda packed, rows, *_, **how: (read.append(rows), inner(packed, rows, **how))[1],
    )
    trainer = made(accumulate=3, updates=20, validations=1)
    packed = trainer.prepared.packed
    trainer.fit()

    plans = [rows for epoch in range(20) for rows in plan_of(trainer.config, packed, epoch)]
    assert len(read) == 60
    assert [rows.tolist() for rows in read] == [rows.tolist() for rows in plans[:60]]


def test_both_ways_every_other_update_of_the_first_share_is_backwards(made, monkeypatch):
    turned = []
    inner = reading.make_batch
    monkeypatch.setattr(
        reading,
        "make_batch",
        lambda *where, **how: (turned.append(how["backwards"]), inner(*where, **how))[1],
    )
    made(both_ways=0.5, updates=10, validations=1).fit()

    assert turned == [False, True, False, True, *[False] * 6]


@pytest.mark.parametrize(("epochs", "accumulate"), [(3.0, 1), (0.5, 1), (4.0, 3), (0.001, 1)])
def test_epochs_come_to_updates(made, epochs, accumulate):
    trainer = made(updates=None, epochs=epochs, accumulate=accumulate)

    packed = trainer.prepared.packed
    batches = len(plan_of(trainer.config, packed))
    expected = max(1, round(epochs * batches / accumulate))
    assert trainer.pace.updates == expected


def test_the_ranks_shares_are_the_batch(config):
    options = config(60)
    packed = prepare(options).packed

    def read(share, count=12):
        stream = BatchStream(RunState(), options, packed, share, seed=options.seed)
        return [batch for _ in range(count) for batch in stream.next_batches()]

    whole = read(slice(None))
    shares = [read(slice(rank, None, 3)) for rank in range(3)]

    for batch, *parts in zip(whole, *shares, strict=True):
        assert {part.target_tokens for part in parts} == {batch.target_tokens}
        rows = [batch.labels[rank::3] for rank in range(3)]
        for row, part in zip(rows, parts, strict=True):
            assert torch.equal(row[:, : part.labels.size(1)], part.labels)
            assert not row[:, part.labels.size(1) :].any()


def test_reading_goes_on_from_any_place(config):
    options = config(60)
    packed = prepare(options).packed
    per_epoch = len(plan_of(options, packed))
    state = RunState()
    stream = BatchStream(state, options, packed, slice(None), seed=options.seed)
    read = [stream.next_batches()[0].source for _ in range(per_epoch + 2)]

    assert (state.epoch, state.batch) == (1, 2)
    again = BatchStream(RunState(epoch=1, batch=1), options, packed, slice(None), seed=options.seed)
    assert torch.equal(again.next_batches()[0].source, read[-1])


def test_what_is_drawn_hangs_on_seed_update_and_rank():
    drawn = {}
    for place in np.ndindex(2, 3, 3):
        seed_update(*place)
        drawn[place] = torch.rand(4).tolist()

    assert len(set(map(tuple, drawn.values()))) == len(drawn)
    seed_update(1, 2, 0)
    assert torch.rand(4).tolist() == drawn[1, 2, 0]
