"""``import`` through the real command line."""

import pytest

from glassformer.bundle import load_bundle
from glassformer.tools.cli import import_ as module
from glassformer.tools.cli.main import main
from glassformer.tools.interchange.importing import Imported


@pytest.fixture
def imported(bundle_directory, monkeypatch):
    """A stand-in for the directory of another program; the languages that were asked for."""
    asked = []

    def read(directory, **languages):
        asked.append((directory, languages))
        return Imported(load_bundle(bundle_directory), "MarianMT", ("something is left out",))

    monkeypatch.setattr("glassformer.tools.interchange.hugging_face.load.import_hugging_face", read)
    return asked


def test_it_writes_a_bundle_and_says_what_it_read(imported, tmp_path, capsys):
    place = tmp_path / "new" / "en-de"

    status = main(["import", str(tmp_path), str(place), "--target-language", "deu"])

    out, err = capsys.readouterr()
    assert (status, err) == (0, "")
    count = sum(weight.numel() for weight in load_bundle(place).model.parameters())
    assert out.splitlines() == [
        f"{place}: MarianMT, {count:,} parameters, en to de",
        "length penalty: 0.6 (Wu et al.; as the original at 20 subwords)",
        "note: something is left out",
    ]
    assert imported == [(tmp_path, {"source_language": None, "target_language": "deu"})]


def test_a_directory_in_use_is_refused(imported, tmp_path, refused):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("text")

    assert refused("import", tmp_path, tmp_path / "full") == (
        2,
        f"{tmp_path / 'full'} exists and is not an empty directory: give a new directory",
    )
    assert not imported


def test_another_directory_is_one_line(tmp_path, refused):
    assert refused("import", tmp_path, tmp_path / "new") == (
        1,
        f"{tmp_path}: not a directory of transformers (it holds no config.json)",
    )
    assert not (tmp_path / "new").exists()


def test_a_missing_source_is_one_line(tmp_path, refused):
    status, line = refused("import", tmp_path / "no", tmp_path / "new")
    assert status == 1
    assert line.startswith(
        f"{tmp_path / 'no'}: no such file or directory, and import downloads nothing: give a"
    )


def test_a_name_of_hugging_face_names_its_download(tmp_path, refused):
    name = "Helsinki-NLP/opus-mt-en-de"
    _, line = refused("import", name, tmp_path / "new")
    assert line.startswith(f"{name}: no such file or directory, and import downloads nothing:")
    assert line.endswith(f"`hf download {name} --local-dir opus-mt-en-de` fetches it")


def test_the_command_has_a_python_name():
    assert module.OPTIONS is module.ImportOptions
