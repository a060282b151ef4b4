"""The best validation, and the checkpoints whose mean is the final weights (section 6.1)."""

from collections.abc import Callable, Sequence
from typing import Any

from glassformer.training.setup.options import LengthOptions

__all__ = ["averaged_updates", "best"]

_WINDOW = 0.1  # share of the updates up to the best validation; far earlier models spoil the mean
Records = Sequence[dict[str, Any]]


def best(validations: Records, length: LengthOptions) -> dict[str, Any]:
    """The record of the best validation."""
    return max(validations, key=_merit(validations, length))


def averaged_updates(validations: Records, length: LengthOptions) -> list[int]:
    """The updates, in the order of time, whose checkpoints enter the mean."""
    chosen = list(validations)
    if length.average == "none":
        chosen = chosen[-1:]
    elif length.average == "last":
        chosen = chosen[-length.average_count :]
    elif chosen:
        earliest = (1 - _WINDOW) * best(validations, length)["update"]
        late = [record for record in chosen if record["update"] >= earliest]
        late.sort(key=_merit(validations, length), reverse=True)
        chosen = late[: length.average_count]
    return sorted(record["update"] for record in chosen)


def _merit(validations: Records, length: LengthOptions) -> Callable[[dict[str, Any]], Any]:
    """The ranking key: scores if all validations have equally many pairs, or else losses."""
    alike = len({record.get("pairs") for record in validations}) == 1
    metric = length.metric
    if metric and metric != "loss" and alike:
        # If the score is equal (BLEU is often 0 at first), the loss decides.
        return lambda record: (record[metric], -record["loss"])
    return lambda record: -record["loss"]
