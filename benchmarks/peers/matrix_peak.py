"""The fastest matrix product of this machine, in float32 and bf16."""

import time

import torch

from benchmarks.peers.measure import job, report

__all__ = ["peak"]

_LONG_ENOUGH = 0.5  # seconds


def peak(dtype: torch.dtype, device: str) -> float:
    """Operations a second of the fastest square product; sizes double until one is too slow."""
    best = 0.0
    for size in (256, 512, 1024, 2048, 4096, 8192):
        left, right = (torch.randn(size, size, device=device).to(dtype) for _ in range(2))
        seconds = min(_seconds(left, right, device) for _ in range(5 if size < 4096 else 3))
        best = max(best, 2 * size**3 / seconds)
        if 8 * seconds > _LONG_ENOUGH:  # the next size takes 8 times as long
            return best
    return best


def _seconds(left: torch.Tensor, right: torch.Tensor, device: str) -> float:
    begin = time.perf_counter()
    left @ right
    if device.startswith("cuda"):
        torch.cuda.synchronize()
    return time.perf_counter() - begin


if __name__ == "__main__":
    torch.set_num_threads(job["threads"])
    report(
        float32=peak(torch.float32, job["device"]),
        bf16=peak(torch.bfloat16, job["device"]),
    )
