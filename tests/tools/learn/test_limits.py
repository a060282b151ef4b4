"""Systems that lack a limit of Linux: the check runs without it, and a right solution is right."""

import faulthandler
import json
import os
import signal
import sys

import pytest
from rich.console import Console

from glassformer.tools.cli.main import main
from glassformer.tools.learn import examine, keys, watch, worker
from glassformer.tools.learn.examine import Worker, verdict_on
from glassformer.tools.learn.folder import Folder
from glassformer.tools.learn.verdict import Verdict
from tests.lessons import ATTENTION, HOLE, RIGHT, folder_with
from tests.other_systems import LACKING


def no_process_file(monkeypatch, tmp_path):  # macOS
    monkeypatch.setattr(worker, "_SIZE", tmp_path / "statm")


def no_resource(monkeypatch, _):  # Windows
    monkeypatch.setitem(sys.modules, "resource", None)


def a_lower_limit(monkeypatch, _):  # a shell with `ulimit -v`
    def refuse(*_):
        raise ValueError("not allowed to raise maximum limit")

    monkeypatch.setattr("resource.setrlimit", refuse)


@pytest.mark.parametrize("lacking", [no_process_file, no_resource, a_lower_limit])
def test_a_right_solution_is_right_without_the_limit(monkeypatch, tmp_path, lacking):
    lacking(monkeypatch, tmp_path)
    ends = []
    monkeypatch.setattr(faulthandler, "dump_traceback_later", lambda *_, **how: ends.append(how))
    file, out = tmp_path / ATTENTION.file_name, tmp_path / "answer.json"
    file.write_text(ATTENTION.template.replace(HOLE, RIGHT), "utf-8")
    worker.main(file, "attention", out, 10)
    answer = json.loads(out.read_text(encoding="utf-8"))
    assert verdict_on(ATTENTION, file, answer).outcome == "right"
    assert ends == [{"exit": True}]  # an endless loop ends there too


@pytest.fixture(params=LACKING)
def another_system(request, monkeypatch, tmp_path):
    """The processes that check files run on another system, as far as this one can play it."""
    directory = tmp_path / "system"
    directory.mkdir()
    (directory / "sitecustomize.py").write_text(LACKING[request.param], encoding="utf-8")
    paths = [str(directory), *sys.path]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
    if request.param == "Windows":
        monkeypatch.delattr(os, "killpg")


@pytest.mark.usefixtures("another_system")
def test_verdicts_on_another_system(monkeypatch, tmp_path, capsys):
    """One is right, and one's code runs for ever; what is wrong, this process judges."""
    bodies = {
        "ada": "    assert __import__('sitecustomize').multiprocessing\n" + RIGHT,
        "eva": "    while True: math.factorial(3_000)\n",
    }
    for name, body in bodies.items():
        folder_with(tmp_path / ("endless" if name == "eva" else "class") / name, body)
    assert main(["learn", "check", str(tmp_path / "class")]) == 0
    assert capsys.readouterr().out == "ada: right 1\n"
    monkeypatch.setattr(examine, "SECONDS", 1)  # in which a busy machine may judge nobody right
    assert main(["learn", "check", str(tmp_path / "endless")]) == 1
    [eva] = capsys.readouterr().out.splitlines()
    assert eva.startswith("eva: 1 error: Your code runs for ever, or far too long: it was at line")


def test_a_file_that_another_process_has_open_is_left_behind(monkeypatch):
    def refuse(path, **_):
        raise PermissionError(13, "it is used by another process", str(path))

    with Worker() as waiting, monkeypatch.context() as patched:
        patched.setattr(os, "unlink", refuse)
        waiting.__exit__()
        assert waiting._log.exists()


def test_a_worker_ends_where_processes_have_no_groups(monkeypatch):
    monkeypatch.delattr(os, "killpg")
    with Worker() as waiting:
        process = waiting._process
        assert process.poll() is None
    assert process.returncode == -signal.SIGKILL


def test_a_check_that_fails_does_not_blame_the_learner(tmp_path):
    log = "Traceback (most recent call last):\n  File ...\nFileNotFoundError: /proc\n"
    verdict = verdict_on(ATTENTION, tmp_path / ATTENTION.file_name, {"log": log})
    assert verdict.lines == ("The check failed, not your file: FileNotFoundError: /proc",)


class Terminal:
    def __init__(self, pressed):
        self.pressed = pressed

    def isatty(self):
        return True

    def kbhit(self):
        return bool(self.pressed)

    def getwch(self):
        return self.pressed.pop()


def test_keys_of_windows(monkeypatch):
    terminal = Terminal(["h"])
    monkeypatch.setattr(sys, "stdin", terminal)
    monkeypatch.setattr(keys, "termios", None)
    monkeypatch.setattr(keys, "msvcrt", terminal)
    with keys.single_keys():
        assert keys.can_read_keys()
        assert [keys.pressed_key(0.0), keys.pressed_key(0.0)] == ["h", ""]


def test_without_keys_the_watch_says_how_to_end(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(keys, "termios", None)
    monkeypatch.setattr(sys, "stdin", Terminal([]))
    monkeypatch.setattr(watch, "checked_verdict", lambda *_: Verdict("attention", "right"))

    def interrupt(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(watch, "pressed_key", interrupt)
    folder = Folder(tmp_path)
    folder.make()
    with pytest.raises(KeyboardInterrupt):
        watch.watch(folder, Console(highlight=False))
    assert "Ctrl-C ends the watch" in capsys.readouterr().out
