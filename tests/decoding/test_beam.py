"""Beam search against the search of all targets, against greedy, and its own promises."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from glassformer.config import MOST_LENGTH_PENALTY
from glassformer.decoding.beam import beam_search, penalty
from glassformer.decoding.constraints import ForcedPrefix, OutputRules
from glassformer.decoding.fast.beam import beam_search as beam_search_of_batch
from glassformer.decoding.greedy import greedy
from glassformer.decoding.protocols import IMPOSSIBLE
from glassformer.decoding.sampling import sample
from tests.tables import every

BOS, EOS = 2, 3


def same(one, other):
    """The same targets, with the same figures but for rounding."""
    assert [h.tokens for h in one] == [h.tokens for h in other]
    assert [h.finished for h in one] == [h.finished for h in other]
    assert [h.score for h in one] == pytest.approx([h.score for h in other], rel=1e-12)
    assert [h.log_probability for h in one] == pytest.approx([h.log_probability for h in other])


def lengths(*values):
    return torch.tensor(values)


@pytest.mark.parametrize("alpha", [0.0, 0.6, 2.0])
def test_a_wide_beam_finds_what_the_search_of_all_targets_finds(toy, alpha):
    language = toy(batch=3, vocab=7, seed=1)
    maxima = [1, 3, 5]
    found = beam_search(
        language.step,
        language.state(),
        OutputRules(lengths(*maxima)),
        beam=200,
        length_penalty=alpha,
        n_best=20,
    )
    for sentence, (hypotheses, longest) in enumerate(zip(found, maxima, strict=True)):
        best = language.every_target(sentence, longest, alpha)[:20]
        same([h for h in hypotheses if h.finished], best)


@every("alpha", [0.0, 0.6, 1.5, 4.0])
@every("end", [0.0, 3.0])
def test_leaving_early_loses_nothing(toy, alpha, end):
    """With a beam for every prefix, only the bound can end the search before the last step."""
    language = toy(batch=7, vocab=6, seed=5, end=end)
    found = beam_search(
        language.step,
        language.state(),
        OutputRules(torch.full((7,), 7)),
        beam=130,
        length_penalty=alpha,
    )
    for sentence, hypotheses in enumerate(found):
        same(hypotheses, language.every_target(sentence, 7, alpha)[:1])


@pytest.mark.parametrize("alpha", [0.0, 0.6])
def test_sure_sentences_end_long_before_the_maximum_length(toy, alpha):
    language = toy(batch=4, vocab=6, seed=5, end=5.0)
    language.logits[:, 0, BOS, EOS] = -math.inf
    state = language.state()
    beam_search(
        language.step, state, OutputRules(lengths(40, 40, 40, 40)), beam=130, length_penalty=alpha
    )
    assert len(state.seen) < 20  # of 160


def test_an_end_among_the_best_takes_no_place_in_the_beam():
    """Three of the four choices after 7 can go on, and the last of them is the best at last."""
    table = torch.full((8, 8), 0.125)
    table[7] = torch.tensor([0, 0, 0, 0.3, 0.25, 0.23, 0.22, 0])
    table[2], table[6] = torch.eye(8)[7], torch.eye(8)[3]

    class Nothing:
        def select(self, _rows):
            return self

    ((best,),) = beam_search(
        lambda tokens, state: (table[tokens].log(), state),
        Nothing(),
        OutputRules(lengths(4)),
        beam=3,
        length_penalty=4.0,
    )
    assert best.tokens == (7, 6)
    assert best.score == pytest.approx(math.log(0.22) / (8 / 6) ** 4)


@given(
    seed=st.integers(0, 10**6),
    vocab=st.sampled_from([5, 7, 11]),
    alpha=st.sampled_from([0.0, 0.6, 3.0]),
    end=st.sampled_from([-4.0, 0.0, 2.0]),
)
def test_a_beam_of_one_is_greedy(toy, seed, vocab, alpha, end):
    language = toy(batch=3, vocab=vocab, seed=seed, end=end)
    rules = OutputRules(lengths(1, 5, 13))
    plain = greedy(language.step, language.state(), rules)
    beam = beam_search(language.step, language.state(), rules, beam=1, length_penalty=alpha)
    for (one,), (other,) in zip(plain, beam, strict=True):
        assert one.tokens == other.tokens
        assert one.finished == other.finished
        assert one.log_probability == other.log_probability


@given(order=st.permutations(range(7)), beam=st.sampled_from([1, 2, 5]))
def test_a_sentence_s_answer_does_not_depend_on_its_batch(toy, order, beam):
    language = toy(batch=7, vocab=11, seed=2, end=1.0)
    maxima = [2, 3, 5, 7, 11, 13, 17]
    found = beam_search(
        language.step,
        language.state(order),
        OutputRules(lengths(*(maxima[i] for i in order))),
        beam=beam,
        n_best=beam,
    )
    for sentence, hypotheses in zip(order, found, strict=True):
        (alone,) = beam_search(
            language.step,
            language.state([sentence]),
            OutputRules(lengths(maxima[sentence])),
            beam=beam,
            n_best=beam,
        )
        assert hypotheses == alone


def test_a_wider_beam_repairs_what_greedy_misses(toy):
    language = toy(batch=13, vocab=11, seed=3, end=1.0)
    totals = [
        sum(
            hypotheses[0].score
            for hypotheses in beam_search(
                language.step, language.state(), OutputRules(lengths(*[9] * 13)), beam=beam
            )
        )
        for beam in (1, 3, 31)
    ]
    assert totals[0] < totals[1] <= totals[2]


def test_figures_are_the_model_s_and_the_best_comes_first(toy):
    language = toy(batch=5, vocab=13, seed=11, end=1.0)
    found = beam_search(
        language.step, language.state(), OutputRules(lengths(*[8] * 5)), beam=5, n_best=5
    )
    for sentence, hypotheses in enumerate(found):
        scores = [h.score for h in hypotheses]
        assert len(set(hypotheses)) == len(hypotheses) == 5
        assert scores == sorted(scores, reverse=True)
        for h in hypotheses:
            target = (*h.tokens, 3) if h.finished else h.tokens
            expected = language.log_probability(sentence, target)
            assert h.log_probability == pytest.approx(expected)
            assert h.score == pytest.approx(expected / ((5 + len(target)) / 6) ** 0.6)
            assert not {0, 1, 2, 3} & set(h.tokens)


def test_a_sentence_that_never_ends_is_cut(toy):
    language = toy(batch=2, vocab=7, seed=4, end=-math.inf)
    found = beam_search(
        language.step, language.state(), OutputRules(lengths(3, 6)), beam=4, n_best=3
    )
    assert [[len(h.tokens) for h in one] for one in found] == [[3] * 3, [6] * 3]
    assert not any(h.finished for one in found for h in one)
    for h in found[1]:
        assert h.log_probability == pytest.approx(language.log_probability(1, h.tokens))
        assert h.score == pytest.approx(h.log_probability / (11 / 6) ** 0.6)


def test_finished_targets_come_before_cut_ones(toy):
    """Three tokens of a vocabulary of one: 'a', 'aa' can end; 'aaa' is cut."""
    language = toy(batch=1, vocab=5, seed=0, end=-9.0)
    (found,) = beam_search(
        language.step, language.state(), OutputRules(lengths(3)), beam=5, n_best=5
    )
    assert [h.finished for h in found] == [True, True, False]
    assert found[2].tokens == (4, 4, 4)
    assert found[2].score > found[0].score


@pytest.mark.parametrize("search", [greedy, beam_search])
def test_a_dead_end_gives_the_impossible_hypothesis(toy, search):
    language = toy(batch=2, vocab=7, seed=4)
    language.logits[1, :, 4:] = -math.inf  # nothing follows an ordinary token
    first, second = search(language.step, language.state(), OutputRules(lengths(5, 5)))
    assert second == [IMPOSSIBLE]
    alone = language.state([1])
    assert search(language.step, alone, OutputRules(lengths(500))) == [second]
    assert len(alone.seen) == 2  # it leaves where nothing can follow
    assert first[0].log_probability > -math.inf


def test_only_possible_targets_come_back(toy):
    language = toy(batch=1, vocab=11, seed=6)
    language.logits[..., 5:] = -math.inf  # only the token 4 and the end are possible
    (found,) = beam_search(
        language.step, language.state(), OutputRules(lengths(3)), beam=11, n_best=11
    )
    assert sorted(h.tokens for h in found) == [(4,), (4, 4), (4, 4, 4)]
    assert all(h.log_probability > -math.inf for h in found)


class Steps:
    """A state that counts the steps."""

    def __init__(self, number=0):
        self.number = number

    def select(self, _rows):
        return self


@every("beam", range(1, 11))
def test_improbable_ends_do_not_crowd_out_a_sure_target(beam):
    """Each next token of 4 5 4 5 4 5 is sure, and at each step the end has the second place."""
    right = [4, 5, 4, 5, 4, 5, EOS]

    def step(tokens, steps):
        probability = torch.full((len(tokens), 6), 1e-6)
        probability[:, EOS] = 1e-5
        probability[:, right[min(steps.number, 6)]] = 1 - 1.5e-5
        return probability.log(), Steps(steps.number + 1)

    ((best,),) = beam_search(step, Steps(), OutputRules(lengths(56)), beam=beam)
    assert best.tokens == (4, 5, 4, 5, 4, 5)


@pytest.mark.parametrize(("beam", "steps"), [(1, 2), (2, 3), (3, 3)])
def test_enough_ends_and_a_leading_one_end_a_search(beam, steps):
    """Even if a high length penalty would let a far longer target win."""
    reached = []

    def step(tokens, steps):
        reached.append(steps.number)
        probability = torch.full((len(tokens), 6), 0.01)
        probability[:, 4] = 0.36
        probability[:, EOS] = 0.6
        return probability.log(), Steps(steps.number + 1)

    ((best,),) = beam_search(
        step, Steps(), OutputRules(lengths(56)), beam=beam, length_penalty=MOST_LENGTH_PENALTY
    )
    assert best.finished
    assert len(reached) == steps


@every("search", [greedy, beam_search, sample])
@every("alpha", [0.0, 0.6])
def test_no_target_is_empty(toy, search, alpha):
    """Though the end is by far the most probable first token."""
    language = toy(batch=5, vocab=7, seed=2, end=9.0)
    more = {"length_penalty": alpha, "n_best": 5} if search is beam_search else {}
    found = search(language.step, language.state(), OutputRules(lengths(1, 2, 3, 5, 7)), **more)
    assert all(h.tokens for hypotheses in found for h in hypotheses)
    assert any(h.finished for hypotheses in found for h in hypotheses)


def test_a_forced_prefix_may_be_the_whole_target(toy):
    language = toy(batch=1, vocab=7, seed=2, end=30.0)
    for search in (greedy, beam_search, sample):
        rules = [ForcedPrefix([[5]])]
        ((best, *_),) = search(
            language.step, language.state(), OutputRules(lengths(9), constraints=rules)
        )
        assert best.tokens == (5,)


def test_an_empty_batch_gives_an_empty_answer(toy):
    language = toy(batch=1, vocab=7)
    nobody = torch.empty(0, dtype=torch.int64)
    assert beam_search(language.step, language.state([]), OutputRules(nobody)) == []
    assert greedy(language.step, language.state([]), OutputRules(nobody)) == []


def test_half_precision_logits_are_added_up_in_float32(toy):
    language = toy(batch=1, vocab=7, seed=1, end=-9.0)
    language.logits = language.logits.bfloat16()
    (found,) = beam_search(language.step, language.state(), OutputRules(lengths(40)), beam=2)
    language.logits = language.logits.double()
    expected = language.log_probability(0, found[0].tokens + (3,) * found[0].finished)
    assert found[0].log_probability == pytest.approx(expected, rel=1e-6)


def test_the_penalty_is_that_of_wu_et_al():
    assert penalty(7, 0.6) == pytest.approx(2**0.6)
    assert torch.equal(penalty(torch.tensor([1, 7]), 1.0), torch.tensor([1.0, 2.0]))


@every(
    ("options", "message"),
    [
        ({"beam": 0}, "beam must be at least 1, not 0"),
        ({"beam": 2, "n_best": 3}, "n_best must be from 1 to the beam of 2, not 3"),
        ({"n_best": 0}, "n_best must be from 1 to the beam of 5, not 0"),
        ({"length_penalty": -0.1}, "length_penalty must be from 0 to 10, not -0.1"),
        ({"length_penalty": math.inf}, "length_penalty must be from 0 to 10, not inf"),
        ({"length_penalty": math.nan}, "length_penalty must be from 0 to 10, not nan"),
    ],
)
@pytest.mark.usefixtures("own_messages")
def test_a_wrong_parameter_is_named(toy, options, message):
    language = toy(batch=2, vocab=7)
    for search in (beam_search, beam_search_of_batch):
        with pytest.raises(ValueError, match=message):
            search(language.step, language.state(), OutputRules(lengths(3, 3)), **options)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lengths(2, 0), "every maximum length must be at least 1, not 0"),
        (torch.tensor(3.0), r"one length a sentence, not torch.float32 of shape"),
    ],
)
@pytest.mark.usefixtures("own_messages")
def test_wrong_maximum_lengths_are_named(wrong, message):
    with pytest.raises(ValueError, match=message):
        OutputRules(wrong)


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
def test_logits_that_are_no_numbers_are_an_error(toy, wrong):
    language = toy(batch=3, vocab=7)
    language.logits[1, :, 2, 5] = wrong
    rules = OutputRules(lengths(3, 3, 3))
    for search, row in ((greedy, 1), (beam_search_of_batch, 1), (beam_search, 0)):
        with pytest.raises(ValueError, match=rf"NaN or \+inf as logits in rows \[{row}\]"):
            search(language.step, language.state(), rules)


@pytest.mark.usefixtures("own_messages")
def test_logits_of_another_shape_are_an_error(toy):
    language = toy(batch=3, vocab=7)

    def step(tokens, state):
        logits, state = language.step(tokens, state)
        return logits[:, None], state

    rules = OutputRules(lengths(3, 3, 3))
    for search, rows in ((greedy, 3), (beam_search_of_batch, 3), (beam_search, 1)):
        with pytest.raises(ValueError, match=rf"with {rows} rows, not \({rows}, 1, 7\)"):
            search(step, language.state(), rules)
