"""``train --plain``: the readable forms alone, with the same losses as their fast twins."""

import importlib
import json
from dataclasses import fields

import pytest

from glassformer.parts import FAST, PLAIN, Parts
from glassformer.support.errors import InputError
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
        trainer.fit()
        trainer.metrics.close()
        losses[plain] = losses_of(trainer)

    assert len(losses[True]) == 3  # one of the updates, two of the validations
    assert losses[True] == pytest.approx(losses[False], rel=1e-4)


TWINS = {
    "attention": ("torch.nn.functional", "scaled_dot_product_attention"),
    "dropout": ("glassformer.model.fast.dropout", "ByteDropout.forward"),
    "decoder": ("glassformer.model.fast.decoder", "PreparedTransformer.__init__"),
    "best_tokens": ("glassformer.decoding.fast.top_k", "_top"),
    "greedy": ("glassformer.decoding.fast.greedy", "follow"),
    "beam_search": ("glassformer.decoding.fast.beam", "_begin"),
    "losses": ("glassformer.training.fast.loss", "projected_cross_entropy"),
    "mixed_precision": ("glassformer.training.setup.machine", "precision_for"),
    "packing": ("glassformer.training.fast.packed", "Packing.batch"),
    "keep_memory": ("glassformer.training.train", "keep_freed_memory"),
}
READABLE = {
    "attention": ("glassformer.model.attention", "masked_softmax"),
    "dropout": ("torch.nn", "Dropout.forward"),
    "decoder": ("glassformer.model.transformer", "Transformer.step"),
    "best_tokens": ("glassformer.decoding.constraints", "log_softmax"),
    "beam_search": ("glassformer.decoding.beam", "best_continuations"),
    "losses": ("glassformer.training.loss", "label_smoothed_cross_entropy"),
    "model": ("glassformer.model.transformer", "Transformer.forward"),
}


def watched(monkeypatch, places):
    """The names that are entered from now on, of the forms at these places."""
    entered = set()
    for name, (module, place) in places.items():
        owner = importlib.import_module(module)
        *path, function = place.split(".")
        for word in path:
            owner = getattr(owner, word)

        inner = getattr(owner, function)

        def call(*arguments, name=name, inner=inner, **options):
            entered.add(name)
            return inner(*arguments, **options)

        monkeypatch.setattr(owner, function, call)
    return entered


@pytest.mark.parametrize("beam", [1, 2])
@pytest.mark.parametrize("plain", [True, False], ids=["plain", "fast"])
def test_a_plain_run_enters_no_fast_twin(config, recorder, monkeypatch, plain, beam):
    twins, readable = watched(monkeypatch, TWINS), watched(monkeypatch, READABLE)

    options = {"updates": 2, "validations": 1, "precision": "auto", "batches": "packed"}
    train(config(beam=beam, plain=plain, **options), recorder)

    assert recorder.validations
    other_search = {"greedy" if beam > 1 else "beam_search"}
    assert twins - other_search == (set() if plain else set(TWINS) - other_search)
    of_alignment = {"attention"}  # the final bundle's heads are found by their weights
    assert readable - other_search == (set(READABLE) - other_search if plain else of_alignment)


def test_each_field_that_the_fast_parts_exchange_is_watched():
    names = [field.name for field in fields(Parts)]
    exchanged = {name for name in names if getattr(FAST, name) != getattr(PLAIN, name)}
    assert exchanged - {"parallel"} == set(TWINS)


def test_a_plain_run_stays_plain(config, recorder):
    train(config(plain=True, updates=1), recorder)

    with pytest.raises(InputError, match="holds a run with plain True, now False"):
        train(config(updates=1), recorder)
