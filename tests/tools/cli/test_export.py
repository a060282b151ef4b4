"""``export`` through the real command line."""

import sys

import ctranslate2
import pytest

from glassformer.bundle import load_bundle
from glassformer.tools.cli.main import main
from glassformer.tools.interchange.ctranslate2.export import token_names


def test_what_is_exported_translates_by_itself(bundle_directory, tmp_path, capsys):
    place = tmp_path / "exported"

    status = main(["export", str(bundle_directory), str(place), "--quantization", "int8"])

    said = capsys.readouterr()
    assert (status, said.err) == (0, "")
    size = sum(path.stat().st_size for path in place.iterdir())
    assert said.out == f"{place}: ctranslate2, int8, {size / 1e6:.1f} MB\n"
    pieces = load_bundle(bundle_directory).source_tokenizer.subwords("A dog runs.")
    [found] = ctranslate2.Translator(str(place)).translate_batch([pieces], max_decoding_length=9)
    assert found.hypotheses[0]
    names = token_names(load_bundle(bundle_directory).target_tokenizer)
    assert set(found.hypotheses[0]) <= set(names)


def test_an_export_for_transformers_is_imported_again(bundle_directory, tmp_path, capsys):
    place, back = tmp_path / "exported", tmp_path / "back"

    status = main(["export", str(bundle_directory), str(place), "--to", "hugging-face"])

    said = capsys.readouterr()
    assert (status, said.err) == (0, "")
    assert said.out.startswith(f"{place}: hugging-face, float32, ")
    assert "note: it is a MarianMT model\n" in said.out
    assert main(["import", str(place), str(back)]) == 0
    assert load_bundle(back).languages == load_bundle(bundle_directory).languages


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--quantization", "int4"], "quantization 'int4': expected float32, float16, "),
        (["--target-language", "fr"], "--target-language: the bundle has one language pair, "),
        (["--to", "onyx"], "--to 'onyx': expected 'ctranslate2'"),
        (["--to", "hugging-face", "--quantization", "int8"], "quantization 'int8': expected fl"),
        (["--to", "page", "--quantization", "int16"], "quantization 'int16': expected int8, fl"),
    ],
)
def test_a_wrong_call_is_one_line(bundle_directory, tmp_path, refused, words, message):
    status, line = refused("export", bundle_directory, tmp_path / "new", *words)

    assert (status, line[: len(message)]) == (2, message)
    assert not (tmp_path / "new").exists()


def test_a_directory_in_use_is_refused(bundle_directory, tmp_path, refused):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("text")

    assert refused("export", bundle_directory, tmp_path / "full") == (
        2,
        f"{tmp_path / 'full'} exists and is not an empty directory: give a new directory",
    )


def test_a_link_to_an_empty_directory_stays_a_link(bundle_directory, tmp_path):
    (tmp_path / "empty").mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "empty")

    assert main(["export", str(bundle_directory), str(link)]) == 0
    assert link.is_symlink()
    assert (tmp_path / "empty" / "model.bin").is_file()


def test_no_bundle_is_said(tmp_path, refused):
    assert refused("export", tmp_path / "no", tmp_path / "new") == (
        1,
        f"{tmp_path / 'no'}: not a bundle (no such directory)",
    )


def test_translate_by_the_other_engine_writes_the_same(
    bundle_directory, tmp_path, monkeypatch, capfdbinary
):
    def translate(*words):
        (tmp_path / "input").write_bytes(b"A dog runs.\n\nAn old hat.\nx\n")
        with (tmp_path / "input").open() as file:
            monkeypatch.setattr(sys, "stdin", file)
            status = main(["translate", str(bundle_directory), "--device", "cpu", *words])
        said = capfdbinary.readouterr()
        assert status == 0, said.err
        return said.out

    for words in (["--beam", "1"], ["--n-best", "2"]):
        assert translate(*words, "--engine", "ctranslate2") == translate(*words)
    lines = translate("--engine", "ctranslate2", "--quantization", "int8").split(b"\n")
    assert [bool(line) for line in lines] == [True, False, True, True, False]
