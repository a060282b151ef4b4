"""What each known mistake does to a translator, as ``python -m benchmarks.damage`` measured it.

The demo's translator is trained with the mistake on 12,000 phrases, 4 times each, once a seed. Its
score is the percentage of right translations of phrases whose years it has not seen.
"""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

__all__ = ["DAMAGE", "EPOCHS", "SIZE", "Scores", "damage", "damage_text"]

DAMAGE = Path(__file__).with_name("damage.json")
SIZE = 12_000  # phrases
EPOCHS = 4.0

Scores = Mapping[int, float | None]
"""The score of each seed; None if an error or NaN ends the training."""


@cache
def damage() -> Mapping[str, Scores]:
    """The scores with each measured mistake, by its id; those of right parts by the empty id."""
    if not DAMAGE.exists():
        return {}
    table = json.loads(DAMAGE.read_text(encoding="utf-8"))
    return {
        mistake: {int(seed): score for seed, score in scores.items()}
        for mistake, scores in table.items()
    }


def damage_text(mistake: str) -> str | None:
    """The measured damage in a sentence; None if it was not measured.

    >>> damage_text("scale-missing") is None or "with right parts" in damage_text("scale-missing")
    True
    """
    scores = damage().get(mistake)
    if not scores:
        return None
    if None in scores.values():
        return "Measured on dates and amounts: it ends with an error."
    return (
        f"Measured on dates and amounts: {_listed(scores)} right with it,"
        f" {_listed(damage()[''])} with right parts."
    )


def _listed(scores: Scores) -> str:
    numbers = [score for score in scores.values() if score is not None]
    low, high = (f"{share:.0f}" for share in (min(numbers), max(numbers)))
    return f"{low} %" if low == high else f"{low} to {high} %"
