"""``glassformer train``, which makes a translator from two text files."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING

from glassformer.training.setup.options import TrainConfig

if TYPE_CHECKING:
    from glassformer.parts import Parts
    from glassformer.training.reporting import Reporter

__all__ = ["OPTIONS", "run"]

OPTIONS = TrainConfig


def run(config: TrainConfig, reporter: Reporter | None = None, parts: Parts | None = None) -> int:
    """Train or continue; return 0, or 128 + the number of the signal that stopped the run.

    ``parts=None`` stands for PLAIN or FAST, as ``config.plain`` says.
    """
    began = time.monotonic()  # --minutes includes the import of torch
    from glassformer.training.parallel.ranks import end_with_torchrun

    end_with_torchrun()
    if int(os.environ.get("RANK", 0)) == 0 or "TORCHELASTIC_RUN_ID" not in os.environ:
        from glassformer.training.loop import Stopped
        from glassformer.training.train import train

        try:
            train(config, reporter, parts=parts, began=began)
        except Stopped as stopped:
            print(f"glassformer: {stopped}", file=sys.stderr)
            return 128 + stopped.signal
    else:
        from glassformer.parts import FAST, PLAIN
        from glassformer.training.parallel.worker import train_rank

        train_rank(config, parts or (PLAIN if config.plain else FAST))
    return 0
