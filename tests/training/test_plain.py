"""``train --plain``: the readable forms alone, with the same losses as their fast twins."""

import json

import pytest
from pydantic import ValidationError

from glassformer.decoding import constraints
from glassformer.errors import InputError
from glassformer.model import attention
from glassformer.model.fast import decoder
from glassformer.model.fast import dropout as fast_dropout
from glassformer.model.transformer import Transformer
from glassformer.training import loss as loss_module
from glassformer.training import malloc, mixed_precision
from glassformer.training.fast import loss as fast_loss
from glassformer.training.setup.prepare import prepare
from glassformer.training.train import new_trainer, train


def losses_of(trainer):
    lines = (trainer.config.run / "metrics.jsonl").read_text().splitlines()
    return [record["loss"] for record in map(json.loads, lines)]


@pytest.mark.parametrize("changes", [{}, {"optimiser": "muon", "accumulate": 2}], ids=str)
def test_the_losses_are_those_of_the_fast_form(config, recorder, tmp_path, changes):
    losses = {}
    for plain in (True, False):
        options = {"updates": 8, "validations": 2, "dropout": 0.0, "plain": plain, **changes}
        trainer = new_trainer(prepare(config(run=tmp_path / str(plain), **options)), recorder)
        trainer.run()
        trainer.metrics.close()
        losses[plain] = losses_of(trainer)

    assert len(losses[True]) == 3  # one of the updates, two of the validations
    assert losses[True] == pytest.approx(losses[False], rel=1e-4)


def forbid(monkeypatch, module, *names):
    for name in names:
        monkeypatch.setattr(module, name, lambda *_, name=name, **__: pytest.fail(name))


def test_a_plain_run_enters_no_fast_twin(config, recorder, monkeypatch):
    forbid(monkeypatch, fast_loss, "batch_losses", "projected_cross_entropy")
    forbid(monkeypatch, mixed_precision, "working_copy", "precision_for")
    forbid(monkeypatch, malloc, "keep_freed_memory")
    forbid(monkeypatch, fast_dropout, "ByteDropout")
    forbid(monkeypatch, attention, "fused_attention")
    entered = []
    for owner, name in (
        (Transformer, "forward"),
        (loss_module, "label_smoothed_cross_entropy"),
        (attention, "scaled_dot_product_attention"),
    ):
        inner = getattr(owner, name)

        def watched(*arguments, name=name, inner=inner, **options):
            entered.append(name)
            return inner(*arguments, **options)

        monkeypatch.setattr(owner, name, watched)
    trainer = new_trainer(prepare(config(plain=True, updates=2, precision="auto")), recorder)
    trainer.run()
    trainer.metrics.close()

    assert trainer.state.precision == "float32"
    assert set(entered) == {
        "forward",
        "label_smoothed_cross_entropy",
        "scaled_dot_product_attention",
    }


@pytest.mark.parametrize("beam", [1, 2])
def test_a_plain_run_decodes_by_no_fast_twin(config, recorder, monkeypatch, beam):
    forbid(monkeypatch, decoder.PreparedTransformer, "__init__")
    forbid(monkeypatch, constraints, "likeliest")
    forbid(monkeypatch, attention, "fused_attention")
    steps = []
    step = Transformer.step
    monkeypatch.setattr(
        Transformer, "step", lambda self, *words: steps.append(words) or step(self, *words)
    )

    train(config(plain=True, updates=2, validations=1, beam=beam), recorder)

    assert recorder.validations
    assert steps


def test_plain_is_in_float32(config):
    with pytest.raises(ValidationError, match="plain computes in float32: leave precision bf16"):
        config(plain=True, precision="bf16")


def test_a_plain_run_stays_plain(config, recorder):
    train(config(plain=True, updates=1), recorder)

    with pytest.raises(InputError, match="holds a run with plain True, now False"):
        train(config(updates=1), recorder)
