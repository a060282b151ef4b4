"""Glossary phrases in beam search, against the search of all targets."""

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from glassformer.decoding.beam import beam_search
from glassformer.decoding.constraints import ForcedPrefix
from glassformer.decoding.glossary import Glossary
from glassformer.decoding.greedy import greedy


def terms(phrases):
    """A term of one phrase for each phrase."""
    return [[[phrase] for phrase in sentence] for sentence in phrases]


def holds(target, phrase):
    """Whether the ids of the phrase stand together somewhere in the target."""
    n = len(phrase)
    return any(list(target[i : i + n]) == list(phrase) for i in range(len(target) - n + 1))


def least_likely(language, sentence, count):
    """A phrase that the model does not like: the rarest token after the rarest token."""
    phrase = []
    while len(phrase) < count:
        scores = language.logits[sentence, :, phrase[-1] if phrase else 2, 4:].mean(0)
        phrase.append(4 + int(scores.argmin()))
    return phrase


def test_a_wide_beam_finds_the_best_of_all_targets_with_the_phrases(toy):
    language = toy(batch=3, vocab=7, seed=7)
    phrases = [[[6, 4]], [[5], [6, 6]], [[4, 4, 5]]]
    found = beam_search(
        language.step,
        language.state(),
        max_lengths=torch.tensor([5, 5, 5]),
        beam=300,
        n_best=10,
        constraints=[Glossary(terms(phrases))],
    )
    for sentence, wanted in enumerate(phrases):
        every = language.every_target(sentence, 5, 0.6)
        best = [h for h in every if all(holds(h.tokens, one) for one in wanted)][:10]
        assert [h.tokens for h in found[sentence] if h.finished] == [h.tokens for h in best]
        scores = [h.score for h in found[sentence] if h.finished]
        assert scores == pytest.approx([h.score for h in best])


@given(seed=st.integers(0, 10**6), beam=st.sampled_from([1, 2, 5]))
@example(seed=654, beam=2)  # what holds all phrases is less probable than all that comes else
def test_unlikely_phrases_come_in_every_finished_target(toy, seed, beam):
    language = toy(batch=2, vocab=31, seed=seed, end=2.0)
    phrases = [[least_likely(language, 0, 3), [7]], [least_likely(language, 1, 2)]]
    found = beam_search(
        language.step,
        language.state(),
        max_lengths=torch.tensor([12, 12]),
        beam=beam,
        n_best=beam,
        constraints=[Glossary(terms(phrases))],
    )
    for sentence, wanted in enumerate(phrases):
        assert all(holds(found[sentence][0].tokens, one) for one in wanted)
        for h in found[sentence]:
            assert not h.finished or all(holds(h.tokens, one) for one in wanted)
            target = (*h.tokens, 3) if h.finished else h.tokens
            assert h.log_probability == pytest.approx(language.log_probability(sentence, target))


def test_any_phrase_of_a_term_will_do_and_the_best_of_all_targets_is_found(toy):
    language = toy(batch=3, vocab=7, seed=7)
    wanted = [[[[6, 4], [5, 5]]], [[[5], [4, 4]], [[6, 6]]], [[[4, 4, 5], [6]], [[4], [5]]]]
    found = beam_search(
        language.step,
        language.state(),
        max_lengths=torch.tensor([5, 5, 5]),
        beam=300,
        n_best=10,
        constraints=[Glossary(wanted)],
    )
    for sentence, alternatives in enumerate(wanted):
        every = language.every_target(sentence, 5, 0.6)
        best = [
            h
            for h in every
            if all(any(holds(h.tokens, one) for one in phrases) for phrases in alternatives)
        ][:10]
        assert [h.tokens for h in found[sentence] if h.finished] == [h.tokens for h in best]


def whole_word(target, phrase, first, last):
    """Whether the phrase stands somewhere with no letter joined to a letter at its edges."""
    n = len(phrase)
    return any(
        list(target[i : i + n]) == list(phrase)
        and not (i > 0 and target[i - 1] in last and phrase[0] in first)
        and not (i + n < len(target) and phrase[-1] in last and target[i + n] in first)
        for i in range(len(target) - n + 1)
    )


@given(seed=st.integers(0, 10**6), beam=st.sampled_from([2, 5, 300]))
def test_a_phrase_stands_as_whole_words_in_every_finished_target(toy, seed, beam):
    language = toy(batch=1, vocab=8, seed=seed, end=1.0)
    phrase, first, last = [6, 5], {5, 6}, {5, 7}
    [found] = beam_search(
        language.step,
        language.state(),
        max_lengths=torch.tensor([5 if beam == 300 else 12]),
        beam=beam,
        n_best=2,
        constraints=[Glossary([[[phrase]]], letters=first, closing=last)],
    )
    finished = [h.tokens for h in found if h.finished]
    assert whole_word(found[0].tokens, phrase, first, last)
    assert all(whole_word(tokens, phrase, first, last) for tokens in finished)
    if beam == 300:
        every = language.every_target(0, 5, 0.6)
        best = [h.tokens for h in every if whole_word(h.tokens, phrase, first, last)]
        assert finished == best[:2]


def test_sentences_without_phrases_are_as_without_a_glossary(toy):
    language = toy(batch=3, vocab=11, seed=1, end=1.0)
    call = {"max_lengths": torch.tensor([9, 9, 9]), "n_best": 3}
    plain = beam_search(language.step, language.state(), **call)
    other = beam_search(
        language.step, language.state(), **call, constraints=[Glossary([[], [[[9, 4]]], []])]
    )
    assert other[0] == plain[0]
    assert other[2] == plain[2]
    assert other[1] != plain[1]


def test_a_prefix_and_a_glossary_go_together(toy):
    language = toy(batch=1, vocab=11, seed=1, end=1.0)
    ((h,),) = beam_search(
        language.step,
        language.state(),
        max_lengths=torch.tensor([9]),
        constraints=[ForcedPrefix([[5, 6]]), Glossary([[[[6, 9]], [[10]]]])],
    )
    assert h.tokens[:2] == (5, 6)
    assert holds(h.tokens, [6, 9])
    assert holds(h.tokens, [10])
    assert h.finished


def test_greedy_does_not_end_without_the_phrases(toy):
    language = toy(batch=1, vocab=11, seed=1, end=50.0)
    call = {"max_lengths": torch.tensor([60])}
    assert greedy(language.step, language.state(), **call)[0][0].tokens == (7,)
    ((h,),) = greedy(language.step, language.state(), **call, constraints=[Glossary([[[[9]]]])])
    assert holds(h.tokens, [9]) == h.finished


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ([], 0),
        ([4, 4], 2),  # the beginning of the first
        ([4, 4, 4], 2),  # still: its last two tokens are that beginning
        ([4, 4, 4, 5], 3 + 0),  # the first is there
        ([4, 4, 6], 1),  # broken off; the second has begun
        ([6, 7, 4, 4, 5], 5),
    ],
)
def test_progress_counts_phrases_and_the_longest_beginning(target, expected):
    assert Glossary(terms([[[4, 4, 5], [6, 7], [6, 7]]])).progress(0, target) == expected
    assert Glossary(terms([[[4, 4, 5], [6, 7], [6, 7]]])).needed(0) == 5


def test_a_part_of_the_sentences_takes_its_part_of_the_phrases():
    glossary = Glossary([[[[4]]], [], [[[5, 6], [8]], [[7]]]], letters={7})
    expected = Glossary([[[[5, 6], [8]], [[7]]], [[[4]]]], letters={7})
    assert glossary.select([2, 0]) == expected
    assert [glossary.needed(i) for i in range(3)] == [1, 0, 3]
