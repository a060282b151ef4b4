"""A log and a pipe have whole lines; a terminal has lines that are broken between words."""

import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.table import Table
from rich.text import Text

import glassformer
from glassformer.support.consoles import new_console

WORDS = st.lists(st.text("abc/-.", min_size=1, max_size=300), min_size=1, max_size=30)
COLUMNS = st.integers(40, 250)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def printed(stream, columns, *things):
    """The lines that a console on the stream prints where ``COLUMNS`` says so many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(columns))
        for thing in things:
            new_console(file=stream, color_system=None).print(thing)
    return stream.getvalue().splitlines()


@given(WORDS, COLUMNS)
def test_a_log_has_whole_lines(words, columns):
    line = " ".join(words)
    table = Table(line, "", title="title")
    table.add_row("", line)
    first, *others = printed(io.StringIO(), columns, Text(line), table)
    assert first == line
    assert sum(line in other for other in others) == 2


@given(WORDS, COLUMNS)
def test_a_terminal_has_no_line_that_is_too_long(words, columns):
    lines = printed(Terminal(), columns, Text(" ".join(words)))
    assert max(map(len, lines)) <= columns + 1  # a space may stand after the last word
    assert "".join(lines).replace(" ", "") == "".join(words)
    if max(map(len, words)) <= columns:
        assert " ".join(map(str.strip, lines)).split() == words


def test_every_console_is_made_here():
    package = Path(glassformer.__file__).parent
    makers = {path.name for path in package.rglob("*.py") if "Console(" in path.read_text("utf-8")}
    assert makers == {"consoles.py"}
