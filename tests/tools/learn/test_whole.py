"""The lesson of the whole model: solutions as people write them, and the numbers in its text."""

from types import SimpleNamespace

import pytest

from glassformer.tools.learn.check import measure
from glassformer.tools.learn.judge import Judge
from glassformer.tools.learn.lesson import lesson

HOLE = "        raise NotImplementedError\n"
ENCODE = """
        if source_mask is None:
            source_mask = masks.padding_mask(source, self.config.pad_id)
        embedded = self.source_positions(self.source_embedding(source))
        return Memory(self.encoder(embedded, source_mask), source_mask)
"""
DECODE = """
        if target_mask is None:
            target_mask = masks.target_mask(target, self.config.pad_id)
        embedded = self.target_positions(self.target_embedding(target))
        return self.decoder(embedded, memory.states, target_mask, memory.mask)
"""
FORWARD = """
        memory = self.encode(source, source_mask=source_mask)
        return self.project(self.decode(target, memory, target_mask=target_mask))
"""
UNUSUAL = """
        import torch
        z = self.encode(source, source_mask=source_mask)
        rows = []
        for t in range(1, target.size(1) + 1):
            full = masks.target_mask(target, self.config.pad_id)
            given = (full if target_mask is None else target_mask)[:, :, :t, :t]
            states = self.decode(target[:, :t], z, target_mask=given)
            rows.append(torch.einsum("bd,vd->bv", states[:, -1], self.target_embedding.weight))
        return torch.stack(rows, 1)
"""
RIGHT = ("right",)


def verdicts(encode=ENCODE, decode=DECODE, forward=FORWARD):
    """Each hole's outcome and mistakes, for the lesson's file with these bodies."""
    source = lesson("whole").template
    for body in (encode, decode, forward):
        source = source.replace(HOLE, body, 1)
    names = {"__name__": "whole"}
    exec(compile(source, "whole.py", "exec"), names)
    judges = [Judge.of(lesson("whole"), hole) for hole in lesson("whole").holes]
    found = [judge.verdict(measure(judge.probes, SimpleNamespace(**names))) for judge in judges]
    return [(verdict.outcome, *verdict.mistakes) if verdict else ("error",) for verdict in found]


def test_right_solutions():
    assert verdicts() == [RIGHT, RIGHT, RIGHT]
    assert verdicts(forward=UNUSUAL) == [RIGHT, RIGHT, RIGHT]


@pytest.mark.parametrize(
    ("body", "verdict"),
    [
        (  # positions by a call whose result nobody reads
            ENCODE.replace(
                "embedded = self.source_positions(self.source_embedding(source))",
                "embedded = self.source_embedding(source); self.source_positions(embedded)",
            ),
            ("mistake", ("whole-source-positions-missing",)),
        ),
        (
            ENCODE.replace("self.config.pad_id", "0"),
            ("mistake", ("whole-pad-zero",)),
        ),
        (  # the factor, once more
            ENCODE.replace("(source))", "(source) * self.config.d_model**0.5)"),
            ("difference",),
        ),
    ],
)
def test_wrong_encode(body, verdict):
    assert verdicts(encode=body) == [verdict, RIGHT, RIGHT]


@pytest.mark.parametrize(
    ("body", "verdict"),
    [
        (
            DECODE.replace("target_mask(target", "padding_mask(target"),
            ("mistake", ("whole-target-mask-not-causal",)),
        ),
        (  # the order of the arguments, from memory
            DECODE.replace("target_mask, memory.mask", "memory.mask, target_mask"),
            ("mistake", ("whole-masks-exchanged",)),
        ),
    ],
)
def test_wrong_decode(body, verdict):
    assert verdicts(decode=body) == [RIGHT, verdict, RIGHT]


@pytest.mark.parametrize(
    ("body", "verdict"),
    [
        (
            FORWARD.replace("return ", "return F.softmax(").replace(
                "mask))\n", "mask)), dim=-1)\n"
            ),
            ("mistake", ("whole-softmax",)),
        ),
        (
            FORWARD.replace(", source_mask=source_mask", "").replace(
                ", target_mask=target_mask", ""
            ),
            ("mistake", ("whole-source-mask-dropped", "whole-target-mask-dropped")),
        ),
        (
            FORWARD.replace("self.decode(target,", "self.decode(target[:, :-1],"),
            ("mistake", ("whole-shifted-again",)),
        ),
    ],
)
def test_forward(body, verdict):
    assert verdicts(forward=body) == [RIGHT, RIGHT, verdict]
