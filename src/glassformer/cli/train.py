"""``glassformer train``: two text files in, a translator out."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING

from glassformer.config import TrainConfig

if TYPE_CHECKING:
    from glassformer.training.progress import Reporter

__all__ = ["OPTIONS", "run", "train_until_stopped"]

OPTIONS = TrainConfig


def run(options: TrainConfig) -> int:
    """Train or continue, and return the exit status."""
    return train_until_stopped(options)


def train_until_stopped(config: TrainConfig, reporter: Reporter | None = None) -> int:
    """0 when it is done; 128 + the signal's number where one stopped it and it was saved."""
    began = time.monotonic()  # before torch is imported: a person's minutes include that
    if int(os.environ.get("RANK", 0)) > 0 and "TORCHELASTIC_RUN_ID" in os.environ:
        from glassformer.training.assistant import assist_under_torchrun

        return assist_under_torchrun(config.device)
    from glassformer.training.run import train
    from glassformer.training.trainer import Stopped

    try:
        train(config, reporter, began=began)
    except Stopped as stopped:
        print(f"glassformer: {stopped}", file=sys.stderr)
        return 128 + stopped.signal
    return 0
