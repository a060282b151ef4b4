"""The best validation, and the checkpoints whose mean is the final weights (section 6.1)."""

from collections.abc import Callable, Sequence
from typing import Any

from glassformer.training.setup.options import TrainConfig

__all__ = ["averaged_updates", "best", "validations_since_best"]

_WINDOW = 0.1  # of the updates up to the best validation: far earlier models spoil the mean
Records = Sequence[dict[str, Any]]


def best(validations: Records, config: TrainConfig) -> dict[str, Any]:
    """The record of the best validation."""
    return max(validations, key=_merit(validations, config))


def validations_since_best(validations: Records, config: TrainConfig) -> int:
    return len(validations) - 1 - validations.index(best(validations, config)) if validations else 0


def averaged_updates(validations: Records, config: TrainConfig) -> list[int]:
    """The updates whose checkpoints are averaged, in the order of time."""
    chosen = list(validations)
    if config.average == "none":
        chosen = chosen[-1:]
    elif config.average == "last":
        chosen = chosen[-config.average_count :]
    elif chosen:
        earliest = (1 - _WINDOW) * best(validations, config)["update"]
        late = [record for record in chosen if record["update"] >= earliest]
        late.sort(key=_merit(validations, config), reverse=True)
        chosen = late[: config.average_count]
    return sorted(record["update"] for record in chosen)


def _merit(validations: Records, config: TrainConfig) -> Callable[[dict[str, Any]], Any]:
    """The key of the order. BLEU of different pairs does not compare; the loss does nearly."""
    alike = len({record.get("pairs") for record in validations}) == 1
    if config.metric == "bleu" and alike:
        # If BLEU is equal (often 0 at first), the loss decides.
        return lambda record: (record["bleu"], -record["loss"])
    return lambda record: -record["loss"]
