"""``export --to argos``: the package's contract, and its way back."""

import json
import sys
import zipfile

import pytest
import torch

from glassformer.bundle import Bundle, load_bundle
from glassformer.data.tokenizer import Tokenizer
from glassformer.support.errors import InputError, UsageError
from glassformer.tools.cli.main import main
from glassformer.tools.interchange.argos.export import export_argos
from glassformer.tools.interchange.argos.package_in import import_argos
from glassformer.tools.interchange.ctranslate2.export import export_ctranslate2

pytest.importorskip("onnx", reason="onnx is not installed")

TOP = "translate-en_de-1_0"


@pytest.fixture(scope="module")
def package(joint_directory, tmp_path_factory):
    path = tmp_path_factory.mktemp("packages") / "en_de.argosmodel"
    assert main(["export", str(joint_directory), str(path), "--to", "argos"]) == 0
    return path


def test_the_layout(package, joint_directory, tmp_path):
    with zipfile.ZipFile(package) as file:
        contents = {name: file.read(name) for name in file.namelist()}
    assert contents.keys() == {
        f"{TOP}/{name}"
        for name in (
            "README.md",
            "metadata.json",
            "minisbd/en.onnx",
            "model/config.json",
            "model/model.bin",
            "model/shared_vocabulary.json",
            "sentencepiece.model",
        )
    }
    assert json.loads(contents[f"{TOP}/metadata.json"]) == {
        "package_version": "1.0",
        "argos_version": "1.9.0",
        "from_code": "en",
        "from_name": "English",
        "to_code": "de",
        "to_name": "German",
    }
    bundle = load_bundle(joint_directory)
    assert contents[f"{TOP}/sentencepiece.model"] == bundle.source_tokenizer.serialized
    export_ctranslate2(bundle, tmp_path / "model", quantization="int8")
    assert contents[f"{TOP}/model/model.bin"] == (tmp_path / "model" / "model.bin").read_bytes()
    assert json.loads(contents[f"{TOP}/model/config.json"])["add_source_eos"]
    assert len(contents[f"{TOP}/minisbd/en.onnx"]) < 100_000


def test_out_and_in_again(joint_directory, tmp_path):
    bundle = load_bundle(joint_directory)
    path = tmp_path / "en_de.argosmodel"
    notes = export_argos(bundle, path, quantization="float32", languages=("en_GB", None))
    assert any("writes a space for each _" in note for note in notes)

    again = import_argos(path).bundle

    assert again.languages == ("en_GB", "de")
    for mine, theirs in zip(again.model.parameters(), bundle.model.parameters(), strict=True):
        assert torch.equal(mine, theirs)
    texts = ["A dog runs.", "snow_field ☃ Hund"]
    ids = bundle.source_tokenizer.encode_batch(texts)
    assert again.source_tokenizer.encode_batch(texts) == ids
    assert sorted(p.name for p in tmp_path.iterdir()) == ["en_de.argosmodel"]  # nothing else


def test_a_target_prefix_goes_into_the_metadata(joint_directory, tmp_path):
    bundle = load_bundle(joint_directory)
    piece = bundle.target_tokenizer.subword(300)
    target = Tokenizer(bundle.target_tokenizer.serialized, prefix=[piece])
    prefixed = Bundle(bundle.model, bundle.source_tokenizer, target, ("en", "de"))
    export_argos(prefixed, tmp_path / "package")
    assert import_argos(tmp_path / "package").bundle.target_tokenizer.prefix == (piece,)
    source = Bundle(bundle.model, target, target, ("en", "de"))
    with pytest.raises(UsageError, match="puts no token before a source, and the bundle puts"):
        export_argos(source, tmp_path / "other")


def test_what_a_package_cannot_hold(joint_directory, bundle_directory, tmp_path, package):
    bundle = load_bundle(joint_directory)
    for where, options, message in (
        (
            load_bundle(bundle_directory),
            {},
            "Argos Translate has one vocabulary for both sides, an",
        ),
        (
            bundle,
            {"languages": ("../x", None)},
            r"source_language '\.\./x': expected a code such",
        ),
        (bundle, {"quantization": "int4"}, "quantization 'int4': expected float32"),
        (Bundle(bundle.model, *bundle.tokenizers), {}, "source_language is missing, and the bund"),
    ):
        with pytest.raises(UsageError, match=message) as caught:
            export_argos(where, tmp_path / "new", **options)
        assert "\n" not in str(caught.value)
    with pytest.raises(UsageError, match=r"en_de\.argosmodel exists: give a new file"):
        export_argos(bundle, package)
    with pytest.raises(InputError, match=r"OUT .*new: there is no directory .*: make it"):
        export_argos(bundle, tmp_path / "no" / "new")
    assert not list(tmp_path.iterdir())


def test_the_absent_package_is_named(joint_directory, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(InputError, match=r"this needs onnx: pip install 'glassformer\[argos\]'"):
        export_argos(load_bundle(joint_directory), tmp_path / "new")
