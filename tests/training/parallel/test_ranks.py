"""Ranks: sums that are the same on each, one gradient whatever the shares, and a lost process."""

import multiprocessing
import signal

import pytest
import torch

from glassformer.training.fast import muon
from glassformer.training.parallel import ranks as parallel
from glassformer.training.parallel.ranks import ALONE, quickest_workers

RANK = """
import torch
from glassformer.training.parallel.ranks import RankLostError, joined_by_store

torch.set_num_threads(1)
with joined_by_store(store, rank, size) as ranks:
    said.send(work(ranks, given))
"""


@pytest.fixture(scope="module")
def processes():
    """A server that has torch loaded and forks in a moment; it never computes itself."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["glassformer.training.parallel.worker"])
    return context


def heard(pipe):
    try:
        return pipe.recv() if pipe.poll(60) else None
    except EOFError:
        return None


@pytest.fixture
def on_ranks(processes, tmp_path):
    """What ``work(ranks, given)``, defined by ``code``, returns on each of some ranks."""

    def run(size, code, given=None):
        code += RANK
        pipes = [processes.Pipe(duplex=False) for _ in range(size)]
        ours = [pipe for pipe, _ in pipes]
        names = {"store": str(tmp_path / "store"), "size": size, "given": given}
        started = [
            processes.Process(target=exec, args=(code, {**names, "rank": rank, "said": said}))
            for rank, (_, said) in enumerate(pipes)
        ]
        for process, (_, said) in zip(started, pipes, strict=True):
            process.start()
            said.close()  # where nobody can say any more, nobody waits
        found = [heard(pipe) for pipe in ours]
        for process in started:
            process.join(timeout=20)
            assert process.exitcode is not None
        return found, [process.exitcode for process in started]

    return run


def test_alone_nothing_is_sent():
    tensors = [torch.ones(2, 3), torch.zeros(())]

    assert all(ours is theirs for ours, theirs in zip(ALONE.sum(tensors), tensors, strict=True))
    assert ALONE.agree(stop=15, rate=0.5, backwards=True) == (15, 0.5, True)
    assert ALONE.tell("what") == "what"
    ALONE.copy(tensors)
    assert ALONE.share() == slice(0, None, 1)


COLLECTIVES = """
def work(ranks, _):
    import torch

    draw = torch.Generator().manual_seed(ranks.rank)
    drawn = [torch.randn(shape, generator=draw) for shape in ((3, 5), (), (7,))]
    sums = [ranks.sum(drawn) for _ in range(3)]
    copied = [torch.full((2,), float(ranks.rank)), torch.full((), float(ranks.rank + 3))]
    ranks.copy(copied)
    return {
        "drawn": [x.tolist() for x in drawn],
        "sums": [[x.tolist() for x in one] for one in sums],
        "agreed": [
            ranks.agree(
                stop=15 if ranks.rank == 1 else 0,
                rate=0.0 if ranks.rank else 0.125,
                backwards=said and ranks.rank == 0,
            )
            for said in (True, False)
        ],
        "told": ranks.tell({"place": 7} if ranks.rank == 0 else None),
        "copied": [x.tolist() for x in copied],
        "share": list(range(8))[ranks.share()],
    }
"""


def test_what_the_ranks_tell_each_other(on_ranks):
    found, status = on_ranks(3, COLLECTIVES)

    assert status == [0, 0, 0]
    for place in range(3):
        expected = sum(torch.tensor(one["drawn"][place]) for one in found)
        torch.testing.assert_close(torch.tensor(found[0]["sums"][0][place]), expected)
    for one in found:
        assert one["sums"] == [found[0]["sums"][0]] * 3  # the same bits everywhere and each time
        assert one["agreed"] == [(15, 0.125, True), (15, 0.125, False)]
        assert one["told"] == {"place": 7}
        assert one["copied"] == [[0.0, 0.0], 3.0]
    assert [one["share"] for one in found] == [[0, 3, 6], [1, 4, 7], [2, 5]]


LARGE_SUMS = """
import torch

def work(ranks, sizes):
    # Where one rank is ahead of another, what it writes next must not reach the sum before.
    wrong = []
    for turn, size in enumerate(sizes):
        row = torch.arange(size, dtype=torch.float64)
        [found] = ranks.sum([row * (ranks.rank + turn)])
        expected = row * sum(rank + turn for rank in range(ranks.size))
        if not torch.equal(found, expected):
            wrong.append((turn, size))
    return ranks.common is not None, wrong
"""


def test_sums_of_many_parts_one_after_the_other(on_ranks, tmp_path):
    part = parallel._PART // 8  # numbers in float64
    sizes = [1, part, part + 1, 5 * part - 3, 2 * part, *[part // 2, 3] * 20]

    found, _ = on_ranks(3, LARGE_SUMS, sizes)

    assert found == [(True, [])] * 3
    assert not list(tmp_path.glob("*.common"))  # a killed process would leave it behind


GRADIENT = """
import torch
from glassformer.config import ModelConfig
from glassformer.data.batches import Batch
from glassformer.model.transformer import Transformer
from glassformer.training.optimiser import Learner, adam

SIZES = {"d_model": 8, "num_heads": 2, "d_ff": 12, "num_encoder_layers": 1, "dropout": 0.0}
SIZES |= {"source_vocab_size": 11, "target_vocab_size": 11, "num_decoder_layers": 1}

