"""The weights of a few early updates, beside the checkpoints: the training film begins with them.

A run never reads them again. In float16 each takes a sixth of the room of a checkpoint with Adam, a
quarter with Muon.
"""

from contextlib import suppress
from pathlib import Path

from safetensors import SafetensorError
from torch import nn

from glassformer.tensors import save_tensors, weights
from glassformer.training.checkpoint import checkpoints

__all__ = ["EARLY", "keep_early_weights", "kept_weights"]

EARLY = (0, 10, 100, 1_000)
"""Updates before most checkpoints, when a model learns most; 0: before the first update."""


def keep_early_weights(run: Path, model: nn.Module, update: int) -> None:
    """Write ``run/film/<update>.safetensors`` if the update is an early one and has no file yet.

    Update 0 begins a run: the weights of an earlier beginning, perhaps with other options, go.
    """
    if update not in EARLY:
        return
    if update == 0:
        for path in _early(run):
            path.unlink()
    path = run / "film" / f"{update:08d}.safetensors"
    if path.exists():  # from before a kill: the same update has the same weights
        return
    with suppress(OSError, SafetensorError):  # a full disk: the next checkpoint reports it
        path.parent.mkdir(exist_ok=True)
        save_tensors({name: weight.half() for name, weight in weights(model).items()}, path)


def kept_weights(run: Path) -> dict[int, Path]:
    """The files of weights that a run has kept, by update, in their order."""
    files = {int(path.stem): path for path in _early(run)}
    files |= {
        int(path.name): path / "model.safetensors" for path in checkpoints(run / "checkpoints")
    }
    return dict(sorted(files.items()))


def _early(run: Path) -> list[Path]:
    return [path for path in (run / "film").glob("*.safetensors") if path.stem.isdigit()]
