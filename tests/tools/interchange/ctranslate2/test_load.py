"""The converted model beside the bundle: made once, made anew for other weights; the workers."""

import errno
import os
import shutil
import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch

from glassformer.bundle import load_bundle, save_bundle
from glassformer.support.errors import InputError, UsageError
from glassformer.support.hashes import MANIFEST
from glassformer.tools.interchange.ctranslate2 import load as ctranslate2_load
from glassformer.tools.interchange.ctranslate2.workers import Workers
from glassformer.translator import Translator


@pytest.fixture
def conversions(monkeypatch):
    """How often a model is converted."""
    made = []
    real = ctranslate2_load.export_ctranslate2
    monkeypatch.setattr(
        ctranslate2_load,
        "export_ctranslate2",
        lambda *args, **more: made.append(more["quantization"]) or real(*args, **more),
    )
    return made


def loaded(directory, quantization="float32") -> Translator:
    return Translator.load(directory, device="cpu", engine="ctranslate2", quantization=quantization)


def test_a_conversion_is_kept_until_the_weights_change(bundle_of, conversions):
    directory = bundle_of(output_bias=True)
    first = loaded(directory).translate(["A dog."], beam=1)

    assert loaded(directory).translate(["A dog."], beam=1) == first
    assert conversions == ["float32"]

    bundle = load_bundle(directory)
    with torch.no_grad():
        bundle.model.output_bias[40] += 50.0
    save_bundle(bundle, directory)
    assert loaded(directory).translate(["A dog."], beam=1) != first
    loaded(directory, "int8")
    assert conversions == ["float32", "float32", "int8"]
    kept = sorted(path.name.split("-")[0] for path in (directory / "ctranslate2").iterdir())
    assert kept == ["float32", "int8"]  # the outdated one is gone, and nothing half-made is left


def flip(path):
    content = bytearray(path.read_bytes())
    content[-9] ^= 64
    path.write_bytes(content)


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: (folder / "model.bin").unlink(),
        lambda folder: (folder / MANIFEST).unlink(),
        lambda folder: (folder / MANIFEST).write_text("{}"),
        lambda folder: (folder / MANIFEST).write_text("{"),
        lambda folder: flip(folder / "model.bin"),
    ],
    ids=["without the model", "without hashes", "no hash", "cut hashes", "with another bit"],
)
def test_a_damaged_conversion_is_an_error_until_it_is_deleted(bundle_of, conversions, damage):
    directory = bundle_of()
    loaded(directory)
    [folder] = (directory / "ctranslate2").iterdir()
    damage(folder)

    with pytest.raises(InputError) as caught:
        Translator.load(directory, device="cpu", engine="ctranslate2")
    assert str(caught.value) == (
        f"{folder}: this conversion for CTranslate2 is damaged: delete the directory, which the"
        " next load makes anew"
    )
    shutil.rmtree(folder)
    loaded(directory)
    assert conversions == ["float32", "float32"]


def test_a_conversion_that_another_process_makes_meanwhile_is_taken(bundle_of, monkeypatch):
    directory = bundle_of()
    real = ctranslate2_load.write_manifest

    def overtaken(unfinished):
        real(unfinished)
        shutil.copytree(unfinished, directory / "ctranslate2" / name)

    name = ctranslate2_load._name(load_bundle(directory), "float32")
    monkeypatch.setattr(ctranslate2_load, "write_manifest", overtaken)
    assert loaded(directory).engine.workers.directory.name == name
    assert [path.name for path in (directory / "ctranslate2").iterdir()] == [name]


def test_a_conversion_that_is_cut_off_is_never_used(bundle_of, monkeypatch):
    directory = bundle_of()

    def killed(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(ctranslate2_load, "write_manifest", killed)
    with pytest.raises(KeyboardInterrupt):
        loaded(directory)
    assert not list((directory / "ctranslate2").iterdir())


def test_what_fails_at_a_sentence_is_an_error(bundle_of, monkeypatch):
    class Faulty:
        """CTranslate2 itself may end the process, if a model without a start token translates."""

        def translate_batch(self, *_, **__):
            raise RuntimeError("this model has no start token")

    monkeypatch.setattr(Workers, "alone", Faulty())

    with pytest.raises(InputError, match=r"CTranslate2 cannot translate with this model .*start"):
        loaded(bundle_of()).translate(["A dog."])


def test_what_ctranslate2_can_never_load_is_an_error(tmp_path):
    workers = Workers(tmp_path, torch.device("cpu"), "float32")

    with pytest.raises(InputError, match=r"CTranslate2 cannot load this model .*take engine torch"):
        workers.many.translate_batch([["a"]])


def test_a_folder_behind_a_link_is_left_alone(bundle_of, tmp_path):
    directory = bundle_of()
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "float32-of-another").mkdir(parents=True)
    (directory / "ctranslate2").symlink_to(elsewhere)

    assert loaded(directory).engine.workers.directory.parent != directory / "ctranslate2"
    assert [path.name for path in elsewhere.iterdir()] == ["float32-of-another"]


