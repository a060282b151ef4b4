"""Checkpoints: whole or not at all, the newest found, the state back to the bit."""

import errno
import json
import os
import shutil
from pathlib import Path

import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from glassformer.support.errors import InputError
from glassformer.support.tensors import weights
from glassformer.training.checkpoint import (
    RunState,
    checkpoints,
    load_average,
    load_checkpoint,
    load_newest,
    load_optimiser,
    remove_old,
    save_checkpoint,
    whole,
)
from glassformer.training.optimiser import adam_of


def trained(steps=2, seed=0):
    """A small model with its optimiser after some steps."""
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.Linear(7, 3))
    optimiser = adam_of(list(model.parameters()))
    optimiser.param_groups[0]["lr"] = 0.01
    for _ in range(steps):
        step(model, optimiser)
    return model, optimiser


def untrained():
    return trained(steps=0)[0]


def step(model, optimiser):
    optimiser.zero_grad()
    model(torch.arange(10.0).view(2, 5)).square().sum().backward()
    optimiser.step()


STATE = RunState(
    update=12,
    epoch=1,
    batch=3,
    tokens=999,
    seconds=0.1 + 0.2,
    data_hash="abc",
    precision="float32",
    validations=[{"kind": "validation", "update": 12, "loss": 1 / 3, "bleu": 0.5}],
    window={"updates": 2.0, "loss": 0.1},
)


def test_round_trip_goes_on_to_the_bit(tmp_path):
    model, optimiser = trained()
    path = save_checkpoint(tmp_path, model, optimiser, STATE)
    other, other_optimiser = trained(steps=0, seed=9)

    state = load_checkpoint(path, other)
    load_optimiser(path, other, other_optimiser)

    assert state == STATE
    other_optimiser.param_groups[0]["lr"] = 0.01  # the trainer sets it before each update
    for _ in range(3):
        step(model, optimiser)
        step(other, other_optimiser)
    for ours, theirs in zip(other.parameters(), model.parameters(), strict=True):
        assert torch.equal(ours, theirs)


def test_a_loaded_optimiser_does_not_write_into_the_checkpoint(tmp_path):
    path = save_checkpoint(tmp_path, *trained(), STATE)
    before = (path / "optimiser.safetensors").read_bytes()
    model, optimiser = trained(steps=0)

    load_checkpoint(path, model)
    load_optimiser(path, model, optimiser)
    step(model, optimiser)

    assert (path / "optimiser.safetensors").read_bytes() == before


def test_nothing_is_pickled(tmp_path):
    path = save_checkpoint(tmp_path, *trained(), STATE)

    assert {file.name for file in path.iterdir()} == {
        "model.safetensors",
        "optimiser.json",
        "optimiser.safetensors",
        "sha256.json",
        "state.json",
    }
    load_file(path / "optimiser.safetensors")
    for name in ("optimiser.json", "state.json", "sha256.json"):
        json.loads((path / name).read_text())


def test_the_complete_ones_are_found_oldest_first(tmp_path):
    for update in (100, 20, 3):
        save_checkpoint(tmp_path, *trained(), RunState(update=update))
    (tmp_path / ".00000200-x.partial").mkdir()
    (tmp_path / "notes").mkdir()

    assert [path.name for path in checkpoints(tmp_path)] == ["00000003", "00000020", "00000100"]
    assert checkpoints(tmp_path / "nowhere") == []


@pytest.mark.parametrize("call", [1, 2, 3, 4, 5])
def test_broken_off_it_is_ignored_and_cleaned(tmp_path, monkeypatch, call):
    save_checkpoint(tmp_path, *trained(), RunState(update=1))
    calls = []

    def killed(path):
        calls.append(path)
        if len(calls) == call:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", killed)
        with pytest.raises(KeyboardInterrupt):
            save_checkpoint(tmp_path, *trained(), RunState(update=2))
    assert [path.name for path in checkpoints(tmp_path)] == ["00000001"]

    save_checkpoint(tmp_path, *trained(), RunState(update=2))
    remove_old(tmp_path, [])

    assert sorted(path.name for path in tmp_path.iterdir()) == ["00000001", "00000002"]


def test_others_are_removed_and_strangers_are_not(tmp_path):
    for update in (1, 2, 3, 4):
        save_checkpoint(tmp_path, *trained(), RunState(update=update))
    (tmp_path / ".00000009-x.partial").mkdir()
    (tmp_path / ".git").mkdir()

    remove_old(tmp_path, [1, 3, 7])

    kept = ["00000001", "00000003", "00000004"]
    assert {path.name for path in tmp_path.iterdir()} == {*kept, ".git"}
    resumable = [name for name in kept if (tmp_path / name / "optimiser.safetensors").exists()]
    assert resumable == kept[1:]
    load_average(untrained(), tmp_path, whole(tmp_path, [1, 3], pytest.fail))


def test_a_kill_while_removing_leaves_no_half_checkpoint(tmp_path, monkeypatch):
    for update in (1, 2, 3):
        save_checkpoint(tmp_path, *trained(), RunState(update=update))

    def killed(path, **_):
        Path(path, "old", "state.json").unlink()
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", killed)
        with pytest.raises(KeyboardInterrupt):
            remove_old(tmp_path, [])

    assert [path.name for path in checkpoints(tmp_path)] == ["00000002", "00000003"]


