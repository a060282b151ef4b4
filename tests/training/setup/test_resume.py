"""What a run is held to when it is called again, and whose files it leaves alone."""

import json
import os
import re
from pathlib import Path

import pytest
import torch
import yaml

from glassformer.data.subword_training import train_tokenizer
from glassformer.support.errors import InputError
from glassformer.support.threads import torch_threads
from glassformer.training.checkpoint import RunState, save_checkpoint
from glassformer.training.optimiser import adam_of
from glassformer.training.setup import resume
from glassformer.training.setup.machine import record_machine
from glassformer.training.setup.options import TrainConfig
from glassformer.training.setup.prepare import prepare
from glassformer.training.setup.resume import begun_config
from glassformer.training.setup.run_directory import RunDirectory


def source_texts(prepared):
    packed = prepared.packed
    return {prepared.tokenizers[0].decode(packed.source[i]) for i in range(len(packed))}


def begin(prepared):
    """As if a first checkpoint had been saved."""
    model = torch.nn.Linear(2, 2)
    optimiser = adam_of(list(model.parameters()))
    model(torch.ones(1, 2)).sum().backward()
    optimiser.step()
    state = RunState(update=1, data_hash=prepared.data_hash)
    save_checkpoint(prepared.config.run / "checkpoints", model, optimiser, state)


def test_before_the_first_checkpoint_other_text_begins_anew(config, write):
    options = config(60)
    prepare(options)
    write("train.src", ["x y z"] * 20)
    write("train.tgt", ["z y x"] * 20)

    prepared = prepare(options)

    assert source_texts(prepared) == {"x y z"}
    fresh = train_tokenizer(["x y z", "z y x"] * 18, vocab_size=300, seed=1)
    assert prepared.tokenizers[0].fingerprint == fresh.fingerprint


def test_a_run_keeps_the_size_that_it_began_with_on_a_faster_machine(config, monkeypatch):
    sizes = iter(["small", "base", "tiny"])
    monkeypatch.setattr(
        "glassformer.training.setup.recipe.size_in_time", lambda *_, **__: next(sizes)
    )
    options = config(60, minutes=5.0, preset=None, updates=None, epochs=None)

    assert prepare(options).config.preset == "small"
    prepared = prepare(options)  # nothing is lost yet: the machine as it is now decides
    assert prepared.config.preset == "base"
    begin(prepared)

    assert prepare(options).config == prepared.config
    assert next(sizes) == "tiny"


@pytest.mark.parametrize("option", ["pairs", "valid", "tokenizer"])
def test_a_run_that_has_begun_refuses_other_text(config, write, tmp_path, option):
    model = tmp_path / "own.model"
    train_tokenizer(["a b c d e f"] * 3, vocab_size=300).save(model)
    valid = write("valid.src", ["a b"]), write("valid.tgt", ["b a"])
    options = config(60, valid=valid, tokenizer=(model,))
    prepared = prepare(options)
    begin(prepared)
    before = (options.run / "data" / "train" / "meta.json").read_bytes()
    changed = getattr(options, option)[0]
    if option == "tokenizer":
        train_tokenizer(["a b c d e f g"] * 3, vocab_size=300).save(model)
    else:
        changed.write_text(changed.read_text().replace("a", "f"))

    with pytest.raises(InputError, match=f"the text of option {option} .* has changed") as caught:
        prepare(options)

    assert changed.name in str(caught.value)
    assert (options.run / "data" / "train" / "meta.json").read_bytes() == before


def test_a_checkpoint_knows_the_pairs_if_the_record_of_the_inputs_is_removed(config):
    options = config(60)
    begin(prepare(options))
    (options.run / "data" / "inputs.json").unlink()
    prepare(options)
    (options.run / "data" / "inputs.json").unlink()
    before = {path: path.read_bytes() for path in options.run.rglob("*") if path.is_file()}
    pairs = options.pairs[0]
    pairs.write_text(pairs.read_text().replace("a", "f"))

    with pytest.raises(InputError, match=r"the text of option pairs .* has changed"):
        prepare(options)

    after = {path: path.read_bytes() for path in options.run.rglob("*") if path.is_file()}
    assert after == before


def test_a_run_that_has_begun_refuses_other_options(config):
    begin(prepare(config(60)))
    before = sorted((config(60).run / "data").rglob("*"))

    with pytest.raises(InputError, match="holds a run with d_model 16, now 32: give the same"):
        prepare(config(60, d_model=32))
    with pytest.raises(InputError, match="holds a run with joint True, now False"):
        prepare(config(60, joint=False))

    assert sorted((config(60).run / "data").rglob("*")) == before


