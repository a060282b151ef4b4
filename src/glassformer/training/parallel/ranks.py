"""Ranks, processes of ``torchrun`` that train one model, each process on a share of every batch.

Each rank computes the gradient of its rows with its own copy of the model. All ranks add up the
gradients and make equal updates. On a GPU machine each GPU has a rank. On a CPU, ranks of few
threads wait less than one process of many threads.

A process without torchrun has :data:`ALONE` as ranks, which hands every value back unchanged.
"""

import ctypes
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch import distributed as dist

from glassformer.support.cores import usable_cores
from glassformer.support.errors import InputError
from glassformer.training.parallel.shares import WHOLE, Shares

__all__ = [
    "ALONE",
    "RankLostError",
    "Ranks",
    "end_with_torchrun",
    "from_torchrun",
    "machine_threads",
]

# Rank 0 reads and packs the corpus before it joins the group. The other ranks wait at most 7 days.
_PREPARATION = timedelta(days=7)
# torchrun's own store is there before the ranks.
_CONNECTION = timedelta(minutes=5)
# In the group, the longest work of rank 0 alone is a validation. A rank that takes longer hangs.
_TIMEOUT = timedelta(minutes=30)
_PREPARED = "glassformer/prepared"  # the settings' key in the store that all ranks share
_POLL_SECONDS = 1e-4
_PR_SET_PDEATHSIG = 1  # of Linux's prctl


class RankLostError(RuntimeError):
    """Another rank of the training has ended or hangs."""


@dataclass(frozen=True)
class Ranks:
    """The ranks of a training as rank ``rank`` of ``size`` sees them.

    ``local_size`` ranks run on this machine. ``settings`` holds the settings that rank 0 gave. The
    threads of this rank divide its rows into ``shares``.

    >>> ALONE.sum([torch.ones(2)])
    [tensor([1., 1.])]
    """

    rank: int
    size: int
    local_size: int = 1
    settings: Mapping[str, Any] = field(default_factory=dict)
    shares: Shares = WHOLE

    def share(self) -> slice:
        """This rank's rows of a batch, which are every n-th row, because length sorts the rows."""
        return slice(self.rank, None, self.size)

    def threads(self, machine_threads: int) -> int:
        """The number of CPU threads of one rank, if all ranks of a machine compute."""
        return max(1, machine_threads // self.local_size)

    def sum(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """The sum of each tensor over the ranks, with equal bits on each rank and in each run.

        ``DistributedDataParallel`` overlaps such a sum with the backward pass. But after the first
        update of a process, ``DistributedDataParallel`` sorts its buckets anew. So a resumed run of
        three ranks would add up in another order and end with other bits.
        """
        if self.size == 1:
            return list(tensors)
        row = torch.cat([tensor.flatten() for tensor in tensors])
        self._collective(dist.all_reduce, row)
        parts = row.split([tensor.numel() for tensor in tensors])
        return [part.view_as(tensor) for part, tensor in zip(parts, tensors, strict=True)]

    def all_reduce_max(self, *values: int | float) -> list[float]:
        """The maximum of each value over the ranks."""
        row = torch.tensor(values, dtype=torch.float64)
        if self.size > 1:
            self._collective(partial(dist.all_reduce, op=dist.ReduceOp.MAX), row)
        return row.tolist()

    def broadcast(self, tensors: Sequence[Tensor]) -> None:
        """Overwrite each tensor with its values on rank 0."""
        for tensor in tensors if self.size > 1 else ():
            self._collective(partial(dist.broadcast, src=0), tensor)

    def _collective(self, call: Callable[..., Any], tensor: Tensor) -> None:
        try:
            work = call(tensor, async_op=True)
            # Python handles a signal between two polls, but not inside gloo's own wait.
            while tensor.device.type == "cpu" and not work.is_completed():
                time.sleep(_POLL_SECONDS)
            work.wait()
        except RuntimeError as error:  # "Connection closed by peer", "Timed out", in many wordings
            reason = _first_line(error)
            raise RankLostError(
                f"another rank of this training ended or hangs ({reason})"
            ) from error


ALONE = Ranks(0, 1)


def machine_threads(given: int) -> int:
    """The number of CPU threads for all ranks of this machine: ``given``, or all if that is 0."""
    if given or not _under_torchrun():
        return given or torch.get_num_threads()
    # torchrun sets OMP_NUM_THREADS to 1, so torch does not know the number.
    return usable_cores()


def end_with_torchrun() -> None:
    """Let Linux send SIGTERM to this rank when torchrun, the rank's parent, ends, even by a kill.

    Without torchrun the ranks would wait for its store for days, and hold the lock of the run.
    """
    if not _under_torchrun() or sys.platform != "linux":
        return
    parent = os.getppid()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:  # torchrun has ended just now
        os.kill(os.getpid(), signal.SIGTERM)


@contextmanager
def from_torchrun(
    device: torch.device, settings: Mapping[str, Any] | None = None
) -> Iterator[Ranks]:
    """Join the ranks that ``torchrun`` has started; yield :data:`ALONE` without torchrun.

    Rank 0 joins when the corpus is packed, and the other ranks join at once. Rank 0 sends the
    ``settings`` as JSON, because a rank unpickles nothing. Each GPU belongs to one rank. All ranks
    must see equal files. The function raises InputError if this rank does not reach the others.
    """
    if not _under_torchrun():
        yield ALONE
        return
    backend = "gloo"  # messages between updates lie on the host
    if device.type == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        backend = "cpu:gloo,cuda:nccl"
    try:
        with_store = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
        longest = _CONNECTION if with_store else _PREPARATION
        rendezvous = dist.rendezvous("env://", timeout=longest)  # type: ignore[attr-defined]
        store, rank, size = next(rendezvous)
        if rank == 0:
            store.set(_PREPARED, json.dumps(settings))
        else:
            store.wait([_PREPARED], _PREPARATION)
        store.set_timeout(_TIMEOUT)
        dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=_TIMEOUT)
    except RuntimeError as error:
        raise InputError(
            f"rank {os.environ['RANK']} does not reach the other ranks ({_first_line(error)});"
            " if none of them says why, set GLOO_SOCKET_IFNAME to the interface of their network,"
            " such as eth0"
        ) from error
    try:
        settings = json.loads(store.get(_PREPARED))
        yield Ranks(rank, size, int(os.environ["LOCAL_WORLD_SIZE"]), settings)
    except RankLostError:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # torchrun's: this rank first shows the error
        raise
    finally:
        dist.destroy_process_group()


def _under_torchrun() -> bool:
    return "TORCHELASTIC_RUN_ID" in os.environ


def _first_line(error: RuntimeError) -> str:
    return str(error).split("\n")[0]
