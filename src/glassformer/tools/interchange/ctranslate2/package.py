"""Imports CTranslate2 (extra ``export``) with its own OpenMP library, separate from torch's."""

import os
import sys
from typing import Any

from glassformer.support.errors import missing_extra

__all__ = ["import_ctranslate2"]


def import_ctranslate2() -> Any:
    """``import ctranslate2``, bound to the OpenMP library that CTranslate2 brings.

    torch brings an OpenMP library too, and without this function both packages would share one. An
    OpenMP library counts the threads of all callers. If there are more threads than
    cores, they sleep between two pieces of work instead of spinning. A sentence that two threads
    translate then takes ten times as long. ``RTLD_DEEPBIND``, a flag of glibc, prefers
    CTranslate2's library.

    Raises InputError if ctranslate2 is not installed.
    """
    deep = getattr(os, "RTLD_DEEPBIND", 0)
    if deep:
        flags = sys.getdlopenflags()
        sys.setdlopenflags(flags | deep)
    try:
        import ctranslate2
    except ImportError as error:
        raise missing_extra("ctranslate2", "ctranslate2") from error
    finally:
        if deep:
            sys.setdlopenflags(flags)
    return ctranslate2
