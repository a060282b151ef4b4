"""Several processes that learn together: each has a share of every batch.

Each rank computes the gradient of its rows with a copy of the model. The gradients are summed, in
an order that is always the same, and every rank makes the same update of its copy. On a CPU, a
rank with one thread wastes none of its time on waiting for other threads, which small models do
at each of their small products; with several GPUs, each has a rank.

:func:`with_workers` starts the other ranks on this machine, :func:`under_torchrun` joins those that
``torchrun`` has started. What is said goes through ``torch.distributed`` (gloo, and NCCL between
GPUs), whose connections break when a process dies: then all end. What the processes of
:func:`with_workers` sum lies in memory that all of them see, which takes less time than sending it.
"""

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch import distributed as dist

__all__ = [
    "ALONE",
    "RankLostError",
    "Ranks",
    "joined_by_store",
    "quickest_workers",
    "under_torchrun",
    "with_workers",
]

# Waiting is no fault: rank 0 packs an epoch or validates while the others wait for it.
_PATIENCE = timedelta(days=7)
_ASSISTANT = "from glassformer.training.parallel.worker import main; main()"
_MOST_WORKERS = 16  # each holds a copy of the model, and torch
# Of the time without workers: a share is measured with the machine for itself, and nothing is sent.
_WORTH_IT = 0.6
_MEASURING_SECONDS = 1.0
_PART = 1 << 22  # bytes of a sum that are in common memory at a time, for each rank
_TURNS = 2  # one part is written while others still read the one before


class RankLostError(RuntimeError):
    """Another process of this training has ended."""


