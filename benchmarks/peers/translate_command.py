"""``glassformer translate`` as a person calls it: a file of lines in, a file of lines out.

The whole process is timed for one line and for all lines. The difference is the time of
translating, tokenising and writing. The time for one line is the cold start.
"""

import subprocess
import sys
import time

from benchmarks.peers.measure import job, report
from benchmarks.peers.translating import sources

__all__ = ["seconds_of"]

_LINES = 5_000  # at least this many, by repetition, so that the start is a small part


def seconds_of(texts: list[str]) -> tuple[float, list[str]]:
    """Seconds of the whole command, and its output lines."""
    words = [sys.executable, "-m", "glassformer", "translate", job["bundle"]]
    words += ["--beam", str(job["beam"]), "--length-penalty", "0", "--device", job["device"]]
    words += ["--threads", str(job["threads"]), "--engine", job["engine"]]
    if job["compute"] != "float32":
        words += ["--quantization", job["compute"]]
    lines = "".join(f"{text}\n" for text in texts).encode()
    begin = time.perf_counter()
    process = subprocess.run(words, input=lines, stdout=subprocess.PIPE, check=True)
    return time.perf_counter() - begin, process.stdout.decode().split("\n")[:-1]


if __name__ == "__main__":
    texts = sources("texts")
    seconds_of(texts[:1])  # the first call converts the bundle
    start, _ = seconds_of(texts[:1])
    times = -(-_LINES // len(texts))
    whole, lines = seconds_of(texts * times)
    sentences = len(texts) * times - 1
    if whole < 1.5 * start:
        sys.exit(f"{sentences:,} sentences take no longer than the start: give more of them")
    report(
        library="glassformer translate",
        sentences=sentences,
        seconds=whole - start,
        sentences_per_second=sentences / (whole - start),
        load_seconds=start,
        peak_bytes=0,  # unknown: the command is another process
        outputs=lines[: len(texts)],
    )
