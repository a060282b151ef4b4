"""A training whose newest checkpoint is damaged goes on from the one before, with the same end."""

import os
import random
import shutil
import signal
import tempfile
from pathlib import Path

from damage import cut, flipped_bits, random_bytes
from trainings import Broken, Fault, Training, ended, make_corpus

ALTERATIONS = [flipped_bits, cut, random_bytes]


def altered(tries: int, seed: int = 5) -> list[Fault]:
    """Bits flipped, a cut, or other bytes, in one file of the newest checkpoint."""
    fault, draw = Fault("damaged checkpoint"), random.Random(seed)
    with tempfile.TemporaryDirectory() as temporary:
        texts = make_corpus(Path(temporary))
        whole = Training(texts, Path(temporary, "whole"))
        whole.finish()
        killed = Training(texts, Path(temporary, "killed"))
        process = killed.start()
        killed.wait_for("checkpoints/0000002*")
        os.kill(process, signal.SIGKILL)
        ended(process)
        for number in range(tries):
            run = Training(texts, Path(temporary, str(number)))
            shutil.copytree(killed.run, run.run)
            newest = max((run.run / "checkpoints").glob("[0-9]*"))
            path = draw.choice(sorted(newest.iterdir()))
            with fault.attempt():
                done = draw.choice(ALTERATIONS)(newest, draw, path)
                run.finish()
                kept = newest.with_name(f"damaged-{newest.name}")
                if "damaged" not in run.log.read_text() or not kept.exists():
                    raise Broken("lost", f"no word of the damage: {done}")
                shutil.rmtree(kept)
                run.check_same(whole)
            shutil.rmtree(run.run)
    return [fault]
