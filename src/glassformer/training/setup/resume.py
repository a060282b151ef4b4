"""A run goes on only with the text and the options that it began with.

``data/inputs.json`` keeps the hashes of the input files, ``config.yaml`` the settled options. A run
has begun if the run has a checkpoint or a bundle. Before its first checkpoint, a call with other
text or options starts again.
"""

import json
from collections.abc import Callable
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

import yaml

from glassformer.bundle import check_bundle
from glassformer.support.errors import InputError, UsageError
from glassformer.support.files import write_atomically
from glassformer.support.hashes import sha256_of_all
from glassformer.support.strangers import check_regular, read_json, read_yaml
from glassformer.training.checkpoint import newest_state
from glassformer.training.setup.options import Files, TrainConfig
from glassformer.training.setup.run_directory import RunDirectory

__all__ = ["begun_config", "check_inputs", "record_options"]

# What a call that continues a run may change. Any other option that differs is refused by its name.
# A table of docs/reliability.md says what each does to the bits of the result.
_PLACES = {"pairs", "also", "run", "valid", "parent", "replay"}  # their content may not change
_NO_WEIGHT = {"test", "general", "beam", "checkpoint_minutes"}
_LAST_BITS = {"threads", "device", "graph"}  # the run says so, as for another number of ranks
_FREE = frozenset(_PLACES | _NO_WEIGHT | _LAST_BITS)
_LENGTHS = ("minutes", "epochs", "updates")  # a greater value continues a run
_SCORED = ("test", "general")  # inputs that change no weight


def check_inputs(inputs: dict[str, Files], run: RunDirectory, parent: Path | None) -> str:
    """Raise InputError if an input file has changed since the run began; return the pairs' hash.

    ``inputs`` holds the files under the names of options, and ``parent`` is a bundle. A run that
    has not begun accepts other text, and loses the data of the earlier text.
    """
    for file in chain.from_iterable(inputs.values()):  # a run reads each file several times
        with suppress(OSError):  # the later reader says why
            check_regular(file)
    of_parent: Files = ()
    if parent is not None:
        check_bundle(parent)
        of_parent = (parent / "config.json", parent / "model.safetensors")
    deciding = {**inputs, "parent": of_parent}
    hashes = {name: sha256_of_all(deciding[name]) for name in deciding if name not in _SCORED}
    recorded = _read(run.inputs, lambda path: read_json(path, dict[str, Any]))
    newest = newest_state(run.checkpoints)  # it knows the pairs even if a person removes the record
    before = recorded | ({"pairs": newest.data_hash} if newest else {})
    changed = [name for name in hashes if before.get(name, hashes[name]) != hashes[name]]
    if changed and run.begun:
        files = " and ".join(map(str, deciding[changed[0]])) or "none given"
        raise InputError(
            f"{run.path}: the text of option {changed[0]} ({files}) has changed since this run"
            " began: give another directory, or remove that one"
        )
    if changed:
        run.counts.unlink(missing_ok=True)
        run.remove_derived()
    if not (run.begun and recorded):
        write_atomically(run.inputs, (json.dumps(hashes) + "\n").encode())
    return hashes["pairs"]


def begun_config(config: TrainConfig, run: RunDirectory) -> TrainConfig | None:
    """The settled options of a run that has begun; None for any other run.

    An option that ``config`` leaves open keeps the settled value; another value is an error. But
    ``config`` sets the length of the training, and options that change only rounding.
    """
    record = _read(run.options, read_yaml) if run.begun else {}
    if not record:
        return None
    record.setdefault("metric", "bleu")
    names = TrainConfig.model_fields
    try:
        begun = TrainConfig(**{name: value for name, value in record.items() if name in names})
    except UsageError as error:
        remedy = "remove the file to record the options anew"
        raise InputError(f"{run.options}: {error}: {remedy}") from error
    for name, field in names.items():
        before, now = getattr(begun, name), getattr(config, name)
        left_open = now is None and field.default is None
        other_length = name in _LENGTHS and before and now
        if name not in _FREE and before != now and not (left_open or other_length):
            raise InputError(
                f"{config.run} holds a run with {name} {before}, now {now}:"
                " give the same options to continue it, or another directory"
            )
    changed = {name: getattr(config, name) for name in _FREE}
    changed |= {name: getattr(config, name) or getattr(begun, name) for name in _LENGTHS}
    return begun.model_copy(update=changed)


def record_options(config: TrainConfig, run: RunDirectory) -> None:
    """Write the settled options of a run; remove the data that came from other options."""
    options = config.model_dump(mode="json")
    before = _read(run.options, read_yaml)
    fixed = options.keys() - _FREE - {*_LENGTHS}
    if any(options[name] != before.get(name, options[name]) for name in fixed):
        run.remove_derived()
    dumped = yaml.safe_dump(options, sort_keys=False, allow_unicode=True)
    write_atomically(run.options, dumped.encode())


def _read(path: Path, read: Callable[[Path], dict[str, Any]]) -> dict[str, Any]:
    """A record of an earlier call, or an empty record if the file is absent."""
    if not path.exists():
        return {}
    try:
        return read(path)
    except InputError as error:
        raise InputError(f"{error}: remove the file to record it anew") from error
