"""``glassformer train``: two text files in, a translator out."""

from glassformer.config import TrainConfig

__all__ = ["OPTIONS", "run"]

OPTIONS = TrainConfig


def run(options: TrainConfig) -> int:
    """Train or continue; 128 + the signal's number where one stopped it."""
    from glassformer.training.run import train
    from glassformer.training.trainer import Stopped

    try:
        train(options)
    except Stopped as stopped:
        import sys

        print(f"glassformer: {stopped}", file=sys.stderr)
        return 128 + stopped.signal
    return 0
