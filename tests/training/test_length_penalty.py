"""The length penalty is the one whose translations of the validation pairs score best."""

from types import SimpleNamespace

import pytest
from sacrebleu.metrics.bleu import BLEU

from glassformer.bundle import load_bundle
from glassformer.config import LENGTH_PENALTY
from glassformer.data.corpus import Pair
from glassformer.data.preprocessing import Preprocessing
from glassformer.data.subword_training import train_tokenizer
from glassformer.decoding import engine as module
from glassformer.decoding.protocols import Hypothesis
from glassformer.evaluation import new_metric
from glassformer.parts import FAST
from glassformer.text_engine import TextEngine
from glassformer.training.scorer import best_penalty
from glassformer.training.time_limit import Deadline

LONG, SHORT = "a b c d e f g h", "a b c d"


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer([LONG], vocab_size=300)


@pytest.fixture
def engine(bundle_directory, tokenizer):
    model = load_bundle(bundle_directory).model
    both = (tokenizer, tokenizer)
    return TextEngine.of(model, both, FAST, preprocessing=Preprocessing())


def hypotheses_of(tokenizer):
    """A short target that is more probable, and a long one whose tokens are."""
    targets = [(SHORT, -5.0), (LONG, -6.9), (LONG + " a b c d e f g h" * 3, -0.1)]
    return [
        Hypothesis(
            tuple(tokenizer.encode(text)), 0.0, log_probability, finished=log_probability < -1
        )
        for text, log_probability in targets
    ]


@pytest.mark.parametrize("metric", ["bleu", "chrf"])
@pytest.mark.parametrize(("reference", "expected"), [(SHORT, 0.6), (LONG, 1.0)])
def test_it_ranks_what_was_found_anew(tokenizer, engine, monkeypatch, reference, expected, metric):
    asked = []

    def decoded(_, sources, **options):
        asked.append(options["search"].keywords)
        return [hypotheses_of(tokenizer) for _ in sources]

    monkeypatch.setattr(module, "decode_sentences", decoded)
    pairs = [Pair("a", reference), Pair("b", reference)]
    alpha = best_penalty(pairs, engine, beam=4, metric=new_metric(metric, None))

    assert alpha == expected
    assert [(options["beam"], options["n_best"]) for options in asked] == [(4, 4)]


@pytest.mark.parametrize(("gain", "expected"), [(0.19, 0.6), (0.21, 1.0)])
def test_a_small_gain_moves_nothing(tokenizer, engine, monkeypatch, gain, expected):
    class Bleu:
        def corpus_score(self, texts, _):
            return SimpleNamespace(score=30 + gain * (texts[0] == LONG))

    monkeypatch.setattr(
        module,
        "decode_sentences",
        lambda _, sources, **__: [hypotheses_of(tokenizer)] * len(sources),
    )
    assert best_penalty([Pair("a", LONG)], engine, beam=4, metric=Bleu()) == expected


def test_greedy_search_has_nothing_to_choose_from(engine, monkeypatch):
    monkeypatch.setattr(module, "decode_sentences", None)
    pairs = [Pair("a", LONG)]

    assert best_penalty(pairs, engine, beam=1, metric=BLEU()) == LENGTH_PENALTY


def test_in_little_time_a_part_of_the_pairs_decides(tokenizer, engine, monkeypatch):
    sources = []

    def decoded(_, batch, **__):
        sources.extend(batch)
        return [hypotheses_of(tokenizer) for _ in batch]

    monkeypatch.setattr(module, "decode_sentences", decoded)
    pairs = [Pair("a", LONG)] * 100

    assert best_penalty(pairs, engine, beam=4, metric=BLEU(), deadline=Deadline(0.0)) == 1.0
    assert len(sources) == 16
