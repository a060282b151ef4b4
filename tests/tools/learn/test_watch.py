"""The watch in a terminal of its own: keys, saves, lost files, and the way out."""

import os
import pty
import select
import signal
import termios
import time

import pytest

from glassformer.tools.learn.keys import pressed_key, single_keys
from glassformer.tools.learn.lesson import lesson
from tests.lessons import ATTENTION, HOLE, RIGHT
from tests.processes import start

MASK = "    return (tokens != pad)[:, None, None, :]\n"


class Terminal:
    """A pseudo-terminal with a process in it, and all that the process has printed."""

    def __init__(self, words, *, keyboard=True):
        self.near, far = pty.openpty()
        nothing = os.open(os.devnull, os.O_RDONLY)
        streams = (far if keyboard else nothing, far, far)
        self.process = start(words, *streams, environment={"COLUMNS": "80"})
        os.close(far)
        os.close(nothing)
        self.printed = ""

    def close(self):
        self.process.kill()
        self.process.join()
        os.close(self.near)

    def press(self, keys):
        os.write(self.near, keys.encode())

    def expect(self, text, seconds=60):
        """Wait for a text; forget what stands before it."""
        end = time.monotonic() + seconds
        while text not in self.printed:
            left = end - time.monotonic()
            assert left > 0, f"no {text!r} in {self.printed!r}"
            if select.select([self.near], [], [], left)[0]:
                self.printed += os.read(self.near, 65536).decode(errors="replace")
        self.printed = self.printed.partition(text)[2]


@pytest.fixture
def terminal(tmp_path):
    terminal = Terminal(["learn", tmp_path / "lessons"])
    yield terminal
    terminal.close()


def test_keys_and_saves(terminal, tmp_path):
    terminal.expect("01_attention.py in your editor (10 minutes)")
    terminal.expect("Replace each `raise NotImplementedError`")
    terminal.expect("not written yet")
    terminal.expect("h hint 1 of 3   s solution   n next lesson   l list   q quit")
    terminal.press("?")
    terminal.expect("h hint 1 of 3")
    for _ in range(2):
        terminal.press("s")
        terminal.expect("Press S")
        terminal.expect("q quit")
    terminal.press("S")
    terminal.expect("+weights = masked_softmax(scores, mask)")
    terminal.expect("q quit")
    assert "To try" not in terminal.printed
    for number in (1, 2):
        terminal.press("h")
        terminal.expect(f"Hint {number} of 3")
        terminal.expect(f"h hint {number + 1} of 3")
    file = tmp_path / "lessons" / ATTENTION.file_name
    file.unlink()
    terminal.expect(f"is gone. This writes it anew:\r\nglassformer learn reset {file.parent}")
    file.write_text(ATTENTION.template.replace(HOLE, RIGHT), encoding="utf-8")
    terminal.expect("right")
    terminal.expect("To try")
    terminal.expect("s solution and answers   n next lesson   l list   q quit")
    terminal.press("o")
    terminal.expect("The check runs again, with your own parts of earlier lessons.")
    terminal.expect("You have no right part of an earlier lesson yet.")
    terminal.expect("q quit")
    terminal.press("s")
    terminal.expect("Nearly one-hot")
    terminal.expect("q quit")
    terminal.press("l")
    terminal.expect("[x]  1. Scaled dot-product attention")
    terminal.expect("q quit")
    terminal.press("n")
    terminal.expect("02_padding.py in your editor")
    terminal.expect("q quit")
    terminal.press("h")
    terminal.expect("Hint 1 of 3, padding_mask")
    padding = lesson("padding")
    text = padding.template.replace(HOLE, MASK, 1)
    (tmp_path / "lessons" / padding.file_name).write_text(text, encoding="utf-8")
    terminal.expect("masked_softmax is not written yet")
    terminal.expect("q quit")
    terminal.press("h")
    terminal.expect("Hint 1 of 3, masked_softmax")
    terminal.expect("h hint 2 of 3")
    file = tmp_path / "lessons" / lesson("rotary").file_name
    file.write_text(file.read_text("utf-8") + "\n", encoding="utf-8")
    terminal.expect("rotary_angles is not written yet")
    terminal.expect("s solution   n next lesson")
    terminal.press("q")
    terminal.process.join(30)
    assert terminal.process.exitcode == 0


def test_only_a_key_alone_counts_and_fg_gives_the_keys_back(monkeypatch):
    near, far = pty.openpty()
    with os.fdopen(far, encoding="utf-8") as stdin, monkeypatch.context() as patched:
        patched.setattr("sys.stdin", stdin)
        with single_keys():
            modes = termios.tcgetattr(far)
            modes[3] |= termios.ICANON
            termios.tcsetattr(far, termios.TCSANOW, modes)
            os.kill(os.getpid(), signal.SIGCONT)  # as a shell does at fg
            for typed, key in {"h": "h", "hh": "h", "quit": "", "\x1b[A": "", "é": "é"}.items():
                os.write(near, typed.encode())
                assert pressed_key(60) == key
        assert termios.tcgetattr(far)[3] & termios.ICANON
    os.close(near)


def test_without_a_keyboard_the_watch_names_the_command_of_the_hint(tmp_path):
    terminal = Terminal(["learn", tmp_path], keyboard=False)
    terminal.expect(f"Next: glassformer learn hint {tmp_path} attention")
    terminal.expect("Ctrl-C ends the watch")
    terminal.close()
