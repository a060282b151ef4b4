"""Memory that an update has freed is kept for the next, instead of being given back and fetched.

The C library hands large blocks back to the system as soon as they are freed. Whoever asks again
gets pages that the system has to find and clear, one by one, at their first touch. An update of a
small model asks for a hundred megabytes in some hundred blocks, the next update for the same: the
24,000 pages of it took about an eighth of the time.
"""

import ctypes

__all__ = ["keep_freed_memory"]

# Their numbers in glibc's malloc.h, and what they are set to. Blocks above 32 MiB cannot be kept.
_TRIM_THRESHOLD = (-1, 2**31 - 1)
_TOP_PAD = (-2, 64 << 20)
_MMAP_THRESHOLD = (-3, 32 << 20)


def keep_freed_memory() -> bool:
    """Let this process keep what it frees; whether its C library can (glibc's ``mallopt``).

    >>> keep_freed_memory() in (True, False)
    True
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, TypeError):  # another C library; no such names on this system
        return False
    return all(mallopt(*setting) for setting in (_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD))
