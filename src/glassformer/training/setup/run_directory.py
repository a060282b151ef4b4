"""The directory of a run: the name of each of its files, and its lock.

One training at a time works in it. The operating system holds the lock and frees it when its
process ends, however that ends.
"""

import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal

from glassformer.errors import InputError
from glassformer.training.checkpoint import checkpoints

__all__ = ["PairsName", "RunDirectory"]

_BUNDLE = ("config.json", "model.safetensors", "tokenizer.model", "source.model", "target.model")
_CORPUS = ("train.jsonl", "valid.jsonl", "augmented.jsonl", "counts.json", "train", "valid")
_RUN = ("config.yaml", "metrics.jsonl", "README.md")
_WRITTEN = (*_BUNDLE, *_RUN, *(f"data/{name}" for name in _CORPUS))
_MOST_BYTES = 1_000
PairsName = Literal["train", "valid"]


@dataclass(frozen=True)
class RunDirectory:
    """The files of one training, which its bundle joins at the end.

    >>> RunDirectory(Path("runs/en-de")).metrics.as_posix()
    'runs/en-de/metrics.jsonl'
    """

    path: Path

    @property
    def options(self) -> Path:
        """The settled options."""
        return self.path / "config.yaml"

    @property
    def metrics(self) -> Path:
        return self.path / "metrics.jsonl"

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @property
    def inputs(self) -> Path:
        """The hashes of the files that were read."""
        return self.path / "data" / "inputs.json"

    @property
    def counts(self) -> Path:
        """The numbers of kept and dropped pairs, and the options that they depend on."""
        return self.path / "data" / "counts.json"

    @property
    def kept(self) -> Path:
        """The pairs that the filter keeps, until they are divided into the next two files."""
        return self.path / "data" / "kept.jsonl"

    @property
    def train(self) -> Path:
        """The pairs to train on."""
        return self.path / "data" / "train.jsonl"

    @property
    def valid(self) -> Path:
        """The pairs that are held out."""
        return self.path / "data" / "valid.jsonl"

    @property
    def augmented(self) -> Path:
        """The pairs that are made of the others, and those of the option ``also``."""
        return self.path / "data" / "augmented.jsonl"

    @property
    def replay(self) -> Path:
        """The parent's translations."""
        return self.path / "data" / "replay.jsonl"

    def subwords(self, side: Literal["both", "source", "target"]) -> Path:
        """The SentencePiece model of one side, or of both."""
        return self.path / "data" / f"{side}.model"

    def packed(self, name: PairsName) -> Path:
        """The directory of the packed pairs."""
        return self.path / "data" / name

    @property
    def begun(self) -> bool:
        """Whether the run has a checkpoint or a bundle."""
        return bool(checkpoints(self.checkpoints)) or (self.path / "config.json").exists()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Claim the directory, and hold its lock, ``data/lock``, as long as the block lasts.

        Raises InputError if another training holds it, or if the directory cannot be claimed.
        """
        self.claim()
        with (self.path / "data" / "lock").open("a+b") as file:
            if not _lock(file):
                file.seek(0)
                holder = file.read(_MOST_BYTES).decode("utf-8", "replace") or "a process"
                raise InputError(
                    f"another training works in {self.path}: {holder}: wait until it ends, or give"
                    " another directory (option --out)"
                )
            file.truncate(0)
            file.write(f"process {os.getpid()} on {socket.gethostname()}".encode())
            file.flush()
            yield

    def claim(self) -> None:
        """Make the directory; refuse one with other files that the run would overwrite."""
        try:
            (self.path / "data").mkdir(parents=True, exist_ok=True)
        except (OSError, ValueError) as error:  # a NUL in a name is the second
            reason = getattr(error, "strerror", error)
            raise InputError(
                f"run {self.path}: cannot be made ({reason}): give a directory that can be written"
                " to"
            ) from error
        ours = self.inputs.exists() or checkpoints(self.checkpoints)
        foreign = [self.path / name for name in _WRITTEN if (self.path / name).exists()]
        if foreign and not ours:
            raise InputError(
                f"{foreign[0]} is there already, and no training made it: give a new directory as"
                " run (option --out)"
            )

    def remove_derived(self) -> None:
        """Remove the augmented pairs, the subwords and the packed pairs."""
        models = (self.subwords("both"), self.subwords("source"), self.subwords("target"))
        for file in (self.augmented, self.replay, *models):
            file.unlink(missing_ok=True)
        for meta in (self.path / "data").glob("*/meta.json"):
            # Renamed first: after a kill, the next call overwrites the rest of it.
            doomed = meta.parent.with_name(meta.parent.name + ".partial")
            shutil.rmtree(doomed, ignore_errors=True)
            meta.parent.rename(doomed)
            shutil.rmtree(doomed)


def _lock(file: BinaryIO) -> bool:
    """Lock the file; False if another process has. True, too, where there are no locks."""
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError):  # Windows, or a file system without locks
        return True
    return True
