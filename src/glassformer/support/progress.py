"""The progress of long work: a live line on a terminal, a line now and then in a log.

A command opens :func:`shown_progress`; a library call opens no such block and shows no line, nor
does a notebook. Inside the block, :func:`working` names a piece of work. Work inside other work
shows no line of its own. If the outer work has no total, its line shows the inner total.

A thread writes all lines to standard error, so that work in C shows its time too. :func:`console`
prints other lines of the work above the live line.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

from glassformer.support.consoles import new_console
from glassformer.support.displays import notebook

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["Advance", "console", "duration", "shown_progress", "working"]

_PATIENCE = 1.0  # seconds before the first line on a terminal
_BETWEEN = 30.0  # seconds between two lines in a log
_REFRESH = 0.25

Advance = Callable[..., None]
"""A function that takes the newly done amount, and perhaps new words for the line."""


@cache
def console() -> "Console":
    """The console on standard error that the live line shares with other lines."""
    return new_console(stderr=True, soft_wrap=True)


@contextmanager
def shown_progress() -> Iterator[None]:
    """A block in which long work shows its progress."""
    outermost, _Line.shown = not _Line.shown, not notebook()
    try:
        yield
    finally:
        if outermost:
            _Line.shown = False
            console.cache_clear()  # the next command may have another standard error


@contextmanager
def working(words: str, total: float | None = None) -> Iterator[Advance]:
    """A piece of work, which yields a function that takes newly done amounts.

    >>> with working("packing", total=3) as advance:
    ...     for _ in range(3):
    ...         advance(1)
    """
    line = _Line.current
    if not _Line.shown or (line and (line.total or not total)):
        yield lambda *_: None
    elif line:
        line.begin(total)
        try:
            yield line.advance
        finally:
            line.begin(None)
    else:
        _Line.current = line = _Line(words, total)
        try:
            yield line.advance
        finally:
            _Line.current = None
            line.end()


class _Line:
    """The line of the outermost work, and its thread."""

    shown = False
    current: "_Line | None" = None

    def __init__(self, words: str, total: float | None) -> None:
        self.words = words
        self.began = time.monotonic()
        self.begin(total)
        self.ended = threading.Event()
        show = self._live if sys.stderr.isatty() else self._log
        self.thread = threading.Thread(target=show, name="progress", daemon=True)
        self.thread.start()

    def begin(self, total: float | None) -> None:
        self.total, self.done, self.counted_from = total, 0.0, time.monotonic()

    def advance(self, amount: float, words: str = "") -> None:
        self.done += amount
        self.words = words or self.words

    def end(self) -> None:
        self.ended.set()
        self.thread.join()

    def _log(self) -> None:
        while not self.ended.wait(_BETWEEN):
            print(f"{self.words}: {self._share()}", file=sys.stderr, flush=True)

    def _live(self) -> None:
        if self.ended.wait(_PATIENCE):
            return
        from rich.progress import BarColumn, Progress, TextColumn

        words, share = TextColumn("{task.description}", markup=False), "{task.fields[share]}"
        columns = words, BarColumn(20), TextColumn(share)
        with Progress(*columns, console=console(), transient=True, redirect_stdout=False) as bar:
            task = bar.add_task(self.words, total=self.total, share="")
            while not self.ended.wait(_REFRESH):
                bar.update(
                    task,
                    description=self.words,
                    completed=self.done,
                    total=self.total,
                    share=self._share(),
                )

    def _share(self) -> str:
        """The done share and the time that is left; without a total, the time so far."""
        if not self.total or not self.done:
            return f"{duration(time.monotonic() - self.began)} so far"
        share = min(1.0, self.done / self.total)
        left = (time.monotonic() - self.counted_from) * (1 / share - 1)
        return f"{share:.0%}, {duration(left)} left"


def duration(seconds: float) -> str:
    """Seconds as text for people.

    >>> duration(42.0), duration(754.0), duration(7300.0)
    ('42 s', '12:34 min', '2:01 h')
    """
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02d} min"
    return f"{whole // 3600}:{whole % 3600 // 60:02d} h"
