"""A run goes on only with the text and the options that it began with.

``data/inputs.json`` keeps the hashes of the files that were read, ``config.yaml`` the settled
options. They bind once there is something to lose, a checkpoint or a bundle; before that, a call
with other text or options begins anew.
"""

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from glassformer.bundle import SHORTLIST_FILE
from glassformer.errors import InputError
from glassformer.files import write_atomically
from glassformer.training.checkpoint import checkpoints
from glassformer.training.setup.options import TrainConfig
from glassformer.training.time_budget import PACE_FILE

__all__ = ["begun_options", "bind", "changed_text", "claim", "input_hashes"]

# Options that may differ when a run goes on: they name places, or change no more than rounding (a
# size that was chosen for the time is kept, see `begun_options`).
_FREE = frozenset(
    {"pairs", "run", "valid", "test", "threads", "device", "checkpoint_minutes"}
    | {"tensorboard", "beam", "shortlist"}
)
_LEARNT = ("both.model", "source.model", "target.model")
_BUNDLE = ("config.json", "model.safetensors", "tokenizer.model", "source.model", "target.model")
# Options of earlier versions, with the default that meant the option was not used.
_REMOVED = {"subword_dropout": 0.0, "distil_from": None}
_WRITTEN = (*_BUNDLE, "config.yaml", "metrics.jsonl", "README.md", PACE_FILE, SHORTLIST_FILE)


def claim(run: Path) -> None:
    """Make the directory of a run; refuse one where a run would write over files of others."""
    try:
        (run / "data").mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:  # a NUL in a name is the second
        reason = getattr(error, "strerror", error)
        raise InputError(
            f"run {run}: cannot be made ({reason}): give a directory that can be written to"
        ) from error
    ours = (run / "data" / "inputs.json").exists() or checkpoints(run / "checkpoints")
    foreign = [] if ours else [run / name for name in _WRITTEN if (run / name).exists()]
    packed = (run / "data" / "train", run / "data" / "valid")
    foreign += [path for path in packed if path.exists() and not (path / "meta.json").exists()]
    if foreign:
        raise InputError(
            f"{foreign[0]} is there already, and no training that is known here made it: give a"
            " new directory as run, lest it be overwritten"
        )


def input_hashes(config: TrainConfig) -> dict[str, str]:
    """SHA-256 of the files that decide what is learnt, by the option that names them."""
    return {name: _hash(getattr(config, name)) for name in ("pairs", "valid", "tokenizer")}


def bind(config: TrainConfig, hashes: dict[str, str]) -> None:
    """Hold ``config`` and the files' hashes against those that the run began with, or record them.

    Nothing is changed in a run that has begun. In one that has not, what an earlier call made of
    other text or with other options is removed.
    """
    records = (config.run / "data" / "inputs.json", config.run / "config.yaml")
    hashes_before = _read(records[0], json.loads)
    options_before = _read(records[1], yaml.safe_load)
    options = json.loads(config.model_dump_json())
    text = [name for name in hashes if hashes_before.get(name, hashes[name]) != hashes[name]]
    changed = [
        name
        for name, value in options.items()
        if name not in _FREE and options_before.get(name, value) != value
    ]
    begun = _begun(config.run)
    if begun and text:
        raise changed_text(config, text[0])
    if begun and changed:
        name = changed[0]
        raise InputError(
            f"{config.run} holds a run with {name} {options_before[name]}, now {options[name]}:"
            " give the same options to continue it, or another directory"
        )
    removed = [
        name for name in _REMOVED if options_before.get(name, _REMOVED[name]) != _REMOVED[name]
    ]
    if begun and removed:
        name = removed[0]
        raise InputError(
            f"{config.run} holds a run with {name} {options_before[name]}, an option that this"
            " version no longer has: begin a new run in another directory"
        )
    if text or changed or removed:
        _remove_derived(config.run / "data")
        (config.run / PACE_FILE).unlink(missing_ok=True)
    if not (begun and hashes_before and options_before):
        dumped = yaml.safe_dump(options, sort_keys=False, allow_unicode=True)
        write_atomically(records[0], (json.dumps(hashes) + "\n").encode())
        write_atomically(records[1], dumped.encode())


def begun_options(run: Path) -> dict[str, Any]:
    """The settled options of a run that has something to lose; of another one none."""
    return _read(run / "config.yaml", yaml.safe_load) if _begun(run) else {}


def _begun(run: Path) -> bool:
    return bool(checkpoints(run / "checkpoints")) or (run / "config.json").exists()


def changed_text(config: TrainConfig, option: str) -> InputError:
    """The error for files that are not those that the run began with."""
    given = getattr(config, option)
    given = [given] if isinstance(given, Path) else given
    files = " and ".join(map(str, given or ())) or "none given"
    return InputError(
        f"{config.run}: the text of option {option} ({files}) has changed since this run began:"
        " give another directory, or remove that one"
    )


def _read(path: Path, parse: Callable[[str], Any]) -> dict[str, Any]:
    """A record of an earlier call; empty where there is none."""
    if not path.exists():
        return {}
    try:
        found = parse(path.read_text("utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        raise InputError(
            f"{path}: cannot be read ({reason}): remove it to record it anew"
        ) from error
    if not isinstance(found, dict):
        raise InputError(f"{path}: not what a run wrote: remove it to record it anew")
    return found


def _remove_derived(directory: Path) -> None:
    for name in _LEARNT:
        (directory / name).unlink(missing_ok=True)
    for meta in directory.glob("*/meta.json"):
        # Its name goes first: what a kill leaves of it is nobody's, and is overwritten.
        doomed = meta.parent.with_name(meta.parent.name + ".partial")
        shutil.rmtree(doomed, ignore_errors=True)
        meta.parent.rename(doomed)
        shutil.rmtree(doomed)


def _hash(files: tuple[Path, ...]) -> str:
    """SHA-256 over the files' bytes."""
    digest = hashlib.sha256()
    for path in files:
        try:
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
        except OSError as error:
            raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    return digest.hexdigest()
