"""SIGKILL of a training, at file-system events and at any time.

A hook counts the events of the run's files: open, make, rename, remove. The process kills itself
just before one of them. Each run is killed again and again, and continued until it ends.
"""

import itertools
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from trainings import Fault, Training, ended, make_corpus

EVENTS = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.scandir"}
PER_RUN = 5
FARTHEST = 0.3  # of a whole run: so that most runs are killed five times


def at_events(kills: int, seed: int = 1) -> list[Fault]:
    draw = random.Random(seed)

    def kill(run: Training, _: float) -> int:
        number = draw.randint(1, 250)
        return ended(run.start(lambda: kill_before(run.run, number)))

    return [killed("SIGKILL at a file-system event", kills, kill)]


def at_times(kills: int, seed: int = 2) -> list[Fault]:
    draw = random.Random(seed)

    def kill(run: Training, seconds: float) -> int:
        process = run.start()
        time.sleep(draw.uniform(0, FARTHEST * seconds))
        os.kill(process, signal.SIGKILL)  # it is not waited for yet, so the id is its own
        return ended(process)

    return [killed("SIGKILL at any time", kills, kill)]


def killed(name: str, kills: int, kill: Callable[[Training, float], int]) -> Fault:
    """Kill runs until there are so many kills; finish each, and compare it."""
    fault = Fault(name)
    with tempfile.TemporaryDirectory() as temporary:
        texts = make_corpus(Path(temporary))
        whole = Training(texts, Path(temporary, "whole"))
        seconds = whole.finish()
        for number in itertools.count():
            if fault.tries >= kills:
                return fault
            run = Training(texts, Path(temporary, str(number)))
            with fault.attempt(tries=0):
                for _ in range(min(PER_RUN, kills - fault.tries)):
                    status = kill(run, seconds)
                    run.check_log()
                    if status != -signal.SIGKILL:  # it has ended before
                        break
                    fault.tries += 1
                run.finish()
                run.check_same(whole)
    raise AssertionError


def kill_before(directory: Path, number: int) -> None:
    """Let this process kill itself before its n-th event in ``directory``."""
    counted = itertools.count(1)

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event in EVENTS and str(directory) in str(arguments[0]) and next(counted) == number:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
