"""Where a model lives: the device that an option names."""

import torch

from glassformer.errors import UsageError

__all__ = ["device_of"]


def device_of(name: str) -> torch.device:
    """The device of that name, "auto" being cuda where there is one; UsageError where it is not."""
    there = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if name == "auto":
        return torch.device("cuda" if there else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        device = torch.device("meta")
    if device.type not in ("cpu", "cuda"):
        raise UsageError(f"device {name!r}: expected cpu, cuda, cuda:N or auto")
    if device.type == "cuda" and (device.index or 0) >= there:
        raise UsageError(f"device {name!r}: this machine has {there} CUDA devices")
    return device
