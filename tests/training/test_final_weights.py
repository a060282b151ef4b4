"""A run delivers the mean of checkpoints, or the best of them if its scores are better."""

import json

import pytest
import torch
from safetensors.torch import load_file

from glassformer import train
from glassformer.training import loop
from glassformer.training.checkpoint_averaging import averaged_updates
from glassformer.training.validation import Validation

BEST, MEAN = [8], [8, 12]


def scripted(monkeypatch, *scores):
    """Each validation gives the next (BLEU, loss, number of pairs)."""
    left = iter(scores)

    def validate(_model, data, *_):
        bleu, loss, count = next(left)
        return Validation(loss, bleu, 0.0, 0.0, ["?"] * count, data.pairs[:count])

    monkeypatch.setattr(loop, "validate", validate)


@pytest.mark.parametrize(
    ("scores", "delivered"),
    [
        ((2.9, 1.0, 6), BEST),
        ((3.0, 3.0, 6), MEAN),
        ((0.1, 2.9, 5), MEAN),  # BLEU of other pairs does not compare: the loss decides
    ],
)
def test_the_better_one_is_delivered(config, recorder, monkeypatch, scores, delivered):
    scripted(monkeypatch, (1.0, 5.0, 6), (3.0, 3.0, 6), (2.0, 4.0, 6), scores)

    run = train(config(average="last", average_count=2), recorder).directory

    stored = load_file(run / "model.safetensors")
    paths = [run / "checkpoints" / f"{update:08d}" for update in delivered]
    each = [load_file(path / "model.safetensors") for path in paths]
    for name, weight in stored.items():
        mean = torch.stack([weights[name].double() for weights in each]).mean(dim=0)
        assert torch.equal(weight, mean.float())
    kind = "mean" if delivered == MEAN else "best"
    bleu, loss, pairs = scores
    assert recorder.noted(
        f"mean of the checkpoints 8, 12: BLEU {bleu:.2f}, loss {loss:.3f}; the best of them, 8:"
        f" BLEU 3.00, loss 3.000: the {kind} is delivered"
    )
    about = json.loads((run / "config.json").read_text())["about"]
    said = {"mean": "mean of the checkpoints at updates 8, 12", "best": "checkpoint of update 8"}
    assert about["weights"] == said[kind]
    records = map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
    [record] = (record for record in records if record["kind"] == "average")
    assert (record["kind"], record["update"], record["updates"]) == ("average", 12, MEAN)
    assert (record["bleu"], record["loss"], record["pairs"]) == (bleu, loss, pairs)
    assert record["best"] == (kind == "mean")


def test_one_checkpoint_is_not_validated_again(config, recorder, monkeypatch):
    scripted(monkeypatch, (1.0, 5.0, 6), (3.0, 3.0, 6), (2.0, 4.0, 6))

    run = train(config(average="none"), recorder).directory

    assert '"kind": "average"' not in (run / "metrics.jsonl").read_text()
    assert not recorder.noted("mean of the checkpoints")


@pytest.mark.parametrize(("count", "expected"), [(3, 1), (5, 1), (10, 2), (25, 3)])
def test_few_validations_average_no_early_checkpoint(config, count, expected):
    validations = [
        {"update": 1_000 * place // count, "bleu": place, "loss": 1.0, "pairs": 9}
        for place in range(1, count + 1)
    ]

    assert len(averaged_updates(validations, config(metric="bleu"))) == expected
