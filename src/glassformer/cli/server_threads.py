"""The CPU threads of ``serve`` and ``look``, which share their machine with other programs.

Threads of one product wait for each other. By default they wait awake, and take the cores from
each other and from other programs. On a busy machine a server is then many times slower.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from glassformer.translator import Translator

__all__ = ["choose_threads", "wait_asleep"]

_LARGE = 512  # d_model: the products of smaller models are quicker than the waiting for each other


def wait_asleep() -> None:
    """Let torch's threads wait asleep; call it before the first import of torch, which reads it."""
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def choose_threads(given: int, translators: Iterable[Translator]) -> None:
    """Set torch's threads: those ``given``; for 0, one if all models are small, or else all."""
    import torch

    small = all(translator.model.config.d_model < _LARGE for translator in translators)
    if given or small:
        torch.set_num_threads(given or 1)
