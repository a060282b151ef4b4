"""``translate --alignment``: fields and objects whose links are those of the translator."""

import json
import os

import pytest

from glassformer.data.words import pharaoh
from glassformer.tools.cli.main import main
from glassformer.translator import Translator

LINES = ["A dog runs across the grass.", "", "An old hat", "Two men sit; one sings."]


@pytest.fixture
def said(bundle_directory, tmp_path, monkeypatch, capfdbinary):
    """The lines that the command prints for LINES with these options."""

    def call(*words) -> list[str]:
        path = tmp_path / "input"
        path.write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
        with path.open() as file:
            monkeypatch.setattr("sys.stdin", file)
            status = main(["translate", os.fspath(bundle_directory), "--device", "cpu", *words])
        assert status == 0
        return capfdbinary.readouterr().out.decode().splitlines()

    return call


@pytest.fixture(scope="module")
def found(bundle_directory):
    translator = Translator.load(bundle_directory, device="cpu")
    return translator.translate(LINES, n_best=2, alignment=True)


def test_numbers_of_words_after_the_translation(said, found):
    rows = [row.split(" ||| ") for row in said("--alignment")]

    assert [text for text, _ in rows] == [one.text for one in found]
    for line, one, (_, links) in zip(LINES, found, rows, strict=True):
        assert links == pharaoh(line, one.text, one.alignment)
        for pair in links.split():
            source, target = map(int, pair.split("-"))
            assert source < len(line.split())
            assert target < len(one.text.split())
    assert any(links for _, links in rows)


def test_between_text_and_score_of_several(said, found):
    rows = said("--alignment", "--n-best", "2")

    assert rows == [
        f"{number} ||| {one.text} ||| {pharaoh(line, one.text, one.alignment)} ||| {one.score:.4f}"
        for number, (line, best) in enumerate(zip(LINES, found, strict=True))
        for one in (best, *best.alternatives)
    ]


def test_spans_of_characters_as_json(said, found):
    for row, one in zip(said("--alignment", "--json"), found, strict=True):
        links = json.loads(row)["alignment"]
        assert [(tuple(link["source"]), tuple(link["target"])) for link in links] == [
            (link.source, link.target) for link in one.alignment
        ]
    assert all("alignment" not in json.loads(row) for row in said("--json"))


def test_what_is_drawn_is_aligned_too(said):
    drawn = said("--sample", "--seed", "4")

    assert [
        row.split(" ||| ")[0] for row in said("--sample", "--seed", "4", "--alignment")
    ] == drawn
