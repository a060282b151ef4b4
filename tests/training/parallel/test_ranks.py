"""Ranks: sums that are the same on each, one gradient whatever the shares, and a lost process."""

import os
import signal
import sys
from contextlib import contextmanager

import pytest
import torch

from glassformer.parts import FAST
from glassformer.support.errors import InputError
from glassformer.training.fast import muon
from glassformer.training.parallel import ranks as parallel
from glassformer.training.parallel import worker
from glassformer.training.parallel.ranks import ALONE, from_torchrun, machine_threads
from tests.processes import CONTEXT, as_torchrun

RANK = """
import os
import torch
from glassformer.training.parallel import ranks as parallel
from glassformer.training.parallel.ranks import RankLostError, from_torchrun

os.environ.update(environment)
torch.set_num_threads(1)
settings = {"place": 7, "process": os.getpid()} if environment["RANK"] == "0" else None
with from_torchrun(torch.device("cpu"), settings) as ranks:
    pipe.send(work(ranks, given))
"""


def received(pipe):
    try:
        return pipe.recv() if pipe.poll(60) else None
    except EOFError:
        return None


@pytest.fixture
def on_ranks():
    """What ``work(ranks, given)``, defined by ``code``, returns on each of some ranks."""

    def run(size, code, given=None):
        code += RANK
        pipes = [CONTEXT.Pipe(duplex=False) for _ in range(size)]
        receivers = [receiver for receiver, _ in pipes]
        started = []
        for environment, (_, sender) in zip(as_torchrun(size), pipes, strict=True):
            names = {"environment": environment, "given": given, "pipe": sender}
            started.append(CONTEXT.Process(target=exec, args=(code, names)))
        for process, (_, sender) in zip(started, pipes, strict=True):
            process.start()
            sender.close()  # so that a receiver notices the end of its process
        results = [received(pipe) for pipe in receivers]
        for process in started:
            process.join(timeout=20)
            assert process.exitcode is not None
        return results, [process.exitcode for process in started]

    return run


ORPHAN = """
import os, signal, time
from glassformer.training.parallel.ranks import end_with_torchrun

os.environ["TORCHELASTIC_RUN_ID"] = "1"
if os.fork():  # this process is as torchrun
    time.sleep(60)
end_with_torchrun()
pipe.send(os.getppid())
time.sleep(60)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the call is Linux's own")
def test_a_rank_ends_with_a_killed_torchrun():
    receiver, sender = CONTEXT.Pipe(duplex=False)
    torchrun = CONTEXT.Process(target=exec, args=(ORPHAN, {"pipe": sender}))
    torchrun.start()
    sender.close()
    parent = received(receiver)
    os.kill(parent, signal.SIGKILL)
    torchrun.join(timeout=20)

    assert parent == torchrun.pid
    assert receiver.poll(20)
    with pytest.raises(EOFError):  # the rank's end of the pipe is closed
        receiver.recv()


def test_alone_nothing_is_sent():
    tensors = [torch.ones(2, 3), torch.zeros(())]

    assert all(ours is theirs for ours, theirs in zip(ALONE.sum(tensors), tensors, strict=True))
    assert ALONE.all_reduce_max(15, 0.1, True) == [15.0, 0.1, 1.0]
    assert ALONE.settings == {}
    ALONE.broadcast(tensors)
    assert ALONE.share() == slice(0, None, 1)


COLLECTIVES = """
def work(ranks, _):
    import torch

    draw = torch.Generator().manual_seed(ranks.rank)
    drawn = [torch.randn(shape, generator=draw) for shape in ((3, 5), (), (7,))]
    sums = [ranks.sum(drawn) for _ in range(3)]
    copied = [torch.full((2,), float(ranks.rank)), torch.full((), float(ranks.rank + 3))]
    ranks.broadcast(copied)
    return {
        "drawn": [x.tolist() for x in drawn],
        "sums": [[x.tolist() for x in one] for one in sums],
        "greatest": ranks.all_reduce_max(15 if ranks.rank == 1 else 0, 0 if ranks.rank else 0.1),
        "place": ranks.settings["place"],
        "copied": [x.tolist() for x in copied],
        "share": list(range(8))[ranks.share()],
    }
