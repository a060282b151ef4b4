"""The law of mutants: what rules make of the right solution is found, or listed as right."""

import signal

import pytest
import torch

from glassformer.tools.learn.check import values_of
from glassformer.tools.learn.judge import UNSTEADY, Judge, same
from glassformer.tools.learn.lesson import LESSONS, lesson
from tests.mutants import mutants

SECONDS = 2  # of computing, for a mutant that runs for ever


def verdict_on_mutant(mutant):
    """The outcome and the lines of a check of a mutant; "idle" if the mutant changes no value."""
    solution = mutant.solution()
    torch.seed()
    signal.signal(signal.SIGVTALRM, lambda *_: pytest.fail("runs for ever"))
    for hole in mutant.lesson.holes:
        judge = Judge.of(mutant.lesson, hole)
        results = {}
        try:
            signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
            for probe in judge.probes:
                try:
                    results[probe.__name__] = values_of(probe, solution)
                    if not hasattr(probe, "situation"):
                        again = values_of(probe, solution)
                        if not same({probe.__name__: again}, results):
                            return "unsteady", (UNSTEADY,)
                except Exception:
                    continue  # the judge has no values of this probe
        except pytest.fail.Exception:
            return "error", ("runs for ever",)
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            torch.set_grad_enabled(True)
        verdict = judge.verdict(results)
        if verdict is None:
            return "error", ()
        if verdict.outcome != "right":
            return verdict.outcome, verdict.lines
    return "right" if mutant.acts(solution) else "idle", ()