def test_a_bundle_that_cannot_be_written_to_is_converted_elsewhere(
    bundle_of, monkeypatch, tmp_path
):
    directory = bundle_of()
    (directory / "ctranslate2").write_text("in the way")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.setattr(ctranslate2_load.tempfile, "tempdir", str(elsewhere))

    translator = loaded(directory)

    assert translator.translate(["A dog."])[0].text
    assert len(list(elsewhere.iterdir())) == 1
    del translator
    assert not list(elsewhere.iterdir())

    def full(_, place, **__):
        (place / "model.bin").touch()
        raise OSError(errno.ENOSPC, "No space left on device", str(place))

    monkeypatch.setattr(ctranslate2_load, "export_ctranslate2", full)
    with pytest.raises(OSError, match="No space left"):
        loaded(directory)
    assert not list(elsewhere.iterdir())


def test_without_the_package_the_extra_is_named(bundle_of, monkeypatch, tmp_path):
    directory = bundle_of()
    monkeypatch.setitem(sys.modules, "ctranslate2", None)

    with pytest.raises(InputError, match=r"ctranslate2.*glassformer\[ctranslate2\]"):
        loaded(directory)
    with pytest.raises(InputError, match=r"ctranslate2.*glassformer\[ctranslate2\]"):
        ctranslate2_load.export_ctranslate2(load_bundle(directory), tmp_path / "new")


def test_what_this_machine_cannot_compute_in_is_refused(bundle_of, monkeypatch):
    monkeypatch.setattr("ctranslate2.get_supported_compute_types", lambda *_: {"float32", "int8"})

    with pytest.raises(UsageError, match=r"'float16': on this machine's cpu .* in float32, int8"):
        loaded(bundle_of(), "float16")


def test_torch_has_no_quantization(bundle_of):
    with pytest.raises(UsageError, match="only engine ctranslate2 has quantization 'int8'"):
        Translator.load(bundle_of(), engine="torch", quantization="int8")


def test_cuda_without_a_device_is_an_error(bundle_of, monkeypatch):
    directory = bundle_of()
    translator = Translator.load(directory, device="cpu")
    engine = translator._torch_engine
    weight = SimpleNamespace(device=torch.device("cuda"))
    package = SimpleNamespace(get_cuda_device_count=lambda: 0)
    monkeypatch.setattr(ctranslate2_load, "import_ctranslate2", lambda: package)
    monkeypatch.setattr(type(translator.model), "parameters", lambda _: iter([weight]))

    with pytest.raises(
        InputError, match="device cuda: CTranslate2 finds no such device; give device"
    ):
        ctranslate2_load.load_ctranslate2(translator.bundle, directory, engine)


def test_one_core_has_one_worker_for_all(bundle_of, monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    workers = loaded(bundle_of()).engine.workers

    assert workers.alone is workers.many


@pytest.mark.parametrize(("cores", "threads"), [(2, 2), (4, 4), (16, 4)])
def test_one_sentence_has_up_to_four_threads_and_a_file_one_worker_a_core(
    tmp_path, monkeypatch, cores, threads
):
    monkeypatch.setattr(torch, "get_num_threads", lambda: cores)
    monkeypatch.setattr(Workers, "_translator", lambda _, workers, threads: (workers, threads))
    workers = Workers(tmp_path, torch.device("cpu"), "float32", most_threads=4)

    assert workers.alone == (1, threads)
    assert workers.many == (cores, 1)


def test_workers_are_busy_while_a_file_has_batches(tmp_path, monkeypatch):
    files = SimpleNamespace(num_active_batches=1)
    monkeypatch.setattr(Workers, "_translator", lambda *_, **__: files)
    workers = Workers(tmp_path, torch.device("cpu"), "float32")

    assert not workers.busy
    assert workers.many is files
    assert workers.busy
    files.num_active_batches = 0
    assert not workers.busy


def test_ctranslate2_keeps_its_own_openmp(tmp_path):
    """Whose functions it found is what the dynamic linker says."""
    code = """
import torch
from glassformer.tools.interchange.ctranslate2.package import import_ctranslate2
import_ctranslate2()
"""
    seen = {"LD_DEBUG": "bindings", "LD_DEBUG_OUTPUT": str(tmp_path / "bindings")}
    subprocess.run([sys.executable, "-c", code], env=os.environ | seen, check=True, timeout=100)

    [found] = [
        line
        for file in tmp_path.iterdir()
        for line in file.read_text("utf-8", errors="replace").splitlines()
        if "`GOMP_parallel'" in line and "/libctranslate2" in line.split(" to ")[0]
    ]
    assert "/ctranslate2.libs/libgomp" in found.split(" to ")[1]
