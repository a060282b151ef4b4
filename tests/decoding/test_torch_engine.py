"""What the translator's own engine can be told: bfloat16, and threads."""

import dataclasses

import pytest

from glassformer.decoding.batched import decode_sentences
from glassformer.decoding.engine import Job, SearchOptions
from glassformer.decoding.sampling import Sampling
from glassformer.errors import UsageError
from glassformer.inspection.capture import capture
from glassformer.model.fast.choice import DecoderChoice
from glassformer.model.fast.decoder import PreparedTransformer
from glassformer.threads import torch_threads
from glassformer.translator import Translator

TEXTS = ["A dog runs.", "An old hat.", "", "Two men sit in the snow."]


def test_bfloat16_is_near_and_other_types_are_refused(bundle_directory):
    exact = Translator.load(bundle_directory, device="cpu")
    rough = Translator.load(bundle_directory, device="cpu", quantization="bfloat16")
    one, other = (translator.translate(TEXTS[:1], beam=1)[0] for translator in (exact, rough))

    assert other.score == pytest.approx(one.score, rel=0.1)
    assert other.score != one.score
    with pytest.raises(UsageError, match="only engine ctranslate2 has it"):
        Translator.load(bundle_directory, quantization="int8")


MANY = [
    f"{text} {number}" for number in range(32) for text in ("A dog runs.", "An old hat.", "Snow.")
]


def test_two_threads_say_what_one_says(bundle_directory):
    translator = Translator.load(bundle_directory, device="cpu")
    with torch_threads(1):
        alone = [one.text for one in translator.translate(MANY)]
    with torch_threads(2):
        assert [one.text for one in translator.translate(MANY)] == alone


def test_draws_and_watched_models_have_one_thread(bundle_directory, monkeypatch):
    cores = []

    def decoded(*words, **options):
        cores.append(options["settings"].cores)
        return decode_sentences(*words, **options)

    monkeypatch.setattr("glassformer.decoding.engine.decode_sentences", decoded)
    translator = Translator.load(bundle_directory, device="cpu")
    with torch_threads(2):
        translator.translate(TEXTS)
        translator.translate(TEXTS, sampling=Sampling(seed=1))
        with capture(translator.model):
            translator.translate(TEXTS)
    assert cores == [2, 1, 1]


def test_a_model_is_arranged_once_and_not_used_while_a_hook_watches(bundle_directory, monkeypatch):
    translator = Translator.load(bundle_directory, device="cpu")
    model, made = translator.model, []

    def counted(model, *, weights):
        made.append(PreparedTransformer(model, weights=weights))
        return made[-1]

    monkeypatch.setattr("glassformer.model.fast.choice.PreparedTransformer", counted)
    first = translator.translate(TEXTS, beam=1)
    assert translator.translate(TEXTS, beam=1) == first
    assert len(made) == 1
    called = []
    hook = model.encoder.register_forward_pre_hook(lambda *_: called.append(1))
    translator.translate(TEXTS, beam=1)
    assert called
    hook.remove()
    assert translator.translate(TEXTS, beam=1) == first
    assert len(made) == 1


@pytest.mark.parametrize("beam", [1, 3])
def test_plain_forms_give_the_same_and_enter_no_fast_module(bundle_directory, monkeypatch, beam):
    expected = Translator.load(bundle_directory, device="cpu").translate(TEXTS, beam=beam)

    def refused(*_, **__):
        raise AssertionError("a fast form was entered")

    monkeypatch.setattr("glassformer.model.fast.decoder.PreparedTransformer.__init__", refused)
    monkeypatch.setattr("glassformer.decoding.constraints.likeliest", refused)
    monkeypatch.setattr("glassformer.model.attention.fused_attention", refused)
    plain = Translator.load(bundle_directory, device="cpu", plain=True)
    found = plain.translate(TEXTS, beam=beam)
    assert [one.text for one in found] == [one.text for one in expected]
    scores = [one.score for one in expected]
    assert [one.score for one in found] == pytest.approx(scores, abs=1e-4)


def test_plain_forms_are_torchs_in_float32(bundle_directory):
    with pytest.raises(UsageError, match="plain: only engine torch in float32 has plain forms"):
        Translator.load(bundle_directory, quantization="bfloat16", plain=True)


def test_an_engine_of_other_weights_has_an_arrangement_of_its_own(bundle_directory):
    exact = Translator.load(bundle_directory, device="cpu")._torch_engine
    rough = dataclasses.replace(exact, decoder=DecoderChoice(exact.model, "bfloat16"))
    job, search = Job([[5, 6, 7]]), SearchOptions(beam=1)
    [[first]] = exact.submit(job, search).result()
    [[other]] = rough.submit(job, search).result()
    assert other.score != first.score
