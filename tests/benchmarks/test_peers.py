"""Peers that need only the tests' packages compute the same as ours."""

import json

import numpy as np
import pytest
import torch

from benchmarks.peers import measure, ours, torch_nn
from benchmarks.peers.torch_training import train
from benchmarks.prepared import Corpus, model_of, training_batches, write_batches
from glassformer.data.corpus import Pair
from tests.parity.test_torch import block_weights

SIZE = {"d_model": 16, "num_heads": 2, "d_ff": 24, "layers": 2}
UPDATES = 4


def random_batches(rows, length, vocab_size, number):
    """Source, target and labels of random tokens, without padding."""
    generator = np.random.default_rng(1)
    for _ in range(number):
        source, labels = generator.integers(4, vocab_size, (2, rows, length))
        source[:, -1] = labels[:, -1] = 3
        target = np.concatenate((np.full((rows, 1), 2), labels[:, :-1]), axis=1)
        yield source, target, labels


@pytest.fixture
def _job(tmp_path, monkeypatch):
    """Toy batches, and a model without dropout, so that two programs can agree."""
    batches = list(random_batches(5, 7, 60, UPDATES))
    batches[1][0][2, 4:] = 0  # a shorter source
    write_batches(tmp_path / "batches.npz", iter(batches))
    job = {
        "batches": str(tmp_path / "batches.npz"),
        "model": model_of(SIZE, vocab_size=60) | {"dropout": 0.0},
        "warm": 1,
        "updates": UPDATES - 1,
        "batch_tokens": 4096,
        "rates": [0.003] * (UPDATES + 2),
        "smoothing": 0.1,
        "clip": 1.0,
        "precision": "float32",
        "compiled": False,
        "threads": 1,
        "device": "cpu",
        "seed": 1,
    }
    for name, value in job.items():
        monkeypatch.setitem(measure.job, name, value)


@pytest.mark.usefixtures("_job")
def test_torch_nn_learns_as_ours_does_from_the_same_weights(monkeypatch, capsys):
    torch.manual_seed(3)  # the weights, and so the losses of two batches, are those of each run
    theirs, own = torch_nn.Translation(), ours.build()
    weights = {"source_embedding.weight": theirs.embedding.weight}
    for side in ("encoder", "decoder"):
        for number, block in enumerate(getattr(theirs.transformer, side).layers):
            for name, weight in block_weights(block, side).items():
                weights[f"{side}.blocks.{number}.{name}"] = weight
    own.load_state_dict(weights, strict=False)
    assert {name for name, _ in own.named_parameters()} == weights.keys()
    monkeypatch.setattr(ours, "build", lambda: own)

    ours.main()
    train(theirs, torch_nn._loss, library="torch")

    of_ours, of_torch = map(json.loads, capsys.readouterr().out.splitlines())
    losses = of_ours["losses"]
    assert losses == pytest.approx(of_torch["losses"], abs=2e-4)
    assert len(losses) == UPDATES
    assert losses[1] != pytest.approx(losses[0], abs=1e-3)
    assert of_ours["parameters"] == of_torch["parameters"]
    # 5 sentences of 7 and 7 tokens; in the first timed batch three are missing.
    assert of_ours["tokens"] == of_torch["tokens"] == (UPDATES - 1) * 5 * 14 - 3
    assert of_ours["tokens_per_second"] == pytest.approx(of_ours["tokens"] / of_ours["seconds"])
    assert of_ours["peak_bytes"] > 20_000_000


def test_batches_go_on_into_the_next_epoch(tmp_path):
    corpus = Corpus("toy", [Pair("a dog runs", "ein Hund läuft")] * 20, [], [])

    path = training_batches(corpus, tmp_path, tokens=64, number=30)

    with np.load(path) as stored:
        source, target, labels = (stored[f"{name}_29"] for name in ("source", "target", "labels"))
    assert source.shape[0] == target.shape[0]
    assert source.shape[0] * (source.shape[1] + target.shape[1]) <= 64
    assert (target[:, 0] == 2).all()
    assert (labels[:, -1] == 3).all()
