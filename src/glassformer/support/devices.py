"""Finds the device of a model by the name that an option gives, and the memory of a GPU."""

import torch

from glassformer.support.errors import UsageError

__all__ = ["device_of", "free_memory"]


def device_of(name: str) -> torch.device:
    """The device ``name``; "auto" means cuda, or else cpu. A missing device raises UsageError.

    If there is a GPU, torch's attention no longer uses cuDNN in this process. cuDNN compiles a
    kernel for each new shape, in a fifth of a second, and nearly every batch has a new shape.
    """
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if count:
        torch.backends.cuda.enable_cudnn_sdp(False)
    if name == "auto":
        return torch.device("cuda" if count else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        device = torch.device("meta")
    if device.type not in ("cpu", "cuda"):
        raise UsageError(f"device {name!r}: expected cpu, cuda, cuda:N or auto")
    if device.type == "cuda" and (device.index or 0) >= count:
        raise UsageError(f"device {name!r}: this machine has {count} CUDA devices")
    return device


def free_memory(device: torch.device) -> int:
    """The bytes of a GPU that no program has; 0 for another device."""
    return torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else 0
