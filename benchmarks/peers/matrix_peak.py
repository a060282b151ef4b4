"""The fastest matrix product of this machine in float32 and bf16, and the speed of a copy."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from benchmarks.peers.measure import job, report

__all__ = ["copied", "peak"]

_LONG_ENOUGH = 0.5  # seconds


def peak(dtype: torch.dtype, device: str) -> float:
    """Operations a second of the fastest square product; sizes double until one is too slow."""
    best = 0.0
    for size in (256, 512, 1024, 2048, 4096, 8192):
        left, right = (torch.randn(size, size, device=device).to(dtype) for _ in range(2))
        product = partial(torch.matmul, left, right)
        seconds = min(_seconds(product, device) for _ in range(5 if size < 4096 else 3))
        best = max(best, 2 * size**3 / seconds)
        if 8 * seconds > _LONG_ENOUGH:  # the next size takes 8 times as long
            return best
    return best


def copied(device: str, size: int) -> float:
    """Bytes a second that the device reads and writes in a copy of ``size`` bytes."""
    memory = torch.ones(size, dtype=torch.uint8, device=device)
    other = torch.empty_like(memory)
    return 2 * size / min(_seconds(partial(other.copy_, memory), device) for _ in range(5))


def _seconds(work: Callable[[], Any], device: str) -> float:
    begin = time.perf_counter()
    work()
    if device.startswith("cuda"):
        torch.cuda.synchronize()
    return time.perf_counter() - begin


if __name__ == "__main__":
    torch.set_num_threads(job["threads"])
    report(
        float32=peak(torch.float32, job["device"]),
        bf16=peak(torch.bfloat16, job["device"]),
        copied=copied(job["device"], 1 << (26 if job["device"] == "cpu" else 30)),
    )
