"""The clock and the memory of a torch device, and batches that a GPU copies by itself."""

import torch
from torch import Tensor

from benchmarks.peers.measure import Clock

__all__ = ["clock_of", "pinned"]


def clock_of(device: str) -> Clock:
    """A GPU's clock marks moments of the GPU's work, while Python runs ahead of the GPU."""
    if not device.startswith("cuda"):
        return Clock()

    def mark() -> torch.cuda.Event:
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    return Clock(
        mark,
        lambda begin, end: begin.elapsed_time(end) / 1000,
        torch.cuda.synchronize,
        torch.cuda.max_memory_allocated,
    )


def pinned(tensor: Tensor) -> Tensor:
    """The tensor in pinned memory, as a data loader's thread makes it; without a GPU, as it is."""
    return tensor.pin_memory() if torch.cuda.is_available() else tensor
