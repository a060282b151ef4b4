"""The comparison with capture imported and without, on one sentence and one update."""

import json

from benchmarks.capture import main


def test_answers_and_weights_are_equal_to_the_bit(bundle_directory, tmp_path, capsys):
    text, out = tmp_path / "text", tmp_path / "found.json"
    text.write_text("Two men sit.\n", encoding="utf-8")
    words = ["--pairs", "1", "--updates", "1", "--beam", "2", "--threads", "1", "--out"]

    assert main([str(bundle_directory), str(text), *words, str(out)]) == 0

    [[imported, without]] = json.loads(out.read_text())["pairs"]
    assert imported["answers"] == without["answers"]
    assert imported["weights"] == without["weights"]
    assert "weights equal" in capsys.readouterr().out
