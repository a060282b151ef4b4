"""Probes of greedy search, and of the KV cache."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from glassformer.decoding.constraints import OutputRules
from glassformer.decoding.logits_processors import LogitsProcessor
from glassformer.decoding.vocabulary import Vocabulary
from glassformer.model.cache import BlockState
from glassformer.tools.learn.check import Check, Results, Solution
from glassformer.tools.learn.inputs import given, running
from glassformer.tools.learn.situations import NO_NUMBERS, NONE, Situation, situations
from glassformer.tools.learn.table_model import RULES, TableModel

IDS = Vocabulary(bos_id=1, eos_id=2)


def one_sentence(solution: Solution) -> dict[str, Any]:
    """one row, bos 1, eos 2, at most 9 tokens; after 1 comes 5, then 6, then 2, then 4, 7, 2"""
    return _searched(solution, _chain(), [9])


def one_token(solution: Solution) -> dict[str, Any]:
    """one row, bos 1, eos 2, at most 1 token; after 1 comes 5"""
    return _searched(solution, _chain(), [1])


def searched(solution: Solution, s: Situation) -> dict[str, Any]:
    language = TableModel.random(s.batch, 7, seed=40 + s.earlier)
    language.by_place, language.by_tokens = (
        (s.size * table).to(s.dtype) for table in (language.by_place, language.by_tokens)
    )
    language.by_place[0] += 40 * bool(s.loud)  # its logits are above all others
    lengths = [s.longest if row % 2 else 5 for row in range(s.batch, 0, -1)]
    bos, eos = (6, 0) if s.ids else (1, 2)
    ids = Vocabulary(bos_id=bos, eos_id=eos)
    return _searched(solution, language, lengths, ids=ids, processors=RULES[s.rules])


def _chain() -> TableModel:
    following = {1: 5, 5: 6, 6: 2, 2: 4, 4: 7, 7: 2, 0: 3, 3: 3}
    rows = {token: [0.05] * 8 for token in following}
    for token, after in following.items():
        rows[token][after] = 0.65
    rows[1][0] = rows[5][0] = rows[6][0] = 0.01
    return TableModel.table(rows)


def _searched(
    solution: Solution,
    language: TableModel,
    max_lengths: list[int],
    *,
    ids: Vocabulary = IDS,
    processors: Sequence[LogitsProcessor] = (),
) -> dict[str, Any]:
    rules = OutputRules(given(max_lengths), ids, processors=processors)
    answers = [best for [best] in solution.greedy(language.step, language.state(), rules)]
    targets = [[int(token) for token in answer.tokens] for answer in answers]
    pairs = zip(targets, max_lengths, strict=True)
    needed = max(len(target) + (len(target) < limit) for target, limit in pairs)
    in_vain = max(0, language.rows_read - needed * len(max_lengths))
    return {
        "targets": str(targets),
        "finished": str([bool(answer.finished) for answer in answers]),
        "log-probabilities": torch.tensor([float(answer.log_probability) for answer in answers]),
        "scores": torch.tensor([float(answer.score) for answer in answers]),
        "tokens read in vain": in_vain,
    }


def second_token(solution: Solution) -> dict[str, Any]:
    """a cache of 1 target and 2 source tokens, 1 row, 1 head, d_head 1; the key 5, the value 6"""
    fields = (given(each).view(1, 1, -1, 1) for each in ([1.0], [2.0], [3.0, 4.0], [7.0, 8.0]))
    return _fields(
        _watched(solution.BlockState(*fields)).grown(given([[[[5.0]]]]), given([[[[6.0]]]]))
    )


def two_rows(solution: Solution) -> dict[str, Any]:
    """rows [1, 0] of 2 rows, 1 head, d_head 1, 1 target and 1 source token"""
    fields = (torch.tensor([first, first + 1]).view(2, 1, 1, 1) for first in (1.0, 3.0, 5.0, 7.0))
    return _fields(solution.BlockState(*fields).select(torch.tensor([1, 0])))


def grown(solution: Solution, s: Situation) -> dict[str, Any]:
    key, value = (s.numbers(name, s.batch, 3, 1, 5) for name in ("key", "value"))
    return _fields(_cache(solution, s).grown(key, value))


def selected(solution: Solution, s: Situation) -> dict[str, Any]:
    """``rows`` is the number of rows of the new cache; rows come twice, and in any order."""
    rows = torch.arange(s.rows).flip(0) * 3 % s.batch
    return _fields(_cache(solution, s).select(given(rows, "rows")))


def _cache(solution: Solution, s: Situation) -> BlockState:
    lengths = {
        "self_keys": s.tgt_len,
        "self_values": s.tgt_len,
        "memory_keys": 4,
        "memory_values": 4,
    }
    fields = (s.numbers(name, s.batch, 3, length, 5) for name, length in lengths.items())
    return _watched(solution.BlockState(*fields))


def _watched(cache: BlockState) -> BlockState:
    """The cache; the check notes if it gets other tensors."""
    fields = _fields(cache)

    def is_same() -> bool:
        return all(each is fields[name] for name, each in _fields(cache).items())

    running().watched.append(("the old cache", is_same))
    return cache


def _fields(cache: BlockState) -> dict[str, Tensor]:
    names = ("self_keys", "self_values", "memory_keys", "memory_values")
    return {name: getattr(cache, name) for name in names}


def read_in_vain(results: Results) -> str | None:
    for values in results.values():
        if count := values.get("tokens read in vain"):
            return f"The decoder reads {count} tokens more than it needs."
    return None


def length(results: Results) -> str | None:
    shape = results["second_token"]["self_keys"].shape
    if shape[2:3] == (2,):
        return None
    return f"From a cache of 1 token, grown makes self_keys of shape {shape}."


CACHE: dict[str, Any] = {"mode": NONE, "tgt_len": (3, 1, 0)}
CHECK = Check(
    probes={
        "greedy": (
            one_sentence,
            one_token,
            *situations(
                "a search",
                searched,
                **NO_NUMBERS | {"type": ("float64", "float32"), "layout": NONE},
                size=(1.0, 3.0),
                longest=(9, 1, 5),
                ids=("", "bos 6, eos 0"),
                rules=tuple(RULES),
                loud=("", "all logits of the first row are above those of the others"),
            ),
        ),
        "BlockState.grown": (second_token, *situations("a cache", grown, **CACHE)),
        "BlockState.select": (
            two_rows,
            *situations("a cache to select from", selected, **CACHE, rows=(1, 3)),
        ),
    },
    laws={
        "A step reads one token, and none after the end.": read_in_vain,
        "A token adds 1 to the length of the cache.": length,
    },
)
