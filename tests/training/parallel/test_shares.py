"""Shares of a batch: the gradient of the whole batch, and the same bits in any order of threads."""

import time
from dataclasses import replace
from functools import partial, wraps

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from glassformer.config import ModelConfig
from glassformer.data.batches import Batch, shift
from glassformer.parts import FAST, PLAIN
from glassformer.support.threads import torch_threads
from glassformer.training.checkpoint import RunState
from glassformer.training.optimiser import Learner, adam_of
from glassformer.training.parallel.ranks import ALONE
from glassformer.training.parallel.shares import Shares
from glassformer.training.setup import machine
from glassformer.training.setup.learner import new_learner
from glassformer.training.setup.machine import chosen_shares, record_machine
from glassformer.training.setup.options import TrainConfig

VOCAB = 11


def model_of(parts=FAST, **changes):
    torch.manual_seed(3)
    sizes = {"source_vocab_size": VOCAB, "target_vocab_size": VOCAB, "d_model": 8, "num_heads": 2}
    layers = {"d_ff": 12, "num_encoder_layers": 1, "num_decoder_layers": 1, "dropout": 0.0}
    return parts.build(ModelConfig(**{**sizes, **layers, **changes}))


def batch_of(lengths, seed=1):
    """Random sentences of these lengths, which end in 3 and are padded with 0."""
    draw = torch.Generator().manual_seed(seed)
    labels = torch.randint(4, VOCAB, (len(lengths), max(lengths) + 1), generator=draw)
    for row, length in enumerate(lengths):
        labels[row, length], labels[row, length + 1 :] = 3, 0
    tokens = sum(lengths) + len(lengths)
    return Batch(labels, shift(labels, 2), labels, 2 * tokens, tokens)


@given(
    st.lists(st.lists(st.integers(1, 7), min_size=1, max_size=5), min_size=1, max_size=3),
    st.integers(2, 4),
    st.sampled_from([PLAIN, FAST]),
)
def test_the_gradient_is_that_of_the_whole_batch(lengths, count, parts):
    batches = [batch_of(each, seed) for seed, each in enumerate(lengths)]
    gradients = []
    for shares in (1, count):  # of a batch with fewer rows, a share has none
        model = model_of(parts).double()
        with Shares(shares, cores=3) as threads:
            ranks = replace(ALONE, shares=threads)
            losses = partial(parts.losses, smoothing=0.1)
            learner = Learner(model, adam_of([*model.parameters()]), losses=losses, ranks=ranks)
            gradients.append(learner.gradient(batches))

    (whole, losses), (shared, other_losses) = gradients
    torch.testing.assert_close(other_losses, losses)
    for ours, expected in zip(shared, whole, strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-9, atol=1e-12)


def updated(directory, count, *, losses=FAST.losses, precision="float32", **changes):
    """The weights after three updates with shares."""
    state = RunState(precision=precision)
    options = TrainConfig(pairs=("a",), run=directory, optimiser="muon", clip=1.0)
    parts = replace(FAST, losses=losses)
    with Shares(count, cores=count) as shares:
        learner = new_learner(
            model_of(**changes),
            parts,
            options=options,
            state=state,
            checkpoints=directory,
            ranks=replace(ALONE, shares=shares),
        )
        for seed in range(3):
            torch.manual_seed(seed)
            learner.update([batch_of([3, 5, 2, 4, 6, 1], seed)], rate=0.01).read()
    return [weight.detach() for weight in learner.model.parameters()]


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_updates_have_the_same_bits_in_any_order_of_threads(tmp_path, precision):
    def delayed(model, batch, *, smoothing, place):
        if batch.source[0, 0] == place:
            time.sleep(0.05)  # the other shares draw their random numbers first
        return FAST.losses(model, batch, smoothing=smoothing)

    firsts = {int(batch_of([3, 5, 2, 4, 6, 1], seed).source[0, 0]) for seed in range(3)}
    runs = [
        updated(tmp_path, 3, losses=partial(delayed, place=place), precision=precision, dropout=0.3)
        for place in (-1, min(firsts), max(firsts))
    ]

    for run in runs[1:]:
        assert all(map(torch.equal, run, runs[0]))
    other = updated(tmp_path, 2, precision=precision, dropout=0.3)  # draws other numbers
    assert not all(map(torch.equal, other, runs[0]))


