"""A learner's file gets a verdict: a worker runs the file, and this process judges the values."""

import gc
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from glassformer.support.errors import InputError
from glassformer.support.strangers import MOST_JSON, opened, read_json
from glassformer.tools.learn.folder import Folder
from glassformer.tools.learn.lesson import Lesson
from glassformer.tools.learn.source import lines_of, read_source
from glassformer.tools.learn.verdict import Verdict

__all__ = ["Worker", "checked_once", "checked_verdict", "verdict_on"]

SECONDS = 10  # time for a learner's code, which then reports its lines and ends
# Without the collection of garbage, the imports take an eighth less.
_SERVE = """import gc; gc.disable()
from glassformer.tools.learn.worker import serve; gc.enable()
serve()"""
_END = 1 << 16  # the number of bytes that this process reads from the end of the log
_STARTING = 50  # limit in seconds for the imports, which take long on a busy machine


class Worker:
    """A process that imports torch, then waits for one file to run.

    A watch starts a worker before a save, so that the answer comes at once. A worker works once.
    """

    def __init__(self) -> None:
        # Windows removes no file that a process of the learner still has open.
        self._directory = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self._log = Path(self._directory.name, "log")
        with self._log.open("wb") as stream:
            self._process = subprocess.Popen(
                # With -P, a file torch.py in the current directory does not replace torch.
                [sys.executable, "-P", "-c", _SERVE],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=stream,
                start_new_session=True,
            )

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *_: object) -> None:
        """End the process and all its children."""
        # A group that has ended raises ProcessLookupError, or on macOS PermissionError.
        with suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(self._process.pid, signal.SIGKILL)
            else:  # Windows has no groups of processes
                self._process.kill()
        self._process.communicate()
        self._directory.cleanup()

    def answer(
        self, lesson: Lesson, file: Path, own: Mapping[str, Path] | None = None
    ) -> dict[str, Any]:
        """The process's answer on the file: results, errors, prints.

        ``own`` has the learner's files of other lessons, which take the places of package's parts.
        If the process ended without an answer, ``log`` has the end of its log.
        """
        if not file.is_file():
            command = Folder(file.parent).command()
            raise InputError(f"{file}: no such file; this makes it: {command}")
        out = Path(self._directory.name, "answer.json")
        others = {name: str(path.resolve()) for name, path in (own or {}).items()}
        request = json.dumps([str(file.resolve()), lesson.name, str(out), SECONDS, others])
        try:
            self._process.communicate(request.encode(), _STARTING + SECONDS)
        except subprocess.TimeoutExpired:
            return {"log": "Timeout"}
        if not out.is_file():
            with opened(self._log) as log:
                log.seek(max(0, self._log.stat().st_size - _END))
                return {"log": log.read().decode(errors="replace")}
        try:
            return read_json(out, dict[str, Any], most_bytes=MOST_JSON)
        except InputError as error:
            return {"log": f"Traceback: {error}"}


def checked_verdict(folder: Folder, lesson: Lesson, worker: Worker) -> Verdict:
    """Examine the file of a lesson; note a right file in the folder."""
    file, code = folder.file(lesson), folder.code(lesson)
    gc.disable()
    import_module("glassformer.tools.learn.judge")  # imports torch, as the worker does meanwhile
    gc.enable()
    verdict = verdict_on(lesson, file, worker.answer(lesson, file))
    if verdict.outcome == "right":
        try:
            folder.note_right(lesson, code)
        except OSError as error:  # such as for a read-only folder
            note = f"Not noted as learned: {error.filename}: {error.strerror}"
            return replace(verdict, lines=(note,))
    return verdict


def checked_once(folder: Folder, lesson: Lesson) -> Verdict:
    """Examine the file of a lesson in a new worker."""
    with Worker() as worker:
        return checked_verdict(folder, lesson, worker)


