"""Minimum-risk decoding (Kumar and Byrne 2004) among samples (Eikema and Aziz 2020)."""

from collections import Counter
from collections.abc import Callable


def overlap(hypothesis: str, reference: str) -> float:
    """The F1 score between the words of two texts."""
    one, other = Counter(hypothesis.split()), Counter(reference.split())
    words = one.total() + other.total()
    return 2 * (one & other).total() / words if words else 1.0


def minimum_risk(
    samples: list[str], similarity: Callable[[str, str], float]
) -> tuple[str, list[float]]:
    """The first sample with the greatest mean similarity to the other samples; and all means."""
    means = []
    for place, hypothesis in enumerate(samples):
        others = samples[:place] + samples[place + 1 :]
        total = sum(similarity(hypothesis, reference) for reference in others)
        means.append(total / max(len(others), 1))
    return samples[means.index(max(means))], means
