"""The trial without the causal mask, in a few updates: all is equal but the mask."""

import json

from benchmarks.causal_mask import main
from glassformer.model import masks


def test_only_the_mask_differs_and_only_for_one_training(tmp_path, capsys):
    out = tmp_path / "found.json"
    whole = masks.target_mask
    words = f"--size 400 --phrases 8 --updates 10 --validations 1 --threads 1 --out {out}"

    assert main(words.split()) == 0

    found = json.loads(out.read_text())
    there, gone = found["with"], found["without"]
    assert [one["update"] for one in there] == [one["update"] for one in gone]
    # From the same weights and batches: were the mask still there, both would be equal.
    assert there[-1]["loss"] != gone[-1]["loss"]
    assert masks.target_mask is whole
    assert "held-out phrases" in capsys.readouterr().out
