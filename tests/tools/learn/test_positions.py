"""The lesson on positions: solutions as people write them, and the numbers in its text."""

from types import SimpleNamespace

import pytest
import torch

from glassformer import sinusoidal_positions
from glassformer.tools.learn.check import measure
from glassformer.tools.learn.judge import Judge
from glassformer.tools.learn.lesson import lesson

HOLES = ("    raise NotImplementedError\n\n\nclass", "        raise NotImplementedError\n\n\n# %%")
TABLE = """
    assert d_model % 2 == 0
    rates = 10000.0 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    angles = torch.outer(torch.arange(offset, offset + length, dtype=torch.float64), rates)
    if layout == "halves":
        return torch.cat((angles.sin(), angles.cos()), 1).float()
    return torch.stack((angles.sin(), angles.cos()), 2).view(length, d_model).float()
"""
SUM = """
        return self.dropout(embedded + self.table[start : start + embedded.size(1)])
"""


def verdicts(table=TABLE, total=SUM):
    """Each hole's outcome and mistakes, for the lesson's file with these bodies."""
    source = lesson("positions").template
    for hole, body in zip(HOLES, (table, total), strict=True):
        assert source.count(hole) == 1
        source = source.replace(hole, body + hole.split("Error")[1])
    names = {"__name__": "positions"}
    exec(compile(source, "positions.py", "exec"), names)
    judges = [Judge.of(lesson("positions"), hole) for hole in lesson("positions").holes]
    found = [judge.verdict(measure(judge.probes, SimpleNamespace(**names))) for judge in judges]
    return [(verdict.outcome, *verdict.mistakes) for verdict in found]


def test_a_right_solution():
    assert verdicts() == [("right",), ("right",)]


LOOPS = """
    import math
    if d_model % 2:
        raise ValueError("odd")
    rows = []
    for p in range(offset, offset + length):
        row = [0.0] * d_model
        for i in range(d_model // 2):
            a = p / 10000 ** (2 * i / d_model)
            s, c = (2 * i, 2 * i + 1) if layout == "interleaved" else (i, i + d_model // 2)
            row[s], row[c] = math.sin(a), math.cos(a)
        rows.append(row)
    return torch.tensor(rows)
"""
WORD_BY_WORD = """
        out = torch.zeros_like(embedded)
        for t in range(embedded.shape[1]):
            out[:, t] = embedded[:, t] + self.table[start + t]
        return self.dropout(out)
"""


def test_loops_are_right_too():
    assert verdicts(LOOPS, WORD_BY_WORD) == [("right",), ("right",)]


NUMPY = """
    import numpy as np
    assert d_model % 2 == 0
    angle = np.arange(length)[:, None] / np.power(10000, 2 * (np.arange(d_model) // 2) / d_model)
    angle[:, 0::2], angle[:, 1::2] = np.sin(angle[:, 0::2]), np.cos(angle[:, 1::2])
    if layout == "halves":
        angle = np.concatenate([angle[:, 0::2], angle[:, 1::2]], -1)
    return torch.from_numpy(angle).float()
"""
ONE_EXPONENT_EACH = """
    assert d_model % 2 == 0
    p = torch.arange(offset, offset + length).double()[:, None]
    angle = p / 10000 ** (torch.arange(d_model).double() / d_model)
    even, odd = angle[:, 0::2].sin(), angle[:, 1::2].cos()
    if layout == "halves":
        return torch.cat((even, odd), 1)
    return torch.stack((even, odd), 2).reshape(length, d_model)
"""
SINGLE_PRECISION = """
    import math
    assert d_model % 2 == 0
    pe = torch.zeros(length, d_model)
    position = torch.arange(offset, offset + length).float().unsqueeze(1)
    div = torch.exp(torch.arange(0, d_model, 2).float() * (-math.log(10000.0) / d_model))
    pe[:, 0::2], pe[:, 1::2] = torch.sin(position * div), torch.cos(position * div)
    return pe if layout == "interleaved" else torch.cat((pe[:, 0::2], pe[:, 1::2]), 1)
"""
STEPS_DOUBLED = """
    assert d_model % 2 == 0
    rate = torch.tensor([10000.0 ** (-2 * i / d_model) for i in range(0, d_model, 2)]).double()
    angle = torch.arange(offset, offset + length).double()[:, None] * rate
    if layout == "halves":
        return torch.cat((angle.sin(), angle.cos()), 1)
    return torch.stack((angle.sin(), angle.cos()), 2).flatten(1)
"""
# A view mixes sines and cosines of different positions: no known mistake.
WRONG_VIEW = """
    assert d_model % 2 == 0
    rates = 10000.0 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    angles = torch.outer(torch.arange(offset, offset + length, dtype=torch.float64), rates)
    if layout == "halves":
        return torch.cat((angles.sin(), angles.cos()), 1).float()
    return torch.stack((angles.sin(), angles.cos())).view(length, d_model).float()
"""


@pytest.mark.parametrize(
    ("table", "verdict"),
    [
        (NUMPY, ("mistake", ("positions-offset-ignored",))),
        (ONE_EXPONENT_EACH, ("mistake", ("positions-exponent-column",))),
        (SINGLE_PRECISION, ("mistake", ("positions-float32-angles",))),
        (STEPS_DOUBLED, ("mistake", ("positions-exponent-4i",))),
        (WRONG_VIEW, ("law",)),
    ],
)
def test_wrong_tables(table, verdict):
    assert verdicts(table)[0] == verdict


@pytest.mark.parametrize(
    ("total", "verdict"),
    [
        (
            "\n        embedded += self.table[start : start + embedded.size(1)]"
            "\n        return self.dropout(embedded)\n",
            ("mistake", ("positions-in-place",)),
        ),
        (
            "\n        self.dropout(embedded + self.table[start : start + embedded.size(1)])"
            "\n        return embedded\n",
            ("mistake", ("positions-discarded",)),
        ),
        (
            "\n        return self.dropout(embedded + self.table[: embedded.shape[1]])\n",
            ("mistake", ("positions-start-ignored",)),
        ),
        (
            "\n        x = embedded * embedded.size(-1) ** 0.5"
            "\n        return self.dropout(x + self.table[start : start + x.size(1)])\n",
            ("mistake", ("positions-embedding-scaled-again",)),
        ),
    ],
)
def test_wrong_sums(total, verdict):
    assert verdicts(total=total)[1] == verdict


def test_the_answers_to_the_questions():
    table = sinusoidal_positions(100, 512)
    assert [round(float(table[p] @ table[p + 3]), 1) for p in (0, 7, 90)] == [211.7] * 3
    assert float(table[5] @ table[5]) == pytest.approx(256)
    halves = sinusoidal_positions(100, 512, layout="halves")
    assert torch.equal(torch.cat((table[:, 0::2], table[:, 1::2]), -1), halves)
