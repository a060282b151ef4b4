"""The measured harm of known mistakes to a translator of dates and amounts.

``python -m benchmarks mistakes`` trains as ``learn train`` does and writes ``measured.json``. The
file has the percentage of right phrases by seed and the mean final loss for each mistake.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["cost_of"]

RIGHT = "right parts"


def cost_of(mistake: str) -> str | None:
    """The measured harm of a mistake; None if some translator with the mistake is not worse.

    >>> print(cost_of("causal-missing"))
    Measured: 0 % of phrases are right with it, 75 to 81 % without; the loss is 0.07, not 0.12.
    """
    wrong, right = _figures().get(mistake), _figures()[RIGHT]
    if wrong is None or max(wrong["right"]) >= min(right["right"]):
        return None
    losses = f"{wrong['loss']:.2f}", f"{right['loss']:.2f}"
    loss = "; the loss is {}, not {}".format(*losses) if losses[0] != losses[1] else ""
    return (
        f"Measured: {_range(wrong['right'])} of phrases are right with it,"
        f" {_range(right['right'])} without{loss}."
    )


def _range(scores: list[float]) -> str:
    low, high = f"{min(scores):.0f}", f"{max(scores):.0f}"
    return f"{low} %" if low == high else f"{low} to {high} %"


@cache
def _figures() -> dict[str, dict[str, Any]]:
    """The percentages of right phrases and the loss of each mistake."""
    text = Path(__file__).with_name("measured.json").read_text(encoding="utf-8")
    figures: dict[str, dict[str, Any]] = json.loads(text)
    return figures
