"""The stages of one GPU's benchmark: their order, their failures, and their file."""

import json

import numpy as np
import pytest

from benchmarks import gpu, pairs
from benchmarks.__main__ import main
from benchmarks.environments import Failed
from benchmarks.gpu import CELLS, HALVES, STAGES
from benchmarks.peers import ours
from benchmarks.peers.measure import Arrays
from benchmarks.peers.ours import FORMS
from benchmarks.peers.profile_ours import united

OURS, TORCH, MARIAN = "Glassformer", "torch.nn.Transformer", "Hugging Face MarianMTModel"
REPORT = {"slowest_update": 2.0, "median_update": 1.0, "seconds_per_update": 1.0}
REPORT |= {"seconds": 3.0, "peak_bytes": 1e6}


@pytest.fixture
def gpu_figures(tmp_path):
    """Runs stages with toy sizes on the CPU and returns the content of the JSON file."""

    def measured(*words):
        common = ("--device", "cpu", "--tiny", "--warm", 1, "--updates", 2, "--threads", 1)
        places = ("--out", tmp_path, "--work", tmp_path / "work")
        assert main(list(map(str, ("gpu", *common, *places, "--stages", *words)))) == 0
        return json.loads((tmp_path / "gpu-tiny.json").read_text("utf-8"))

    return measured


@pytest.fixture
def speeds(monkeypatch):
    """Programs in the order in which they run; a test sets their tokens a second, None fails."""
    table, order = {}, []

    def run(program, **_):
        order.append(str(program))
        speed = table.get(str(program), 1.0)
        if speed is None:
            raise Failed(f"{program} failed: no memory")
        return REPORT | {"tokens_per_second": speed}

    monkeypatch.setattr(pairs, "run", run)
    monkeypatch.setattr(gpu.Session, "job", lambda *_: {"updates": 2, "model": {}})
    monkeypatch.setattr(gpu, "operations", lambda _: 1e12)
    return table, order


def test_all_programs_run_in_turn_and_the_best_two_the_other_way_about(speeds, gpu_figures):
    table, order = speeds
    table |= {f"{OURS} (packed)": 5.0, f"{TORCH} (compiled)": 9.0, f"{MARIAN} (compiled)": None}

    figures = gpu_figures("base", "big")

    first = [f"{OURS} ({form})" for form in FORMS]
    first += [f"{peer} ({way})" for way in ("eager", "compiled") for peer in (TORCH, MARIAN)]
    best = [f"{TORCH} (compiled)", f"{OURS} (packed)"]
    assert order == [*first, *best, *best[::-1], *best]
    [failed] = [report for report in figures["base"] if "reason" in report]
    assert failed == {"program": first[-1], "reason": f"{first[-1]} failed: no memory"}
    assert figures["big"][0]["operations_per_second"] == 5e11


def test_a_failed_stage_and_the_end_of_the_time_are_lines(speeds, gpu_figures, monkeypatch, capsys):
    def broken(_session, _stage):
        raise RuntimeError("no such kernel")

    monkeypatch.setitem(STAGES, "profile", broken)
    gpu_figures("profile", "base", "--seconds", "0")

    lines = capsys.readouterr().out.splitlines()
    assert "profile | the stage | failed | RuntimeError: no such kernel" in lines
    assert f"base | {OURS} (padded) | failed | no time is left of 0 s" in lines
    assert not speeds[1]


@pytest.mark.usefixtures("speeds")
def test_stages_of_other_calls_stay_in_the_file(gpu_figures):
    assert list(gpu_figures("big")) == ["big"]
    figures = gpu_figures("small")
    assert list(figures) == ["big", "small"]
    assert len(gpu_figures("small")["small"]) == len(figures["small"])


def test_the_halves_have_each_stage_once_but_for_the_batches():
    assert sorted((*HALVES[1], *HALVES[2], "batches")) == sorted(STAGES)
    assert set(CELLS) < set(STAGES)


def test_packed_batches_have_the_sentences_of_the_job(monkeypatch):
    labels = np.array([[7, 8, 3, 0], [9, 5, 6, 3]])
    target = np.insert(labels, 0, 2, axis=1)[:, :-1] * (labels != 0)
    model = {"pad_id": 0, "bos_id": 2, "eos_id": 3, "vocab_size": 10, "d_model": 8, "dropout": 0.0}
    layers = {"num_heads": 2, "d_ff": 8, "num_encoder_layers": 1, "num_decoder_layers": 1}
    job = {"model": model | layers, "batch_tokens": 16, "warm": 1, "updates": 2, "threads": 1}
    job |= {"seed": 1, "device": "cpu", "precision": "float32", "smoothing": 0.1, "clip": 1.0}
    monkeypatch.setattr(ours, "job", job)
    monkeypatch.setattr(ours, "batches", lambda: [Arrays(labels, target, labels)] * 2)

    learner, ready = FORMS["packed"]()

    assert len(ready) == 3
    assert sum(batch.tokens for batch in ready) > 14
    for batch in ready:
        for pair in range(1, int(batch.target_pairs.max()) + 1):
            sentence = batch.labels[batch.target_pairs == pair].tolist()
            assert sentence in ([7, 8, 3], [9, 5, 6, 3])
            assert batch.source[batch.source_pairs == pair].tolist() == sentence
            assert batch.target[batch.target_pairs == pair].tolist() == [2, *sentence[:-1]]
    assert learner.update([ready[0]], rate=1e-3).read()[0] > 0


def test_spans_that_overlap_count_once():
    assert united([(0.0, 2.0), (1.0, 3.0), (5.0, 6.0), (5.0, 5.5)]) == 4.0
