"""Parts of any kind that train are delivered: what they break beside the translation is a line."""

import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from glassformer.model.transformer import Transformer
from glassformer.parts import FAST, PLAIN
from glassformer.training import final_bundle
from glassformer.training import train as training
from glassformer.training.loop import Trainer
from glassformer.training.scorer import Scorer
from glassformer.training.setup.options import TrainConfig
from glassformer.training.train import train
from glassformer.translator import Translator
from tests import own_parts
from tests.training.conftest import OPTIONS, Recorder

LINES = [f"{a} {b} {c}" for a in "abc" for b in "defgh" for c in "ijkl"]
BLOCKS = {
    own_parts.Stock,
    own_parts.Parallel,
    own_parts.MemoryFirst,
    own_parts.FirstState,
    own_parts.ReadsTwice,
    own_parts.Locked,
    own_parts.Tabled,
}
UNALIGNED = {own_parts.FirstState, own_parts.ReadsTwice}
ATTENTIONS = (PLAIN.attention, own_parts.colder, own_parts.kernel)


class Odd(Transformer):
    """It raises in an odd place: with one sentence to decode, or with many rows to search."""

    place = ""

    def decode(self, target, memory, **options):
        if self.place == "decode" and len(target) == 1:
            raise KeyError("one sentence")
        return super().decode(target, memory, **options)

    def step(self, tokens, state):
        if self.place == "step" and len(tokens) > 8:
            raise IndexError("many\nrows")
        return super().step(tokens, state)


@settings(max_examples=settings.default.max_examples // 4)
@given(
    block=st.sampled_from(sorted(BLOCKS, key=str)),
    shared=st.booleans(),
    attention=st.sampled_from(ATTENTIONS),
    place=st.sampled_from(["", "decode", "step"]),
)
@example(block=own_parts.Parallel, shared=False, attention=PLAIN.attention, place="")
@example(block=own_parts.FirstState, shared=False, attention=PLAIN.attention, place="step")
@example(block=own_parts.Tabled, shared=True, attention=own_parts.kernel, place="decode")
def test_a_bundle_is_delivered_and_translates(block, shared, attention, place):
    models = []

    def own_model(config, parts):
        model = own_parts.with_blocks(block, shared=shared)(config, parts)
        model.__class__, model.place = Odd, place
        models.append(model)
        return model

    # The batched beam search has many rows in a step.
    own = {"attention": attention, "model": own_model, "beam_search": FAST.beam_search}
    parts = replace(PLAIN, **own)
    with tempfile.TemporaryDirectory() as directory:
        run, recorder = trained(Path(directory), parts)
        translator = Translator.load(run.directory, parts=parts)

    source, target = torch.randint(9, 40, (3, 7)), torch.randint(9, 40, (3, 5))
    with torch.no_grad():
        expected = models[0].eval()(source, target)
        torch.testing.assert_close(translator.model(source, target), expected)
    assert len(translator.translate(["a d i", "b g l"], beam=2)) == 2
    no_alignment = block in UNALIGNED or attention is own_parts.kernel or place == "decode"
    names = ["length penalty", "scores"] * (place == "step") + ["word alignment"] * no_alignment
    assert [note.partition(":")[0] for note in recorder.noted("no ") if note[:3] == "no "] == [
        f"no {name}" for name in names
    ]
    assert bool(run.validation) == (place != "step")
    assert (translator.bundle.alignment is None) == no_alignment
    assert not [note for note in recorder.notes if note.startswith("no ") and "\n" in note]


def trained(directory, parts, **changes):
    """The run of two updates, and its reporter."""
    files = directory / "a.src", directory / "a.tgt"
    for file, lines in zip(files, (LINES, [line[::-1] for line in LINES]), strict=True):
        file.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    options = OPTIONS | {"updates": 2, "validations": 2, "beam": 2, "num_decoder_layers": 2}
    recorder = Recorder()
    config = TrainConfig(pairs=files, run=directory / "run", **options | changes)
    return train(config, recorder, parts=parts), recorder


@pytest.mark.parametrize(
    ("owner", "name", "line"),
    [
        (Scorer, "length_penalty", "length penalty"),
        (Scorer, "scores", "scores"),
        (Scorer, "gains", "scores of the parent"),
        (training, "model_card", "model card"),
        (final_bundle, "find_heads", "word alignment"),
    ],
)
def test_what_fails_beside_the_translation_is_one_line(tmp_path, monkeypatch, owner, name, line):
    def failing(*_, **__):
        raise RuntimeError("the reason")

    monkeypatch.setattr(owner, name, failing)
    run, recorder = trained(tmp_path, PLAIN)

    assert recorder.noted("the reason") == [f"no {line}: RuntimeError: the reason"]
    assert Translator.load(run.directory, parts=PLAIN).translate(["a d i"])


def test_a_mean_that_cannot_be_scored_is_not_delivered(tmp_path, monkeypatch):
    own = Trainer.validation

    def validation(trainer):
        if not trainer.model.training:  # the mean's, not one on the way
            raise RuntimeError("the reason")
        return own(trainer)

    monkeypatch.setattr(Trainer, "validation", validation)
    run, recorder = trained(tmp_path, PLAIN, average="last")

    assert recorder.noted("the reason") == ["no scores of the mean: RuntimeError: the reason"]
    about = Translator.load(run.directory, parts=PLAIN).bundle.about
    assert str(about["weights"]).startswith("checkpoint of update ")
