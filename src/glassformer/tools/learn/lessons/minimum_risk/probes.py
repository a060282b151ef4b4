"""Probes of minimum-risk decoding."""

from collections.abc import Callable
from typing import Any

import torch

from glassformer.tools.learn.check import Check, Probe, Solution, probe
from glassformer.tools.learn.lessons.minimum_risk.plain import overlap


def _overlaps(*pairs: tuple[str, str]) -> Probe:
    def overlaps(solution: Solution) -> dict[str, Any]:
        return {"overlap": torch.tensor([float(solution.overlap(*pair)) for pair in pairs])}

    return probe(", ".join(f'"{left}" and "{right}"' for left, right in pairs), overlaps)


def _answered(text: str, similarity: Callable[[str, str], float], *samples: str) -> Probe:
    def answered(solution: Solution) -> dict[str, Any]:
        copied = list(samples)
        answer, means = solution.minimum_risk(copied, similarity)
        values = torch.tensor([float(mean) for mean in means])
        return {
            "means": values,
            "answer": answer,
            "You change the samples in place": copied != [*samples],
        }

    drawn = ", ".join(f'"{sample}"' for sample in samples)
    return probe(f"samples {drawn}; similarity: {text}", answered)


CHECK = Check(
    probes={
        "overlap": (
            _overlaps(("the cat sat", "the cat ran")),
            _overlaps(("a", "a b c"), ("b c d e", "c"), ("a b", "c")),
            _overlaps(("a a b", "a"), ("a", "a a"), ("a a", "a b a")),
            _overlaps(("ab  c ", "ba c")),
            _overlaps(("", ""), ("a", ""), ("", "a b")),
        ),
        "minimum_risk": (
            _answered("the overlap of the words", overlap, "a b", "a b", "c"),
            _answered("the overlap of the words", overlap, "a b c d", "b c", "a c d e f", "c d"),
            _answered("the number of b in the hypothesis", lambda h, _: h.count("b"), "a", "bb"),
            _answered("the number of b in the reference", lambda _, r: r.count("b"), "a", "bb"),
            _answered("always 0.5", lambda *_: 0.5, "b", "c", "a"),
            _answered("minus the letters of the hypothesis", lambda h, _: -len(h), "aab", "ab"),
            _answered("the overlap of the words", overlap, "a"),
        ),
    },
)
