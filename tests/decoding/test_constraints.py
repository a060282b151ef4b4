"""Forced prefixes and forbidden ids, in all three searches."""

import itertools
from dataclasses import replace
from functools import partial

import pytest
import torch

from glassformer.decoding.beam import beam_search
from glassformer.decoding.constraints import ForcedPrefix, OutputRules
from glassformer.decoding.greedy import greedy
from glassformer.decoding.sampling import sample
from glassformer.decoding.vocabulary import Vocabulary
from tests.tables import every

EOS = 3
SEARCHES = [greedy, beam_search, partial(beam_search, n_best=5), sample, partial(sample, n_best=3)]
PREFIXES = [[5, 4, 9], [], [10], [4, 4, 4, 4]]


@pytest.mark.parametrize("search", SEARCHES)
def test_every_hypothesis_begins_with_its_prefix_and_counts_it(toy, search):
    language = toy(batch=4, vocab=11, seed=7, end=1.0)
    found = search(
        language.step,
        language.state(),
        OutputRules(torch.tensor([9, 9, 9, 9]), constraints=[ForcedPrefix(PREFIXES)]),
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
        OutputRules(torch.tensor([5, 5]), constraints=[ForcedPrefix(prefixes)]),
        beam=100,
        n_best=10,
    )
    for sentence, prefix in enumerate(prefixes):
        every = language.every_target(sentence, 5, 0.6)
        best = [h for h in every if list(h.tokens[: len(prefix)]) == prefix][:10]
        assert [h.tokens for h in found[sentence]] == [h.tokens for h in best]
        assert [h.score for h in found[sentence]] == pytest.approx([h.score for h in best])


def test_a_sentence_s_own_beginning_as_prefix_changes_nothing(toy):
    language = toy(batch=1, vocab=11, seed=7, end=-1.0)
    lengths = torch.tensor([9])
    plain = greedy(language.step, language.state(), OutputRules(lengths))
    prefix = plain[0][0].tokens[:4]
    assert len(prefix) == 4
    rules = OutputRules(lengths, constraints=[ForcedPrefix([prefix])])
    assert greedy(language.step, language.state(), rules) == plain


def test_a_prefix_as_long_as_the_maximum_is_all_there_is(toy):
    language = toy(batch=1, vocab=11, seed=7)
    ((h,),) = beam_search(
        language.step,
        language.state(),
        OutputRules(torch.tensor([4]), constraints=[ForcedPrefix([[5, 6, 7, 8]])]),
    )
    assert (h.tokens, h.finished) == ((5, 6, 7, 8), False)


class Without:
    """A constraint of one's own: ids that no sentence may hold."""

    def __init__(self, ids):
        self.ids = ids

    def __call__(self, log_probabilities, _tokens, _sentences):
        return log_probabilities.index_fill(1, torch.tensor(self.ids), -torch.inf)

    def select(self, _sentences):
        return self

    def needed(self, _sentence):
        return 0


@pytest.mark.parametrize("search", SEARCHES)
def test_forbidden_ids_do_not_come_beside_a_prefix(toy, search):
    language = toy(batch=4, vocab=11, seed=7)
    found = search(
        language.step,
        language.state(),
        OutputRules(
            torch.tensor([9, 9, 9, 9]),
            constraints=[Without([4, 9]), ForcedPrefix([[5], [], [10], [8]])],
        ),
    )
    assert not {4, 9} & {token for one in found for h in one for token in h.tokens}


def test_a_part_of_the_sentences_takes_its_part_of_the_rule():
    forced = ForcedPrefix([[4], [], [5, 6]])
    assert forced.select([2, 0]) == ForcedPrefix([[5, 6], [4]])
    assert [forced.needed(i) for i in range(3)] == [1, 0, 2]


