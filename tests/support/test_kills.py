"""A kill before any call that changes the file system leaves the old state or the new, whole.

A forked process counts its calls: open, each write (also in its middle), flush, make, rename and
remove. It is killed before the first, the second, and so on, until it ends. What it leaves is then
read as a program would, and the same work, done again, must end as if nothing had happened.
"""

import io
import os
import shutil
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

from glassformer.support.files import (
    new_directory,
    open_atomically,
    remove_directory,
    remove_leftovers,
    write_atomically,
)
from glassformer.tools.cli.backtranslate import BacktranslateOptions, _lines_done, _write_pairs
from glassformer.training.reporting import Metrics
from glassformer.training.setup.run_directory import RunDirectory
from tests.processes import CONTEXT

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the processes fork")

CALLS = ("mkdir", "rename", "replace", "remove", "unlink", "rmdir", "fsync", "truncate", "chmod")
OLD, NEW = b"old", b"n" * 3 * io.DEFAULT_BUFFER_SIZE  # more than one write


class Killing:
    """Kills this process before the n-th call, or counts all calls."""

    def __init__(self, fatal: int) -> None:
        self.fatal, self.count = fatal, 0
        for name in CALLS:
            setattr(os, name, self.before(getattr(os, name)))
        self.open, io.open = io.open, self.opened
        killing = self

        class File(io.FileIO):
            def write(self, content):
                if killing.next():
                    super().write(bytes(content)[: len(content) // 2])
                    killing.end()
                killing.call()
                return super().write(content)

            def truncate(self, size=None):
                killing.call()
                return super().truncate(size)

        self.file = File

    def next(self) -> bool:
        self.count += 1
        return self.count == self.fatal

    def end(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def call(self) -> None:
        if self.next():
            self.end()

    def before(self, function: Callable) -> Callable:
        def called(*arguments, **named):
            self.call()
            return function(*arguments, **named)

        return called

    def opened(self, path, mode="r", buffering=-1, encoding=None, errors=None, newline=None, **_):
        if not set("wa+x") & set(mode):
            return self.open(path, mode, buffering, encoding, errors, newline)
        self.call()
        raw = self.file(path, mode.replace("b", "").replace("t", ""))
        file = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
        return file if "b" in mode else io.TextIOWrapper(file, encoding, errors, newline)


def calls_and_statuses(work: Callable, prepare: Callable, place: Path, seen: Callable) -> int:
    """Kill ``work`` before each call, and look at what stands; the number of calls."""
    for fatal in range(1, 1000):
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        prepare(place)
        if not (child := os.fork()):
            try:
                Killing(fatal)
                work(place)
                os._exit(0)
            finally:
                traceback.print_exc()
                os._exit(1)
        status = os.waitpid(child, 0)[1]
        seen(place, fatal if status else 0)
        if not status:
            return fatal - 1
        assert os.WTERMSIG(status) == signal.SIGKILL
    raise AssertionError("it never ends")


def killed_before_each_call(work, prepare, tmp_path, look) -> tuple[int, set]:
    """The number of calls, and the states that stood after the kills and after a second try."""
    states = set()

    def seen(place: Path, fatal: int) -> None:
        states.add(state := look(place))
        if not fatal:
            assert state == "new"
            return
        if state != "new" or work is not remove:
            work(place)
        assert look(place) == "new", fatal
        remove_leftovers(place)
        left = [path.name for path in place.iterdir() if path.name.endswith(".partial")]
        assert not left, (fatal, left)

    return calls_and_statuses(work, prepare, tmp_path / "place", seen), states


def write(place: Path) -> None:
    write_atomically(place / "file", NEW)


def write_in_pieces(place: Path) -> None:
    with open_atomically(place / "file") as file:
        for _ in range(3):
            file.write(NEW[: len(NEW) // 3])


def file_state(place: Path) -> str:
    path = place / "file"
    if not path.exists():
        return "old"
    return {OLD: "old", NEW: "new"}[path.read_bytes()]


def make(place: Path) -> None:
    if (place / "run").exists() and any((place / "run").iterdir()):
        return  # it is whole, and would be refused
    with new_directory(place / "run") as directory:
        for name in ("a", "b"):
            (directory / name).write_text(NEW.decode())


def directory_state(place: Path) -> str:
    found = {path.name: path.read_bytes() for path in place.glob("run/*")}
    return {0: "old", 2: "new"}[len([found for content in found.values() if content == NEW])]


def remove(place: Path) -> None:
    remove_directory(place / "run")


def removed_state(place: Path) -> str:
    if not (place / "run").exists():
        return "new"
    assert directory_state(place) == "new"  # whole, before its removal
    return "old"


def nothing(place: Path) -> None:
    pass


def an_old_file(place: Path) -> None:
    (place / "file").write_bytes(OLD)


def a_link(place: Path) -> None:
    (place / "target").write_bytes(OLD)
    (place / "file").symlink_to("target")


def an_empty_directory(place: Path) -> None:
    (place / "run").mkdir()


def a_link_to_an_empty_directory(place: Path) -> None:
    (place / "target").mkdir()
    (place / "run").symlink_to("target")


def a_full_directory(place: Path) -> None:
    make(place)


# Appended logs and partial results: a cut last line is dropped, and the lines before it stand.
LINES = 3


def log(place: Path) -> None:
    metrics = Metrics(place / "metrics.jsonl", from_update=LINES)
    have = len((place / "metrics.jsonl").read_bytes().splitlines())
    for update in range(have + 1, LINES + 1):
        metrics.write({"kind": "update", "update": update})
    metrics.close()


def log_state(place: Path) -> str:
    path = place / "metrics.jsonl"
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    assert lines == [b'{"kind": "update", "update": %d}' % (n + 1) for n in range(len(lines))]
    return "new" if len(lines) == LINES else "old"


def backtranslate(place: Path) -> None:
    if (place / "out.tsv").exists() and not (place / "out.tsv.partial").exists():
        return
    options = BacktranslateOptions(bundle="bundle", text="text", out=place / "out.tsv")
    partial = place / "out.tsv.partial"
    done = _lines_done(partial, options)
    with partial.open("ab") as file:
        for number in range(done, LINES):
            file.write(b"%d\t%d\n" % (number, number))
            file.flush()
    _write_pairs(partial, options.out)


def pairs_state(place: Path) -> str:
    path = place / "out.tsv"
    if not path.exists():
        return "old"
    assert path.read_bytes() == b"".join(b"%d\t%d\n" % (n, n) for n in range(LINES))
    return "new"


def lock(place: Path) -> None:
    with RunDirectory(place / "run").locked():
        (place / "done").touch()


def lock_state(place: Path) -> str:
    return "new" if (place / "done").exists() else "old"


CASES = [
    (write, nothing, file_state),
    (write, an_old_file, file_state),
    (write, a_link, file_state),
    (write_in_pieces, nothing, file_state),
    (write_in_pieces, an_old_file, file_state),
    (make, nothing, directory_state),
    (make, an_empty_directory, directory_state),
    (make, a_link_to_an_empty_directory, directory_state),
    (remove, a_full_directory, removed_state),
    (log, nothing, log_state),
    (backtranslate, nothing, pairs_state),
    (lock, nothing, lock_state),
]


def all_cases(place: Path) -> list[tuple[str, str, int, list[str], str]]:
    rows = []
    for work, prepare, look in CASES:
        try:
            calls, states = killed_before_each_call(work, prepare, place, look)
            rows.append((work.__name__, prepare.__name__, calls, sorted(states), ""))
        except Exception as error:  # the row says what stood
            rows.append((work.__name__, prepare.__name__, 0, [], repr(error)))
    return rows


def send_all_cases(place: Path, pipe) -> None:
    pipe.send(all_cases(place))


def test_a_kill_before_each_call_leaves_the_old_or_the_new_state(tmp_path, subtests):
    receiver, sender = CONTEXT.Pipe(duplex=False)
    process = CONTEXT.Process(target=send_all_cases, args=(tmp_path, sender))
    process.start()
    sender.close()
    assert receiver.poll(60)
    rows = receiver.recv()
    process.join(20)

    assert len(rows) == len(CASES)
    for work, before, calls, states, fault in rows:
        with subtests.test(work=work, before=before):
            assert not fault
            assert calls >= 3
            assert states == ["new", "old"]


if __name__ == "__main__":  # the table of docs/reliability.md
    import tempfile

    with tempfile.TemporaryDirectory() as temporary:
        for row in all_cases(Path(temporary)):
            print(*row, file=sys.stdout)
