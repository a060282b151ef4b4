"""The clock and the memory of a torch device."""

import torch

from benchmarks.peers.measure import Clock

__all__ = ["clock_of"]


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
