"""Processes that fork from a server with torch loaded: a new Python loads it for seconds.

A program's first moments are those of a new Python in ``tools/cli/test_main.py``,
``tools/cli/test_server_threads.py`` and ``system/test_torchrun.py``.
"""

import multiprocessing
import os
import signal
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing import util
from multiprocessing.connection import Connection, wait
from pathlib import Path
from threading import Thread
from types import TracebackType

# The server's socket lies in a temporary folder, and its path has at most 107 characters.
if len(usual := tempfile.gettempdir()) > 60:
    tempfile.tempdir = "/tmp"
    util.get_temp_dir()
    tempfile.tempdir = usual

# The server never computes itself: a child of a process with threads at work may hang.
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(
    [
        "glassformer.tools.cli.main",
        "glassformer.training.train",
        "glassformer.training.parallel.worker",
        "glassformer.translator",
        "glassformer.tools.web.server",
        "torch._dynamo",  # an optimiser loads it at its first step
        __name__,
    ]
)


def run(words: list[str], directory: str, environment: dict[str, str], streams: list) -> None:
    """``glassformer WORDS`` in a child, with its standard input, output and errors."""
    from glassformer.tools.cli.main import main

    for number, stream in enumerate(streams):
        os.dup2(stream.fileno(), number)
    # ASCII: where a command owes UTF-8, it does not trust the terminal.
    sys.stdin, sys.stdout, sys.stderr = (
        os.fdopen(number, mode, encoding="ascii", closefd=False)
        for number, mode in enumerate("rww")
    )
    # A shell starts a job in the background with SIGINT ignored; a child would ignore it too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(directory)
    os.environ.update(environment)
    sys.exit(main(words))


def start(words, *streams: int, directory=".", environment=None):
    """Start ``glassformer WORDS``; three file descriptors are its input, output and errors."""
    copies = [Connection(os.dup(stream)) for stream in streams]
    arguments = ([*map(str, words)], str(Path(directory).resolve()), environment or {}, copies)
    process = CONTEXT.Process(target=run, args=arguments, daemon=True)
    process.start()
    return process


def as_torchrun(size: int) -> list[dict[str, str]]:
    """The variables of each rank of a training, as torchrun sets them."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    group = {"TORCHELASTIC_RUN_ID": "test", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    group |= {"WORLD_SIZE": str(size), "LOCAL_WORLD_SIZE": str(size)}
    return [group | {"RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(size)]


class Command:
    """``glassformer WORDS`` with a pipe to its input, and from its output and its errors."""

    def __init__(self, words, directory=".") -> None:
        theirs_in, ours_in = os.pipe()
        (ours_out, theirs_out), (ours_err, theirs_err) = os.pipe(), os.pipe()
        theirs = theirs_in, theirs_out, theirs_err
        self.process = start(words, *theirs, directory=directory)
        for number in theirs:
            os.close(number)
        self.stdin, self.stdout, self.stderr = (
            os.fdopen(number, mode, encoding="utf-8", newline="\n")
            for number, mode in ((ours_in, "w"), (ours_out, "r"), (ours_err, "r"))
        )

    def send(self, number: int) -> None:
        """Send a signal."""
        os.kill(self.process.pid, number)

    def wait(self, seconds: float = 60) -> int:
        """The exit status, of an end within these seconds."""
        self.process.join(seconds)
        assert self.process.exitcode is not None, "it still runs"
        return self.process.exitcode

    def __enter__(self) -> "Command":
        return self

    def __exit__(self, *_: type | BaseException | TracebackType | None) -> None:
        self.process.kill()
        self.process.join()
        for stream in (self.stdin, self.stdout, self.stderr):
            stream.close()


# A script's `glassformer` or `torchrun`: it hands its words and streams to the test, which forks.
_PROGRAM = """\
#!{python} -IS
import os, socket, sys
test = socket.socket(socket.AF_UNIX)
test.connect({address!r})
words = [sys.argv[0].rpartition("/")[2], os.getcwd(), *sys.argv[1:]]
socket.send_fds(test, ["\\0".join(words).encode()], [0, 1, 2])
sys.exit(int(test.recv(9)))
"""


@contextmanager
def programs() -> Iterator[str]:
    """A folder for PATH, in which ``glassformer`` and ``torchrun`` start without a new Python."""
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address := f"{folder}/socket")
        listener.listen()
        for name in ("glassformer", "torchrun"):
            program = Path(folder, name)
            program.write_text(_PROGRAM.format(python=sys.executable, address=address))
            program.chmod(0o700)
        Thread(target=_answer_all, args=(listener,), daemon=True).start()
        yield folder
        listener.shutdown(socket.SHUT_RDWR)  # it wakes the thread


def _answer_all(listener: socket.socket) -> None:
    with suppress(OSError):  # the listener is closed
        while True:
            Thread(target=_answer, args=listener.accept()[:1], daemon=True).start()


def _answer(caller: socket.socket) -> None:
    """Run one call; its end is told to the caller, and a killed caller ends its processes."""
    message, streams, *_ = socket.recv_fds(caller, 1 << 16, 3)
    name, directory, *words = message.decode().split("\0")
    environments: list[dict[str, str]] = [{}]
    if name == "torchrun":
        environments = as_torchrun(int(words[words.index("--nproc-per-node") + 1]))
        words = words[words.index("glassformer") + 1 :]
    processes = [start(words, *streams, directory=directory, environment=e) for e in environments]
    for stream in streams:
        os.close(stream)
    running = {process.sentinel for process in processes}
    while running and caller not in (ended := wait([*running, caller])):
        running -= set(ended)
    for process in processes:
        if running:
            process.terminate()
        process.join()
    with caller, suppress(OSError):
        caller.send(str(max(abs(process.exitcode) for process in processes)).encode())
