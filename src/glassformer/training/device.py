"""Where to train."""

import torch

from glassformer.errors import UsageError

__all__ = ["device_of"]


def device_of(name: str) -> torch.device:
    """The device that an option names; :class:`UsageError` where there is none of that name."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise UsageError(f"device {name!r}: expected cpu, cuda or cuda:N") from error
    if device.type not in ("cpu", "cuda"):
        raise UsageError(f"device {name!r}: expected cpu, cuda or cuda:N")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise UsageError(f"device {name!r}: there are {torch.cuda.device_count()} CUDA devices")
    return device
