"""Engine auto: CTranslate2 where it can translate, or else torch, with a line that says why."""

import errno
import os
import shutil
import stat
import sys
import time
from dataclasses import replace

import pytest
import torch

from glassformer.bundle import load_bundle
from glassformer.parts import PLAIN
from glassformer.support.errors import InputError, UsageError
from glassformer.support.files import private_cache
from glassformer.tools.interchange.ctranslate2 import load as ctranslate2_load
from glassformer.translator import Translator
from tests.tables import every

TEXTS = ["A dog runs.", "", "An old hat."]


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache of the test's own; gives the directory of the conversions."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "glassformer" / "ctranslate2"


def auto(directory, **options) -> Translator:
    return Translator.load(directory, device="cpu", engine="auto", **options)


@every(
    ("options", "engine"),
    [
        ({}, "ctranslate2"),
        ({"quantization": "int8"}, "ctranslate2"),
        ({"quantization": "bfloat16"}, "torch"),
        ({"parts": PLAIN}, "torch"),
    ],
)
def test_what_is_asked_for_decides(bundle_of, capfd, options, engine):
    translator = auto(bundle_of(), **options)

    assert translator.engine_name == engine
    assert translator.translate(TEXTS)[0].text
    assert capfd.readouterr().err == ""


def test_without_the_package_torch_translates_and_int8_is_an_error(bundle_of, capfd):
    directory = bundle_of()
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "ctranslate2", None)
        assert auto(directory).engine_name == "torch"
        with pytest.raises(InputError, match=r"glassformer\[ctranslate2\]"):
            auto(directory, quantization="int8")
    assert capfd.readouterr().err == ""
    with pytest.raises(UsageError, match="only engine ctranslate2 has quantization 'int8'"):
        auto(directory, quantization="int8", parts=PLAIN)


def test_a_conversion_stands_in_the_cache_alone(bundle_of, cache, monkeypatch):
    """It is made once, for this user; a model that a stranger put into the bundle is not read."""
    directory = bundle_of()
    Translator.load(directory, device="cpu", engine="ctranslate2")
    [theirs] = (directory / "ctranslate2").iterdir()
    (theirs / "model.bin").write_bytes(b"a stranger's")
    before = sorted(path.name for path in directory.iterdir())

    expected = auto(directory).translate(TEXTS)

    assert sorted(path.name for path in directory.iterdir()) == before
    assert [path.name for path in cache.iterdir()] == [theirs.name]
    if os.name != "nt":
        for folder in (cache, cache.parent):
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    monkeypatch.delattr(ctranslate2_load, "export_ctranslate2")
    assert auto(directory).translate(TEXTS) == expected


def test_the_weights_in_memory_decide_and_not_the_files(bundle_of, cache):
    """A training may replace the files between the load and the conversion."""
    directory = bundle_of(output_bias=True)
    bundle = load_bundle(directory)
    with torch.no_grad():
        bundle.model.output_bias[40] += 50.0
    loaded = [
        Translator.of(each, directory, engine="auto") for each in (bundle, load_bundle(directory))
    ]

    assert len(list(cache.iterdir())) == 2
    assert loaded[0].translate(TEXTS) != loaded[1].translate(TEXTS)


def in_the_way(cache, _):
    cache.parent.parent.mkdir()
    cache.parent.write_text("a file")
    return f"{cache.parent}: File exists: name another directory in XDG_CACHE_HOME"


def of_all(cache, _):
    cache.mkdir(parents=True)
    cache.chmod(0o777)
    return f"{cache}: another user can write there: name your own cache"


def damaged(cache, directory):
    auto(directory)
    [converted] = cache.iterdir()
    (converted / "model.bin").write_bytes(b"another")
    return f"{converted}: this conversion for CTranslate2 is damaged: delete the directory, which"


def raising(error, line):
    def export(*_, **__):
        raise error

    def prepare(cache, _):
        patched.append((ctranslate2_load, "export_ctranslate2", export))
        return line.format(cache=cache)

    patched = prepare.patched = []
    return prepare


