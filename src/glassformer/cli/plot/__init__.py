"""``glassformer plot``: the options of each figure, and what draws them."""

from glassformer.cli.plot.command import OPTIONS, run

__all__ = ["OPTIONS", "run"]
