"""Forced prefixes and forbidden ids, in all three searches."""

from functools import partial

import pytest
import torch

from glassformer.decoding.beam import beam_search
from glassformer.decoding.constraints import Forbidden, ForcedPrefix
from glassformer.decoding.greedy import greedy
from glassformer.decoding.protocols import Vocabulary
from glassformer.decoding.sampling import sample

SEARCHES = [greedy, beam_search, partial(beam_search, n_best=5), sample, partial(sample, n_best=3)]
PREFIXES = [[5, 4, 9], [], [10], [4, 4, 4, 4]]


@pytest.mark.parametrize("search", SEARCHES)
def test_every_hypothesis_begins_with_its_prefix_and_counts_it(toy, search):
    language = toy(batch=4, vocab=11, seed=7, end=1.0)
    found = search(
        language.step,
        language.state(),
        max_lengths=torch.tensor([9, 9, 9, 9]),
        constraints=[ForcedPrefix(PREFIXES)],
    )
    for sentence, (prefix, hypotheses) in enumerate(zip(PREFIXES, found, strict=True)):
        assert hypotheses
        for h in hypotheses:
            assert list(h.tokens[: len(prefix)]) == prefix
            target = (*h.tokens, 3) if h.finished else h.tokens
            assert h.log_probability == pytest.approx(language.log_probability(sentence, target))


def test_a_wide_beam_finds_the_best_of_all_targets_with_the_prefix(toy):
    language = toy(batch=2, vocab=7, seed=7)
    prefixes = [[6, 4], [5]]
    found = beam_search(
        language.step,
        language.state(),
        max_lengths=torch.tensor([5, 5]),
        beam=100,
        n_best=10,
        constraints=[ForcedPrefix(prefixes)],
    )
    for sentence, prefix in enumerate(prefixes):
        every = language.every_target(sentence, 5, 0.6)
        best = [h for h in every if list(h.tokens[: len(prefix)]) == prefix][:10]
        assert [h.tokens for h in found[sentence]] == [h.tokens for h in best]
        assert [h.score for h in found[sentence]] == pytest.approx([h.score for h in best])


def test_a_sentence_s_own_beginning_as_prefix_changes_nothing(toy):
    language = toy(batch=1, vocab=11, seed=7, end=-1.0)
    call = partial(greedy, language.step, max_lengths=torch.tensor([9]))
    plain = call(language.state())
    prefix = plain[0][0].tokens[:4]
    assert len(prefix) == 4
    assert call(language.state(), constraints=[ForcedPrefix([prefix])]) == plain


def test_a_prefix_as_long_as_the_maximum_is_all_there_is(toy):
    language = toy(batch=1, vocab=11, seed=7)
    ((h,),) = beam_search(
        language.step,
        language.state(),
        max_lengths=torch.tensor([4]),
        constraints=[ForcedPrefix([[5, 6, 7, 8]])],
    )
    assert (h.tokens, h.finished) == ((5, 6, 7, 8), False)


@pytest.mark.parametrize("search", SEARCHES)
def test_forbidden_ids_do_not_come_beside_a_prefix(toy, search):
    language = toy(batch=4, vocab=11, seed=7)
    found = search(
        language.step,
        language.state(),
        max_lengths=torch.tensor([9, 9, 9, 9]),
        constraints=[Forbidden([4, 9]), ForcedPrefix([[5], [], [10], [8]])],
    )
    assert not {4, 9} & {token for one in found for h in one for token in h.tokens}


def test_a_part_of_the_sentences_takes_its_part_of_the_rule():
    forced = ForcedPrefix([[4], [], [5, 6]])
    assert forced.select([2, 0]) == ForcedPrefix([[5, 6], [4]])
    assert [forced.needed(i) for i in range(3)] == [1, 0, 2]
    assert Forbidden([4]).select([2, 0]) == Forbidden([4])


@pytest.mark.parametrize(("wrong", "token"), [([5, 3], 3), ([0], 0), ([4, 4, -1], -1)])
def test_a_prefix_with_a_special_id_is_an_error(wrong, token):
    with pytest.raises(ValueError, match=f"prefix of sentence 1 holds the id {token}, which is"):
        ForcedPrefix([[5], wrong])


def test_a_prefix_outside_the_vocabulary_is_an_error(toy):
    language = toy(batch=1, vocab=7)
    with pytest.raises(ValueError, match=r"holds the id 7, but .* vocabulary has 7 ids"):
        greedy(
            language.step,
            language.state(),
            max_lengths=torch.tensor([3]),
            constraints=[ForcedPrefix([[7]])],
        )


@pytest.mark.parametrize("search", [greedy, beam_search, sample])
def test_a_search_records_no_gradient(toy, search):
    language = toy(batch=1, vocab=7)
    language.logits.requires_grad_()
    seen = []

    def step(tokens, state):
        logits, state = language.step(tokens, state)
        seen.append(logits.requires_grad)
        return logits, state

    search(step, language.state(), max_lengths=torch.tensor([3]))
    assert seen
    assert not any(seen)


@pytest.mark.parametrize("search", SEARCHES)
def test_every_target_begins_with_the_vocabulary_s_prefix_for_certain(toy, search):
    language = toy(batch=4, vocab=11, seed=7, end=1.0)
    found = search(
        language.step,
        language.state(),
        max_lengths=torch.tensor([9, 9, 9, 2]),
        vocabulary=Vocabulary(prefix_ids=(5, 4)),
    )
    for sentence, hypotheses in enumerate(found):
        assert hypotheses
        for h in hypotheses:
            assert h.tokens[:2] == (5, 4)
            target = (*h.tokens, 3) if h.finished else h.tokens
            rest = language.log_probability(sentence, target)
            rest -= language.log_probability(sentence, (5, 4))
            assert h.log_probability == pytest.approx(rest)
            assert sentence == 3 or len(h.tokens) > 2  # no target is empty


def test_a_prefix_of_one_sentence_begins_with_the_vocabulary_s(toy):
    language = toy(batch=1, vocab=11, seed=7, end=1.0)
    call = partial(
        beam_search,
        language.step,
        max_lengths=torch.tensor([9]),
        vocabulary=Vocabulary(prefix_ids=(5,)),
    )
    [[found]] = call(language.state(), constraints=[ForcedPrefix([[5, 9]])])
    assert found.tokens[:2] == (5, 9)
    [[impossible]] = call(language.state(), constraints=[ForcedPrefix([[9]])])
    assert impossible.tokens == ()
