"""Parts of one's own in ``train``: they run, their names are kept, others are refused."""

import json
from collections import Counter
from dataclasses import replace

import pytest
import torch
from torch import nn

from glassformer.bundle import load_bundle
from glassformer.config import ModelConfig
from glassformer.data.batches import shift
from glassformer.model.encoder import EncoderBlock
from glassformer.model.transformer import Transformer
from glassformer.parts import FAST, PLAIN
from glassformer.support.errors import InputError, UsageError
from glassformer.training import loop
from glassformer.training.checkpoint import checkpoints
from glassformer.training.parallel import worker
from glassformer.training.parallel.ranks import Ranks
from glassformer.training.setup import machine
from glassformer.training.setup.prepare import prepare
from glassformer.training.train import new_trainer, train
from glassformer.translator import Translator
from tests.own_parts import Rotary, colder, rotary, warmer
from tests.training.conftest import Recorder

COLDER = replace(PLAIN, attention=colder)
ROTARY = replace(PLAIN, model=rotary)
NAMES = {
    COLDER: {"attention": "colder"},
    ROTARY: {"model": "rotary"},
}


@pytest.fixture(params=[COLDER, ROTARY], ids=["attention", "model"])
def parts(request):
    return request.param


@pytest.fixture
def stopped(config, recorder, interrupted):
    """Trains with these parts until a signal stops the run after its first update."""

    def run(parts, **options):
        with interrupted():
            train(config(**options), recorder, parts=parts)

    return run


def test_the_delivered_translator_has_the_part(config, recorder, parts, monkeypatch):
    monkeypatch.setattr(machine, "precision_for", lambda _: pytest.fail("measured"))
    run = train(config(precision="auto"), recorder, parts=parts).directory

    newest = checkpoints(run / "checkpoints")[-1]
    state = json.loads((newest / "state.json").read_text("utf-8"))
    assert (state["precision"], state["parts"]) == ("float32", NAMES[parts])
    assert json.loads((run / "config.json").read_text("utf-8"))["parts"] == NAMES[parts]
    own = Translator.load(run, parts=parts)
    stock = Transformer(own.model.config, PLAIN).eval()
    stock.load_state_dict(own.model.state_dict())
    (score,) = own.score(["a b c"], ["c b a"])
    (without,) = Translator(replace(own.bundle, model=stock), parts=PLAIN).score(
        ["a b c"], ["c b a"]
    )
    assert abs(score - without) > 1e-3
    ((_, name),) = NAMES[parts].items()
    for other in (PLAIN, FAST, replace(PLAIN, attention=warmer)):
        with pytest.raises(InputError, match=f"trained with '.* {name}': give") as refused:
            load_bundle(run, build=other.build, own=other.own)
        assert "\n" not in str(refused.value)


def test_a_part_without_weights_is_in_the_validation_and_the_translations(
    config, recorder, monkeypatch
):
    runs, inner = Counter(), Rotary.attend  # by whether they train

    def attend(self, *inputs):
        runs[self.training] += 1
        return inner(self, *inputs)

    monkeypatch.setattr(Rotary, "attend", attend)
    trainer = new_trainer(prepare(config(updates=1), ROTARY), recorder)
    trainer.metrics.close()
    before = runs[False]
    trainer.validation()
    assert runs[False] > before
    run = train(config(updates=2, validations=1), recorder, parts=ROTARY).directory
    before = runs[False]
    Translator.load(run, parts=ROTARY).translate(["a b c"])
    assert runs[False] > before
    assert runs[True] > 0


def test_the_same_call_continues_a_stopped_run(config, recorder, stopped, parts, tmp_path):
    whole = train(config(run=tmp_path / "whole"), recorder, parts=parts).directory
    stopped(parts)

    run = train(config(), recorder, parts=parts).directory

    assert recorder.noted("continuing from update 1")
    weights = (run / "model.safetensors").read_bytes()
    assert weights == (whole / "model.safetensors").read_bytes()