def test_the_shares_draw_their_own_dropout():
    """Equal rows in two shares, whose gradients without dropout are equal."""
    batch = batch_of([4, 4])
    rows = [side[:1].repeat(2, 1) for side in (batch.source, batch.target, batch.labels)]
    losses = []

    def kept(model, batch, *, smoothing):
        losses.append(FAST.losses(model, batch, smoothing=smoothing))
        return losses[-1]

    with Shares(2, cores=2) as shares:
        model = model_of(dropout=0.5)
        learner = Learner(
            model,
            adam_of([*model.parameters()]),
            losses=partial(kept, smoothing=0.1),
            ranks=replace(ALONE, shares=shares),
        )
        learner.gradient([Batch(*rows, batch.tokens, batch.target_tokens)])

    assert losses[0][0] != losses[1][0]


def test_shares_divide_muons_matrices(tmp_path):
    whole, shared = (updated(tmp_path, count) for count in (1, 3))

    for ours, expected in zip(shared, whole, strict=True):
        if ours.dim() == 2:  # a key's bias has no gradient but rounding, which Adam enlarges
            torch.testing.assert_close(ours, expected, rtol=1e-4, atol=1e-5)


def test_small_updates_have_one_thread_and_other_parts_no_shares(monkeypatch):
    def chosen(model, parts=FAST, tokens=4096, cores=2):
        monkeypatch.setattr(machine, "usable_cores", lambda: cores)
        return chosen_shares(model, parts, tokens=tokens)

    small, large = model_of(), model_of(source_vocab_size=50_000, target_vocab_size=50_000)

    assert chosen(small) == 1 == chosen(small, PLAIN)
    assert chosen(large) == 2
    assert chosen(large, tokens=512) == 1
    assert chosen(large, replace(FAST, schedule=lambda *_, **__: 0.1)) == 2
    for parts in (
        PLAIN,
        replace(FAST, dropout=torch.nn.AlphaDropout),
        replace(FAST, losses=wraps(FAST.losses)(lambda *_, **__: None)),
        replace(FAST, optimiser=lambda weights: torch.optim.SGD(weights, lr=0.0)),
        replace(FAST, norm=lambda _: torch.nn.Identity()),
    ):
        assert chosen(large, parts) == 0
    dropping = model_of(source_vocab_size=50_000, target_vocab_size=50_000, attention_dropout=0.1)
    assert chosen(dropping) == 0
    monkeypatch.setattr(machine, "_MOST_WEIGHTS", 100_000)
    assert chosen(large) == 0
    monkeypatch.undo()
    for cores, expected in ((1, 1), (3, 3), (4, 4), (5, 4), (6, 3), (8, 4), (9, 3), (16, 4)):
        assert chosen(large, cores=cores) == expected


def test_a_run_keeps_its_shares(monkeypatch):
    cpu, state = torch.device("cpu"), RunState()
    record_machine(state, cpu, 2)
    state.update = 1

    record_machine(state, cpu, 1)
    assert state.machine["shares"] == 2
    monkeypatch.setenv("WORLD_SIZE", "2")
    record_machine(state, cpu, 2)
    assert state.machine["shares"] == 2  # for the time after the ranks

    older = RunState(update=7, machine={"device": "cpu"})  # recorded no number
    monkeypatch.delenv("WORLD_SIZE")
    record_machine(older, cpu, 2)
    assert older.machine["shares"] == 0


def test_a_run_continues_with_its_shares_and_bits(
    made, interrupted, recorder, monkeypatch, tmp_path
):
    """On fewer threads than it began with, because a share has one thread on any machine."""
    monkeypatch.setattr(machine, "_FEWEST_OPERATIONS", 0)
    monkeypatch.setattr(machine, "usable_cores", lambda: 2)

    def weights(name, threads):
        with torch_threads(threads):
            trainer = made(run=tmp_path / name, dropout=0.3, updates=6)
            trainer.fit()
        return [weight.detach() for weight in trainer.model.parameters()]

    whole = weights("whole", 2)
    with interrupted(), torch_threads(2):
        made(run=tmp_path / "parts", dropout=0.3, updates=6).fit()
    continued = weights("parts", 1)

    assert recorder.noted("each batch in 2 shares")
    assert recorder.noted("threads 2 before, 1 now: the run goes on")
    assert all(map(torch.equal, continued, whole))
