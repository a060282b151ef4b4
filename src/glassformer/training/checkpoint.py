"""Checkpoints: on disk, whole or not at all, all that a run needs to continue exactly.

One directory a checkpoint: ``model.safetensors``, ``optimiser.safetensors``, ``state.json``, and
``sha256.json`` with their hashes. It is written under another name and renamed when it is complete.
So a kill at any moment leaves the earlier checkpoints whole. A damaged one is set aside, and the
run goes on from the one before.
"""

import json
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor, nn

from glassformer.support.errors import InputError
from glassformer.support.files import flush, flush_directory
from glassformer.support.hashes import check_hashes, read_manifest, write_manifest
from glassformer.support.strangers import read_json, read_tensors
from glassformer.support.tensors import load_weights, shapes_of, weights
from glassformer.training.muon import Muon

__all__ = [
    "RunState",
    "average",
    "checkpoints",
    "last_good",
    "load_average",
    "load_checkpoint",
    "load_newest",
    "moments",
    "remove_all_but",
    "save_checkpoint",
    "whole",
]


@dataclass
class RunState:
    """The place of a run. All random numbers follow from the seed and ``update``."""

    update: int = 0
    updates: int = 0  # of the whole run, as its length was at the last call; 0: with minutes
    epoch: int = 0
    batch: int = 0  # batches of the epoch read so far
    tokens: int = 0
    seconds: float = 0.0
    data_hash: str = ""
    precision: str = ""  # chosen at the beginning of the run
    parts: dict[str, str] = field(default_factory=dict)  # the names of those not the package's
    plan: dict[str, Any] = field(default_factory=dict)  # of the time, with the option minutes
    validations: list[dict[str, Any]] = field(default_factory=list)  # records of the metrics
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
        directory.mkdir(exist_ok=True)  # in the run's directory, which must still be there
        partial.mkdir()
        save_file(weights(model), partial / "model.safetensors")
        save_file(_moments(model, optimiser), partial / "optimiser.safetensors")
        (partial / "state.json").write_text(json.dumps(asdict(state), indent=1) + "\n")
        write_manifest(partial)
        flush_directory(partial)
        partial.rename(final)
        flush(directory)
    except (OSError, SafetensorError) as error:
        shutil.rmtree(partial, ignore_errors=True)
        raise InputError(
            f"{final}: the checkpoint cannot be written ({error}); {last_good(directory)}: give the"
            " directory room and permissions, and the same command continues"
        ) from error
    return final


def last_good(directory: Path) -> str:
    """The rest of a run that ends with an error, for the message."""
    kept = checkpoints(directory)
    return f"the last good checkpoint is {kept[-1]}" if kept else "there is no checkpoint yet"


def load_newest(
    directory: Path,
    model: nn.Module,
    optimiser: torch.optim.Optimizer,
    note: Callable[[str], None],
) -> RunState | None:
    """Restore the newest whole checkpoint; None if there is no checkpoint.

    Newer ones that are damaged get another name, and ``note`` a line about each. If all are
    damaged, InputError names the newest one's fault.
    """
    faults: list[tuple[Path, InputError]] = []
    for path in reversed(checkpoints(directory)):
        try:
            state = load_checkpoint(path, model, optimiser)
        except InputError as error:
            faults.append((path, error))
            continue
        for damaged, fault in faults:
            aside = damaged.with_name(f"damaged-{damaged.name}")
            shutil.rmtree(aside, ignore_errors=True)
            damaged.rename(aside)
            note(f"{fault}; it is now {aside.name}, and the run goes on from {path.name}")
        return state
    if faults:
        raise InputError(
            f"{faults[0][1]}; there is no other: give another directory (option --out)"
        )
    return None


def load_checkpoint(
    checkpoint: Path, model: nn.Module, optimiser: torch.optim.Optimizer
) -> RunState:
    """Restore model and optimiser; return the place in the run.

    Raises InputError for a file that is missing or damaged, and for weights of another model.
    """
    _check_hashes(checkpoint)
    path = checkpoint / "model.safetensors"
    load_weights(model, dict(read_tensors(path, shapes_of(model))), checkpoint)
    stored = dict(read_tensors(checkpoint / "optimiser.safetensors"))
    for name, parameter in model.named_parameters():
        optimiser.state[parameter] = {
            key: stored[f"{name}/{key}"].to(parameter.device)
            for key in moments(optimiser, parameter)
        }
    return read_json(checkpoint / "state.json", RunState)


def _check_hashes(checkpoint: Path, names: Iterable[str] | None = None) -> None:
    """Compare files of a checkpoint, or all, with their hashes; InputError names a faulty one."""
    hashes = read_manifest(checkpoint)
    check_hashes(checkpoint, names or hashes, hashes, remedy="the checkpoint is of no use")


def whole(directory: Path, updates: Sequence[int], note: Callable[[str], None]) -> list[int]:
    """The updates whose checkpoint has its weights undamaged; ``note`` gets a line about others.

    Raises InputError if none has.
    """
    kept = []
    for update in updates:
        path = directory / f"{update:08d}"
        try:
            if not path.is_dir():
                raise InputError(f"{path}: no such checkpoint")
            _check_hashes(path, ["model.safetensors"])
            kept.append(update)
        except InputError as error:
            note(f"{error}; the mean of the weights goes without it")
    if not kept:
        raise InputError(
            f"{directory}: no checkpoint is whole: begin a new run in another directory"
        )
    return kept


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


def load_average(model: nn.Module, directory: Path, updates: Sequence[int]) -> None:
    """Give the model the mean weights of the checkpoints of ``updates``, for evaluation."""
    paths = [directory / f"{update:08d}" for update in updates]
    load_weights(model.eval(), average(paths, shapes_of(model)), directory)


def average(
    paths: Sequence[Path], shapes: Mapping[str, Sequence[int]] | None = None
) -> dict[str, Tensor]:
    """The mean of the checkpoints' weights, added up in float64 (section 6.1).

    ``shapes``: of the model's parameters; InputError for other ones.
    """
    sums: dict[str, Tensor] = {}
    for path in paths:
        for name, weight in read_tensors(path / "model.safetensors", shapes):
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
