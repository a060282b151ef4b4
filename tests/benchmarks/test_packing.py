"""The stages before training, timed on a few pairs."""

import json

from benchmarks import packing


def test_every_stage_reports_its_time_and_memory(tmp_path, capsys):
    out = tmp_path / "found.json"

    assert packing.main(["--pairs", "300", "--vocab-size", "400", "--out", str(out)]) == 0

    stages = json.loads(out.read_text())["stages"]
    assert list(stages) == ["doctor", "subwords", "pack"]
    assert all(stage["seconds"] > 0 and stage["peak"] > 2**20 for stage in stages.values())
    assert "tokenised and packed" in capsys.readouterr().out


def test_the_corpus_is_the_same_each_time(tmp_path, monkeypatch):
    monkeypatch.setattr(packing, "_AT_ONCE", 100)
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        packing.write_corpus(tmp_path / name, 250)

    one, other = ((tmp_path / name / "source").read_text() for name in ("one", "other"))
    assert one == other
    assert one.count("\n") == 250
