"""Probes of greedy search, and of the KV cache."""

from typing import Any

import torch
from torch import Tensor

from glassformer.decoding.constraints import OutputRules
from glassformer.decoding.vocabulary import Vocabulary
from glassformer.model.cache import BlockState
from glassformer.tools.learn.check import Solution
from glassformer.tools.learn.holes import Hole
from glassformer.tools.learn.inputs import given, running
from glassformer.tools.learn.situations import NONE, WIDE, Situation, situations
from glassformer.tools.learn.table_model import SEARCH, TableModel, rules_of, shown


def one_sentence(solution: Solution) -> dict[str, Any]:
    """one row, bos 1, eos 2, at most 9 tokens; after 1 comes 5, then 6, then 2, then 4, 7, 2"""
    following = {1: 5, 5: 6, 6: 2, 2: 4, 4: 7, 7: 2, 0: 3, 3: 3}
    rows = {
        token: [0.65 if after == x else 0.05 for x in range(8)]
        for token, after in following.items()
    }
    rules = OutputRules(given([9]), Vocabulary(bos_id=1, eos_id=2))
    return _searched(solution, TableModel.table(rows), rules)


def searched(solution: Solution, s: Situation) -> dict[str, Any]:
    language = TableModel.random(s.batch, 7, seed=40 + s.earlier)
    language.by_place, language.by_tokens = (
        (s.axes["size"] * table).to(s.dtype) for table in (language.by_place, language.by_tokens)
    )
    language.by_place[0] += 40 * bool(s.loud)  # its logits are above all others
    lengths = [s.longest if row % 2 else 5 for row in range(s.batch, 0, -1)]
    bos, eos = (6, 0) if s.ids else (1, 2)
    vocabulary = Vocabulary(bos_id=bos, eos_id=eos)
    return _searched(solution, language, rules_of(s, lengths, vocabulary))


def _searched(solution: Solution, language: TableModel, rules: OutputRules) -> dict[str, Any]:
    answers = solution.greedy(language.step, language.state(), rules)
    lengths = [
        (len(best.tokens), most)
        for [best], most in zip(answers, rules.max_lengths.tolist(), strict=True)
    ]
    needed = max(length + (length < most) for length, most in lengths)
    in_vain = max(0, language.rows_read - needed * len(lengths))
    return shown(answers) | {"tokens read in vain": in_vain}


def cache(solution: Solution, s: Situation) -> BlockState:
    """A cache; the check notes if it gets other tensors."""
    lengths: dict[str, Any] = dict.fromkeys(FIELDS[:2], "tgt_len") | dict.fromkeys(FIELDS[2:], 4)
    made = solution.BlockState(
        *(
            given(s.axes[name]) if name in s.axes else s.numbers(name, "batch", 3, length, 5)
            for name, length in lengths.items()
        )
    )
    before = fields(made, s)
    running().watched.append(
        ("the old cache", lambda: all(x is before[name] for name, x in fields(made, s).items()))
    )
    return made


def fields(cache: BlockState, _: Situation) -> dict[str, Tensor]:
    return {name: getattr(cache, name) for name in FIELDS}


def rows(s: Situation, name: str) -> Tensor:
    """Rows that come twice, and in any order."""
    return given(torch.arange(s.selected).flip(0) * 3 % s.batch, name)


FIELDS = ("self_keys", "self_values", "memory_keys", "memory_values")
GROWN = Hole("BlockState.grown", fields, cache, key="batch 3 1 5", value="batch 3 1 5")
SELECTED = Hole("BlockState.select", fields, cache, rows=rows)
TWO_ROWS: dict[str, Any] = {
    name: [[[[1.0 + place]]], [[[5.0 + place]]]] for place, name in enumerate(FIELDS)
}
CACHE: dict[str, Any] = {"mode": NONE, "tgt_len": (3, 1, 0)}
PROBES = (
    (
        "greedy",
        (
            one_sentence,
            *situations(
                "a search",
                searched,
                **SEARCH,
                type=WIDE,
                size=(1.0, 3.0),
                longest=(9, 1, 5),
                ids=("", "bos 6, eos 0"),
                loud=("", "all logits of the first row are above those of the others"),
            ),
        ),
    ),
    GROWN.probes(
        GROWN.example(
            key=[[[[5.0]]]],
            value=[[[[6.0]]]],
            self_keys=[[[[1.0]]]],
            self_values=[[[[2.0]]]],
            memory_keys=[[[[3.0], [4.0]]]],
            memory_values=[[[[7.0], [8.0]]]],
        ),
        **CACHE,
    ),
    SELECTED.probes(
        SELECTED.example(rows=[1, 0], **TWO_ROWS),
        **CACHE,
        batch=(2, 1, 5),
        strides=("", "inputs are not contiguous"),
        selected=(1, 3),
    ),
)
