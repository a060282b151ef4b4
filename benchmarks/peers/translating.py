"""What every decoding peer does alike: the job's sources, the clock, the report.

A decoding job is a JSON file with ``bundle`` (the translator's directory), ``exported`` (the same
as a CTranslate2 model), ``sources`` (a JSON file with lists ``texts``, ``ids`` and ``pieces``; ids
and pieces without end symbols), ``beam``, ``one`` (one sentence at a time, or all at once),
``compute`` (float32, bf16, int8), ``threads`` and ``workers``, ``batch`` (sentences at once),
``extra`` (how much longer than its source a translation may be), ``device``.
"""

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.peers.measure import job, peak_bytes, report

__all__ = ["sources", "time_translation"]


def sources(kind: str) -> list[Any]:
    """The job's sources as ``texts``, ``ids`` or ``pieces``."""
    stored: dict[str, list[Any]] = json.loads(Path(job["sources"]).read_text("utf-8"))
    return stored[kind]


def time_translation(
    load: Callable[[], Callable[[Sequence[Any]], list[Any]]], kind: str, *, library: str
) -> None:
    """Load, warm up with a few sentences, and time the rest; outputs go into the report.

    ``load`` returns what translates a list of sources, in their order.
    """
    given = sources(kind)
    begin = time.perf_counter()
    translate = load()
    loaded = time.perf_counter()
    translate(given[:8])
    start = time.perf_counter()
    outputs = [translate([one])[0] for one in given] if job["one"] else translate(given)
    seconds = time.perf_counter() - start
    report(
        library=library,
        sentences=len(given),
        seconds=seconds,
        sentences_per_second=len(given) / seconds,
        load_seconds=loaded - begin,
        peak_bytes=peak_bytes(),
        outputs=outputs,
    )
