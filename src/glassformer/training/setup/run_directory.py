"""The directory of a run, with the name of each file, and with a lock.

One training at a time works in the directory. The operating system frees the lock when the process
ends, even by a kill.
"""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Literal

from glassformer.data.corpus import Pair, read_pairs
from glassformer.support.errors import InputError
from glassformer.support.files import remove_directory, remove_leftovers
from glassformer.training.checkpoint import checkpoints

__all__ = ["RunDirectory"]

_BUNDLE = ("config.json", "model.safetensors", "tokenizer.model", "source.model", "target.model")
_CORPUS = ("train.jsonl", "valid.jsonl", "augmented.jsonl", "counts.json", "train", "valid")
_RUN = ("config.yaml", "metrics.jsonl", "README.md")
_WRITTEN = (*_BUNDLE, *_RUN, *(f"data/{name}" for name in _CORPUS))
_MOST_BYTES = 1_000


class RunDirectory:
    """The files of one training; at the end, the bundle lies beside the files.

    >>> RunDirectory(Path("runs/en-de")).metrics.as_posix()
    'runs/en-de/metrics.jsonl'
    """

    def __init__(self, path: Path) -> None:
        data = path / "data"
        self.path = path
        self.options = path / "config.yaml"  # settled
        self.metrics = path / "metrics.jsonl"
        self.checkpoints = path / "checkpoints"
        self.inputs = data / "inputs.json"  # the hashes of the input files
        self.counts = data / "counts.json"  # numbers of kept and dropped pairs, and options
        self.kept = data / "kept.jsonl"  # until the run divides it into train and valid
        self.train = data / "train.jsonl"
        self.valid = data / "valid.jsonl"  # the held-out pairs
        self.augmented = data / "augmented.jsonl"  # made of `train`, or of the option also
        self.replay = data / "replay.jsonl"  # replay text with the parent's translations

    def pairs(self) -> Iterator[Pair]:
        """All pairs that the training reads."""
        for file in (self.train, self.augmented, self.replay):
            if file.exists():
                yield from read_pairs(file)

    def subwords(self, side: Literal["both", "source", "target"]) -> Path:
        """The SentencePiece model of one side, or of both."""
        return self.path / "data" / f"{side}.model"

    def packed(self, name: Literal["train", "valid"]) -> Path:
        """The directory of the packed pairs."""
        return self.path / "data" / name

    @property
    def begun(self) -> bool:
        """Whether the run has a checkpoint or a bundle."""
        return bool(checkpoints(self.checkpoints)) or (self.path / "config.json").exists()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Claim the directory, and hold the lock, ``data/lock``, until the block ends.

        Raises InputError if another training holds the lock, or if the claim fails.
        """
        self.claim()
        with (self.path / "data" / "lock").open("a+b") as file:
            if not _lock(file):
                file.seek(0)
                holder = file.read(_MOST_BYTES).decode("utf-8", "replace") or "a process"
                raise InputError(
                    f"another training works in {self.path}: {holder}: wait until it ends, end"
                    " that process with kill, or give another directory"
                )
            file.truncate(0)
            file.write(f"process {os.getpid()} on {socket.gethostname()}".encode())
            file.flush()
            remove_leftovers(self.path / "data")
            yield

    def claim(self) -> None:
        """Make the directory; refuse one with other files that the run would overwrite."""
        try:
            (self.path / "data").mkdir(parents=True, exist_ok=True)
        except (OSError, ValueError) as error:  # ValueError: a NUL in the name
            reason = getattr(error, "strerror", error)
            raise InputError(
                f"run {self.path}: cannot be made ({reason}): give a directory that can be written"
                " to"
            ) from error
        begun = self.inputs.exists() or checkpoints(self.checkpoints)
        foreign = [self.path / name for name in _WRITTEN if (self.path / name).exists()]
        if foreign and not begun:
            raise InputError(
                f"{foreign[0]} is there already, and no training made it: give a new directory"
            )

    def remove_derived(self) -> None:
        """Remove the augmented pairs, the subwords and the packed pairs."""
        models = (self.subwords("both"), self.subwords("source"), self.subwords("target"))
        for file in (self.augmented, self.replay, *models):
            file.unlink(missing_ok=True)
        for meta in (self.path / "data").glob("*/meta.json"):
            remove_directory(meta.parent)


def _lock(file: BinaryIO) -> bool:
    """Lock the file; return False if another process has the lock, True if locks do not exist."""
    try:
        import fcntl
    except ImportError:
        return _lock_on_windows(file)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True


def _lock_on_windows(file: BinaryIO) -> bool:
    """Lock one byte after the text on Windows, which lets no process read a locked byte."""
    import msvcrt

    file.seek(_MOST_BYTES)
    try:
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    except OSError:
        return False
    return True
