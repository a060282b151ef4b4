"""Keeps the memory that an update frees for the next update.

The C library returns large freed blocks to the system. A new block then consists of pages, and
the system clears each page at the first access. Each update of a small model allocates a hundred
megabytes in some hundred blocks. The system took about an eighth of the update's time to
clear the 24,000 pages of the blocks.
"""

import ctypes

__all__ = ["keep_freed_memory"]

# Parameter numbers of glibc's malloc.h, with their values. glibc keeps no block above 32 MiB.
_TRIM_THRESHOLD = (-1, 2**31 - 1)
_TOP_PAD = (-2, 64 << 20)
_MMAP_THRESHOLD = (-3, 32 << 20)


def keep_freed_memory() -> bool:
    """Let the process keep freed memory (glibc's ``mallopt``); return whether the C library can.

    >>> keep_freed_memory() in (True, False)
    True
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, TypeError):  # another C library
        return False
    return all(mallopt(*setting) for setting in (_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD))
