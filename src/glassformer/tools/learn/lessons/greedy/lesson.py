# %% [markdown]
# # Greedy search, and the KV cache
#
# > "At each step the model is auto-regressive, consuming the previously
# > generated symbols as additional input when generating the next."
# > (section 3)
#
# Greedy search takes the most probable token at every step. It feeds that
# token to the decoder, and goes on until the end symbol comes.
#
# A decoder that reads the whole target anew at every step repeats its own
# work: the keys and values of earlier tokens never change, because no token
# sees a later one. The *KV cache* keeps them. A step then costs one token: it
# appends one key and one value, and its query reads all of them. The keys and
# values of the memory are computed once for each sentence.
#
# The search knows no model. It calls a *step function* with the newest token
# of each row, and with the *state* (the KV cache); it gets back the next
# logits and the next state:
#
#     logits, state = step(tokens, state)
#
# with tokens (rows,) and logits (rows, vocab).
#
# A search that forgets the new state, or mixes its rows, translates a text
# that nobody wrote.

# %%
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from glassformer.decoding.constraints import OutputRules
from glassformer.decoding.protocols import Hypothesis


def greedy(
    step: Callable[[Tensor, Any], tuple[Tensor, Any]],
    state: Any,
    rules: OutputRules,
) -> list[list[Hypothesis]]:
    """The target of each row: at every step the likeliest token.

    The rules know which tokens may follow; a target has no start symbol, and
    is never empty.
    rules.start(rows) -> (rows,): the start symbol in each row
    rules.best(logits, tokens, rules.sentences(), count=1) -> log-probability
        and id of the most probable token that may follow, (rows, 1) each;
        tokens (rows, length): of each row so far
    rules.max_lengths (rows,): integers
    rules.vocabulary.eos_id: eos, the end symbol
    -> each row's [Hypothesis(tokens, score, log_probability, finished)]

    A row ends with eos, or with max_lengths[row] tokens. Its target holds no
    eos, but its log-probability is the sum of all its steps, with that of eos;
    the score is the same number. A row is finished if it ends with eos. It
    stays in the batch, and what it would write then is not used;
    state.select(rows) would remove it, but need not.

    One row, bos 1, eos 2: after 1 the most probable token is 5, after 5 it is
    6, after 6 it is 2. The target is (5, 6), finished; with max_lengths [1] it
    is (5,), not finished.
    """
    # Fifteen lines: lists and first tokens; a loop that steps and appends.
    raise NotImplementedError


@dataclass(frozen=True)
class BlockState:
    """A decoder block's KV cache: (rows, heads, length, d_head) each."""

    self_keys: Tensor  # of the target so far
    self_values: Tensor
    memory_keys: Tensor  # of the source
    memory_values: Tensor

    def grown(self, key: Tensor, value: Tensor) -> "BlockState":
        """A new cache, after one more target token; the old one stays.

        key, value (rows, heads, 1, d_head): of the new token

        After 3 tokens self_keys is (rows, heads, 3, d_head); grown, it is
        (rows, heads, 4, d_head), with the new key last. The memory's keys and
        values stay.
        """
        # One expression.
        raise NotImplementedError

    def select(self, rows: Tensor) -> "BlockState":
        """A new cache with these rows; one may come twice, or not at all.

        rows (selected,): integers in any order
        keys (rows, heads, …) -> keys (selected, heads, …)

        rows [2, 0, 0] of three sentences: the last one, then the first one
        twice.
        """
        # One expression. Beam search keeps its best hypotheses by it.
        raise NotImplementedError


# %% [markdown]
# ## To try
#
# 1. Write 50 tokens without a cache, then with one. How many tokens does the
#    decoder read?
# 2. Greedy search takes the best token each time. Why is its target not the
#    most probable one?