@dataclass(frozen=True)
class Ranks:
    """The processes that learn together, as the one of number ``rank`` sees them.

    >>> ALONE.sum([torch.ones(2)])
    [tensor([1., 1.])]
    """

    rank: int
    size: int
    common: Tensor | None = field(default=None, repr=False, compare=False)
    """Bytes that all ranks read and write, where there are such."""

    def share(self) -> slice:
        """Which rows of a batch are this rank's: sorted by length, so every n-th."""
        return slice(self.rank, None, self.size)

    def sum(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """The sum of each tensor over the ranks: the same bits on each, and each time."""
        if self.size == 1:
            return list(tensors)
        row = torch.cat([tensor.flatten() for tensor in tensors])
        if self.common is None:
            _together(dist.all_reduce, row)
        else:
            self._sum_in(self.common.view(row.dtype).view(_TURNS, self.size, -1), row)
        parts = row.split([tensor.numel() for tensor in tensors])
        return [part.view_as(tensor) for part, tensor in zip(parts, tensors, strict=True)]

    def _sum_in(self, common: Tensor, row: Tensor) -> None:
        """Part by part: each rank writes its own, waits for the others, and reads all."""
        for turn, part in enumerate(row.split(common.size(2))):
            written = common[turn % _TURNS, :, : len(part)]
            written[self.rank] = part
            self._meet()
            torch.sum(written, 0, out=part)
        self._meet()  # the next sum begins where this one may still be read

    def _meet(self) -> None:
        """Go on when all ranks are here."""
        _together(dist.all_reduce, torch.zeros(1))

    def agree(
        self, *, stop: int = 0, rate: float = 0.0, backwards: bool = False
    ) -> tuple[int, float, bool]:
        """Before each update: the signal to stop that any rank has; and what rank 0 says, its
        learning rate and whether it is learnt backwards."""
        if self.size == 1:
            return stop, rate, backwards
        said = torch.tensor([stop, rate, backwards], dtype=torch.float64)
        _together(dist.all_reduce, said, op=dist.ReduceOp.MAX)
        return int(said[0].item()), said[1].item(), bool(said[2].item())

    def tell(self, what: Any = None) -> Any:
        """What rank 0 tells all."""
        if self.size == 1:
            return what
        box = [what]
        _together(dist.broadcast_object_list, box)
        return box[0]

    def copy(self, tensors: Sequence[Tensor]) -> None:
        """Give each of the tensors the values that it has on rank 0."""
        for tensor in tensors if self.size > 1 else ():
            _together(dist.broadcast, tensor, src=0)


ALONE = Ranks(0, 1)


@contextmanager
def with_workers(size: int, *, threads: int) -> Iterator[Ranks]:
    """Start ``size - 1`` processes beside this one, each with so many threads; be their rank 0.

    They live no longer than the block: they read from a pipe that closes with it, or with this
    process, however it ends.
    """
    if size == 1:
        yield ALONE
        return
    os.environ.setdefault("GLOO_SOCKET_IFNAME", _loopback())
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with tempfile.TemporaryDirectory() as directory, ExitStack() as started:
        store = f"{directory}/store"
        # Written, not only made as long: a disk that is full says so here.
        _common_file(store).write_bytes(bytes(_TURNS * size * _PART))
        workers = []
        for rank in range(1, size):
            worker = subprocess.Popen(
                [sys.executable, "-c", _ASSISTANT, store, str(rank), str(size), str(threads)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=environment,
                start_new_session=True,  # a person's Ctrl-C is for this process, which tells them
            )
            workers.append(worker)
            started.callback(_end, worker)
        try:
            for worker in workers:
                assert worker.stdout is not None
                if not worker.stdout.readline():  # it says that it is there before it joins
                    raise RankLostError("it did not start")
            with joined_by_store(store, 0, size) as ranks:
                yield ranks
        except RankLostError as error:
            raise RankLostError(_who_ended(workers) or str(error)) from error


@contextmanager
def joined_by_store(store: str, rank: int, size: int) -> Iterator[Ranks]:
    """Be one of the processes that :func:`with_workers` brought together."""
    length = _TURNS * size * _PART
    common = torch.from_file(str(_common_file(store)), shared=True, size=length, dtype=torch.uint8)
    with _group("gloo", init_method=f"file://{store}", rank=rank, world_size=size) as ranks:
        if rank == 0:  # all have it open: nothing is left behind, however they end
            _common_file(store).unlink()
        yield replace(ranks, common=common)


@contextmanager
def under_torchrun(device: torch.device) -> Iterator[Ranks]:
    """Be one of the processes that ``torchrun`` has started; each GPU belongs to one of them."""
    backend = "gloo"  # what is said between updates lies on the host in any case
    if device.type == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        backend = "cpu:gloo,cuda:nccl"
    with _group(backend) as ranks:
        yield ranks


def quickest_workers(compute: Callable[[slice], object], threads: int) -> int:
    """Into how many processes to split ``threads``, by measuring the share of one of them.

    ``compute`` computes the gradient of a share of some batch.

    >>> quickest_workers(lambda share: None, 1)
    1
    """
    counts = [n for n in range(1, min(threads, _MOST_WORKERS) + 1) if threads % n == 0]
    if len(counts) == 1:
        return 1
    seconds = {count: _share_seconds(compute, threads, count) for count in counts}
    torch.set_num_threads(threads)
    best = min(counts, key=lambda count: seconds[count])
    return best if seconds[best] < _WORTH_IT * seconds[1] else 1


def _share_seconds(compute: Callable[[slice], object], threads: int, count: int) -> float:
    """The shortest time that one of ``count`` processes takes for its share."""
    torch.set_num_threads(threads // count)
    share = slice(0, None, count)
    compute(share)  # memory and kernels are made ready
    begin = time.perf_counter()
    shortest = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        compute(share)
        end = time.perf_counter()
        shortest = min(shortest, end - start)
        if end - begin > _MEASURING_SECONDS:
            break
    return shortest


@contextmanager
def _group(backend: str, **where: Any) -> Iterator[Ranks]:
    _together(dist.init_process_group, backend, timeout=_PATIENCE, **where)
    try:
        yield Ranks(dist.get_rank(), dist.get_world_size())
    finally:
        dist.destroy_process_group()


def _common_file(store: str) -> Path:
    return Path(f"{store}.common")


def _together(call: Callable[..., Any], *arguments: Any, **options: Any) -> None:
    try:
        call(*arguments, **options)
    except RuntimeError as error:  # gloo's "Connection closed by peer", in several wordings
        raise RankLostError(str(error).split("\n")[0]) from error


def _end(worker: subprocess.Popen[bytes]) -> None:
    """Close its pipe, at which it ends; one that does not is killed."""
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.close()
    try:
        worker.wait(timeout=10)
    except subprocess.TimeoutExpired:
        worker.kill()
        worker.wait()
    worker.stdout.close()


def _who_ended(workers: Sequence[subprocess.Popen[bytes]]) -> str:
    """The worker that has ended, of its own or by a signal; its connections break a bit before."""
    deadline = time.monotonic() + 2
    while time.monotonic() < deadline:
        for rank, worker in enumerate(workers, start=1):
            if worker.poll() is not None:
                how = f"signal {-worker.returncode}" if worker.returncode < 0 else "an error"
                return f"worker {rank} of {len(workers)} beside the first was ended by {how}"
        time.sleep(0.01)
    return ""


def _loopback() -> str:
    """The name of the network interface that leads back to this machine: lo, lo0."""
    return next((name for _, name in socket.if_nameindex() if name.startswith("lo")), "lo")
