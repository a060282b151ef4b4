"""Greedy search on half a page. It returns tokens, and knows no constraints.

``decoding.greedy`` finds the same targets; ``tests/tools/learn/test_search.py`` holds that.
"""

import torch
from torch import Tensor

from glassformer.decoding.protocols import S, StepFunction, Vocabulary

__all__ = ["greedy"]


def greedy(
    step: StepFunction[S], state: S, *, max_lengths: Tensor, vocabulary: Vocabulary
) -> list[list[int]]:
    """The target of each row: at every step the most probable token.

    It has no start and no end symbol, and at most ``max_lengths[row]`` tokens.
    ``decoding.greedy.greedy`` is this search with constraints, scores, and rows that leave.
    """
    targets: list[list[int]] = [[] for _ in max_lengths]
    unfinished = set(range(len(targets)))
    last = torch.full_like(max_lengths, vocabulary.bos_id)
    while unfinished:
        logits, state = step(last, state)
        last = logits.argmax(dim=-1)
        for row in sorted(unfinished):
            token = int(last[row])
            ended = token == vocabulary.eos_id
            if not ended:
                targets[row].append(token)
            if ended or len(targets[row]) == max_lengths[row]:
                unfinished.remove(row)
    return targets
