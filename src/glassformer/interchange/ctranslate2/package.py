"""The package CTranslate2 (extra ``export``), with an OpenMP of its own."""

import os
import sys
from typing import Any

from glassformer.errors import missing_extra

__all__ = ["import_ctranslate2"]


def import_ctranslate2() -> Any:
    """``import ctranslate2``, so that it does not take the OpenMP library that torch brings.

    An OpenMP library counts the threads that it keeps for each of its callers. Where torch's and
    CTranslate2's are together more than the cores, each waits asleep for its next piece of work
    instead of awake, and a sentence that two threads translate takes ten times as long. Both bring
    the library, but who comes second finds the first one's functions. ``RTLD_DEEPBIND``, which
    glibc has, prefers what CTranslate2 brings.

    Raises InputError where it is not installed.
    """
    flags = sys.getdlopenflags()
    sys.setdlopenflags(flags | getattr(os, "RTLD_DEEPBIND", 0))
    try:
        import ctranslate2
    except ImportError as error:
        raise missing_extra("ctranslate2", "export") from error
    finally:
        sys.setdlopenflags(flags)
    return ctranslate2
