"""Beam search for one sentence, on a page. It returns tokens, and knows no constraints.

``decoding.beam`` finds the same targets; ``tests/tools/learn/test_search.py`` holds that.
"""

import torch
from torch import Tensor

from glassformer.decoding.beam import penalty
from glassformer.decoding.protocols import S, StepFunction, Vocabulary

__all__ = ["beam_search", "best_continuations"]


def best_continuations(totals: Tensor, logits: Tensor, count: int) -> list[tuple[float, int, int]]:
    """The ``count`` most probable targets that are one token longer, best first.

    Each is (its log-probability, the row of its parent, its new token).
    """
    sums = totals[:, None] + logits.log_softmax(dim=-1)  # (live, vocab)
    best, places = sums.flatten().topk(min(count, sums.numel()))
    vocab = logits.size(-1)
    return [
        (total, place // vocab, place % vocab)
        for total, place in zip(best.tolist(), places.tolist(), strict=True)
    ]


def beam_search(
    step: StepFunction[S],
    state: S,
    *,
    max_length: int,
    beam: int,
    alpha: float,
    vocabulary: Vocabulary,
) -> tuple[list[int], float]:
    """The best target of one sentence, and its score: log-probability over length penalty.

    ``decoding.beam.beam_search`` is this search for batches, with n-best lists and constraints.
    """
    live: list[list[int]] = [[]]
    last, totals = torch.tensor([vocabulary.bos_id]), torch.zeros(1, dtype=torch.float64)
    finished: list[tuple[float, list[int]]] = []
    led, length, eos = False, 0, vocabulary.eos_id
    while length < max_length and not (led and len(finished) >= beam):
        length += 1
        logits, state = step(last, state)
        best = best_continuations(totals, logits, 2 * beam)
        ends = [(total, parent) for total, parent, token in best[:beam] if token == eos]
        finished += [(total / penalty(length, alpha), live[parent]) for total, parent in ends]
        led = led or best[0][2] == eos
        rest = [each for each in best if each[2] != eos][:beam]
        live = [[*live[parent], token] for _, parent, token in rest]
        state = state.select(torch.tensor([parent for _, parent, _ in rest]))
        last = torch.tensor([token for _, _, token in rest])
        totals = torch.tensor([total for total, _, _ in rest], dtype=torch.float64)
    cut = [(float(totals[0]) / penalty(length, alpha), live[0])]
    score, target = max(finished or cut)
    return target, score