@pytest.mark.parametrize(("wrong", "token"), [([0], 0), ([5, 2], 2), ([4, 4, -1], -1), ([3, 5], 3)])
def test_a_prefix_with_a_special_id_is_an_error(wrong, token):
    with pytest.raises(ValueError, match=f"prefix of sentence 1 holds the id {token}, which is"):
        ForcedPrefix([[5], wrong])


def test_a_prefix_outside_the_vocabulary_is_an_error(toy):
    language = toy(batch=1, vocab=7)
    with pytest.raises(ValueError, match=r"holds the id 7, but .* vocabulary has 7 ids"):
        greedy(
            language.step,
            language.state(),
            OutputRules(torch.tensor([3]), constraints=[ForcedPrefix([[7]])]),
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

    search(step, language.state(), OutputRules(torch.tensor([3])))
    assert seen
    assert not any(seen)


@pytest.mark.parametrize("search", SEARCHES)
def test_every_target_begins_with_the_vocabulary_s_prefix_for_certain(toy, search):
    language = toy(batch=4, vocab=11, seed=7, end=1.0)
    found = search(
        language.step,
        language.state(),
        OutputRules(torch.tensor([9, 9, 9, 2]), vocabulary=Vocabulary(prefix_ids=(5, 4))),
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
    rules = OutputRules(torch.tensor([9]), vocabulary=Vocabulary(prefix_ids=(5,)))
    for forced, tokens in (([5, 9], (5, 9)), ([9], ())):  # the other one is impossible
        given = replace(rules, constraints=[ForcedPrefix([forced])])
        [[found]] = beam_search(language.step, language.state(), given)
        assert found.tokens[:2] == tokens


@every("search", [greedy, partial(beam_search, beam=3, n_best=3), sample])
@every("prefix_ids", [(), (5,)])
def test_no_target_reads_as_empty(toy, search, prefix_ids):
    language = toy(batch=7, vocab=7, end=2.0)
    language.logits[..., 4] += 4  # white space is the most probable token, and then the end
    vocabulary = Vocabulary(prefix_ids=prefix_ids, blank_ids=frozenset({4, 6}))
    lengths = torch.full((7,), 9)
    found = search(language.step, language.state(), OutputRules(lengths, vocabulary=vocabulary))
    for hypothesis in itertools.chain(*found):
        first, second, *_ = [*hypothesis.tokens[len(prefix_ids) :], EOS]
        assert first == 5 or second == 5, hypothesis  # 5 is the only subword with letters
    assert any(target[0].tokens[len(prefix_ids)] == 4 for target in found)


def test_after_white_space_the_fast_form_gives_the_plain_one():
    rules = OutputRules(torch.tensor([9, 9]), Vocabulary(blank_ids=frozenset({4})))
    torch.manual_seed(1)
    logits, tokens, rows = torch.randn(2, 7), torch.tensor([[4], [5]]), torch.arange(2)
    values, ids = rules.best(logits, tokens, rows, count=2)
    expected = rules.log_probabilities(logits, tokens, rows).topk(2)
    assert values.equal(expected.values)
    assert ids.equal(expected.indices)
    assert expected.values.isfinite().all()
    assert rules.log_probabilities(logits, tokens, rows)[0, [3, 4]].isneginf().all()
    assert rules.log_probabilities(logits, tokens, rows)[1, [3, 4]].isfinite().all()


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.usefixtures("own_messages")
def test_a_state_of_more_rows_than_maximum_lengths_is_refused(search):
    class ThreeRows:
        def select(self, _rows):
            return self

    def step(_tokens, state):
        return torch.zeros(3, 7), state

    with pytest.raises(ValueError, match=r"logits of shape \(rows, vocab\) with 1 rows, not \(3"):
        search(step, ThreeRows(), OutputRules(torch.tensor([4])))


@pytest.mark.parametrize("count", [0, 1, 3])
def test_each_sentence_has_its_prefix(count):
    with pytest.raises(ValueError, match=f"^{count} prefixes for 2 sentences$"):
        OutputRules(torch.tensor([9, 9]), constraints=[ForcedPrefix([[5]] * count)])
