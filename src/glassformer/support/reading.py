"""The text that a model reads now, for an open capture."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["reading", "told"]

reading: ContextVar[Callable[[str | None], None] | None] = ContextVar("reading", default=None)
"""Takes each text that a model reads, and then None. While a capture has set it, a translator gives
the model one segment after another, in the order of the texts."""


@contextmanager
def told(text: str) -> Iterator[None]:
    """Tell an open capture that the model reads ``text`` inside."""
    tell = reading.get() or (lambda _: None)
    tell(text)
    try:
        yield
    finally:
        tell(None)
