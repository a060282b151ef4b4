"""A full disk, a directory that may not be written, and one that goes away."""

import random
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trainings import Broken, Fault, Training, ended, make_corpus

ROOM = "size=64m"


def all_disks(tries: int, seed: int = 3) -> list[Fault]:
    full, closed, gone = Fault("full disk"), Fault("read-only directory"), Fault("directory gone")
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        texts = make_corpus(directory)
        whole = Training(texts, directory / "whole")
        seconds = whole.finish()
        try:
            with disk(directory / "first", ROOM):
                pass
        except OSError:
            for fault in (full, closed):
                fault.name += " (skipped: this user may not mount a disk)"
        else:
            size = sum(-(-file.stat().st_size // 4096) for file in whole.run.rglob("*")) * 4
            for number in range(tries):
                with disk(directory / f"full{number}", f"size={size * (number + 1) // tries}k"):
                    fill(Training(texts, directory / f"full{number}"), whole, full)
            for number in range(max(1, tries // 2)):
                with disk(directory / f"closed{number}", ROOM):
                    close(Training(texts, directory / f"closed{number}"), whole, closed)
        draw = random.Random(seed)
        for number in range(max(1, tries // 2)):
            run = Training(texts, directory / f"gone{number}")
            take_away(run, whole, gone, draw.uniform(0, seconds / 3))
    return [full, closed, gone]


@contextmanager
def disk(place: Path, options: str) -> Iterator[None]:
    """A small disk in memory at ``place``."""
    place.mkdir()
    mount("-t", "tmpfs", "-o", options, "none", str(place))
    try:
        yield
    finally:
        subprocess.run(["umount", str(place)], check=True)


def mount(*words: str) -> None:
    done = subprocess.run(["mount", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(done.stderr)


def fill(run: Training, whole: Training, fault: Fault) -> None:
    """Train until the disk is full; then enlarge it and continue."""
    run.log = whole.run.parent / "log"  # on another disk
    with fault.attempt():
        status = ended(run.start())
        run.check_log()
        if status:
            run.check_one_line(status)
            if left := list(run.run.rglob(".*.partial")):
                raise Broken("lost", f"half-written: {left}")
        mount("-o", f"remount,{ROOM}", str(run.run.parent))
        run.finish()
        run.check_same(whole)


def close(run: Training, whole: Training, fault: Fault) -> None:
    """Begin a run, and continue it, where nothing can be written; then allow it."""
    run.log = whole.run.parent / "log"
    place = str(run.run.parent)
    with fault.attempt(tries=2):
        for begun in (False, True):
            mount("-o", "remount,ro", place)
            run.check_one_line(ended(run.start()))
            mount("-o", "remount,rw", place)
            if not begun:
                process = run.start()
                run.wait_for("checkpoints/[0-9]*")
                subprocess.run(["kill", "-TERM", str(process)], check=True)
                ended(process)
        run.finish()
        run.check_same(whole)


def take_away(run: Training, whole: Training, fault: Fault, seconds: float) -> None:
    """Rename the run's directory while it is trained in; put it back and continue."""
    away = run.run.with_name("away")
    with fault.attempt():
        process = run.start()
        run.wait_for("checkpoints/[0-9]*")
        time.sleep(seconds)
        run.run.rename(away)
        run.check_one_line(ended(process))
        if run.run.exists():
            raise Broken("lost", f"the directory is made anew: {run.files()}")
        shutil.move(away, run.run)
        run.finish()
        run.check_same(whole)
