"""Greedy search and the KV cache as people write them: right ones pass, wrong ones are named."""

from types import SimpleNamespace

import pytest
import torch

from glassformer.decoding.protocols import Hypothesis
from glassformer.tools.learn.check import measure
from glassformer.tools.learn.judge import Judge
from glassformer.tools.learn.lesson import lesson


def verdict(hole, solution):
    judge = Judge.of(lesson("greedy"), hole)
    return judge.verdict(measure(judge.probes, solution))


def searched(function):
    return verdict("greedy", SimpleNamespace(greedy=function))


def row_after_row(step, state, rules):
    """Right: each row alone, with a state of its own."""
    out = []
    for row in rules.sentences():
        own, last, target, total = state.select(row[None]), rules.start(1), [], 0.0
        for _ in range(rules.max_lengths[row]):
            logits, own = step(last, own)
            tokens = torch.tensor([target], dtype=torch.int64)
            allowed = rules.log_probabilities(logits, tokens, row[None])[0].tolist()
            token = max(range(len(allowed)), key=lambda j: allowed[j])
            total, last, target = total + allowed[token], torch.tensor([token]), [*target, token]
            if token == rules.vocabulary.eos_id:
                break
        ended = target[-1] == rules.vocabulary.eos_id
        out.append([Hypothesis(tuple(target[:-1] if ended else target), total, total, ended)])
    return out


def leaving(step, state, rules):
    """Right: rows that end leave the batch; the sums are Python's."""
    rows, last = rules.sentences(), rules.start(len(rules.max_lengths))
    tokens, totals, found = torch.empty(len(rows), 0, dtype=torch.int64), [0.0] * len(rows), {}
    while len(rows):
        logits, state = step(last, state)
        log_probability, best = rules.best(logits, tokens, rows, count=1)
        tokens, last, stay = torch.cat([tokens, best], 1), best.squeeze(1), []
        for place, row in enumerate(rows.tolist()):
            totals[row] += log_probability[place].item()
            *before, newest = tokens[place].tolist()
            if newest == rules.vocabulary.eos_id:
                found[row] = [Hypothesis(tuple(before), totals[row], totals[row], True)]
            elif len(before) + 1 == rules.max_lengths[row]:
                found[row] = [Hypothesis((*before, newest), totals[row], totals[row], False)]
            else:
                stay.append(place)
        rows, tokens, last, state = rows[stay], tokens[stay], last[stay], state.select(stay)
    return [found[row] for row in sorted(found)]


def all_steps(step, state, rules, *, keep_state=True, stop_at_all_ends=False):
    """The tokens and sums (rows, steps) of steps to the greatest length."""
    rows = len(rules.max_lengths)
    last, tokens, sums = rules.start(rows), torch.empty(rows, 0, dtype=torch.int64), []
    for _ in range(int(rules.max_lengths.max())):
        logits, new = step(last, state)
        state = new if keep_state else state
        log_probability, best = rules.best(logits, tokens, rules.sentences(), count=1)
        tokens, last = torch.cat([tokens, best], 1), best[:, 0]
        sums.append(log_probability if not sums else sums[-1] + log_probability)
        if stop_at_all_ends and (last == rules.vocabulary.eos_id).all():
            break
    return tokens.tolist(), torch.cat(sums, 1).tolist()


def stacked(step, state, rules):
    """Wrong: it stops when all rows say the end at once, and cuts at the maximum of all."""
    tokens, sums = all_steps(step, state, rules, stop_at_all_ends=True)
    eos = rules.vocabulary.eos_id
    return [
        [Hypothesis(tuple(target), total[-1], total[-1], target[-1] == eos)]
        for target, total in zip(tokens, sums, strict=True)
    ]


def cut(tokens, sums, rules, *, with_end=False):
    """Each row to its end or its maximum length."""
    out, eos = [], rules.vocabulary.eos_id
    for target, total, most in zip(tokens, sums, rules.max_lengths.tolist(), strict=True):
        length = min([place + 1 for place, token in enumerate(target) if token == eos] + [most])
        ended = target[length - 1] == eos
        kept = target[: length - (ended and not with_end)]
        out.append([Hypothesis(tuple(kept), total[length - 1], total[length - 1], ended)])
    return out


def drops_state(step, state, rules):
    """Wrong: `_` where the new state comes; and it makes all steps."""
    return cut(*all_steps(step, state, rules, keep_state=False), rules)


def appends_first(step, state, rules):
    """Wrong: the token is appended before the test for the end; and it makes all steps."""
    return cut(*all_steps(step, state, rules), rules, with_end=True)


def draws(step, state, rules):
    """Wrong: it draws a token."""

    def drawn(tokens, old):
        logits, new = step(tokens, old)
        chosen = torch.multinomial(logits[:, 3:].softmax(-1), 1) + 3
        return torch.zeros_like(logits).scatter(1, chosen, 1.0), new

    return leaving(drawn, state, rules)


@pytest.mark.parametrize("function", [row_after_row, leaving])
def test_unusual_right_searches_pass(function):
    assert searched(function).outcome == "right"


@pytest.mark.parametrize(
    ("function", "mistakes"),
    [
        (stacked, ("greedy-all-at-once", "greedy-longest-for-all")),
        (drops_state, ("greedy-state-not-carried", "greedy-never-early")),
        (appends_first, ("greedy-end-kept", "greedy-never-early")),
    ],
)
def test_wrong_searches_are_named(function, mistakes):
    assert mistakes in searched(function).mistakes
    assert len(searched(function).mistakes) <= 2


def test_a_search_that_draws_is_wrong():
    torch.manual_seed(0)
    assert searched(draws).outcome == "difference"


def cache_of(grown, select):
    class BlockState:
        def __init__(self, self_keys, self_values, memory_keys, memory_values):
            self.self_keys, self.self_values = self_keys, self_values
            self.memory_keys, self.memory_values = memory_keys, memory_values

    BlockState.grown, BlockState.select = grown, select
    return SimpleNamespace(BlockState=BlockState)


def longer(old, new):
    """Right: a longer tensor, filled by slices."""
    rows, heads, length, width = old.shape
    result = torch.empty(rows, heads, length + 1, width, dtype=old.dtype)
    result[:, :, :length], result[:, :, length:] = old, new
    return result


def by_slices(self, key, value):
    keys, values = longer(self.self_keys, key), longer(self.self_values, value)
    return type(self)(keys, values, self.memory_keys, self.memory_values)


def by_stacking(self, rows):
    fields = (self.self_keys, self.self_values, self.memory_keys, self.memory_values)
    return type(self)(*(torch.stack([field[i] for i in rows.tolist()]) for field in fields))


def in_place(self, key, value):
    self.self_keys = torch.cat([self.self_keys, key], 2)
    self.self_values = torch.cat([self.self_values, value], 2)
    return self


def wrong_memory(self, rows):
    fields = (self.self_keys[rows], self.self_values[rows])
    return type(self)(*fields, self.memory_keys, self.memory_values)


def test_caches_as_people_write_them():
    right = cache_of(by_slices, by_stacking)
    assert verdict("BlockState.grown", right).outcome == "right"
    assert verdict("BlockState.select", right).outcome == "right"
    wrong = cache_of(in_place, wrong_memory)
    changed = verdict("BlockState.grown", wrong)
    assert changed.outcome == "difference"
    assert changed.lines[0] == "You change the old cache."
    assert verdict("BlockState.select", wrong).mistakes == (("cache-memory-not-selected",),)