def work(ranks, sizes):
    '''The gradient of batches of these sizes, of which each rank has its share.'''
    torch.manual_seed(3)
    model = Transformer(ModelConfig(**SIZES)).double()
    draw = torch.Generator().manual_seed(5)
    ids = torch.randint(4, 11, (8, 9), generator=draw)
    ids[1:, 7:] = 0
    batches = []
    for first, last in sizes:
        rows = ids[first:last]
        target = torch.cat([torch.full((len(rows), 1), 2), rows[:, :-1]], 1)
        count = int((rows != 0).sum())
        parts = [side[ranks.share()] for side in (rows.flip(1), target, rows)]
        batches.append(Batch(*parts, 2 * count, count))
    gradients, losses = Learner(model, adam(model), ranks=ranks).gradient(batches)
    return [gradient.tolist() for gradient in (*gradients, losses)]
"""


def test_micro_batches_on_ranks_are_one_big_batch(on_ranks):
    names = {}
    exec(GRADIENT, names)
    whole = names["work"](ALONE, [(0, 8)])

    # The last has one sentence: two of the three ranks have none of it.
    found, _ = on_ranks(3, GRADIENT, [(0, 5), (5, 7), (7, 8)])

    assert found[0] == found[1] == found[2]
    assert found[0][-1] == pytest.approx(whole[-1], rel=1e-6)  # losses are added in float32
    for pair in zip(found[0][:-1], whole[:-1], strict=True):
        ours, alone = (torch.tensor(gradient, dtype=torch.float64) for gradient in pair)
        torch.testing.assert_close(ours, alone, rtol=1e-9, atol=1e-12)


MUON = """
import torch
from glassformer.config import ModelConfig
from glassformer.model.transformer import Transformer
from glassformer.training.optimiser import Learner, new_optimiser

SIZES = {"d_model": 8, "num_heads": 2, "d_ff": 12, "num_encoder_layers": 1}
SIZES |= {"source_vocab_size": 11, "target_vocab_size": 11, "num_decoder_layers": 1}

def work(ranks, rate):
    '''The matrices after two steps along gradients that are the same on each rank.'''
    torch.manual_seed(3)
    model = Transformer(ModelConfig(**SIZES))
    optimiser = new_optimiser(model, "muon")
    learner = Learner(model, optimiser, ranks=ranks)
    for _ in range(2):
        for weight in model.parameters():
            weight.grad = torch.randn_like(weight)
        learner.step([weight.grad for weight in model.parameters()], torch.ones(2), rate=rate)
    return [matrix.tolist() for matrix in optimiser.matrices]
"""


def test_ranks_divide_muons_products(on_ranks, monkeypatch):
    names = {}
    exec(MUON, names)
    alone = names["work"](ALONE, 0.5)

    found, _ = on_ranks(3, MUON, 0.5)  # of two shapes there are two matrices: one rank has none

    assert found[0] == found[1] == found[2]
    for ours, expected in zip(found[0], alone, strict=True):
        torch.testing.assert_close(torch.tensor(ours), torch.tensor(expected))
    counted = []
    monkeypatch.setattr(muon, "orthogonal", lambda x: counted.append(len(x)) or x)
    monkeypatch.setattr(parallel.Ranks, "sum", lambda _, tensors: list(tensors))
    names["work"](parallel.Ranks(1, 2), 0.5)
    assert sum(counted) == len(alone)  # a half, in each of two steps


LOST = """
def work(ranks, _):
    import os, signal, torch

    ranks.sum([torch.ones(3)])
    if ranks.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        ranks.agree()
    except RankLostError as error:
        return str(error)
"""


def test_a_lost_rank_ends_the_waiting_of_all(on_ranks):
    found, status = on_ranks(3, LOST)

    assert status == [0, -signal.SIGKILL, 0]
    assert found[1] is None
    for said in (found[0], found[2]):
        assert said
        assert "\n" not in said


class Machine:
    """A computer on which a share of a batch takes the time that the test says."""

    def __init__(self, monkeypatch, seconds):
        self.time, self.seconds, self.counts = 0.0, seconds, []
        monkeypatch.setattr(parallel.time, "perf_counter", lambda: self.time)

    def compute(self, share):
        self.counts.append((share.step, torch.get_num_threads()))
        self.time += self.seconds(share.step)


@pytest.fixture
def threads_as_before():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("threads_as_before")
@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        ({1: 1.0, 2: 0.6, 3: 0.45, 6: 0.4}, 6),
        ({1: 1.0, 2: 0.5, 3: 0.45, 6: 0.6}, 3),
        ({1: 1.0, 2: 0.75, 3: 0.7, 6: 0.65}, 1),  # talking would take what is won
        ({1: 1.0, 2: 1.5, 3: 2.0, 6: 3.0}, 1),
    ],
)
def test_as_many_workers_as_are_quickest(monkeypatch, seconds, expected):
    machine = Machine(monkeypatch, seconds.__getitem__)

    assert quickest_workers(machine.compute, 6) == expected

    assert set(machine.counts) == {(1, 6), (2, 3), (3, 2), (6, 1)}
    assert torch.get_num_threads() == 6


@pytest.mark.usefixtures("threads_as_before")
def test_measuring_takes_little_and_does_not_try_what_no_memory_would_hold(monkeypatch):
    machine = Machine(monkeypatch, lambda count: 3.0 / count)

    assert quickest_workers(machine.compute, 64) == 16
    assert machine.time < 2 * sum(3.0 / count for count in (1, 2, 4, 8, 16)) + 5
    assert {count for count, _ in machine.counts} == {1, 2, 4, 8, 16}
