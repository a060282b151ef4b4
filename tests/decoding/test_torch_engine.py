"""What the translator's own engine can be told: bfloat16, plain forms, and threads."""

import sys
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from glassformer.decoding.batched import decode_sentences
from glassformer.decoding.engine import Job, SearchOptions
from glassformer.decoding.sampling import Sampling
from glassformer.model.fast import decoder
from glassformer.parts import FAST, PLAIN, in_bfloat16
from glassformer.support.errors import UsageError
from glassformer.support.threads import torch_threads
from glassformer.text_engine import torch_engine
from glassformer.tools.inspection.capture import capture
from glassformer.translator import Translator

TEXTS = ["A dog runs.", "An old hat.", "", "Two men sit in the snow."]


def test_bfloat16_is_near_and_other_types_are_refused(bundle_directory):
    exact = Translator.load(bundle_directory, device="cpu")
    rough = Translator.load(bundle_directory, device="cpu", quantization="bfloat16")
    by_parts = Translator.load(bundle_directory, device="cpu", parts=in_bfloat16(FAST))
    one, other, same = (
        translator.translate(TEXTS[:1], beam=1)[0] for translator in (exact, rough, by_parts)
    )

    assert same == other
    assert other.score == pytest.approx(one.score, rel=0.1)
    assert other.score != one.score
    with pytest.raises(UsageError, match="only engine ctranslate2 has quantization"):
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


def test_a_batch_fills_a_quarter_of_a_gpu_s_memory(bundle_directory, monkeypatch):
    """Each target has keys and values of 4 bytes a number in each block, twice in a step."""
    translator = Translator.load(bundle_directory, device="cpu")
    engine, config = translator._torch_engine, translator.bundle.model.config
    each = 2 * (2 * 4 * config.d_model * config.num_decoder_layers)
    for free in (0, 40_000_000_000):
        monkeypatch.setattr("glassformer.decoding.engine.free_memory", lambda _, free=free: free)
        assert engine._batch_tokens(1) == max(24_576, free // 4 // each)
        assert engine._batch_tokens(5) == max(8192, free // 4 // (5 * each))
    unknown = replace(engine, settings=replace(engine.settings, cache_bytes=0))
    assert unknown._batch_tokens(5) == 8192


def test_draws_and_plain_forms_have_one_thread(bundle_directory, monkeypatch):
    cores = []

    def decoded(*words, **options):
        cores.append(options["settings"].cores)
        with torch_threads(1):  # two would wait for each other at each small tensor
            return decode_sentences(*words, **options)

    monkeypatch.setattr("glassformer.decoding.engine.decode_sentences", decoded)
    translator = Translator.load(bundle_directory, device="cpu")
    plain = Translator.load(bundle_directory, device="cpu", parts=PLAIN)
    with torch_threads(2):
        translator.translate(TEXTS)
        translator.translate(TEXTS, sampling=Sampling(seed=1))
        with capture(plain.model):
            plain.translate(TEXTS, beam=1)
    assert (cores[:2], {*cores[2:]}) == ([2, 1], {1})


def test_a_model_is_arranged_once_for_all_translations(bundle_directory, monkeypatch):
    made = []
    arranged = decoder._Arranged
    monkeypatch.setattr(decoder, "_Arranged", lambda model: made.append(model) or arranged(model))
    translator = Translator.load(bundle_directory, device="cpu")
    first = translator.translate(TEXTS, beam=1)
    assert translator.translate(TEXTS, beam=1) == first
    assert made == [translator.model]


@contextmanager
def entered():
    """The file and name of each Python function that this thread calls inside."""
    calls = set()
    before = sys.getprofile()
    sys.setprofile(lambda frame, *_: calls.add((frame.f_code.co_filename, frame.f_code.co_name)))
    try:
        yield calls
    finally:
        sys.setprofile(before)


def quick(calls):
    """Those of the fast twins."""
    return {
        name
        for file, name in calls
        if Path(file).parent.name == "fast" or name == "fused_attention"
    }


@pytest.mark.parametrize("beam", [1, 3])
def test_plain_forms_give_the_same_and_enter_no_fast_twin(bundle_directory, beam):
    translator = Translator.load(bundle_directory, device="cpu")
    plain = Translator.load(bundle_directory, device="cpu", parts=PLAIN)
    with torch_threads(1), entered() as calls:
        expected = translator.translate(TEXTS, beam=beam)
    assert {"likeliest_or_nan", "_current", "_attend"} <= quick(calls)

    with entered() as calls:
        found = plain.translate(TEXTS, beam=beam)

    assert quick(calls) == set()
    names = {name for _, name in calls}
    assert {"scaled_dot_product_attention", "best_tokens", "step"} <= names
    assert [one.text for one in found] == [one.text for one in expected]
    scores = [one.score for one in expected]
    assert [one.score for one in found] == pytest.approx(scores, abs=1e-4)


@pytest.mark.parametrize("field", ["greedy", "beam_search", "best_tokens", "decoder"])
def test_each_form_of_a_search_is_the_one_that_is_given(bundle_directory, field):
    """Both the beam of 1 and that of 3 run, so that each form has its turn."""
    calls = []
    form = getattr(PLAIN, field)

    def mine(*words, **options):
        calls.append(words)
        return form(*words, **options)

    translator = Translator.load(bundle_directory, parts=replace(PLAIN, **{field: mine}))
    expected = Translator.load(bundle_directory, parts=PLAIN)
    for beam in (1, 3):
        assert translator.translate(TEXTS, beam=beam) == expected.translate(TEXTS, beam=beam)
    assert calls


def test_plain_forms_are_in_float32(bundle_directory):
    with pytest.raises(UsageError, match="quantization 'bfloat16': only the fast decoder has it"):
        Translator.load(bundle_directory, quantization="bfloat16", parts=PLAIN)


def test_another_engine_has_its_own_forms(bundle_directory):
    with pytest.raises(UsageError, match="engine ctranslate2 has forms of its own: leave"):
        Translator.load(bundle_directory, engine="ctranslate2", parts=PLAIN)


def test_an_engine_of_other_weights_has_an_arrangement_of_its_own(bundle_directory):
    translator = Translator.load(bundle_directory, device="cpu")
    exact, rough = (
        torch_engine(translator.model, translator.tokenizers, parts)
        for parts in (FAST, in_bfloat16(FAST))
    )
    job, search = Job([[5, 6, 7]]), SearchOptions(beam=1)
    [[first]] = exact.decode(job, search)
    [[other]] = rough.decode(job, search)
    assert other.score != first.score