@pytest.mark.parametrize("others", [None, replace(PLAIN, attention=warmer)], ids=["none", "other"])
def test_other_parts_do_not_continue_a_run(config, recorder, stopped, others):
    stopped(COLDER)
    now = "attention warmer" if others else "the package's parts"

    expected = f"with attention colder, now {now}: give parts of the same names$"
    with pytest.raises(InputError, match=expected):
        train(config(), recorder, parts=others)


def test_a_run_of_the_packages_parts_is_continued_by_no_others(config, recorder, stopped):
    stopped(None)
    with pytest.raises(InputError, match=r"with the package's parts, now attention .*colder"):
        train(config(), recorder, parts=COLDER)


def test_a_rank_has_the_parts_of_rank_0():
    settings = {"options": {}, "seed": 1, "state": {"parts": NAMES[COLDER]}}
    expected = "^rank 0 trains with attention colder, now the package's parts: "
    with pytest.raises(InputError, match=expected):
        worker._train(Ranks(1, 2, settings=settings), torch.device("cpu"), FAST)


def test_the_losses_are_the_own_ones_in_updates_and_validations(config, recorder):
    seen, shifted = [], []

    def losses(model, batch, *, smoothing):
        seen.append((model.training, smoothing))
        return PLAIN.losses(model, batch, smoothing=smoothing)

    def own_shift(labels, bos):
        shifted.append(len(labels))
        return shift(labels, bos)

    parts = replace(PLAIN, losses=losses, shift=own_shift)
    trainer = new_trainer(prepare(config(updates=1, validations=1), parts), recorder)
    of_validation = len(shifted)
    trainer.fit()
    trainer.metrics.close()

    assert set(seen) == {(True, 0.1), (False, 0.0)}
    assert len(shifted) > of_validation > 0


def test_a_decoder_that_does_not_know_the_model_says_so_at_once(config, recorder, monkeypatch):
    monkeypatch.setattr(loop.Learner, "update", lambda *_, **__: pytest.fail("trained"))
    parts = replace(FAST, attention=colder)
    with pytest.raises(InputError, match="which the fast decoder does not know"):
        train(config(), recorder, parts=parts)


def test_bfloat16_needs_losses_that_have_it(config, recorder):
    with pytest.raises(
        UsageError, match=r"^precision bfloat16: the plain losses .*: leave precision out"
    ):
        train(config(precision="bfloat16"), recorder, parts=COLDER)


def test_auto_says_that_an_own_part_is_in_float32(config, recorder):
    parts = replace(FAST, attention=colder, decoder=PLAIN.decoder)
    for precision, said in (("auto", "float32"), ("bfloat16", "bfloat16")):
        options = config(precision=precision, run=config().run / precision, updates=1)
        new_trainer(prepare(options, parts), recorder).metrics.close()
        assert recorder.noted("model: ")[-1].endswith(f" {said} on cpu")
    (note,) = recorder.noted("precision")
    assert note.startswith("precision float32: attention colder may not bear bfloat16 (")


def test_plain_parts_do_not_continue_a_run_in_bfloat16(config, recorder, monkeypatch):
    monkeypatch.setattr(machine, "precision_for", lambda _: "bfloat16")
    train(config(precision="auto", updates=1), recorder, parts=FAST)
    with pytest.raises(UsageError, match=r"^precision bfloat16: .* or take both parts from FAST$"):
        train(config(precision="auto", updates=2), recorder, parts=PLAIN)


class NoStart(nn.Module):
    """Positions that cannot decode step by step."""

    def __init__(self, _d_model, **_):
        super().__init__()

    def forward(self, embedded):
        return embedded


