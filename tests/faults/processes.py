"""Two trainings in one directory, a clock that jumps, and little memory."""

import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from trainings import SECONDS, Broken, Fault, Training, ended, make_corpus

GIGABYTES = (1.0, 1.2, 1.5, 2.0)  # with less, torch itself aborts


def all_processes(tries: int) -> list[Fault]:
    with tempfile.TemporaryDirectory() as temporary:
        texts = make_corpus(Path(temporary))
        whole = Training(texts, Path(temporary, "whole"))
        whole.finish()
        return [
            two_trainings(texts, whole, tries),
            jumping_clock(texts, whole, tries),
            little_memory(texts, whole, GIGABYTES if tries > 1 else GIGABYTES[::3]),
        ]


def two_trainings(texts: list[str], whole: Training, tries: int) -> Fault:
    """The second one gets a line; the first ends right."""
    fault = Fault("two trainings in one directory")
    for number in range(tries):
        first = Training(texts, whole.run.parent / f"two{number}")
        second = Training(texts, first.run.parent)
        second.log = first.log.with_name("second")
        with fault.attempt():
            process = first.start()
            first.wait_for("data/lock" if number % 2 else "checkpoints/[0-9]*")
            time.sleep(0.1)  # the lock's file is there before the lock
            second.check_one_line(ended(second.start()), "another training works in")
            if status := ended(process):
                raise Broken("lost", f"status {status}: {first.log.read_text()[-500:]}")
            first.check_log()
            first.check_same(whole)
    return fault


def jumping_clock(texts: list[str], whole: Training, tries: int) -> Fault:
    """The wall clock jumps by months at each look; the trainings use the other clock."""
    fault = Fault("the wall clock jumps")
    for number in range(tries):
        run = Training(texts, whole.run.parent / f"clock{number}")
        with fault.attempt():
            run.finish(let_the_clock_jump)
            run.check_same(whole)
    timed = Training(texts, whole.run.parent / "timed", minutes=0.1, updates=None)
    with fault.attempt():
        seconds = timed.finish(let_the_clock_jump)
        if not 3 < seconds < 60:
            raise Broken("lost", f"0.1 minutes took {seconds:.0f} s")
    return fault


def let_the_clock_jump() -> None:
    draw, now = random.Random(1), time.time
    time.time = lambda: now() + draw.uniform(-1e7, 1e7)
    time.time_ns = lambda: int(time.time() * 1e9)


def little_memory(texts: list[str], whole: Training, gigabytes: tuple[float, ...]) -> Fault:
    """The whole command with so little address space: a line, or the right run."""
    fault = Fault(f"address space of {', '.join(map(str, gigabytes))} GB")
    for most in gigabytes:
        run = Training(texts, whole.run.parent / f"memory{most}")
        limit = ["sh", "-c", 'ulimit -v "$1"; shift; exec "$@"', "sh", str(int(most * 1e6))]
        command = [*limit, sys.executable, "-m", "glassformer", *run.words]
        with fault.attempt(), run.log.open("w") as log:
            try:
                done = subprocess.run(
                    command, stdout=log, stderr=log, timeout=SECONDS, env=os.environ, check=False
                )
            except subprocess.TimeoutExpired as error:
                raise Broken("hang", f"{most} GB") from error
            if done.returncode:
                run.check_one_line(done.returncode)
            else:
                run.check_log()
                run.check_same(whole)
    return fault
