"""The loop: what is validated, kept, stopped and reported when."""

import json
import os
import signal
import threading
from dataclasses import replace

import pytest
import torch

from glassformer.support.errors import InputError
from glassformer.training import loop as module
from glassformer.training.checkpoint import checkpoints
from glassformer.training.checkpoint_averaging import averaged_updates, best
from glassformer.training.loop import Stopped
from glassformer.training.pace import Schedule


def kept(trainer):
    return [int(path.name) for path in checkpoints(trainer.checkpoints)]


def records(trainer, kind):
    path = trainer.config.run / "metrics.jsonl"
    found = map(json.loads, path.read_text().splitlines())
    return [record for record in found if record["kind"] == kind]


def test_as_many_updates_and_validations_as_said(made):
    trainer = made(updates=12, validations=3)
    trainer.fit()

    assert trainer.state.update == 12
    assert [v["update"] for v in trainer.state.validations] == [4, 8, 12]
    assert [r["update"] for r in records(trainer, "validation")] == [4, 8, 12]


def test_the_end_is_validated_though_it_is_not_due(made):
    trainer = made(updates=11, validations=2)
    trainer.fit()

    assert [v["update"] for v in trainer.state.validations] == [5, 10, 11]


def test_the_metrics_have_their_keys(made):
    trainer = made(updates=51, validations=1)
    trainer.fit()

    updates, [validation] = records(trainer, "update"), records(trainer, "validation")
    assert [record["update"] for record in updates] == [50, 51]
    assert updates[0].keys() == {
        *("kind", "update", "epoch", "loss", "perplexity", "learning_rate"),
        *("gradient_norm", "tokens", "tokens_per_second", "seconds"),
    }
    assert validation.keys() == {
        *("kind", "update", "loss", "perplexity", "bleu", "chrf", "exact_match", "pairs"),
        *("seconds", "best"),
    }
    assert 0 < updates[0]["tokens"] < updates[1]["tokens"] == trainer.state.tokens
    assert validation["seconds"] > updates[1]["seconds"] > updates[0]["seconds"] > 0


def test_a_report_is_the_mean_since_the_last_one(made, monkeypatch):
    losses = iter(range(1, 61))
    inner = module.Learner.update

    def numbered(*arguments, **options):
        done = inner(*arguments, **options)
        return type(done)(torch.tensor([float(next(losses)), 0.0, 1.0]), done.tokens)

    monkeypatch.setattr(module.Learner, "update", numbered)
    trainer = made(updates=60, validations=1)
    trainer.fit()

    assert [r["loss"] for r in records(trainer, "update")] == [25.5, 55.5]


def test_the_rate_follows_the_schedule(made, monkeypatch):
    rates = []
    inner = module.Learner.update

    def watched(*arguments, rate, **options):
        rates.append(rate)
        return inner(*arguments, rate=rate, **options)

    monkeypatch.setattr(module.Learner, "update", watched)
    made(updates=6, warmup=3, rate_factor=0.7, anneal=0.5).fit()

    schedule = Schedule(updates=6, d_model=16, warmup=3, factor=0.7, anneal=0.5)
    assert rates == [schedule.rate(update) for update in range(1, 7)]


# The best by the score is the third (the loss decides between equals), the best by loss the fourth.
SCORES = [(1.0, 5.0), (3.0, 4.0), (3.0, 3.5), (2.0, 3.0), (2.5, 3.2), (0.5, 3.4), (0.1, 9.0)]


@pytest.mark.parametrize(
    ("metric", "best", "end"), [("bleu", 3, 5), ("chrf", 3, 5), ("loss", 4, 6)]
)
def test_patience_ends_training(made, scripted, recorder, metric, best, end):
    scripted(*SCORES)
    trainer = made(updates=7, validations=7, metric=metric, patience=2)
    trainer.fit()

    assert trainer.state.update == end
    assert module.best(trainer.state.validations, trainer.config)["update"] == best
    assert recorder.noted("no better validation in 2: training ends here")
    flags = [record["best"] for record in records(trainer, "validation")]
    assert flags[best - 1] is True
    assert True not in flags[best:]


def test_no_patience_is_no_end(made, scripted):
    scripted(*SCORES)
    trainer = made(updates=7, validations=7, patience=0)
    trainer.fit()

    assert trainer.state.update == 7


def test_patience_is_decided_alike_after_a_break(made, scripted, interrupted):
    scripted(*SCORES)
    options = {"updates": 7, "validations": 7, "patience": 2}
    first = made(**options)
    with interrupted():
        first.fit()
    assert first.state.update == 1

    second = made(**options)
    second.fit()

    assert (second.state.update, best(second.state.validations, second.config)["update"]) == (5, 3)
    third = made(**options)
    third.fit()
    assert third.state.update == 5


@pytest.mark.parametrize(
    ("average", "metric", "expected"),
    [
        ("last", "bleu", [6, 7]),
        ("best", "bleu", [3, 5]),
        ("best", "loss", [4, 5]),
        ("none", "bleu", [7]),
    ],
)
def test_what_is_averaged_is_kept(made, scripted, average, metric, expected):
    scripted(*SCORES)
    trainer = made(
        updates=7, validations=7, patience=0, average=average, average_count=2, metric=metric
    )
    trainer.fit()

    assert averaged_updates(trainer.state.validations, trainer.config) == expected
    assert kept(trainer) == sorted({*expected, 6, 7})


