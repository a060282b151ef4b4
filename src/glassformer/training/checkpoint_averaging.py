"""The best validation, and the checkpoints whose mean is the final weights (section 6.1)."""

from collections.abc import Sequence
from typing import Any

from glassformer.training.setup.options import TrainConfig

__all__ = ["averaged_updates", "best", "validations_since_best"]

Records = Sequence[dict[str, Any]]


def best(validations: Records, config: TrainConfig) -> dict[str, Any]:
    """The record of the best validation."""
    return max(validations, key=lambda record: _merit(record, config))


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
        # After few validations, an early model would spoil the mean.
        earliest = best(validations, config)["update"] / 2
        late = [record for record in chosen if record["update"] >= earliest]
        late.sort(key=lambda record: _merit(record, config), reverse=True)
        chosen = late[: config.average_count]
    return sorted(record["update"] for record in chosen)


def _merit(validation: dict[str, Any], config: TrainConfig) -> tuple[float, float]:
    # If BLEU is equal (often 0 at first), the loss decides.
    by_loss = -validation["loss"]
    return (validation["bleu"], by_loss) if config.metric == "bleu" else (by_loss, 0.0)