"""


def test_sums_maxima_and_settings_are_the_same_on_each_rank(on_ranks):
    found, status = on_ranks(3, COLLECTIVES)

    assert status == [0, 0, 0]
    for place in range(3):
        expected = sum(torch.tensor(one["drawn"][place]) for one in found)
        torch.testing.assert_close(torch.tensor(found[0]["sums"][0][place]), expected)
    for one in found:
        assert one["sums"] == [found[0]["sums"][0]] * 3  # the same bits everywhere and each time
        assert one["greatest"] == [15.0, 0.1]
        assert one["place"] == 7
        assert one["copied"] == [[0.0, 0.0], 3.0]
    assert [one["share"] for one in found] == [[0, 3, 6], [1, 4, 7], [2, 5]]


GRADIENT = """
import torch
from glassformer.config import ModelConfig
from glassformer.data.batches import Batch
from glassformer.model.transformer import Transformer
from glassformer.training.optimiser import Learner, adam_of

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
    optimiser = adam_of(list(model.parameters()))
    gradients, losses = Learner(model, optimiser, ranks=ranks).gradient(batches)
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
from glassformer.training.optimiser import Learner
from glassformer.training.setup.learner import new_optimiser

SIZES = {"d_model": 8, "num_heads": 2, "d_ff": 12, "num_encoder_layers": 1}
SIZES |= {"source_vocab_size": 11, "target_vocab_size": 11, "num_decoder_layers": 1}

def work(ranks, rate):
    '''The matrices after two steps along gradients that are the same on each rank.'''
    torch.manual_seed(3)
    model = Transformer(ModelConfig(**SIZES))
    optimiser = new_optimiser(model, "muon", ranks=ranks)
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


def test_a_rank_that_does_not_reach_the_others_says_what_to_set(monkeypatch):
    [environment] = as_torchrun(1)
    for name, value in {**environment, "GLOO_SOCKET_IFNAME": "no-interface"}.items():
        monkeypatch.setenv(name, value)

    said = r"^rank 0 does not reach the other ranks \(.+\); if .* set GLOO_SOCKET_IFNAME"
    with pytest.raises(InputError, match=said), from_torchrun(torch.device("cpu")):
        pass


LOST = """
def work(ranks, _):
    import os, signal, torch

    ranks.sum([torch.ones(3)])
    if ranks.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        ranks.all_reduce_max(0.0)
    except RankLostError as error:
        return str(error)
"""


def test_a_lost_rank_ends_the_waiting_of_all(on_ranks):
    found, status = on_ranks(3, LOST)

    assert status == [0, -signal.SIGKILL, 0]
    assert found[1] is None
    for message in (found[0], found[2]):
        assert message
        assert "\n" not in message


LATE_AND_STOPPED = """
import os
import signal
import sys

def work(ranks, _):
    first = ranks.settings["process"]
    ranks.all_reduce_max(0.0)  # all have joined
    if ranks.rank == 0:
        os.kill(os.getpid(), signal.SIGSTOP)
        return "went on"
    try:
        ranks.all_reduce_max(0.0)
    except RankLostError as error:
        return str(error)
    finally:
        os.kill(first, signal.SIGCONT)
"""
LATE = """
import time
from datetime import timedelta
from glassformer.training.parallel import ranks as parallel

parallel._TIMEOUT = timedelta(seconds=2)
if environment["RANK"] == "0":
    time.sleep(2.3)  # longer than the timeout of the group
"""


def test_the_other_ranks_wait_for_rank_0_until_it_hangs(on_ranks):
    results, _ = on_ranks(2, LATE + LATE_AND_STOPPED)

    assert results[0] == "went on"
    assert "imed out" in results[1]


def test_a_rank_that_loses_the_others_ends_with_a_line(config, monkeypatch):
    @contextmanager
    def lost(_):
        raise parallel.RankLostError("another rank of this training ended or hangs (Timed out)")
        yield

    monkeypatch.setattr(worker, "from_torchrun", lost)
    expected = r"hangs \(Timed out\); the same command continues from the last checkpoint$"
    with pytest.raises(InputError, match=expected):
        worker.train_rank(config(), FAST)


def test_a_rank_without_the_packed_corpus_names_its_directory(tmp_path):
    expected = f"^{tmp_path}: this machine cannot read the packed corpus of rank 0 .* same path$"
    with pytest.raises(InputError, match=expected):
        worker._packed(str(tmp_path))


def test_the_ranks_of_a_machine_share_its_threads(monkeypatch):
    assert machine_threads(0) == torch.get_num_threads()
    assert machine_threads(3) == 3
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "test")  # torchrun sets OMP_NUM_THREADS to 1
    assert machine_threads(0) == len(os.sched_getaffinity(0))
    assert machine_threads(3) == 3
    assert [parallel.Ranks(1, 8, 4).threads(count) for count in (16, 7, 2)] == [4, 1, 1]