def verdict_on(lesson: Lesson, file: Path, answer: dict[str, Any]) -> Verdict:
    """Judge an answer in one thread, as the right solution changes torch's default type.

    torch has one thread too, because the tensors of a probe are small.
    """
    if "log" in answer:
        return Verdict(lesson.name, "error", (_end_of(file, answer["log"]),))
    from glassformer.support.threads import torch_threads  # it imports torch

    try:
        with torch_threads(1):
            return replace(_verdict(lesson, file, answer), printed=answer["printed"])
    except (InputError, LookupError, TypeError, AttributeError) as error:  # a forged answer
        reason = f"{type(error).__name__}: {error}"
        return Verdict(lesson.name, "error", (f"No check can read the file's answer ({reason}).",))


def _end_of(file: Path, log: str) -> str:
    """The message on a process that ran too long or failed, or that the file ended."""
    if "Timeout" in log:  # the log lists the running lines, the innermost first
        text = "Your code runs for ever, or far too long"
        line = re.search(rf'{file.name}", line (\d+)', log)
        if line is None:
            return f"{text}."
        code = "".join(read_source(file).splitlines()[int(line[1]) - 1 :][:1]).strip()
        return f"{text}: it was at line {line[1]}{', ' if code else ''}{code}"
    if "Traceback" in log:  # errors of the learner's file are part of an answer
        return f"The check failed, not your file: {log.strip().splitlines()[-1]}"
    return "Your file ended Python before the check was done. Does it call os._exit?"


def _verdict(lesson: Lesson, file: Path, answer: dict[str, Any]) -> Verdict:
    """The verdict on the first wrong hole, or "right"."""
    from glassformer.tools.learn.judge import UNSTEADY, Judge
    from glassformer.tools.learn.worker import array_from

    if failure := answer.get("file"):
        return Verdict(lesson.name, "error", tuple(_error_lines(failure, file)))
    results = {
        probe: {name: array_from(value) for name, value in values.items()}
        for probe, values in answer["results"].items()
    }
    for hole in lesson.holes:
        judge, wrong = Judge.of(lesson, hole), partial(Verdict, lesson.name, hole=hole)
        names = [probe.__name__ for probe in judge.probes]
        failures = {name: answer["failures"][name] for name in names if name in answer["failures"]}
        holes = (each for each in failures.values() if each["error"] == "NotImplementedError")
        if failure := next(holes, None):
            return wrong("empty", (_empty_line(hole, file, failure),))
        if set(names) & set(answer["unsteady"]):
            return wrong("law", (UNSTEADY,))
        verdict = judge.verdict(results)
        if verdict is None:
            probe = next(probe for probe in judge.probes if probe.__name__ in failures)
            lines = (*_error_lines(failures[probe.__name__], file), f"The input: {probe.__doc__}.")
            return wrong("error", lines)
        if verdict.outcome != "right":
            return replace(verdict, hole=hole)
    return Verdict(lesson.name, "right")


def _empty_line(hole: str, file: Path, failure: dict[str, Any]) -> str:
    """The line on a hole that is not written, or whose mark stands beside the learner's lines."""
    if "line" not in failure or len(lines_of(read_source(file), hole)) <= 1:
        return f"{hole} is not written yet."
    return f"Line {failure['line']} still has {failure['code']}: delete it."


def _error_lines(failure: dict[str, Any], file: Path) -> Iterator[str]:
    """The lines of a message on an error in the learner's code: line, error, and shapes."""
    if failure["error"] == "missing":
        text = f"{failure['text']} is missing: the file has no function of this name."
        yield f"{text} In a notebook, run its cell."
        reset = Folder(file.parent).command("reset", file.stem[3:])
        yield "This makes the file anew, and keeps your version:"
        yield reset
        return
    text = failure["text"] or failure["error"]
    if failure["error"] in ("EOFError", "BdbQuit"):
        text = "a check has no keyboard; leave out input() and breakpoint()"
    if "line" in failure:
        yield f"Line {failure['line']}: {failure['code']}"
    yield f"{failure['error']}: {text}"
    shapes = {} if failure["error"] == "NameError" else failure.get("shapes", {})
    for name, shape in shapes.items():
        yield f"{name} is {shape}"
