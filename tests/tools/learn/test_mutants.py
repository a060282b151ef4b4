"""The law of mutants."""

from glassformer.tools.learn.check import values_of
from glassformer.tools.learn.judge import UNSTEADY, Judge, same
import torch


def verdict_on_mutant(mutant):
    """The outcome and the lines of a check of a mutant."""
    failed, solution = False, mutant.solution()
    for hole in mutant.lesson.holes:
        judge = Judge.of(mutant.lesson, hole)
        results, steady = {}, True
        for probe in judge.probes:
            try:
                results[probe.__name__] = values_of(probe, solution)
                again = values_of(probe, solution)
                steady &= same({probe.__name__: again}, results)
            except Exception as error:
                failed = True
            finally:
                torch.set_grad_enabled(True)
        if not steady:
            return "unsteady", (UNSTEADY,)
        verdict = judge.verdict(results)
        if verdict is None:
            return "error", ()
        if verdict.outcome != "right":
            return verdict.outcome, verdict.lines
    return "right" if mutant.acts(solution) else "idle", ()
