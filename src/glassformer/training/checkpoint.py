"""Checkpoints: on disk, whole or not at all, all that a run needs to continue exactly.

One directory a checkpoint: ``model.safetensors``, ``optimiser.safetensors`` and ``state.json``.
It is written under another name and renamed when it is complete. So a kill at any moment leaves
the earlier checkpoints whole.
"""

import json
import os
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor, nn

from glassformer.bundle import load_tensors, load_weights, weights
from glassformer.errors import InputError
from glassformer.training.fast.muon import Muon

__all__ = [
    "RunState",
    "average",
    "checkpoints",
    "load_average",
    "load_checkpoint",
    "moments",
    "remove_all_but",
    "save_checkpoint",
]


Module = TypeVar("Module", bound=nn.Module)


@dataclass
class RunState:
    """The place of a run. All random numbers follow from the seed and ``update``."""

    update: int = 0
    epoch: int = 0
    batch: int = 0  # batches of the epoch read so far
    tokens: int = 0
    seconds: float = 0.0
    data_hash: str = ""
    precision: str = ""  # chosen at the beginning of the run
    plan: dict[str, Any] = field(default_factory=dict)  # of the time, with the option minutes
    validations: list[dict[str, Any]] = field(default_factory=list)
    window: dict[str, float] = field(default_factory=dict)  # sums since the last report


def save_checkpoint(
    directory: Path, model: nn.Module, optimiser: torch.optim.Optimizer, state: RunState
) -> Path:
    """Write ``directory/<update>``; the files are on the disk before the name is.

    :class:`InputError` if they cannot be written, as on a full disk.
    """
    final = directory / f"{state.update:08d}"
    if final.exists():  # the same update has the same content
        return final
    partial = directory / f".{final.name}.partial"
    shutil.rmtree(partial, ignore_errors=True)
    try:
        partial.mkdir(parents=True)
        save_file(weights(model), partial / "model.safetensors")
        save_file(_moments(model, optimiser), partial / "optimiser.safetensors")
        (partial / "state.json").write_text(json.dumps(asdict(state), indent=1) + "\n")
        for path in (*partial.iterdir(), partial):
            _flush(path)
        partial.rename(final)
        _flush(directory)
    except (OSError, SafetensorError) as error:
        raise InputError(
            f"{final}: the checkpoint cannot be written ({error}); the earlier one is kept: make"
            " room, and the same command continues from it"
        ) from error
    return final


def load_checkpoint(
    checkpoint: Path, model: nn.Module, optimiser: torch.optim.Optimizer
) -> RunState:
    """Restore model and optimiser; return the place in the run."""
    load_weights(model, load_tensors(checkpoint / "model.safetensors"), checkpoint)
    stored = load_tensors(checkpoint / "optimiser.safetensors")
    try:
        for name, parameter in model.named_parameters():
            kept = {key: stored[f"{name}/{key}"] for key in moments(optimiser, parameter)}
            shapes = {tensor.shape for key, tensor in kept.items() if key != "step"}
            if shapes != {parameter.shape}:
                raise InputError(f"{checkpoint}: the optimiser's {name} has another shape")
            # Cloned, because tensors of the file are not aligned as torch aligns its own.
            optimiser.state[parameter] = {
                key: moment.to(parameter.device).clone() for key, moment in kept.items()
            }
        state = json.loads((checkpoint / "state.json").read_text())
        state.pop("workers", None)  # an option of earlier versions
        return RunState(**state)
    except (KeyError, TypeError, OSError, json.JSONDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{checkpoint}: not a whole checkpoint ({error!r})") from error


def checkpoints(directory: Path) -> list[Path]:
    """The complete checkpoints, oldest first."""
    return sorted(path for path in directory.glob("[0-9]*") if path.name.isdigit())


def remove_all_but(directory: Path, kept: Iterable[int]) -> None:
    """Remove the checkpoints of other updates, and half-written ones after a kill."""
    names = {f"{update:08d}" for update in kept}
    for path in checkpoints(directory):
        if path.name not in names:
            # Renamed first, so that a kill meanwhile leaves no half checkpoint under its name.
            doomed = path.with_name(f".{path.name}.removed")
            path.rename(doomed)
    for leftover in (*directory.glob(".*.partial"), *directory.glob(".*.removed")):
        shutil.rmtree(leftover, ignore_errors=True)


def load_average(model: Module, directory: Path, updates: Sequence[int]) -> Module:
    """The model with the mean weights of the checkpoints of ``updates``, ready to translate."""
    mean = average([directory / f"{update:08d}" for update in updates])
    load_weights(model, mean, directory)
    return model.eval()


def average(paths: Sequence[Path]) -> dict[str, Tensor]:
    """The mean of the checkpoints' weights, added up in float64 (section 6.1).

    >>> average([])
    Traceback (most recent call last):
    ValueError: there is no checkpoint to average
    """
    if not paths:
        raise ValueError("there is no checkpoint to average")
    sums: dict[str, Tensor] = {}
    for path in paths:
        for name, weight in load_tensors(path / "model.safetensors").items():
            sums[name] = sums[name] + weight.double() if name in sums else weight.double()
    return {name: (total / len(paths)).float() for name, total in sums.items()}


def moments(optimiser: torch.optim.Optimizer, parameter: nn.Parameter) -> tuple[str, ...]:
    """The names of the tensors that an optimiser keeps for a parameter."""
    if isinstance(optimiser, Muon) and any(parameter is matrix for matrix in optimiser.matrices):
        return ("momentum",)
    return ("step", "exp_avg", "exp_avg_sq")


def _moments(model: nn.Module, optimiser: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The optimiser's tensors by the names of their parameters."""
    return {
        f"{name}/{key}": optimiser.state[parameter][key].contiguous()
        for name, parameter in model.named_parameters()
        for key in moments(optimiser, parameter)
    }


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
