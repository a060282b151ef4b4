"""The paired bootstrap: what is no difference, what is one, and whether it repeats."""

import json
import random

import pytest
import sacrebleu

from glassformer.significance import compare
from glassformer.support.errors import InputError, UsageError

WORDS = ["ein", "hund", "läuft", "über", "die", "wiese", "und", "bellt", "laut", "im", "haus"]
REFERENCES = [" ".join(random.Random(i).choices(WORDS, k=9)) for i in range(120)]


def spoilt(share: float, *, seed: int) -> list[str]:
    """The references with about this share of the words replaced."""
    draw = random.Random(seed)
    return [
        " ".join("falsch" if draw.random() < share else word for word in line.split())
        for line in REFERENCES
    ]


def test_a_system_compared_with_itself_shows_no_difference():
    output = spoilt(0.2, seed=1)

    result = compare(output, output, REFERENCES, samples=100)

    assert (result.bleu.p_value, result.chrf.p_value) == (1.0, 1.0)
    assert result.bleu.baseline == result.bleu.system
    assert result.bleu.baseline_interval == pytest.approx(result.bleu.system_interval, abs=2)


def test_a_clearly_better_system_has_a_small_p_value():
    result = compare(spoilt(0.4, seed=1), spoilt(0.1, seed=2), REFERENCES, samples=300)

    for metric in (result.bleu, result.chrf):
        assert metric.system > metric.baseline
        assert metric.p_value < 0.01


def test_two_equally_bad_systems_do_not_differ_significantly():
    result = compare(spoilt(0.2, seed=1), spoilt(0.2, seed=2), REFERENCES, samples=300)

    assert result.bleu.p_value > 0.05
    assert result.chrf.p_value > 0.05


def test_outputs_that_differ_without_a_difference_in_score_show_none():
    output = spoilt(0.2, seed=1)

    result = compare(output, [f"{line} " for line in output], REFERENCES, samples=50)

    assert result.bleu.p_value == 1.0


def test_an_interval_of_few_sentences_lies_within_0_and_100():
    few = [REFERENCES[0], "falsch", REFERENCES[2]]
    result = compare(few, few, REFERENCES[:3], samples=50)

    for low, high in (result.bleu.system_interval, result.chrf.baseline_interval):
        assert 0 <= low < high <= 100


def test_scores_are_sacrebleus_and_lie_in_their_intervals():
    baseline, system = spoilt(0.3, seed=1), spoilt(0.2, seed=2)

    bleu = compare(baseline, system, REFERENCES, samples=200).bleu

    assert bleu.baseline == sacrebleu.corpus_bleu(baseline, [REFERENCES]).score
    assert bleu.system == sacrebleu.corpus_bleu(system, [REFERENCES]).score
    assert bleu.baseline_interval[0] < bleu.baseline < bleu.baseline_interval[1]
    assert bleu.system_interval[0] < bleu.system < bleu.system_interval[1]


def test_the_same_comparison_gives_the_same_numbers():
    outputs = spoilt(0.25, seed=1), spoilt(0.2, seed=2)

    first = compare(*outputs, REFERENCES, samples=100)

    assert compare(*outputs, REFERENCES, samples=100) == first
    assert "bs:100|seed:" in first.bleu.signature


def test_a_comparison_can_be_read_and_parsed():
    result = compare(spoilt(0.3, seed=1), REFERENCES, REFERENCES, samples=50)

    assert f"difference {100 - result.bleu.baseline:+.2f}" in str(result)
    assert json.loads(json.dumps(result.as_dict()))["bleu"]["system"] == pytest.approx(100)


def test_lists_that_do_not_belong_together_are_refused():
    with pytest.raises(InputError, match="1 translation and 2 references"):
        compare(["a"], ["a", "b"], ["a", "b"])
    with pytest.raises(InputError, match="1 translation and 2 references"):
        compare(["a", "b"], ["a"], ["a", "b"])
    with pytest.raises(UsageError, match="samples is 0"):
        compare(["a"], ["a"], ["a"], samples=0)
