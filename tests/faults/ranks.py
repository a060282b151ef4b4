"""torchrun with two ranks, of which one is killed or stops."""

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from trainings import ERROR, SECONDS, Broken, Fault, Training, make_corpus

SIGNALS = [(signal.SIGKILL, 0), (signal.SIGKILL, 1), (signal.SIGSTOP, 1), (signal.SIGSTOP, 0)]


def all_ranks(tries: int, seed: int = 4) -> list[Fault]:
    faults, draw = [], random.Random(seed)
    with tempfile.TemporaryDirectory() as temporary:
        texts = make_corpus(Path(temporary))
        whole = Training(texts, Path(temporary, "whole"), updates=100)
        if torchrun(whole).wait(SECONDS):
            raise AssertionError(whole.log.read_text())
        for number, rank in SIGNALS:
            fault = Fault(f"two ranks: {number.name} of rank {rank}")
            for attempt in range(tries):
                directory = Path(temporary, f"{number.name}{rank}{attempt}")
                run = Training(texts, directory, updates=100)
                with fault.attempt():
                    disturb(run, number, rank, draw.uniform(0, 1))
                    check_status(run, torchrun(run), fine=True)
                    run.check_same(whole)
            faults.append(fault)
    return faults


def torchrun(run: Training) -> "subprocess.Popen[bytes]":
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    script = [str(Path(__file__).with_name("impatient.py")), str(run.log.parent)]
    with run.log.open("w") as log:
        command = [*launcher, "--nproc-per-node", "2", *script, *run.words]
        return subprocess.Popen(command, stdout=log, stderr=log)


def disturb(run: Training, number: signal.Signals, rank: int, seconds: float) -> None:
    """Send a signal to a rank after its first checkpoint: the other one says so in a line."""
    process = torchrun(run)
    run.wait_for("checkpoints/[0-9]*")
    time.sleep(seconds)
    os.kill(int((run.log.parent / str(rank)).read_text()), number)
    check_status(run, process, fine=False)
    lines = [x for x in run.log.read_text().splitlines() if x.startswith(ERROR)]
    if number == signal.SIGKILL and rank == 0 and not lines:  # torchrun reports it, and ends rank 1
        return
    if len(lines) != 1 or "the same command continues" not in lines[0]:
        raise Broken("lost", f"expected one line: {lines}")


def check_status(run: Training, process: "subprocess.Popen[bytes]", *, fine: bool) -> None:
    try:
        status = process.wait(SECONDS)
    except subprocess.TimeoutExpired as error:
        for rank in ("0", "1"):
            with suppress(ProcessLookupError):
                os.kill(int((run.log.parent / rank).read_text()), signal.SIGKILL)
        process.kill()
        raise Broken("hang", f"no end after {SECONDS} s") from error
    said = run.log.read_text()
    if f"{os.sep}glassformer{os.sep}" in said and "Traceback" in said:  # torchrun has its own
        raise Broken("traceback", said[-1500:])
    if (status == 0) != fine:
        raise Broken("lost", f"status {status}: {said[-1500:]}")
