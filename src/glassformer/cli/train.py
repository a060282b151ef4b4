"""``glassformer train``: two text files in, a translator out."""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from glassformer.errors import InputError
from glassformer.training.setup.options import TrainConfig

if TYPE_CHECKING:
    from glassformer.training.reporting import Reporter
    from glassformer.training.train import Run

__all__ = ["OPTIONS", "run"]

OPTIONS = TrainConfig


_LONGEST = 200  # characters of a side of a pair that alignment is learnt from


def run(config: TrainConfig, reporter: Reporter | None = None) -> int:
    """Train or continue; 128 + the signal's number if one stopped the run, which is then saved."""
    began = time.monotonic()  # before torch is imported: --minutes includes that
    if int(os.environ.get("RANK", 0)) > 0 and "TORCHELASTIC_RUN_ID" in os.environ:
        from glassformer.training.parallel.worker import follow

        return follow(config)
    from glassformer.training.loop import Stopped
    from glassformer.training.train import train

    try:
        _keep_heads(train(config, reporter, began=began))
    except Stopped as stopped:
        print(f"glassformer: {stopped}", file=sys.stderr)
        return 128 + stopped.signal
    return 0


def _keep_heads(found: Run) -> None:
    """The heads that align words best, on the validation pairs, into the bundle."""
    from glassformer.inspection.alignment.heads import find_heads, store_heads
    from glassformer.translator import Translator

    translator = Translator.load(found.directory, device="cpu")
    pairs = [(pair.source, pair.target) for pair in found.pairs]
    pairs = [pair for pair in pairs if max(map(len, pair)) <= _LONGEST]
    with suppress(InputError):  # where they tell nothing, all heads of a layer do
        store_heads(found.directory, find_heads(translator, pairs).heads)