def record(run, **options):
    """Write options into the run's record."""
    path = run / "config.yaml"
    path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), **options}))


def test_an_option_that_is_left_open_stays_as_the_run_began(config):
    begun = prepare(config(60, norm="pre", batch_tokens=100)).config
    begin(prepare(begun))

    assert prepare(config(60, norm=None, batch_tokens=None)).config == begun


def test_files_of_kept_pairs_that_are_gone_are_made_again(config):
    prepared = prepare(config(60))
    begin(prepared)
    for name in ("train.jsonl", "valid.jsonl", "counts.json"):
        (prepared.config.run / "data" / name).unlink()

    again = prepare(config(60))

    assert again.valid == prepared.valid
    assert again.packed.meta.content_hash == prepared.packed.meta.content_hash


@pytest.mark.parametrize(
    ("value", "message"),
    [({"clip": -1.0}, "clip "), ({"d_model": 30, "num_heads": 4}, "d_model 30 is not divisible")],
)
def test_a_record_with_a_wrong_value_is_named(config, value, message):
    prepared = prepare(config(60))
    begin(prepared)
    record(prepared.config.run, **value)

    with pytest.raises(InputError, match=f"config.yaml: {message}.*: remove the file") as error:
        prepare(config(60))

    assert "\n" not in str(error.value)


def test_a_run_of_minutes_may_have_other_minutes_but_no_other_length(config):
    options = {"updates": None, "minutes": 4.0}
    begin(prepare(config(60, **options)))

    assert prepare(config(60, updates=None, minutes=8.0)).config.minutes == 8.0
    assert prepare(config(60, updates=None, minutes=None)).config.minutes == 8.0
    with pytest.raises(InputError, match="holds a run with updates None, now 12: give the same"):
        prepare(config(60))


def test_a_run_of_updates_gets_no_minutes(config):
    begin(prepare(config(60)))

    with pytest.raises(InputError, match="holds a run with minutes None, now 8"):
        prepare(config(60, updates=None, minutes=8.0))


def test_options_that_change_nothing_are_free(config, tmp_path):
    begin(prepare(config(60)))
    moved = tmp_path / "moved"
    moved.mkdir()
    files = [path.rename(moved / path.name) for path in config(60).pairs]

    prepare(config(60, pairs=tuple(files), beam=9, threads=2, checkpoint_minutes=1.0))


def test_the_options_are_kept_as_yaml(config):
    prepare(config(60))

    kept = yaml.safe_load((config(60).run / "config.yaml").read_text())
    assert (kept["d_model"], kept["tying"], kept["epochs"]) == (16, "three-way", None)


@pytest.mark.parametrize("content", ["{", "[1]", "a: b: c"])
def test_a_broken_record_is_named(config, content):
    prepare(config(60))
    (config(60).run / "config.yaml").write_text(content)

    with pytest.raises(InputError, match=r"config.yaml: ") as caught:
        prepare(config(60))

    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "name", ["README.md", "config.json", "config.yaml", "data/train", "data/train.jsonl"]
)
def test_files_that_no_run_made_are_not_overwritten(config, tmp_path, name):
    foreign = tmp_path / "run" / name
    foreign.parent.mkdir(parents=True)
    if name == "data/train":
        foreign.mkdir()
        foreign /= "corpus.txt"
    foreign.write_text("mine")

    with pytest.raises(InputError, match=f"{name} is there already, .* give a new directory"):
        prepare(config(60))

    assert foreign.read_text() == "mine"


def test_a_run_that_cannot_be_made(config, tmp_path):
    (tmp_path / "file").write_text("")

    with pytest.raises(InputError, match=r"run .*file/run: cannot be made"):
        prepare(config(60, run=tmp_path / "file" / "run"))


def test_a_name_that_cannot_be_is_refused(config):
    with pytest.raises(InputError, match=r"cannot be made \(.*embedded null"):
        prepare(config(60, run=Path("a\0b")))


def test_a_kill_while_old_data_are_removed_locks_nothing(config, monkeypatch):
    prepare(config(60))

    def killed(path, **_):
        Path(path, "old", "meta.json").unlink()
        raise KeyboardInterrupt

    monkeypatch.setattr("shutil.rmtree", killed)
    with pytest.raises(KeyboardInterrupt):
        prepare(config(60, max_tokens=20))
    monkeypatch.undo()

    prepare(config(60, max_tokens=20))


def test_the_hash_is_of_the_bytes(config):
    record = config(60).run / "data" / "inputs.json"
    prepared = prepare(config(60))

    assert json.loads(record.read_text())["pairs"] == prepared.data_hash