def test_the_same_update_is_written_once(tmp_path):
    path = save_checkpoint(tmp_path, *trained(), RunState(update=4))
    before = (path / "state.json").stat().st_mtime_ns

    assert save_checkpoint(tmp_path, *trained(), RunState(update=4)) == path
    assert (path / "state.json").stat().st_mtime_ns == before


def test_average_is_the_mean(tmp_path):
    paths = [
        save_checkpoint(tmp_path, *trained(seed=seed), RunState(update=seed)) for seed in (1, 2, 3)
    ]

    model, _ = trained()
    load_average(model, tmp_path, [1, 2, 3])

    each, mean = [load_file(path / "model.safetensors") for path in paths], weights(model)
    assert mean.keys() == each[0].keys()
    for name, weight in mean.items():
        expected = torch.stack([stored[name] for stored in each]).mean(dim=0)
        torch.testing.assert_close(weight, expected)
        assert weight.dtype == torch.float32
    load_average(model, tmp_path, [1])
    assert all(torch.equal(weight, each[0][name]) for name, weight in weights(model).items())


def damage(path):
    content = bytearray(path.read_bytes())
    content[-2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("name", ["model.safetensors", "optimiser.safetensors", "state.json"])
def test_a_damaged_file_is_found_by_its_hash(tmp_path, name):
    path = save_checkpoint(tmp_path, *trained(), STATE)
    damage(path / name)

    with pytest.raises(InputError, match=f"{name}: checksum mismatch: .*: the checkpoint is of no"):
        load_checkpoint(path, untrained())


def test_a_damaged_checkpoint_is_set_aside_for_the_one_before(tmp_path):
    for update in (10, 20, 30):
        save_checkpoint(tmp_path, *trained(update // 10), RunState(update=update))
    damage(tmp_path / "00000020" / "optimiser.safetensors")
    (tmp_path / "00000030" / "sha256.json").write_text("[]")
    notes = []

    state = load_newest(tmp_path, untrained(), notes.append)

    assert state.update == 10
    assert [path.name for path in checkpoints(tmp_path)] == ["00000010"]
    assert (tmp_path / "damaged-00000030").is_dir()
    assert "sha256.json: expected an object" in notes[0]
    assert "damaged-00000020, and the run goes on from 00000010" in notes[1]


def test_if_all_are_damaged_nothing_is_set_aside(tmp_path):
    path = save_checkpoint(tmp_path, *trained(), STATE)
    damage(path / "state.json")

    with pytest.raises(
        InputError,
        match=r"state.json: checksum mismatch.*; there is no other checkpoint: give anoth",
    ):
        load_newest(tmp_path, untrained(), print)

    assert checkpoints(tmp_path) == [path]
    assert load_newest(tmp_path / "nowhere", untrained(), print) is None


def test_the_mean_goes_without_a_damaged_checkpoint(tmp_path):
    for update in (1, 2):
        save_checkpoint(tmp_path, *trained(), RunState(update=update))
    damage(tmp_path / "00000001" / "model.safetensors")
    notes = []

    assert whole(tmp_path, [1, 2, 3], notes.append) == [2]

    assert "model.safetensors: checksum mismatch" in notes[0]
    assert "00000003: no such checkpoint; the mean of the weights goes without it" in notes[1]
    with pytest.raises(InputError, match="no checkpoint is whole: begin a new run"):
        whole(tmp_path, [1], print)


@pytest.mark.parametrize(
    "name", ["model.safetensors", "optimiser.safetensors", "sha256.json", "state.json"]
)
def test_a_missing_file_is_named(tmp_path, name):
    path = save_checkpoint(tmp_path, *trained(), STATE)
    (path / name).unlink()

    with pytest.raises(InputError, match=f"{path / name}: cannot be read: No such file"):
        load_checkpoint(path, untrained())


def test_weights_of_another_model_are_refused(tmp_path):
    path = save_checkpoint(tmp_path, *trained(), STATE)
    other = torch.nn.Sequential(torch.nn.Linear(5, 9), torch.nn.Linear(9, 3))

    with pytest.raises(InputError, match=r"0.bias has the shape \(7,\), expected \(9,\)"):
        load_checkpoint(path, other)


def test_what_cannot_be_written_is_said_with_its_reason(tmp_path, monkeypatch):
    save_checkpoint(tmp_path, *trained(), RunState(update=1))

    def fails(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fails)
    message = (
        r"00000002: the checkpoint cannot be written .*No space left on device.*; the last good"
        rf" checkpoint is {tmp_path}/00000001: give the directory room"
    )
    with pytest.raises(InputError, match=message):
        save_checkpoint(tmp_path, *trained(), RunState(update=2))

    assert [path.name for path in tmp_path.iterdir()] == ["00000001"]


def test_a_run_that_is_gone_is_not_made_anew(tmp_path):
    with pytest.raises(InputError, match="No such file or directory"):
        save_checkpoint(tmp_path / "gone" / "checkpoints", *trained(), STATE)

    assert not (tmp_path / "gone").exists()


def test_a_full_disk_is_understood_in_the_words_of_safetensors(tmp_path, monkeypatch):
    def full(*_):
        raise SafetensorError("I/O error: No space left on device (os error 28)")

    monkeypatch.setattr("glassformer.training.checkpoint.save_file", full)
    with pytest.raises(InputError, match=r"os error 28.*; there is no checkpoint yet: give"):
        save_checkpoint(tmp_path, *trained(), RunState(update=2))
