"""The part that all decoding peers share: the job's sources, the clock, the report.

A decoding job is a JSON file with ``bundle`` (the translator's directory), ``exported`` (the same
for ``ctranslate2`` and ``hugging_face``), ``sources`` (a JSON file with lists ``texts``, ``ids``
and ``subwords``, without end symbols), ``beam``, ``single`` (one sentence at a time, or all at
once), ``compute`` (float32, bfloat16, int8), ``threads``, ``workers`` and ``batch`` (sentences at
once) of a peer, ``engine`` of ours, ``extra`` (how many tokens longer than its source a translation
may be), ``device``. ``warm`` is the number of sentences translated before the clock starts.
"""

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.peers.measure import job, peak_bytes, report

__all__ = ["sources", "time_translation"]


def sources(kind: str) -> list[Any]:
    """The job's sources as ``texts``, ``ids`` or ``subwords``."""
    stored: dict[str, list[Any]] = json.loads(Path(job["sources"]).read_text("utf-8"))
    return stored[kind]


def time_translation(
    load: Callable[[], Callable[[Sequence[Any]], list[Any]]], kind: str, *, library: str
) -> None:
    """Load, warm up with a few sentences, time all of them, and report the outputs.

    ``load`` returns a function that translates a list of sources, in their order.
    """
    sentences = sources(kind)
    begin = time.perf_counter()
    translate = load()
    load_seconds = time.perf_counter() - begin
    translate(sentences[: job.get("warm", 8)])
    begin = time.perf_counter()
    outputs = (
        [translate([each])[0] for each in sentences] if job["single"] else translate(sentences)
    )
    seconds = time.perf_counter() - begin
    report(
        library=library,
        sentences=len(sentences),
        seconds=seconds,
        sentences_per_second=len(sentences) / seconds,
        load_seconds=load_seconds,
        peak_bytes=peak_bytes(),
        outputs=outputs,
    )
