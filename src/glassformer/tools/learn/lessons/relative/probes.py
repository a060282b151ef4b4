"""Probes of relative positions."""

import math
from typing import Any

import torch

from glassformer.tools.learn.attention_probes import attention_probes, position_laws
from glassformer.tools.learn.check import Check, Probe, Solution, probe
from glassformer.tools.learn.inputs import numbers


def _rows(*sizes: int) -> Probe:
    text = "q_len {}, k_len {}, most {}".format(*sizes)
    return probe(text, lambda solution: {"rows": solution.clipped_distances(*sizes)})


def two_keys(solution: Solution) -> dict[str, Any]:
    """query [[1]], keys [[0], [0]], values [[10], [20]], table [[0], [log 3], [5]]"""
    query, key, value = (
        torch.tensor(column)[None, None, :, None] for column in ([1.0], [0.0, 0.0], [10.0, 20.0])
    )
    table = torch.tensor([[0.0], [math.log(3)], [5.0]])
    return {"output": solution.relative_attention(query, key, value, table)}


def _attend(solution: Solution, *inputs: Any) -> Any:
    *tensors, mask = inputs
    return solution.relative_attention(*tensors, numbers(5, 14, seed=3, name="table"), mask)


ATTENDED = attention_probes(_attend)
CHECK = Check(
    probes={
        "clipped_distances": (_rows(2, 3, 1), _rows(5, 5, 2), _rows(3, 5, 11), _rows(1, 4, 0)),
        "relative_attention": (two_keys, *ATTENDED),
    },
    laws=position_laws(ATTENDED),
)