@pytest.mark.parametrize("decoder", [PLAIN.decoder, FAST.decoder])
def test_parts_that_cannot_decode_are_refused_before_the_first_update(config, decoder):
    parts = replace(PLAIN, positions=NoStart, decoder=decoder)
    with pytest.raises(InputError, match=r"translator fails with positions NoStart: T") as refused:
        train(config(updates=1), parts=parts)
    assert "\n" not in str(refused.value)


def test_a_run_names_the_parts_that_it_needs_before_it_reads_weights(config, recorder):
    train(config(updates=1), recorder, parts=replace(PLAIN, norm=nn.RMSNorm))
    line = "the run was trained with norm RMSNorm, now the package's parts: give parts of"
    with pytest.raises(InputError, match=line):
        train(config(updates=2), parts=PLAIN)


def test_parts_beside_plain_are_refused(config):
    with pytest.raises(UsageError, match=r"^plain parts are given too: leave one of the two out$"):
        train(config(plain=True), parts=FAST)


@pytest.mark.parametrize("parts", [{}, {"norm": nn.RMSNorm}, Transformer], ids=str)
def test_what_is_no_record_of_parts_is_refused(config, parts, bundle_directory):
    """In each place that takes a record."""
    line = f"^parts is a {type(parts).__name__}: expected Parts, as in replace"
    for call in (
        lambda: train(config(), parts=parts),
        lambda: Translator.load(bundle_directory, parts=parts),
        lambda: Transformer(ModelConfig(source_vocab_size=9, target_vocab_size=9), parts),
        lambda: EncoderBlock(8, 2, 16, parts=parts),
    ):
        with pytest.raises(UsageError, match=line):
            call()


def test_an_instance_in_the_place_of_a_class_is_refused():
    for field, instance in (
        ("norm", nn.LayerNorm(16)),
        ("dropout", nn.Dropout(0.1)),
        ("feed_forward", nn.Linear(4, 4)),
        ("optimiser", torch.optim.SGD([torch.zeros(1)])),
    ):
        line = f"^{field} {type(instance).__name__}: expected a class or function, no instance$"
        with pytest.raises(UsageError, match=line):
            replace(PLAIN, **{field: instance})


def test_a_project_that_the_fast_loss_does_not_know_is_refused(config):
    class Louder(Transformer):
        def project(self, states):
            return 2 * super().project(states)

    parts = replace(FAST, decoder=PLAIN.decoder, model=Louder)
    with pytest.raises(InputError, match=r"model .*Louder: the loss is not .* PLAIN\.losses"):
        train(config(), parts=parts)
    new_trainer(prepare(config(), replace(parts, losses=PLAIN.losses)), Recorder()).metrics.close()


def test_an_attention_without_dropout_is_told_what_to_take(config):
    line = (
        r"attention colder: .* argument 'dropout': expected \(query, key, value, mask, dropout\)$"
    )
    with pytest.raises(InputError, match=line):
        train(config(attention_dropout=0.1), parts=COLDER)
    train(config(attention_dropout=0.1, updates=1), parts=replace(PLAIN, attention=warm))


def warm(query, key, value, mask=None, *, dropout=0.0):  # noqa: ARG001
    return warmer(query, key, value, mask)


def test_weights_of_another_own_part_name_the_part(bundle_directory):
    with pytest.raises(InputError, match=r"is unknown .* \(with norm RMSNorm\)$"):
        Translator.load(bundle_directory, parts=replace(PLAIN, norm=nn.RMSNorm))


def test_an_own_beam_search_says_that_it_has_no_n_best(bundle_directory):
    def one(step, state, rules, *, beam, **_):
        return PLAIN.beam_search(step, state, rules, beam=beam)

    translator = Translator.load(bundle_directory, parts=replace(FAST, beam_search=one))
    assert translator.translate(["A dog."], beam=2, prefixes=["Ein"])[0].text.startswith("Ein")
    with pytest.raises(UsageError, match=r"^n_best 2: the own beam search has no n_best: leave it"):
        translator.translate(["A dog."], beam=2, n_best=2)
