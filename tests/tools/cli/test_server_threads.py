"""How many threads a server computes with, and how they wait."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from glassformer.support.threads import torch_threads
from glassformer.tools.cli.loading import LoadingOptions

SOURCE = Path(__file__).parents[3] / "src"


def of_width(d_model, engine="torch"):
    model = SimpleNamespace(config=SimpleNamespace(d_model=d_model))
    return SimpleNamespace(model=model, engine_name=engine)


@pytest.mark.parametrize(
    ("given", "widths", "threads"),
    [(0, [128, 256], 1), (0, [128, 512], 3), (0, [1024], 3), (2, [128], 2), (2, [1024], 2)],
)
def test_small_models_have_one_thread_unless_it_is_given(given, widths, threads, monkeypatch):
    monkeypatch.setattr(LoadingOptions, "load", lambda _, width, **__: of_width(width))
    with torch_threads(3):
        LoadingOptions(threads=given).load_to_serve(widths)
        assert torch.get_num_threads() == threads


def test_ctranslate2_has_all_threads(monkeypatch):
    engines = ["torch", "ctranslate2"]
    monkeypatch.setattr(LoadingOptions, "load", lambda _, name, **__: of_width(64, engine=name))
    with torch_threads(3):
        LoadingOptions().load_to_serve(engines)
        assert torch.get_num_threads() == 3


@pytest.mark.skipif(sys.platform != "linux", reason="other OpenMPs say it in other words")
@pytest.mark.parametrize("command", ["serve", "look"])
def test_threads_wait_asleep_from_the_start(command):
    """OpenMP itself says what it has read."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("OMP_")}
    found = subprocess.run(
        [sys.executable, "-m", "glassformer", command, "nowhere", "--port", "0"],
        capture_output=True,
        text=True,
        env={**environment, "PYTHONPATH": str(SOURCE), "OMP_DISPLAY_ENV": "true"},
    )
    assert "nowhere: not a bundle" in found.stderr
    assert "OMP_WAIT_POLICY = 'PASSIVE'" in found.stderr
