"""The process that runs a learner's file.

The process reads ``[FILE, LESSON, OUT, SECONDS, OWN]`` as JSON from standard input; ``OWN`` has the
learner's files whose parts run too, by lesson. The worker calls each probe of the lesson with the
learner's module, and writes the values to ``OUT``, as JSON. The process that judges runs no code of
the learner. The worker limits its memory, if the system allows a limit. After ``SECONDS`` the
worker writes the running lines to standard error, and ends.
"""

import faulthandler
import inspect
import io
import json
import os
import re
import sys
import traceback
import warnings
from base64 import b64decode, b64encode
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout, suppress
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from glassformer.tools.learn.check import CHANGED, Probe, probes_of, values_of
from glassformer.tools.learn.observed import same
from glassformer.tools.learn.source import lines_of, load_module, read_source

__all__ = ["answer_on", "array_from", "main", "serve"]

MEMORY = 2 << 30  # bytes, above the size of Python with torch
_SIZE = Path("/proc/self/statm")  # the size of this process, in pages
TWICE = 4  # the worker calls so many probes of a hole twice, and compares the values
PRINTED = 2_000  # the worker keeps at most so many characters of the learner's prints


def main(
    file: Path, name: str, out: Path, seconds: float, *, own: Mapping[str, Path] | None = None
) -> None:
    """Write the answer on a file, within the limits of memory and time."""
    torch.set_num_threads(1)
    probes_of(name)
    faulthandler.dump_traceback_later(seconds, exit=True)
    _bound_memory()
    answer = json.dumps(answer_on(file, name, own), ensure_ascii=False)
    out.write_bytes(answer.encode(errors="replace"))  # half a surrogate pair is no text


def answer_on(file: Path, name: str, own: Mapping[str, Path] | None = None) -> dict[str, Any]:
    """Call all probes of a lesson; return the results, failures and prints."""
    printed = _Bounded()
    with (
        redirect_stdout(printed),
        redirect_stderr(printed),
        warnings.catch_warnings(action="ignore"),  # warnings would stand before the verdict
    ):
        answer = _called(file, probes_of(name), own or {})
    return answer | {"printed": printed.getvalue()}


def _called(
    file: Path, every: Mapping[str, tuple[Probe, ...]], own: Mapping[str, Path]
) -> dict[str, Any]:
    try:
        module = load_module(file)
        if own:
            from glassformer.tools.learn.parts import give_parts

            give_parts(module, own)
    except BaseException as error:
        return {"file": _failure(error, file)}
    for hole in every:
        if not _is_own(file, module, hole):
            return {"file": {"error": "missing", "text": hole}}
    results, failures, unsteady = {}, {}, []
    for hole, probes in every.items():
        for place, probe in enumerate(probes):
            name = probe.__name__
            try:
                values = values_of(probe, module)
                results[name] = {key: _as_json(value) for key, value in values.items()}
                if place < TWICE:
                    with redirect_stdout(_Bounded()):  # a print is shown once
                        again = values_of(probe, module) | {CHANGED: values[CHANGED]}
                    if not same({name: values}, {name: again}):
                        unsteady.append(name)
            except BaseException as error:
                failures[name] = _failure(error, file, hole)
    return {"results": results, "failures": failures, "unsteady": unsteady}


def _is_own(file: Path, module: ModuleType, hole: str) -> bool:
    """Whether the file defines the function or method, perhaps with a decorator."""
    try:
        function = inspect.unwrap(attrgetter(hole)(module))
        return bool(function.__code__.co_filename == str(file))
    except AttributeError:
        return False


def _failure(error: BaseException, file: Path, hole: str = "") -> dict[str, Any]:
    """The error, the learner's line that raised it, and the shapes on that line.

    A line in ``hole`` has priority over a line in a function that ``hole`` calls.
    """
    text = " ".join(str(error).split())[:500]
    failure: dict[str, Any] = {"error": type(error).__name__, "text": text}
    if isinstance(error, SyntaxError) and error.lineno:
        where = {"line": error.lineno, "code": (error.text or "").strip()}
        return failure | where | {"text": error.msg}
    frames = traceback.walk_tb(error.__traceback__)
    learners = [(frame, line) for frame, line in frames if frame.f_code.co_filename == str(file)]
    if not learners:
        return failure
    source = read_source(file)
    inside = lines_of(source, hole)
    frame, line = [*learners, *(each for each in learners if each[1] in inside)][
        -1
    ]  # the innermost
    lines = source.splitlines()
    code = lines[line - 1].strip() if line <= len(lines) else ""
    shapes = {
        name: str(tuple(value.shape))
        for name, value in frame.f_locals.items()
        if isinstance(value, torch.Tensor) and re.search(rf"\b{re.escape(name)}\b", code)
    }
    return failure | {"line": line, "code": code, "shapes": shapes}


def _as_json(value: NDArray[Any]) -> dict[str, Any]:
    if value.dtype.kind not in "biufU":
        value = np.asarray(str(value))
    return {
        "dtype": value.dtype.str,
        "shape": value.shape,
        "data": b64encode(value.tobytes()).decode(),
    }


def array_from(stored: dict[str, Any]) -> NDArray[Any]:
    """An array from the JSON in ``OUT``."""
    values = np.frombuffer(b64decode(stored["data"]), dtype=stored["dtype"])
    return values.reshape(stored["shape"])


class _Bounded(io.StringIO):
    """Keeps the first ``PRINTED`` characters of all prints."""

    def write(self, text: str) -> int:
        super().write(text[: max(0, PRINTED - self.tell())])
        return len(text)


def _bound_memory() -> None:
    """Limit memory to ``MEMORY`` bytes above the present size, on Linux, which tells the size."""
    with suppress(ImportError, OSError, ValueError):  # ValueError says that a lower limit is set
        import resource

        pages = int(_SIZE.read_text(encoding="ascii").split()[0])
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY,) * 2)


def serve() -> None:
    """Answer the request of standard input, and end the process; an empty input ends it too."""
    if request := sys.stdin.read():
        file, name, out, limit, others = json.loads(request)
        own = {key: Path(path) for key, path in others.items()}
        main(Path(file), name, Path(out), limit, own=own)
        os._exit(0)  # at once: Python with torch takes half a second to end
