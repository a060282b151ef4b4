"""Single keys of a terminal, without the return key."""

import os
import select
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any

__all__ = ["can_read_keys", "pressed_key", "single_keys"]


def _module(name: str) -> Any:
    """A module, or None on systems that lack it."""
    with suppress(ImportError):
        return import_module(name)
    return None


termios, tty, msvcrt = map(_module, ("termios", "tty", "msvcrt"))  # only Windows has msvcrt


def can_read_keys() -> bool:
    """Whether the standard input is a terminal that gives single keys."""
    return sys.stdin.isatty() and bool(termios or msvcrt)


@contextmanager
def single_keys() -> Iterator[None]:
    """Let the terminal hand over each key at once; without a terminal, nothing changes.

    A shell takes the setting back at Ctrl-Z, and ``fg`` sends a signal.
    """
    if not (sys.stdin.isatty() and termios):
        yield
        return
    before = termios.tcgetattr(sys.stdin)
    handler = signal.signal(signal.SIGCONT, lambda *_: tty.setcbreak(sys.stdin))
    try:
        tty.setcbreak(sys.stdin)
        yield
    finally:
        signal.signal(signal.SIGCONT, handler)
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def pressed_key(seconds: float) -> str:
    """The key that is pressed within ``seconds``, or an empty text.

    Several bytes at once are an arrow key or a pasted text, and no key.
    """
    if can_read_keys() and termios:
        ready, _, _ = select.select([sys.stdin], [], [], seconds)
        typed = os.read(sys.stdin.fileno(), 1024).decode(errors="ignore") if ready else ""
        return typed[:1] if len(set(typed)) == 1 else ""
    time.sleep(seconds)
    return str(msvcrt.getwch()) if can_read_keys() and msvcrt.kbhit() else ""
