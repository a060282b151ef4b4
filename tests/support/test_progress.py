"""How far long work is: lines on standard error, and silence where nobody asked for them."""

import io
import threading

import pytest

from glassformer.data.lines import read_lines
from glassformer.support import progress
from glassformer.support.progress import console, duration, shown_progress, working


class Stream(io.StringIO):
    """Standard error that tells of some words; a terminal or a log."""

    def __init__(self, words, *, terminal=False):
        super().__init__()
        self.words, self.terminal, self.seen = words, terminal, threading.Event()

    def isatty(self):
        return self.terminal

    def write(self, text):
        count = super().write(text)
        if self.words in self.getvalue():
            self.seen.set()
        return count


@pytest.fixture
def stream(monkeypatch):
    """Makes standard error a stream that waits for words; lines come at once."""
    monkeypatch.setattr(progress, "_BETWEEN", 0.01)
    monkeypatch.setattr(progress, "_PATIENCE", 0.01)
    monkeypatch.setattr(progress, "_REFRESH", 0.01)
    monkeypatch.setenv("TERM", "xterm")

    def made(words, **kind):
        error = Stream(words, **kind)
        monkeypatch.setattr("sys.stderr", error)
        return error

    return made


def test_a_log_gets_a_line_now_and_then(stream):
    error = stream("packing: 25%, ")
    with shown_progress(), working("packing", total=4) as advance:
        advance(1)
        assert error.seen.wait(60)
    assert error.getvalue().splitlines()[-1].endswith(" left")


def test_work_without_a_total_shows_its_time(stream):
    error = stream("learning subwords: 0 s so far")
    with shown_progress(), working("learning subwords"):
        assert error.seen.wait(60)


def test_other_lines_stand_above_the_live_line(stream):
    error = stream("learning", terminal=True)
    with shown_progress():
        notes = console()  # made before the line is, as a training's reporter is
        with working("learning"):
            assert error.seen.wait(60)
            notes.print("a note")
    before = error.getvalue().split("a note")[0]
    assert before.endswith("\r\x1b[2K")


def test_a_terminal_has_a_live_line(stream):
    error = stream("training [bold]", terminal=True)
    with shown_progress(), working("training", total=4) as advance:
        advance(1, "training [bold]")
        assert error.seen.wait(60)
    assert "\x1b[2K" in error.getvalue()  # and at the end it is wiped out


def test_inner_work_counts_for_the_outer_one(stream):
    error = stream("packing: 50%")
    with shown_progress(), working("packing"):
        with working("reading", total=2) as advance:
            advance(1)
            with working("more", total=1) as ignored:
                ignored(1)
            assert error.seen.wait(60)
        error.words, _ = "packing: 0 s so far", error.seen.clear()
        assert error.seen.wait(60)
    assert "reading" not in error.getvalue()
    assert "more" not in error.getvalue()


def test_a_library_call_shows_nothing(stream):
    error = stream("reading")
    with working("reading", total=2) as advance:
        advance(1)
    with shown_progress():
        pass
    with working("reading"):
        assert threading.active_count() == len(threading.enumerate())
        assert not any(thread.name == "progress" for thread in threading.enumerate())
    assert error.getvalue() == ""


@pytest.mark.parametrize("name", ["text.en", "text.en.gz"])
def test_reading_a_file_counts_its_bytes(tmp_path, monkeypatch, name):
    import gzip

    text = "A dog runs.\n" * 100_000
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
    done = []
    monkeypatch.setattr(progress._Line, "advance", lambda _, amount: done.append(amount))
    with shown_progress():
        assert sum(1 for _ in read_lines(path)) == 100_000
    assert sum(done) == path.stat().st_size


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-3.0, "0 s"), (59.4, "59 s"), (60.0, "1:00 min"), (3599.4, "59:59 min"), (3600.0, "1:00 h")],
)
def test_durations(seconds, text):
    assert duration(seconds) == text
