"""Probes of multi-head attention."""

from typing import Any

from glassformer.tools.learn.check import Solution
from glassformer.tools.learn.holes import Hole, mask
from glassformer.tools.learn.situations import LEFT_OUT, MASKS, Situation


def made(solution: Solution, s: Situation) -> Any:
    sizes = s.axes.get("d_model", 15), s.axes.get("num_heads", 3)
    return s.module(lambda: solution.MultiHeadAttention(*sizes))


def other_input(s: Situation, name: str) -> object:
    """The key or the value, where ``forward`` gets one."""
    is_given = s.inputs.startswith("query, key" if name == "key" else "query, key and value")
    return s.numbers(name, "batch", "k_len", 15) if is_given else LEFT_OUT


def mask_of_inputs(s: Situation, name: str) -> object:
    """The mask of the keys, which are the query if that is the only input."""
    return mask("q_len", "q_len" if s.inputs == "the query alone" else "k_len", 3)(s, name)


OF_HEADS = "batch 3 k_len 5"
SPLIT = Hole("MultiHeadAttention.split", "heads", made, joint="batch k_len 15")
MERGE = Hole("MultiHeadAttention.merge", "joint", made, heads=OF_HEADS)
PROJECT = Hole(
    "MultiHeadAttention.project_keys_and_values",
    "keys, values",
    made,
    key="batch k_len 15",
    value="batch k_len 15",
)
ATTEND = Hole(
    "MultiHeadAttention.attend",
    "output",
    made,
    query="batch q_len 15",
    keys=OF_HEADS,
    values=OF_HEADS,
    mask=mask("q_len", "k_len", 3),
)
FORWARD = Hole(
    "MultiHeadAttention.forward",
    "output",
    made,
    options=("mask",),
    query="batch q_len 15",
    key=other_input,
    value=other_input,
    mask=mask_of_inputs,
)
SMALL = {"num_heads": 2, "d_model": 4}
LENGTHS = (7, 1, 2)
INPUTS = ("the query alone", "query, key alone", "query, key and value")
PROBES = (
    SPLIT.probes(
        SPLIT.example(joint=[[[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0]]], **SMALL), k_len=LENGTHS
    ),
    MERGE.probes(
        MERGE.example(heads=[[[[0.0, 1.0], [4.0, 5.0]], [[2.0, 3.0], [6.0, 7.0]]]], **SMALL),
        k_len=LENGTHS,
    ),
    PROJECT.probes(k_len=LENGTHS),
    (
        "MultiHeadAttention.attend",
        (
            *ATTEND.situations(q_len=LENGTHS, k_len=(11, 1), mask=MASKS),
            *FORWARD.situations(q_len=LENGTHS, k_len=(11, 1), mask=MASKS, inputs=INPUTS),
        ),
    ),
)
