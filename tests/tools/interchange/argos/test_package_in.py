"""Packages of Argos Translate as bundles: files, directories, and what is refused."""

import json
import shutil
import zipfile

import pytest
import torch

from glassformer.bundle import load_bundle
from glassformer.support import strangers
from glassformer.support.errors import InputError
from glassformer.tools.cli.main import main
from glassformer.tools.interchange.argos.package_in import import_argos
from glassformer.tools.interchange.ctranslate2.export import export_ctranslate2
from glassformer.tools.interchange.sources import importer_of

METADATA = {"from_code": "en", "from_name": "English", "to_code": "de", "to_name": "German"}


@pytest.fixture
def package(joint_directory, tmp_path):
    """An unpacked package, as Argos Translate installs it."""
    directory = tmp_path / "packages" / "translate-en_de-1_0"
    export_ctranslate2(load_bundle(joint_directory), directory / "model")
    (directory / "model" / "source.model").rename(directory / "sentencepiece.model")
    (directory / "model" / "target.model").unlink()
    (directory / "stanza").mkdir()
    (directory / "stanza" / "big.pt").write_bytes(b"not read")
    (directory / "metadata.json").write_text(json.dumps(METADATA))
    return directory


def packed(package, path, *, extra=None):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for each in sorted(package.rglob("*")):
            file.write(each, each.relative_to(package.parent))
        for name, content in (extra or {}).items():
            file.writestr(name, content)
    return path


def test_a_file_and_its_directory_give_one_bundle(package, joint_directory, tmp_path):
    model = load_bundle(joint_directory).model
    path = packed(package, tmp_path / "en_de.argosmodel")

    for source in (package, path):
        imported = importer_of(source)(source)
        assert imported.family == "Argos Translate"
        assert imported.bundle.languages == ("en", "de")
        assert imported.bundle.length_penalty == 0.25  # 0.2, at 20 subwords
        for mine, theirs in zip(
            imported.bundle.model.parameters(), model.parameters(), strict=True
        ):
            assert torch.equal(mine, theirs)
    named = import_argos(path, source_language="en_GB", target_language="de_AT")
    assert named.bundle.languages == ("en_GB", "de_AT")


def test_the_command(package, tmp_path, capsys):
    assert main(["import", str(package), str(tmp_path / "bundle")]) == 0
    first, *_ = capsys.readouterr().out.splitlines()
    assert first.endswith("parameters, en to de")
    assert load_bundle(tmp_path / "bundle").languages == ("en", "de")


def test_a_directory_of_ctranslate2_is_known_by_its_content(package):
    shutil.copy(package / "sentencepiece.model", package / "model")
    assert importer_of(package / "model")(package / "model").family == "CTranslate2"


def test_a_target_prefix_begins_every_target(package):
    def with_prefix(piece):
        (package / "metadata.json").write_text(json.dumps({**METADATA, "target_prefix": piece}))
        return import_argos(package).bundle

    bundle = with_prefix("t")
    [index] = bundle.target_tokenizer.prefix_ids
    assert bundle.target_tokenizer.encode("Hut")[0] == index
    assert bundle.source_tokenizer.prefix == ()
    with pytest.raises(InputError, match="lacks the subword '__de__' of its prefix"):
        with_prefix("__de__")
    with pytest.raises(InputError) as caught:
        with_prefix("x" * 100_000)
    assert len(str(caught.value)) < 500


def refused(source, message):
    with pytest.raises(InputError, match=message) as caught:
        importer_of(source)(source)
    assert "\n" not in str(caught.value)


def test_other_packages_are_refused(package):
    metadata = package / "metadata.json"
    metadata.write_text('{"type": "sbd"}')
    refused(package, r"metadata\.json: type 'sbd': expected 'translate'")
    metadata.write_text('{"from_code": "en"}')
    refused(package, r"metadata\.json: to_code: it is missing")
    metadata.write_text("[")
    refused(package, r"metadata\.json: not JSON, or cut short")
    metadata.write_text(json.dumps(METADATA))
    (package / "sentencepiece.model").rename(package / "bpe.model")
    refused(package, r"bpe\.model: this program has no tokenizer of Moses with subword-nmt")
    (package / "bpe.model").unlink()
    refused(package, r"sentencepiece\.model: cannot be read: No such file or directory")


def test_faulty_files(package, tmp_path, monkeypatch):
    path = packed(package, tmp_path / "whole")
    content = path.read_bytes()
    place = content.index(b"model.bin") + 200
    damaged = tmp_path / "damaged.argosmodel"
    damaged.write_bytes(content[:place] + b"xxxxxxxx" + content[place + 8 :])
    refused(damaged, r"translate-en_de-1_0/model/model\.bin is damaged \(.*copy it anew")
    (tmp_path / "cut").write_bytes(content[:-50])
    refused(tmp_path / "cut", "cut: expected a directory of transformers or CTranslate2, or a pa")
    (tmp_path / "text").write_text("text")
    refused(tmp_path / "text", "text: expected a directory of transformers")
    for name in ("../metadata.json", "/metadata.json", "a/..\\metadata.json"):
        out = packed(package, tmp_path / "out", extra={name: "{}"})
        refused(out, r"the member '.*metadata\.json' leads out of its directory")
    monkeypatch.setattr(strangers, "_MOST_UNPACKED", 1000)
    refused(path, r"MiB unpacked: expected at most 0 MiB")
    monkeypatch.setattr(strangers, "_MOST_MEMBERS", 3)
    refused(path, r"members: expected at most 3")


def test_a_fault_inside_a_file_names_the_file(package, tmp_path):
    (package / "model" / "model.bin").write_bytes(b"\6\0\0\0")
    path = packed(package, tmp_path / "en_de.argosmodel")
    refused(path, rf"^{path}: translate-en_de-1_0/model/model\.bin: not a model of CTranslate2")
