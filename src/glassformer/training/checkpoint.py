"""Writes and reads checkpoints, which hold all that a run needs to continue exactly.

A checkpoint is a directory with ``model.safetensors``, ``optimiser.safetensors``,
``optimiser.json``, ``state.json``, and ``sha256.json``, which holds the files' hashes. The run
renames a directory when the directory is complete. So a kill leaves all earlier checkpoints whole.
A run sets a damaged checkpoint aside and continues from the one before. Only the newest two keep
``optimiser.safetensors``, which is twice as large as the weights.
"""

import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor, nn

from glassformer.support.errors import InputError, UsageError
from glassformer.support.files import remove_directory, remove_leftovers, whole_directory
from glassformer.support.hashes import check_hashes, read_manifest, write_manifest
from glassformer.support.strangers import read_json, read_tensors
from glassformer.support.tensors import load_weights, shapes_of, weights

__all__ = [
    "RunState",
    "check_optimiser",
    "checkpoint_of",
    "checkpoints",
    "last_good",
    "load_average",
    "load_checkpoint",
    "load_newest",
    "load_optimiser",
    "newest_state",
    "remove_old",
    "save_checkpoint",
    "whole",
]


_OPTIMISER = "optimiser.safetensors"
_SIMPLE = (bool, int, float, str, type(None))


@dataclass
class RunState:
    """The place of a run. The seed and ``update`` determine all random numbers."""

    update: int = 0
    updates: int = 0  # of the whole run, as the last call set its length; 0 with the option minutes
    epoch: int = 0
    batch: int = 0  # batches of the epoch read so far
    tokens: int = 0
    seconds: float = 0.0
    data_hash: str = ""
    precision: str = ""  # chosen at the beginning of the run
    machine: dict[str, Any] = field(default_factory=dict)  # what decides the last bits
    packing: dict[str, int] = field(default_factory=dict)  # shape of packed batches; empty: padded
    parts: dict[str, str] = field(default_factory=dict)  # the names of own parts
    plan: dict[str, Any] = field(default_factory=dict)  # of the time, with the option minutes
    validations: list[dict[str, Any]] = field(default_factory=list)  # records of the metrics
    window: dict[str, float] = field(default_factory=dict)  # sums since the last report

    def __post_init__(self) -> None:
        if self.precision == "bf16":  # its name until 27 November 2026
            self.precision = "bfloat16"


def checkpoint_of(directory: Path, update: int) -> Path:
    """The path of the checkpoint of an update, which may be absent."""
    return directory / f"{update:08d}"


def save_checkpoint(
    directory: Path, model: nn.Module, optimiser: torch.optim.Optimizer, state: RunState
) -> Path:
    """Write ``directory/<update>``; the files reach the disk before that name.

    Raises InputError if the disk does not take the files, for instance if the disk is full.
    """
    final = checkpoint_of(directory, state.update)
    if final.exists():  # equal updates have equal content
        return final
    tensors, others = _stored(model, optimiser)
    try:
        directory.mkdir(exist_ok=True)  # in the run's directory, which must still be there
        with whole_directory(final) as partial:
            save_file(weights(model), partial / "model.safetensors")
            save_file(tensors, partial / _OPTIMISER)
            (partial / "optimiser.json").write_text(json.dumps(others) + "\n")
            (partial / "state.json").write_text(json.dumps(asdict(state), indent=1) + "\n")
            write_manifest(partial)
    except (OSError, SafetensorError) as error:
        raise InputError(
            f"{final}: the checkpoint cannot be written ({error}); {last_good(directory)}: give the"
            " directory room and permissions, and the same command continues"
        ) from error
    return final


def last_good(directory: Path) -> str:
    """A text about the newest checkpoint, for the error message of a run."""
    kept = checkpoints(directory)
    return f"the last good checkpoint is {kept[-1]}" if kept else "there is no checkpoint yet"


def load_newest(directory: Path, model: nn.Module, note: Callable[[str], None]) -> RunState | None:
    """Restore the model of the newest whole checkpoint; return None without a checkpoint.

    A damaged newer checkpoint gets another name, and ``note`` gets a line about the damage. If all
    checkpoints are damaged, InputError names the fault of the newest.
    """
    faults: list[tuple[Path, InputError]] = []
    for path in reversed(checkpoints(directory)):
        try:
            state = load_checkpoint(path, model)
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
        raise InputError(f"{faults[0][1]}; there is no other checkpoint: give another directory")
    return None


def newest_state(directory: Path) -> RunState | None:
    """The place of the newest checkpoint that can be read; None without a checkpoint."""
    for path in reversed(checkpoints(directory)):
        with suppress(InputError):
            return read_json(path / "state.json", RunState)
    return None


def load_checkpoint(checkpoint: Path, model: nn.Module) -> RunState:
    """Restore the model; return the place of the run.

    Raises InputError for a file that is missing or damaged, and for weights of another model.
    """
    _check_hashes(checkpoint)
    path = checkpoint / "model.safetensors"
    load_weights(model, read_tensors(path, shapes_of(model)), checkpoint)
    return read_json(checkpoint / "state.json", RunState)


