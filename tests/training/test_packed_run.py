"""A run with packed batches goes on to the bit, obeys its record, and says what is not packed."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
import torch

from glassformer.data.batches import make_batch
from glassformer.parts import FAST, PLAIN
from glassformer.support.errors import InputError, UsageError
from glassformer.training.batch_stream import BatchStream
from glassformer.training.checkpoint import RunState, checkpoints
from glassformer.training.fast import packed as packing
from glassformer.training.setup.learner import new_learner
from glassformer.training.setup.machine import chosen_packing, record_machine
from glassformer.training.setup.prepare import prepare
from glassformer.training.train import new_trainer

PACKED = {"batches": "packed", "accumulate": 2, "updates": 6, "validations": 2}


def weights_of(trainer):
    return {name: weight.clone() for name, weight in trainer.model.state_dict().items()}


def test_an_interrupted_run_ends_with_the_same_bits(
    made, interrupted, scripted, tmp_path, monkeypatch
):
    scripted(*[(1.0, 2.0)] * 4)
    options = PACKED | {"both_ways": 0.5}
    whole = made(run=tmp_path / "whole", **options)
    whole.fit()
    first = made(**options)
    with interrupted():
        first.fit()
    [checkpoint] = checkpoints(first.checkpoints)
    assert json.loads((checkpoint / "state.json").read_text())["packing"] == first.state.packing
    monkeypatch.setattr(packing, "_WIDTH", 9)  # a later version has another rule; the record wins
    second = made(**options)
    second.fit()

    assert (second.state.update, second.state.packing) == (6, whole.state.packing)
    torch.testing.assert_close(weights_of(second), weights_of(whole), rtol=0, atol=0)


def test_parts_without_packed_batches_do_not_continue_a_run_with_them(made, config, interrupted):
    trainer = made(**PACKED)
    with interrupted():
        trainer.fit()
    parts = replace(FAST, packing=None)
    with pytest.raises(InputError, match="the run has packed batches, and these parts none: give"):
        new_trainer(prepare(config(**PACKED), parts), trainer.reporter)


@pytest.mark.parametrize(("before", "now"), [("packed", "padded"), ("padded", "packed")])
def test_a_run_keeps_the_form_of_its_batches(made, config, interrupted, before, now):
    trainer = made(batches=before)
    with interrupted():
        trainer.fit()
    with pytest.raises(InputError, match=f"holds a run with batches {before}, now {now}: give"):
        prepare(config(batches=now))


def hooked(config, parts):
    model = FAST.model(config, parts)
    model.encoder.register_forward_hook(lambda *_: None)
    return model


def mean_losses(model, batch, *, smoothing):
    return FAST.losses(model, batch, smoothing=smoothing)


@pytest.mark.parametrize(
    ("changes", "own", "reason"),
    [
        ({"plain": True}, None, "packed ones need shift, losses and mixed_precision of FAST"),
        ({}, {"losses": mean_losses}, "packed ones need shift, losses"),
        ({}, {"packing": None}, "packed ones need shift, losses"),
        (
            {},
            {"norm": torch.nn.RMSNorm, "decoder": PLAIN.decoder},
            r".*norm is a torch.*RMSNorm, which a packed batch does",
        ),
        (
            {},
            {"model": hooked, "decoder": PLAIN.decoder},
            "encoder has a hook, which a packed batch does not know",
        ),
    ],
)
def test_what_cannot_be_packed_is_padded_and_said(config, recorder, changes, own, reason):
    parts = replace(FAST, **own) if own else None
    trainer = new_trainer(prepare(config(**PACKED | {"updates": 1} | changes), parts), recorder)
    trainer.fit()
    trainer.metrics.close()

    assert trainer.state.packing == {}
    assert not trainer.state.machine.get("graph")
    [line] = recorder.noted("padded batches: ")
    assert re.match(f"padded batches: {reason}", line)


def test_a_batch_has_room_for_the_longest_pair(config, recorder):
    options = config(batch_tokens=16, **PACKED)
    for file in options.pairs:
        file.write_text(
            "".join(f"{line} {line} {line}\n" for line in file.read_text().splitlines())
        )
    trainer = new_trainer(prepare(options), recorder)
    trainer.metrics.close()

    packed, width = trainer.prepared.packed, trainer.state.packing["width"]
    assert width > max(packed.source.lengths.max(), packed.target.lengths.max()) > 8
    [line] = recorder.noted("packed batches: ")
    assert f"packed batches: 1 rows of {width} tokens a side; a GPU gains" in line


def test_an_epoch_has_the_batches_of_the_packed_plan(made):
    trainer = made(**PACKED | {"updates": None, "epochs": 3.0})
    packing, packed = FAST.packed(trainer.state.packing), trainer.prepared.packed
    lengths = packed.source.lengths, packed.target.lengths
    plan = packing.plan(*lengths, seed=trainer.config.seed, epoch=0)
    assert trainer.pace.updates == round(3 * len(plan) / 2)


def test_ranks_have_all_batches_of_an_update_between_them(config):
    options = config(60, **PACKED | {"accumulate": 3})
    trainer = prepare(options)
    packed = trainer.packed
    shape = vars(FAST.packing.of(packed, options.batch_tokens))

    def read(share):
        stream = BatchStream(RunState(packing=shape), options, packed, share, seed=options.seed)
        return [stream.next_batches() for _ in range(5)]

    whole, *ranks = map(read, (slice(None), slice(0, None, 2), slice(1, None, 2)))
    for number, update in enumerate(whole):
        for place, batch in enumerate(update):
            shares = [rank[number][place] for rank in ranks]
            assert {share.target_tokens for share in shares} == {batch.target_tokens}
            assert [len(share.labels) for share in shares] == [place % 2 == 0, place % 2 == 1]
            assert torch.equal(shares[place % 2].labels, batch.labels)


def test_ranks_say_what_they_share(made):
    assert made(**PACKED)._sharing(4) == (
        "4 ranks share the packed batches of each update (accumulate 2; a multiple of 4 keeps all"
        " at work)"
    )


def test_a_graph_needs_packed_batches_and_a_gpu(config):
    with pytest.raises(UsageError, match="graph needs batches of one shape: set batches to packed"):
        config(graph=True)
    with pytest.raises(UsageError, match="needs a GPU, and the device is cpu: leave it out"):
        prepare(config(graph=True, batches="packed"))


def test_a_line_says_that_padded_batches_have_no_graph(config, made):
    trainer = made()
    options = config(graph=True, batches="packed")
    shape, line = chosen_packing(options, trainer.model, PLAIN, trainer.prepared.packed)
    assert (shape, line[:33]) == ({}, "padded batches without a graph: p")


def test_a_run_on_a_gpu_records_its_graph_and_may_go_on_without(made, monkeypatch):
    trainer, gpu = made(**PACKED), torch.device("cuda")
    padded, packed = RunState(), RunState(packing=trainer.state.packing)
    for state, graph in ((padded, False), (packed, True)):
        assert not record_machine(state, gpu, 1, graph=True)
        assert state.machine == {"device": "cuda", "ranks": 1, "graph": graph}
    monkeypatch.setattr(FAST.packing, "replay", lambda *_: "a graph")
    places = {"options": trainer.config, "checkpoints": trainer.checkpoints}
    graphs = [new_learner(trainer.model, FAST, state=state, **places) for state in (padded, packed)]
    assert [learner.replayed for learner in graphs] == [None, "a graph"]
    line = record_machine(packed, gpu, 1)
    assert line == "graph True before, False now: the run goes on, and its last bits may differ"


def test_a_run_s_learner_has_the_gradient_of_padded_batches(made):
    trainer = made(dropout=0.0, **PACKED)
    packed, state = trainer.prepared.packed, trainer.state
    gradients = []
    for shape, make in ((state.packing, FAST.packed(state.packing).batch), ({}, make_batch)):
        options = {"options": trainer.config, "checkpoints": trainer.checkpoints}
        learner = new_learner(trainer.model, FAST, state=RunState(packing=shape), **options)
        gradients.append(learner.gradient([make(packed, np.arange(9))]))
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-6)
