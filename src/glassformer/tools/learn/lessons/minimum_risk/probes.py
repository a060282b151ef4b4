"""Probes of minimum-risk decoding."""

from collections.abc import Callable
from random import Random
from typing import Any

import torch

from glassformer.tools.learn.check import unpacked
from glassformer.tools.learn.holes import Hole
from glassformer.tools.learn.inputs import kept
from glassformer.tools.learn.lessons.minimum_risk.plain import overlap
from glassformer.tools.learn.situations import Situation

SIMILARITIES: dict[str, Callable[[str, str], float]] = {
    "the overlap of the words": overlap,
    "the number of b in the hypothesis": lambda hypothesis, _: hypothesis.count("b"),
    "the number of b in the reference": lambda _, reference: reference.count("b"),
    "always 0.5": lambda *_: 0.5,
    "minus the letters of the hypothesis": lambda hypothesis, _: -len(hypothesis),
}


def text(s: Situation, name: str) -> str:
    """As many words as the axis says, with spaces around some."""
    draw = Random(f"{name} {s.earlier} {s.axes[name]}")
    return "".join(draw.choice(("a ", "b  ", " ab ", "ba ", "Ab ")) for _ in range(s.axes[name]))


def samples(s: Situation, _: str) -> list[str]:
    """Texts of which some come twice."""
    texts = ("a b", "a b", "c", "a b c d", "b c", "a c d e f", "bb b")
    return list(kept([texts[(5 * place + s.earlier + s.first) % 7] for place in range(s.count)]))


def means(answer: Any, _: Situation) -> dict[str, Any]:
    best, means = unpacked(answer, "the answer", "the means")
    return {"means": torch.tensor([float(mean) for mean in means]), "answer": best}


OVERLAP = Hole(
    "overlap", lambda answer, _: {"overlap": float(answer)}, hypothesis=text, reference=text
)
RISK = Hole(
    "minimum_risk",
    means,
    samples=samples,
    similarity=lambda s, _: SIMILARITIES[s.similarity],
)
PROBES = (
    OVERLAP.probes(
        OVERLAP.example(hypothesis="the cat sat", reference="the cat ran"),
        hypothesis=(3, 0, 1, 8),
        reference=(4, 0, 1, 9),
    ),
    RISK.probes(count=(3, 1, 2, 7), first=(0, 3), similarity=tuple(SIMILARITIES)),
)
