"""``glassformer translate`` as a person calls it: a file of lines in, a file of lines out.

The whole process is timed for one line and for all lines, several times over; the difference is
the time of translating, tokenising and writing. The time for one line is the cold start.
"""

import subprocess
import sys
import time

from benchmarks.peers.measure import job, report
from benchmarks.peers.translating import sources

__all__ = ["seconds_of"]

_TIMES = 5  # the sources one after the other, so that the start is a small part


def seconds_of(texts: list[str]) -> tuple[float, list[str]]:
    """Seconds of the whole command for these lines, and its lines."""
    words = [sys.executable, "-m", "glassformer", "translate", job["bundle"]]
    words += ["--beam", str(job["beam"]), "--length-penalty", "0", "--device", job["device"]]
    words += ["--threads", str(job["threads"]), "--engine", job["engine"]]
    if job["compute"] != "float32":
        words += ["--quantization", job["compute"]]
    given = "".join(f"{text}\n" for text in texts).encode()
    begin = time.perf_counter()
    done = subprocess.run(words, input=given, stdout=subprocess.PIPE, check=True)
    return time.perf_counter() - begin, done.stdout.decode().split("\n")[:-1]


if __name__ == "__main__":
    texts = sources("texts")
    seconds_of(texts[:1])  # what is converted once, is converted now
    start, _ = seconds_of(texts[:1])
    whole, lines = seconds_of(texts * _TIMES)
    sentences = len(texts) * _TIMES - 1
    report(
        library="glassformer translate",
        sentences=sentences,
        seconds=whole - start,
        sentences_per_second=sentences / max(whole - start, 1e-9),
        load_seconds=start,
        peak_bytes=0,  # of its own process: not seen from here
        outputs=lines[: len(texts)],
    )
