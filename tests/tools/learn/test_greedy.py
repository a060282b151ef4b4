"""Greedy search and the KV cache as people write them: right ones pass, wrong ones are named."""

from types import SimpleNamespace

import pytest
import torch

from glassformer.tools.learn.check import measure
from glassformer.tools.learn.judge import Judge
from glassformer.tools.learn.lesson import lesson


def verdict(hole, solution):
    judge = Judge.of(lesson("greedy"), hole)
    return judge.verdict(measure(judge.probes, solution))


def searched(function):
    return verdict("greedy", SimpleNamespace(greedy=function))


def row_after_row(step, state, *, max_lengths, vocabulary):
    """Right: each row alone, with a state of its own."""
    bos, eos = vocabulary.bos_id, vocabulary.eos_id
    out = []
    for i in range(len(max_lengths)):
        own, token, target = state.select(torch.tensor([i])), bos, []
        for _ in range(max_lengths[i]):
            logits, own = step(torch.tensor([token]), own)
            token = max(range(logits.shape[1]), key=lambda j: logits[0, j].item())
            if token == eos:
                break
            target.append(token)
        out.append(target)
    return out


def leaving(step, state, *, max_lengths, vocabulary):
    """Right: rows that end leave the batch; the numbers are numpy's."""
    bos, eos = vocabulary.bos_id, vocabulary.eos_id
    out, rows = [[] for _ in max_lengths], torch.arange(len(max_lengths))
    tokens = torch.tensor([bos] * len(rows))
    while len(rows):
        scores, state = step(tokens, state)
        tokens = torch.as_tensor(scores.numpy().argmax(1))
        stay = []
        for place, (row, token) in enumerate(zip(rows.tolist(), tokens.tolist(), strict=True)):
            if token != eos:
                out[row].append(token)
                if len(out[row]) < max_lengths[row]:
                    stay.append(place)
        stay = torch.tensor(stay, dtype=torch.int64)
        rows, tokens, state = rows[stay], tokens[stay], state.select(stay)
    return out


def stacked(step, state, *, max_lengths, vocabulary):
    """Wrong: it stops when all rows say the end at once, and cuts at the maximum of all."""
    bos, eos = vocabulary.bos_id, vocabulary.eos_id
    cur, outs = torch.full((len(max_lengths),), bos), []
    for _ in range(int(max_lengths.max())):
        logits, state = step(cur, state)
        cur = torch.softmax(logits, dim=-1).argmax(-1)
        outs.append(cur)
        if (cur == eos).all():
            break
    return torch.stack(outs, dim=1).tolist()


def drops_state(step, state, *, max_lengths, vocabulary):
    """Wrong: `_` where the new state comes."""
    bos, eos = vocabulary.bos_id, vocabulary.eos_id
    n = len(max_lengths)
    ys, done, cur = [[] for _ in range(n)], [False] * n, torch.tensor([bos] * n)
    while not all(done):
        logits, _ = step(cur, state)
        cur = logits.argmax(1)
        for b in range(n):
            done[b] = done[b] or cur[b].item() == eos
            if not done[b]:
                ys[b].append(cur[b].item())
                done[b] = len(ys[b]) == max_lengths[b].item()
    return ys


def appends_first(step, state, *, max_lengths, vocabulary):
    """Wrong: the token is appended before the test for the end."""
    bos, eos = vocabulary.bos_id, vocabulary.eos_id
    n = len(max_lengths)
    ys, alive, cur = [[] for _ in range(n)], [True] * n, torch.tensor([bos] * n)
    while any(alive):
        logits, state = step(cur, state)
        cur = logits.argmax(1)
        for b in range(n):
            if alive[b]:
                ys[b].append(int(cur[b]))
                alive[b] = int(cur[b]) != eos and len(ys[b]) < int(max_lengths[b])
    return ys


def draws(step, state, *, max_lengths, vocabulary):
    """Wrong: it draws a token."""

    def drawn(tokens, old):
        logits, new = step(tokens, old)
        chosen = torch.multinomial(logits.softmax(-1), 1)
        return torch.zeros_like(logits).scatter(1, chosen, 1.0), new

    return leaving(drawn, state, max_lengths=max_lengths, vocabulary=vocabulary)


@pytest.mark.parametrize("function", [row_after_row, leaving])
def test_unusual_right_searches_pass(function):
    assert searched(function).outcome == "right"


@pytest.mark.parametrize(
    ("function", "mistakes"),
    [
        (stacked, ("greedy-all-at-once", "greedy-longest-for-all")),
        (drops_state, ("greedy-state-not-carried",)),
        (appends_first, ("greedy-end-kept",)),
    ],
)
def test_wrong_searches_are_named(function, mistakes):
    assert mistakes in searched(function).mistakes
    assert len(searched(function).mistakes) <= 2


def test_a_search_that_draws_breaks_a_law():
    torch.manual_seed(0)
    assert searched(draws).outcome == "law"
    assert searched(draws).lines[0].startswith("Greedy search draws nothing")


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
    assert "the old cache is changed" in changed.lines[0]
    assert verdict("BlockState.select", wrong).mistakes == (("cache-memory-not-selected",),)
