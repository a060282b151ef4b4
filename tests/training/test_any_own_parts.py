"""Own parts of any kind are right to the end, or refused at once in a line that names the field.

What they break beside the translation is a line too.
"""

import tempfile
from contextlib import closing
from dataclasses import fields, replace
from functools import partial
from itertools import product
from pathlib import Path

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from glassformer.bundle import load_bundle
from glassformer.model.transformer import Transformer
from glassformer.parts import FAST, PLAIN
from glassformer.support.errors import InputError, UsageError
from glassformer.tools.inspection.capture import capture
from glassformer.tools.interchange.argos.export import export_argos
from glassformer.tools.interchange.ctranslate2.export import export_ctranslate2
from glassformer.tools.interchange.hugging_face.export import export_hugging_face
from glassformer.tools.web.living_page import write_page
from glassformer.training import final_bundle
from glassformer.training import train as training
from glassformer.training.loop import Trainer
from glassformer.training.scorer import Scorer
from glassformer.training.setup.options import TrainConfig
from glassformer.training.setup.prepare import prepare
from glassformer.training.train import new_trainer, train
from glassformer.translator import Translator
from tests import own_parts
from tests.own_forms import FORMS, KINDS
from tests.tables import every
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
STOCK = replace(FAST, decoder=PLAIN.decoder)
SETTINGS = {"parallel", "keep_memory", "tried", "packing"}  # no forms of one's own
TEXTS = ["a d i", "b g l c f", "c h"]
EXPORTS = {
    "CTranslate2": export_ctranslate2,
    "transformers": export_hugging_face,
    "CTranslate2 ": partial(export_argos, languages=("en", "de")),
    "a page": partial(write_page, face="translate", quantization="float32"),
}


def test_each_field_has_its_own_forms():
    assert FORMS.keys() == {field.name for field in fields(FAST)} - SETTINGS


@settings(max_examples=settings.default.max_examples // 12)
@given(
    drawn=st.dictionaries(
        st.sampled_from([*FORMS]), st.sampled_from(KINDS), min_size=1, max_size=3
    ),
    base=st.sampled_from([PLAIN, STOCK]),
)
@example(drawn={"model": "right", "losses": "right", "beam_search": "right"}, base=STOCK)
def test_own_parts_are_right_to_the_end_or_refused_at_once(drawn, base):
    forms = {field: FORMS[field][KINDS.index(kind)] for field, kind in drawn.items()}
    parts, options = replace(base, **forms), {}
    if drawn.keys() == {"mixed_precision"}:
        parts, options = replace(STOCK, **forms), {"precision": "bfloat16"}
    options["optimiser"] = "muon" if "muon" in drawn else "adam"
    wrong = {field for field, kind in drawn.items() if kind != "right"}
    if "precision" not in options:
        wrong.discard("mixed_precision")  # nothing runs it
    with tempfile.TemporaryDirectory() as name:
        if not wrong:
            run, _ = trained(Path(name), parts, **options)
            works_to_the_end(run.directory, parts)
            return
        recorder = Recorder()
        with pytest.raises(InputError) as refused:
            trained(Path(name), parts, recorder, **options)
        assert not [*Path(name).glob("run/checkpoints/*")]
    assert named(wrong, refused)
    assert not recorder.records


def named(wrong, refused):
    line = str(refused.value)
    return "\n" not in line and [field for field in wrong if f"{field} " in line]


@every(("field", "kind"), [*product(FORMS, (1, 2))])
def test_each_wrong_form_is_refused_before_the_first_update(field, kind, prepared):
    parts = replace(STOCK, **{field: FORMS[field][kind]})
    options = {"optimiser": "muon" if field == "muon" else "adam"}
    ready = replace(
        prepared,
        parts=parts,
        start=replace(prepared.start, parts=parts),
        config=prepared.config.model_copy(update=options),
    )
    recorder = Recorder()
    with pytest.raises(InputError) as refused:
        begin(ready, recorder, "bfloat16" if field == "mixed_precision" else "float32")
    assert named([field], refused), refused.value
    assert not recorder.records


def begin(ready, recorder, precision):
    trainer = new_trainer(ready, recorder)
    trainer.state.precision = precision
    with closing(trainer.metrics):
        trainer.fit()


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    return prepare(options_in(tmp_path_factory.mktemp("run"), {}), STOCK)


def works_to_the_end(run, parts):
    """It loads, translates, is captured; an export refuses a model of own parts."""
    translator = Translator.load(run, parts=parts)
    with capture(translator.model) as seen:
        captured = translator.translate(TEXTS, beam=2)
    assert seen.texts == TEXTS
    assert [text.text for text in captured] == [
        text.text for text in translator.translate(TEXTS, beam=2)
    ]
    assert len(translator.translate(TEXTS, beam=1)) == 3
    for program, export in EXPORTS.items() if parts.own_model else ():
        with pytest.raises(UsageError, match=f", which {program.strip()} does not know") as refused:
            export(translator.bundle, run / "export")
        assert f"your own {next(iter(translator.bundle.parts))} " in str(refused.value)
    if not parts.own_model:
        export_ctranslate2(load_bundle(run), run / "export")


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


@settings(max_examples=settings.default.max_examples // 25)
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


def trained(directory, parts, recorder=None, **changes):
    """The run of two updates, and its reporter."""
    recorder = recorder or Recorder()
    return train(options_in(directory, changes), recorder, parts=parts), recorder


def options_in(directory, changes):
    files = directory / "a.src", directory / "a.tgt"
    for file, lines in zip(files, (LINES, [line[::-1] for line in LINES]), strict=True):
        file.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    options = OPTIONS | {"updates": 2, "validations": 2, "beam": 2, "num_decoder_layers": 2}
    return TrainConfig(pairs=files, run=directory / "run", **options | changes)


def test_what_fails_beside_the_translation_is_one_line_each(tmp_path, monkeypatch):
    def failing(*_, **__):
        raise RuntimeError("the reason")

    beside = {
        "length penalty": (Scorer, "length_penalty"),
        "scores": (Scorer, "scores"),
        "scores of the parent": (Scorer, "gains"),
        "model card": (training, "model_card"),
        "word alignment": (final_bundle, "find_heads"),
    }
    for place in beside.values():
        monkeypatch.setattr(*place, failing)
    run, recorder = trained(tmp_path, PLAIN)

    lines = [f"no {line}: RuntimeError: the reason" for line in beside]
    assert recorder.noted("the reason") == lines
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
