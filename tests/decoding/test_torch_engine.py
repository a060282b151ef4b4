"""What the translator's own engine can be told: a shortlist, and bfloat16."""

import dataclasses

import pytest
import torch

from glassformer.bundle import save_bundle
from glassformer.decoding.batched import decode_sentences
from glassformer.decoding.engine import Job, Sampling, SearchOptions
from glassformer.errors import InputError, UsageError
from glassformer.inspection.capture import capture
from glassformer.threads import torch_threads
from glassformer.translator import Translator

TEXTS = ["A dog runs.", "An old hat.", "", "Two men sit in the snow."]


@pytest.fixture(scope="module")
def listed(bundle_directory, tmp_path_factory):
    """The test bundle with a shortlist that allows each source token five target tokens."""
    bundle = Translator.load(bundle_directory, device="cpu").bundle
    vocab = bundle.source_tokenizer.vocab_size
    draw = torch.Generator().manual_seed(3)
    shortlist = {
        "likely": torch.randint(4, 300, (vocab, 5), generator=draw),
        "frequent": torch.tensor([40, 41]),
    }
    directory = tmp_path_factory.mktemp("listed") / "en-de"
    save_bundle(dataclasses.replace(bundle, shortlist=shortlist), directory)
    return directory


def test_only_the_shortlists_tokens_are_said(listed):
    short = Translator.load(listed, device="cpu", shortlist=True)
    table, end = short.bundle.shortlist, short.target_tokenizer.eos_id
    for text in TEXTS[:2]:
        ids = short.source_tokenizer.encode(text)
        # A sentence alone, for those of a batch share their candidates.
        found = next(short._torch_engine.decode([Job([ids])], SearchOptions(beam=3, n_best=3)))
        allowed = {*table["likely"][[*ids, end]].flatten().tolist(), 40, 41}
        assert len(found[0]) == 3
        assert all(set(one.tokens) <= allowed for one in found[0])
    assert short.translate(TEXTS) != Translator.load(listed, device="cpu").translate(TEXTS)


def test_a_forced_beginning_may_hold_any_token(listed):
    short = Translator.load(listed, device="cpu", shortlist=True)

    [found] = short.translate(["A dog runs."], prefixes=["Ein Hund"])

    assert found.text.startswith("Ein Hund")


def test_without_a_shortlist_it_is_refused(bundle_directory):
    with pytest.raises(InputError, match="this bundle has no shortlist; train with --shortlist"):
        Translator.load(bundle_directory, shortlist=True)
    with pytest.raises(UsageError, match="shortlist: only engine torch has one"):
        Translator.load(bundle_directory, engine="ctranslate2", shortlist=True)


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
        cores.append(options["cores"])
        return decode_sentences(*words, **options)

    monkeypatch.setattr("glassformer.decoding.engine.decode_sentences", decoded)
    translator = Translator.load(bundle_directory, device="cpu")
    with torch_threads(2):
        translator.translate(TEXTS)
        translator.translate(TEXTS, sampling=Sampling(seed=1))
        with capture(translator.model):
            translator.translate(TEXTS)
    assert cores == [2, 1, 1]


def test_a_model_is_arranged_once_and_anew_when_it_has_changed(bundle_directory, monkeypatch):
    translator = Translator.load(bundle_directory, device="cpu")
    model, made = translator.model, []
    arranged = type(model).for_decoding

    def counted(model, *weights):
        made.append(arranged(model, *weights))
        return made[-1]

    monkeypatch.setattr(type(model), "for_decoding", counted)
    first = translator.translate(TEXTS)
    assert translator.translate(TEXTS) == first
    assert len(made) == 1
    with torch.no_grad():
        model.output_weight.neg_()
    assert translator.translate(TEXTS) != first
    assert len(made) == 2
    hook = model.encoder.register_forward_pre_hook(lambda *_: None)
    translator.translate(TEXTS)
    assert {*made[2:]} == {model}
    hook.remove()
    with torch.no_grad():
        model.output_weight.neg_()
    assert translator.translate(TEXTS) == first


def test_an_engine_of_other_weights_has_an_arrangement_of_its_own(bundle_directory):
    exact = Translator.load(bundle_directory, device="cpu")._torch_engine
    jobs, search = [Job([[5, 6, 7]])], SearchOptions(beam=1)
    [[[first]]] = exact.decode(jobs, search)
    [[[other]]] = dataclasses.replace(exact, weights="bfloat16").decode(jobs, search)
    assert other.score != first.score
