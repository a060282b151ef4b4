"""A run delivers the mean of checkpoints, or the best of them if its scores are better."""

import json

import pytest
import torch
from safetensors.torch import load_file

from glassformer import train
from glassformer.training.checkpoint_averaging import averaged_updates

BEST, MEAN = [8], [8, 12]


@pytest.mark.parametrize(
    ("scores", "delivered"),
    [
        ((2.9, 1.0, 6), BEST),
        ((3.0, 3.0, 6), MEAN),
        ((0.1, 2.9, 5), MEAN),  # BLEU of other pairs does not compare: the loss decides
    ],
)
def test_the_better_one_is_delivered(config, recorder, scripted, scores, delivered):
    bleu, loss, pairs = scores
    scripted((1.0, 5.0), (3.0, 3.0), (2.0, 4.0), (bleu, loss), pairs=(6, 6, 6, pairs))

    run = train(config(average="last", average_count=2), recorder).directory

    stored = load_file(run / "model.safetensors")
    paths = [run / "checkpoints" / f"{update:08d}" for update in delivered]
    each = [load_file(path / "model.safetensors") for path in paths]
    for name, weight in stored.items():
        mean = torch.stack([weights[name].double() for weights in each]).mean(dim=0)
        assert torch.equal(weight, mean.float())
    kind = "mean" if delivered == MEAN else "best"
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


def test_one_checkpoint_is_not_validated_again(config, recorder, scripted):
    scripted((1.0, 5.0), (3.0, 3.0), (2.0, 4.0))

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
