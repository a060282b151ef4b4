"""How cost grows: every kind of axis runs, at its smallest."""

import json
from dataclasses import replace

import pytest

from benchmarks import growth
from benchmarks.__main__ import main


@pytest.mark.parametrize(
    ("name", "values"), [("layers", (1, 2)), ("beam", (1, 2)), ("corpus", (300, 600))]
)
def test_an_axis_is_measured_at_each_of_its_values(name, values, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(growth.AXES, name, replace(growth.AXES[name], values=values))
    words = f"growth --axes {name} --sizes tiny --pairs 1 --updates 1 --warm 0 --batch-tokens 64"

    assert not main([*words.split(), "--out", str(tmp_path)])

    [found] = json.loads((tmp_path / "growth.json").read_bytes())["axes"][name]["rounds"]
    measured = growth.AXES[name].measured
    assert len(found) == len(values)
    assert all(report[measured] > 0 for report in found)
    assert f"| {growth.AXES[name].name} " in capsys.readouterr().out
    assert (tmp_path / "growth.png").stat().st_size > 5_000