FULL = OSError(errno.ENOSPC, "No space left on device", "model.bin")
REASONS = {
    "a file in the way": in_the_way,
    "a cache that others can change": of_all,
    "a damaged conversion": damaged,
    "a full disk": raising(FULL, "model.bin: No space left on device: name another directory in"),
    "no place for a weight": raising(UsageError("no weight like x"), "no weight like x"),
    "little memory": raising(MemoryError(), "memory ran out"),
    "a fault of the package": raising(RuntimeError("no start token"), "no start token"),
}


@pytest.mark.parametrize("reason", REASONS.values(), ids=REASONS)
def test_where_ctranslate2_cannot_translate_torch_does_and_one_line_says_why(
    bundle_of, cache, monkeypatch, capfd, reason
):
    directory = bundle_of()
    expected = Translator.load(directory, device="cpu").translate(TEXTS)
    line = reason(cache, directory)
    for patch in getattr(reason, "patched", ()):
        monkeypatch.setattr(*patch)
    capfd.readouterr()

    translators = [auto(directory), auto(directory)]

    assert [translator.translate(TEXTS) for translator in translators] == [expected, expected]
    assert {translator.engine_name for translator in translators} == {"torch"}
    [said] = capfd.readouterr().err.splitlines()
    assert said.startswith(f"glassformer: engine torch translates: {line}")


def test_a_model_that_goes_away_later_leaves_torch(bundle_of, cache, capfd):
    directory = bundle_of()
    expected = Translator.load(directory, device="cpu").translate(TEXTS)
    translator = auto(directory)
    shutil.rmtree(cache)

    assert [translator.translate(TEXTS) for _ in range(3)] == [expected] * 3
    [said] = capfd.readouterr().err.splitlines()
    assert "CTranslate2 cannot load this model" in said
    asked = replace(translator, engine=replace(translator.engine, optional=False))
    with pytest.raises(InputError, match="CTranslate2 cannot load this model"):
        asked.translate(TEXTS)


def test_the_cache_keeps_the_last_eight_and_those_of_the_last_hour(bundle_of, cache):
    private_cache("ctranslate2")
    now = time.time()
    hours = {"of-now": 0.5, ".killed.partial": 99} | {f"float32-{n:02}": n + 2 for n in range(12)}
    for name, age in hours.items():
        (cache / name).mkdir()
        (cache / name / "model.bin").write_bytes(b"x")
        os.utime(cache / name, (now - 3600 * age,) * 2)
    directory = bundle_of()

    auto(directory)

    [own] = {path.name for path in cache.iterdir()} - hours.keys()
    assert {path.name for path in cache.iterdir()} == {
        own,
        "of-now",
        *(f"float32-{n:02}" for n in range(6)),
    }
    os.utime(cache / own, (now - 1e6,) * 2)
    auto(directory)  # a load counts as use
    assert (cache / own).stat().st_mtime >= now - 60


@pytest.mark.skipif(os.name == "nt", reason="Windows keeps a user's cache by its own rules")
def test_another_user_s_directory_or_link_is_refused(cache, monkeypatch, tmp_path):
    (tmp_path / "large").mkdir(mode=0o700)
    cache.parent.mkdir(parents=True)
    cache.symlink_to(tmp_path / "large")
    assert private_cache("ctranslate2") == cache  # one's own link, such as to a larger disk
    monkeypatch.setattr(os, "geteuid", lambda: cache.stat().st_uid + 1)
    with pytest.raises(InputError, match="another user can write there"):
        private_cache("ctranslate2")


@every(
    ("system", "place"),
    [("linux", ".cache"), ("darwin", "Library/Caches"), ("win32", "AppData/Local")],
)
def test_each_system_has_its_cache(tmp_path, system, place):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", "relative")  # its specification: such a path means nothing
        patch.setattr(sys, "platform", system)
        patch.setattr("pathlib.Path.home", lambda: tmp_path)
        assert private_cache("x") == tmp_path / place / "glassformer" / "x"
