"""Progress on the terminal or in a notebook, and ``metrics.jsonl``, which plots and pages read."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from html import escape
from pathlib import Path
from textwrap import shorten
from typing import Any, Protocol, runtime_checkable

from glassformer.support.consoles import new_console
from glassformer.support.displays import notebook
from glassformer.support.errors import InputError
from glassformer.support.files import naming, write_atomically
from glassformer.support.progress import Advance, console, duration, working
from glassformer.training.validation import Validation

__all__ = ["CellReporter", "Metrics", "Reporter", "TextReporter", "beside"]

_OF_THE_END = ("average", "score")  # kinds of records
_LONGEST_LINE = 300  # characters about a failure
_LAST = 1900  # characters of a notebook's output, where it shows no HTML
_SCROLLS = "max-height: 24em; overflow: auto; display: flex; flex-flow: column-reverse"
_SAMPLES = 2  # translations that a validation shows


@runtime_checkable
class Reporter(Protocol):
    """Receives the events of a run."""

    def note(self, text: str) -> None:
        """Show a line of text."""

    def update(self, record: dict[str, Any], *, updates: int, seconds_left: float) -> None:
        """Show the mean losses since the last report, which the metrics hold as well."""

    def validated(self, record: dict[str, Any], validation: Validation) -> None:
        """Show the scores and translations of a validation."""

    def close(self) -> None:
        """End the reports, because the run has ended, perhaps with an error."""


@contextmanager
def beside(name: str, note: Callable[[str], None]) -> Iterator[None]:
    """End the block at an error, about which ``note`` gets a line.

    The translator can do without the block's result. So an error in the block, such as an error of
    an own part, does not end a finished training.

    >>> with beside("score", note=print):
    ...     1 / 0
    no score: ZeroDivisionError: division by zero
    """
    try:
        yield
    except Exception as error:
        kind = "" if isinstance(error, InputError) else f"{type(error).__name__}: "
        note(shorten(f"no {name}: {kind}{error}", _LONGEST_LINE, placeholder=" …"))


class Metrics:
    """``metrics.jsonl``, whose lines are JSON objects of kind update, validation, average or score.

    A run that continues from a checkpoint first removes the lines after that checkpoint, and the
    scores of the end.
    """

    def __init__(self, path: Path, *, from_update: int) -> None:
        lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
        kept = []
        for line in lines:
            try:
                record = json.loads(line)
                before = record["update"] <= from_update and record.get("kind") not in _OF_THE_END
                if before and line.endswith(b"\n"):
                    kept.append(line)
            except (json.JSONDecodeError, KeyError, TypeError, UnicodeDecodeError):
                continue  # half a line, after a kill
        write_atomically(path, b"".join(kept))
        self._file = path.open("a", encoding="utf-8", newline="\n")

    def write(self, record: dict[str, Any]) -> None:
        with naming(Path(self._file.name)):
            self._file.write(json.dumps(record) + "\n")
            self._file.flush()

    def close(self) -> None:
        self._file.close()


class TextReporter:
    """Reports on standard error, with a live line (by rich) on a terminal, or else plain lines."""

    def __init__(self) -> None:
        self.console = console()
        self._line, self._update = ExitStack(), 0
        self._advance: Advance | None = None

    def note(self, text: str) -> None:
        self.console.print(text, markup=False)

    def update(self, record: dict[str, Any], *, updates: int, seconds_left: float) -> None:
        text = (
            f"update {record['update']:,}/{updates:,}  loss {record['loss']:.3f}"
            f"  perplexity {record['perplexity']:.2f}"
            f"  {record['tokens_per_second']:,.0f} tokens/s  {duration(seconds_left)} left"
        )
        if not self.console.is_terminal:
            self.note(text)
            return
        if self._advance is None:
            self._advance = self._line.enter_context(working("training", total=updates))
        self._advance(record["update"] - self._update, text)
        self._update = record["update"]
        if self._update >= updates:
            self.close()

    def validated(self, record: dict[str, Any], validation: Validation) -> None:
        best = "  best so far" if record["best"] else ""
        self.note(
            f"validation, update {record['update']:,}: BLEU {validation.bleu:.2f}"
            f"  chrF++ {validation.chrf:.2f}  loss {validation.loss:.3f}"
            f"  {duration(record['seconds'])}{best}"
        )
        pairs = validation.pairs
        step = max(1, len(pairs) // _SAMPLES)
        for place in range(step // 2, len(pairs), step)[:_SAMPLES]:
            self.note(f"    source      {pairs[place].source}")
            self.note(f"    reference   {pairs[place].target}")
            self.note(f"    translation {validation.translations[place]}")

    def close(self) -> None:
        self._line.close()
        self._advance = None


class CellReporter(TextReporter):
    """Reports in one output of a notebook's cell, which scrolls to the newest line."""

    def __init__(self) -> None:
        super().__init__()
        self.console, self.text = new_console(force_terminal=False), ""  # no live line of rich
        self.output = notebook().display.display({}, raw=True, display_id=True)

    def note(self, text: str) -> None:
        self.text += f"{text}\n"
        lines = f'<pre style="overflow: visible">{escape(self.text)}</pre>'
        html = f'<div style="{_SCROLLS}">{lines}</div>'
        self.output.update({"text/plain": self.text[-_LAST:], "text/html": html}, raw=True)