def test_checkpoints_by_time(made, monkeypatch):
    saved = []
    inner = module.save_checkpoint
    monkeypatch.setattr(
        module, "save_checkpoint", lambda *a: (saved.append(a[3].update), inner(*a))[1]
    )
    made(updates=5, validations=1, checkpoint_minutes=1e-9).fit()

    assert saved == [1, 2, 3, 4, 5]


def test_between_validations_nothing_is_saved_in_haste(made, monkeypatch):
    saved = []
    monkeypatch.setattr(module, "save_checkpoint", lambda *a: saved.append(a[3].update))
    made(updates=5, validations=1, checkpoint_minutes=60.0).fit()

    assert saved == [5]


@pytest.mark.parametrize(
    ("minutes", "saving", "seconds"),
    [(None, 9.0, 300.0), (20, 0.1, 36.0), (1, 0.2, 6.0), (600, 0.1, 300.0)],
)
def test_a_kill_loses_three_percent_of_the_minutes_unless_saving_takes_long(
    made, minutes, saving, seconds
):
    trainer = made(updates=None if minutes else 1, minutes=minutes)
    trainer._saving = saving

    assert trainer._seconds_between_checkpoints() == pytest.approx(seconds)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_saves_and_stops(made, interrupted, number):
    before = signal.getsignal(number)
    trainer = made(updates=9, validations=1)
    with interrupted(number) as stopped:
        trainer.fit()

    assert stopped.value.signal == number
    assert kept(trainer) == [1]
    assert signal.getsignal(number) is before


def test_a_signal_to_another_rank_saves_and_stops(made, monkeypatch):
    trainer = made(updates=9, validations=1)

    def greatest(_, stop, *others):
        return [float(signal.SIGTERM if trainer.state.update == 2 else stop), *others]

    monkeypatch.setattr(module.Ranks, "all_reduce_max", greatest)
    with pytest.raises(Stopped, match="stopped and saved at update 2") as caught:
        trainer.fit()

    assert caught.value.signal == signal.SIGTERM
    assert kept(trainer) == [2]


def test_a_second_signal_stops_at_once(made, monkeypatch):
    def twice(*_, **__):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(module.Learner, "update", twice)
    with pytest.raises(KeyboardInterrupt):
        made().fit()


def test_it_runs_outside_the_main_thread(made):
    trainer = made(updates=2, validations=1)
    thread = threading.Thread(target=trainer.fit)
    thread.start()
    thread.join()

    assert trainer.state.update == 2


def spoil(model):
    with torch.no_grad():
        next(model.parameters()).fill_(float("nan"))


def test_a_loss_that_is_not_finite_names_the_batch_and_keeps_the_checkpoint(made):
    trainer = made(updates=2, validations=2)
    trainer.fit()
    good = {path.name for path in checkpoints(trainer.checkpoints)}
    trainer.pace = replace(trainer.pace, schedule=replace(trainer.pace.schedule, updates=4))
    spoil(trainer.model)

    with pytest.raises(InputError) as caught:
        trainer.fit()

    said = str(caught.value)
    assert (
        f"update 3 (epoch {trainer.state.epoch}, batch {trainer.state.batch} of " in said
    )  # so many tokens
    assert "is not finite: loss nan" in said
    assert f"the last good checkpoint is {trainer.checkpoints / '00000002'}" in said
    assert "try a smaller rate_factor or a longer warmup" in said
    assert "\n" not in said
    assert {path.name for path in checkpoints(trainer.checkpoints)} == good
    assert trainer.state.update == 2


def test_without_a_checkpoint_none_is_promised(made):
    trainer = made()
    spoil(trainer.model)

    with pytest.raises(InputError, match="there is no checkpoint yet"):
        trainer.fit()


def test_a_validation_that_is_not_finite_is_not_saved(made, scripted):
    scripted((1.0, 2.0), (1.0, float("nan")))
    trainer = made(updates=4, validations=2)

    with pytest.raises(InputError, match="validation at update 4 is not finite: loss nan"):
        trainer.fit()

    assert kept(trainer) == [2]


def validations(*scores):
    """Records of validations; a third number is that of the translated pairs."""
    names = ("bleu", "loss", "pairs")
    return [
        {"update": 100 + place, **dict(zip(names, score, strict=False))}
        for place, score in enumerate(scores)
    ]


def test_scores_of_different_pairs_are_compared_by_the_loss(config):
    alike = validations((1.0, 5.0, 9), (3.0, 4.0, 9), (2.0, 3.0, 9))
    unlike = validations((1.0, 5.0, 9), (3.0, 4.0, 4), (2.0, 3.0, 9))
    earlier = validations((1.0, 5.0), (3.0, 4.0), (2.0, 3.0))

    options = config(metric="bleu", average_count=2)
    assert [best(records, options)["update"] for records in (alike, unlike, earlier)] == [
        *(101, 102, 101)
    ]
    assert averaged_updates(unlike, options) == [101, 102]