def load_optimiser(checkpoint: Path, model: nn.Module, optimiser: torch.optim.Optimizer) -> None:
    """Restore the optimiser of the model's weights from a whole checkpoint.

    Raises InputError for the checkpoint of another optimiser.
    """
    groups = _groups(optimiser)
    places = dict(model.named_parameters()) | dict.fromkeys(groups, next(model.parameters()))
    file = checkpoint / "optimiser.json"  # checkpoints of the preview at 4256875 have none
    others = read_json(file, dict[str, Any]) if file.exists() else {}
    on_host = others.pop("on host", [])
    tensors = read_tensors(checkpoint / _OPTIMISER, exact=True)
    for path, value in chain(tensors, others.items()):
        name, _, key = path.rpartition("/")
        if name not in places:
            raise InputError(f"{checkpoint}: {path} is of another optimiser: give that one")
        record = groups[name] if name in groups else optimiser.state[places[name]]
        moves = isinstance(value, Tensor) and key not in on_host
        record[key] = value.to(places[name].device) if moves else value


def _check_hashes(checkpoint: Path, names: Iterable[str] | None = None) -> None:
    """Compare the named files, or all, with their hashes; InputError names a faulty file."""
    hashes = read_manifest(checkpoint)
    check_hashes(checkpoint, names or hashes, hashes, remedy="the checkpoint is of no use")


def whole(directory: Path, updates: Sequence[int], note: Callable[[str], None]) -> list[int]:
    """The updates with undamaged weights; ``note`` gets a line about each damaged checkpoint.

    Raises InputError if no checkpoint is whole.
    """
    kept = []
    for update in updates:
        path = checkpoint_of(directory, update)
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


def remove_old(directory: Path, averaged: Iterable[int]) -> None:
    """Keep the newest two checkpoints, and of older ones the weights of the updates ``averaged``.

    A run continues from the second if the newest is damaged; no run continues from an older one,
    so that the optimiser's file goes. Half-written checkpoints go too, after a kill.
    """
    names = {f"{update:08d}" for update in averaged}
    for path in checkpoints(directory)[:-2]:
        if path.name in names:
            (path / _OPTIMISER).unlink(missing_ok=True)
        else:
            remove_directory(path)
    remove_leftovers(directory)


def load_average(model: nn.Module, directory: Path, updates: Sequence[int]) -> None:
    """Give the model the mean weights of the checkpoints of ``updates``, for evaluation.

    The sum is in float64 (section 6.1). Raises InputError for weights of another model.
    """
    files = [checkpoint_of(directory, update) / "model.safetensors" for update in updates]
    load_weights(model, _means(files, shapes_of(model.eval())), directory)


def _means(
    files: Sequence[Path], shapes: Mapping[str, Sequence[int]]
) -> Iterator[tuple[str, Tensor]]:
    """The mean of each tensor in files of one model, with one tensor in memory at a time."""
    for name, shape in shapes.items():
        alone = dict.fromkeys(shapes) | {name: shape}
        stored = chain.from_iterable(read_tensors(file, alone) for file in files)
        if first := next(stored, None):
            total = first[1].double()
            for _, weight in stored:
                total += weight
            yield name, total.div_(len(files)).float()


def check_optimiser(model: nn.Module, optimiser: torch.optim.Optimizer) -> None:
    """Raise UsageError unless a checkpoint can hold the optimiser's state."""
    _stored(model, optimiser)


def _stored(
    model: nn.Module, optimiser: torch.optim.Optimizer
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """An optimiser's tensors and other values; names join the weight or group and the key.

    If weights lie on a GPU, "on host" lists the keys of tensors in the host's memory.
    """
    device, groups = next(model.parameters()).device, _groups(optimiser)
    states = {name: optimiser.state.get(weight, {}) for name, weight in model.named_parameters()}
    tensors: dict[str, Tensor] = {}
    others: dict[str, Any] = {}
    for name, record in (states | groups).items():
        for key, value in record.items():
            if isinstance(value, Tensor):
                tensors[f"{name}/{key}"] = value.contiguous()
            elif isinstance(value, _SIMPLE):
                others[f"{name}/{key}"] = value
            elif name in states:
                raise UsageError(
                    f"optimiser: the {key} of {name} is a {type(value).__name__}, and a checkpoint"
                    " holds tensors, numbers and text: keep these"
                )
    _check_shares(tensors)
    on_host = {path.rpartition("/")[2] for path in tensors if tensors[path].device != device}
    return tensors, others | {"on host": sorted(on_host)}


def _check_shares(tensors: dict[str, Tensor]) -> None:
    """Raise UsageError for tensors that share memory, because a checkpoint parts such tensors."""
    owners: dict[int, str] = {}
    for path, tensor in tensors.items():
        owner = owners.setdefault(tensor.untyped_storage().data_ptr(), path)
        if owner != path and tensor.numel():
            raise UsageError(
                f"optimiser: {owner} and {path} share memory, which a checkpoint would part: clone"
                " one of them"
            )


def _groups(optimiser: torch.optim.Optimizer) -> dict[str, dict[str, Any]]:
    return {f"group {place}": group for place, group in enumerate(optimiser.param_groups)}
