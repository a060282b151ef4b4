"""One training at a time works in a run's directory.

The operating system holds the lock and frees it when its process ends, however that ends.
"""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from glassformer.errors import InputError
from glassformer.training.setup.resume import claim

__all__ = ["LOCK_FILE", "locked"]

LOCK_FILE = "lock"
_MOST_BYTES = 1_000


@contextmanager
def locked(run: Path) -> Iterator[None]:
    """Make the directory of a run, and hold its lock, ``data/lock``, as long as the block lasts.

    Raises InputError if another training holds it, or if the directory cannot be claimed.
    """
    claim(run)
    with (run / "data" / LOCK_FILE).open("a+b") as file:
        if not _lock(file):
            file.seek(0)
            holder = file.read(_MOST_BYTES).decode("utf-8", "replace") or "a process"
            raise InputError(
                f"another training works in {run}: {holder}: wait until it ends, or give another"
                " directory (option --out)"
            )
        file.truncate(0)
        file.write(f"process {os.getpid()} on {socket.gethostname()}".encode())
        file.flush()
        yield


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
