"""Parts of one's own in ``train``: they run, their names are kept, others are refused."""

import json
import os
import signal
from collections import Counter
from dataclasses import replace

import pytest
import torch
from torch import nn

from glassformer.bundle import load_bundle
from glassformer.data.batches import shift
from glassformer.model.attention import MultiHeadAttention, scaled_dot_product_attention
from glassformer.model.transformer import Transformer
from glassformer.parts import FAST, PLAIN
from glassformer.support.errors import InputError, UsageError
from glassformer.training import loop
from glassformer.training.checkpoint import checkpoints
from glassformer.training.loop import Stopped
from glassformer.training.parallel import worker
from glassformer.training.parallel.ranks import Ranks
from glassformer.training.setup import machine
from glassformer.training.setup.prepare import prepare
from glassformer.training.train import new_trainer, train
from glassformer.translator import Translator


def sharper(query, key, value, mask):
    return scaled_dot_product_attention(2 * query, key, value, mask)


def blunter(query, key, value, mask):
    return scaled_dot_product_attention(query / 2, key, value, mask)


RUNS = Counter()  # of rotary attentions, by whether they train


class Turned(MultiHeadAttention):
    """Rotary positions: each pair of a head's features turns with its place. It has no weights."""

    def attend(self, query, keys, values, mask=None):
        RUNS[self.training] += 1
        heads = turned(self.split(self.query(query)), start=keys.size(-2) - query.size(-2))
        heads, _ = self.attention(heads, turned(keys), values, mask)
        return self.output(self.merge(heads))


def turned(heads, start=0):
    angles = torch.arange(start, start + heads.size(-2))[:, None] * 0.5
    first, second = heads.chunk(2, dim=-1)
    return torch.cat(
        (
            first * angles.cos() - second * angles.sin(),
            first * angles.sin() + second * angles.cos(),
        ),
        dim=-1,
    )


class Rotary(Transformer):
    """The Transformer with rotary positions in each self-attention."""

    def __init__(self, config, parts):
        super().__init__(config, parts)
        for block in [*self.encoder.blocks, *self.decoder.blocks]:
            own = Turned(config.d_model, config.num_heads, attention=parts.attention)
            own.load_state_dict(block.self_attention.sublayer.state_dict())
            block.self_attention.sublayer = own


SHARPER = replace(PLAIN, attention=sharper)
ROTARY = replace(PLAIN, model=Rotary)
NAMES = {
    SHARPER: {"attention": "sharper"},
    ROTARY: {"model": "Rotary"},
}


@pytest.fixture(params=[SHARPER, ROTARY], ids=["attention", "model"])
def parts(request):
    return request.param


@pytest.fixture
def stopped(config, recorder, monkeypatch):
    """Trains with these parts until a signal stops the run after its first update."""

    def run(parts, **options):
        inner = loop.Learner.update
        with monkeypatch.context() as patch:
            patch.setattr(
                loop.Learner,
                "update",
                lambda *a, **n: (os.kill(os.getpid(), signal.SIGTERM), inner(*a, **n))[1],
            )
            with pytest.raises(Stopped):
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
    for other in (PLAIN, FAST, replace(PLAIN, attention=blunter)):
        with pytest.raises(InputError, match=f"trained with '.* {name}': give") as refused:
            load_bundle(run, build=other.build, own=other.own)
        assert "\n" not in str(refused.value)


def test_a_part_without_weights_is_in_the_validation_and_the_translations(config, recorder):
    RUNS.clear()
    trainer = new_trainer(prepare(config(updates=1), ROTARY), recorder)
    trainer.metrics.close()
    before = RUNS[False]
    trainer.validation()
    assert RUNS[False] > before
    run = train(config(updates=2, validations=1), recorder, parts=ROTARY).directory
    before = RUNS[False]
    Translator.load(run, parts=ROTARY).translate(["a b c"])
    assert RUNS[False] > before
    assert RUNS[True] > 0


def test_the_same_call_continues_a_stopped_run(config, recorder, stopped, parts, tmp_path):
    whole = train(config(run=tmp_path / "whole"), recorder, parts=parts).directory
    stopped(parts)

    run = train(config(), recorder, parts=parts).directory

    assert recorder.noted("continuing from update 1")
    weights = (run / "model.safetensors").read_bytes()
    assert weights == (whole / "model.safetensors").read_bytes()


@pytest.mark.parametrize("others", [None, replace(PLAIN, attention=blunter)], ids=["none", "other"])
def test_other_parts_do_not_continue_a_run(config, recorder, stopped, others):
    stopped(SHARPER)
    now = "attention blunter" if others else "the package's parts"

    expected = f"with attention sharper, now {now}: give parts of the same names$"
    with pytest.raises(InputError, match=expected):
        train(config(), recorder, parts=others)


def test_a_run_of_the_packages_parts_is_continued_by_no_others(config, recorder, stopped):
    stopped(None)
    with pytest.raises(InputError, match=r"with the package's parts, now attention .*sharper"):
        train(config(), recorder, parts=SHARPER)


def test_a_rank_has_the_parts_of_rank_0():
    settings = {"options": {}, "seed": 1, "state": {"parts": NAMES[SHARPER]}}
    expected = "^rank 0 trains with attention sharper, now the package's parts: "
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
    parts = replace(FAST, attention=sharper)
    with pytest.raises(TypeError, match="which the fast decoder does not know"):
        train(config(), recorder, parts=parts)


def test_bfloat16_needs_losses_that_have_it(config, recorder):
    with pytest.raises(UsageError, match=r"^precision bf16: the plain losses .*: leave it out"):
        train(config(precision="bf16"), recorder, parts=SHARPER)


def test_auto_says_that_an_own_part_is_in_float32(config, recorder):
    parts = replace(FAST, attention=sharper, decoder=PLAIN.decoder)
    for precision, said in (("auto", "float32"), ("bf16", "bf16")):
        options = config(precision=precision, run=config().run / precision, updates=1)
        new_trainer(prepare(options, parts), recorder).metrics.close()
        assert f" {said} on cpu" in recorder.notes[-1]
    (note,) = recorder.noted("precision")
    assert note.startswith("precision float32: attention sharper may not bear bfloat16 (")


def test_plain_parts_do_not_continue_a_run_in_bfloat16(config, recorder, monkeypatch):
    monkeypatch.setattr(machine, "precision_for", lambda _: "bf16")
    train(config(precision="auto", updates=1), recorder, parts=FAST)
    with pytest.raises(UsageError, match=r"^precision bf16: .* or give FAST's$"):
        train(config(precision="auto", updates=2), recorder, parts=PLAIN)


def test_an_attention_that_is_a_module_is_refused(config, recorder):
    with pytest.raises(TypeError, match="attention must be a function"):
        train(config(), recorder, parts=replace(PLAIN, attention=nn.Identity()))