def test_text_repaired_after_a_failure_is_taken(config, write):
    pairs = write("some.src", ["a b", "c d"]), write("some.tgt", ["b a"])
    options = config(pairs=pairs)
    with pytest.raises(InputError):
        prepare(options)
    write("some.tgt", ["b a", "d c"])

    assert len(prepare(options).packed) == 2


@pytest.mark.parametrize("option", ["pairs", "test"])
def test_what_cannot_be_read_twice_is_refused(config, tmp_path, option):
    pipe = tmp_path / "pipe.src"
    os.mkfifo(pipe)
    other = tmp_path / "train.tgt"

    with pytest.raises(InputError, match=f"{pipe} is a pipe, expected a regular file: write it to"):
        prepare(config(60, **{option: (pipe, other)}))
    with pytest.raises(InputError, match="/dev/zero is a device, expected a regular file"):
        prepare(config(60, valid=("/dev/zero", other)))


def test_damaged_packed_text_is_found_when_a_run_goes_on(config):
    prepared = prepare(config(60))
    begin(prepared)
    path = prepared.config.run / "data" / "train" / "source.ids"
    content = bytearray(path.read_bytes())
    content[5] ^= 1
    path.write_bytes(content)

    with pytest.raises(InputError, match="data/train: the packed data differ from their content"):
        prepare(config(60))


def test_a_blank_validation_text_is_named(config, write):
    blank = write("blank.src", ["", " "]), write("blank.tgt", ["", "a"])

    with pytest.raises(InputError, match=f"{blank[0]} and {blank[1]}: no pair is left to pack"):
        prepare(config(60, valid=blank))


CHANGES = resume._FREE | {*resume._LENGTHS}


def test_the_table_of_the_documentation_has_what_may_change():
    text = (Path(__file__).parents[3] / "docs" / "reliability.md").read_text("utf-8")
    rows = re.findall(r"^\| (.*?) \|", text.split("## A run that goes on")[1], re.MULTILINE)

    names = {name.replace("-", "_") for row in rows for name in re.findall(r"`--([\w-]+)`", row)}
    aliases = {"from": "parent", "out": "run"}
    assert {aliases.get(name, name) for name in names} | {"pairs"} == CHANGES


def another(name, field, value):
    """A valid value of an option that differs from ``value``."""
    kind = str(field.annotation)
    if name in ("d_model", "d_ff", "keys", "languages", "preset", "recipe", "tokenizer", "format"):
        return {
            **{"d_model": 24, "d_ff": 24, "keys": ("a", "b"), "languages": ("aa", "bb")},
            **{"preset": "base", "recipe": "paper", "tokenizer": ("x",), "format": "tsv"},
        }[name]
    if choices := [word for word in re.findall(r"'([\w-]+)'", kind) if word != value]:
        return choices[-1]
    if "bool" in kind:
        return not value
    if "str" in kind:
        return "<x>"
    return next(new for new in (0.25, 2, 4, 1) if new != value and ("float" in kind or new >= 1))


def test_every_other_option_is_refused_by_its_name(config, subtests):
    begun = prepare(config(60, norm="pre", batch_tokens=100)).config
    begin(prepare(begun))

    for name, field in TrainConfig.model_fields.items():
        if name in CHANGES:
            continue
        with subtests.test(option=name):
            changes = {name: another(name, field, getattr(begun, name))}
            if name == "trim_vocabulary":
                changes["parent"] = Path("bundle")
            changed = begun.model_copy(update=changes)

            with pytest.raises(InputError, match=f"holds a run with {name} .*: give the same opt"):
                begun_config(changed, RunDirectory(begun.run))


def test_another_machine_is_said_once(monkeypatch):
    state = RunState()
    cpu, gpu = torch.device("cpu"), torch.device("cuda")

    with torch_threads(1):
        assert record_machine(state, cpu, 0) == ""
        assert record_machine(state, cpu, 0) == ""
        monkeypatch.setenv("WORLD_SIZE", "2")
        line = record_machine(state, cpu, 0)
        assert line == "ranks 1 before, 2 now: the run goes on, and its last bits may differ"
        assert record_machine(state, cpu, 0) == ""
    with torch_threads(2):
        assert record_machine(state, cpu, 0).startswith("threads 1 before, 2 now: ")
    assert record_machine(state, gpu, 0).startswith("device cpu before, cuda now: ")
    with torch_threads(1):  # a GPU's sums do not depend on the CPU's threads
        assert record_machine(state, gpu, 0) == ""
