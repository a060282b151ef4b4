"""The verdict on a solution: right, or the mistake by its name.

A judge of one hole asks in this order: Are all values right, and all gradients? Do the values equal
the values of a known mistake, or of two mistakes? If not, which number differs first?
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import combinations

from glassformer.tools.learn.check import GRADIENT, Probe, Results, Values, measure, probes_of
from glassformer.tools.learn.edits import EditError, solution
from glassformer.tools.learn.lesson import Lesson
from glassformer.tools.learn.measured import cost_of
from glassformer.tools.learn.observed import (
    alike,
    compared,
    equal,
    observations,
    same,
)
from glassformer.tools.learn.verdict import Mistake, Verdict
from glassformer.tools.learn.where import (
    cause_of,
    gradients_seen,
    right_parts,
    situation_of,
    supposed,
)

__all__ = ["UNSTEADY", "Judge"]

UNSTEADY = (
    "Two calls with the same input give different values. Look for a new layer in each call, or for"
    " dropout outside of training."
)
"""The message if the values of a probe change from call to call."""


@dataclass(frozen=True)
class Judge:
    """Judges the values of one hole's probes.

    >>> from glassformer.tools.learn.lesson import lesson
    >>> judge = Judge.of(lesson("attention"), "scaled_dot_product_attention")
    >>> judge.verdict(judge.results(("scale-missing",))).mistakes
    (('scale-missing',),)
    """

    lesson: Lesson
    probes: tuple[Probe, ...]
    right: Results

    @classmethod
    @cache
    def of(cls, lesson: Lesson, hole: str) -> "Judge":
        """The cached judge of one hole of a lesson."""
        probes = probes_of(lesson.name)[hole]
        return cls(lesson, probes, measure(probes, solution(lesson)))

    def results(self, mistake: Mistake) -> Results:
        """The results of the right solution with a mistake."""
        values = {probe.__name__: _values(self.lesson, mistake, probe) for probe in self.probes}
        return {name: each for name, each in values.items() if each is not None}

    def verdict(self, results: Results) -> Verdict | None:
        """The verdict; None if probes raised errors and no mistake explains the results."""
        results = {
            probe.__name__: results[probe.__name__]
            for probe in self.probes
            if probe.__name__ in results
        }
        weights = self._other_weights(results)
        if same(self.right, results) and not weights:
            if wrong := tuple(self._difference(results, gradients=True)):
                lines = (*self._cut_off(results), *wrong, *self._where(results))
                return Verdict(self.lesson.name, "law", lines)
            return Verdict(self.lesson.name, "right")
        if mistakes := self.mistakes(results):
            lines = tuple(self._explained(mistakes, results))
            return Verdict(self.lesson.name, "mistake", lines, mistakes)
        if weights:
            return Verdict(self.lesson.name, "law", (weights,))
        if len(results) < len(self.right):
            cut_off = tuple(self._cut_off(results))  # NumPy raises errors for bfloat16
            return Verdict(self.lesson.name, "law", cut_off) if cut_off else None
        others = (*supposed(self.probes, self.right, results, solution(self.lesson)),)
        seen = (*others, *self._difference(results, seen=not others))
        difference = (*seen, *self._where(results))
        return Verdict(self.lesson.name, "difference", difference)

    def _other_weights(self, results: Results) -> str:
        """A sentence if an object trains a weight more than the right one, or a weight less."""
        for probe, values in results.items():
            yours, right = (
                {name.removeprefix(GRADIENT) for name in each if name.startswith(GRADIENT)}
                for each in (values, self.right[probe])
            )
            if yours and yours != right:
                names = ", ".join(sorted(yours ^ right))
                return f"Only your object trains it, or only the right one: {names}."
        return ""

    def mistakes(self, results: Results) -> tuple[Mistake, ...]:
        """The single mistakes that give ``results``, or else the pairs of mistakes.

        If none gives all values, almost half of the situations suffice in which either is wrong,
        because two people write one mistake in two ways.
        """
        if same(results, self.right):
            return ()
        singles: list[Mistake] = [(name,) for name in self.lesson.mistakes]
        for share in (1.0, 0.48):
            for candidates in (singles, self.pairs()):
                fitting = tuple(x for x in candidates if self._explains(x, results, share))
                if fitting:
                    return fitting
        return ()

    def pairs(self) -> Iterator[Mistake]:
        """The pairs of mistakes that this hole's probes show, and whose edits do not collide."""
        shown = [
            name
            for name in self.lesson.mistakes
            if not all(
                alike(self.right[probe.__name__], _values(self.lesson, (name,), probe))
                for probe in self.probes
            )
        ]
        for pair in combinations(shown, 2):
            with suppress(EditError):
                solution(self.lesson, *pair)
                yield pair

    def _explains(self, mistake: Mistake, results: Results, share: float) -> bool:
        """Whether the mistake gives equal values, and errors in the same probes.

        If a probe by hand, or the first situation, shows the mistake, a share of the situations
        suffices. Most mistakes give other values in the first probes, so that later probes need
        not run.
        """
        by_hand = [each for each in self.probes if not hasattr(each, "situation")]
        situations = [each for each in self.probes if hasattr(each, "situation")]
        shown, wrong, explained = False, 0, 0
        for probe in [*by_hand, *situations]:
            yours, right = results.get(probe.__name__), self.right[probe.__name__]
            theirs = _values(self.lesson, mistake, probe)
            differs, equals = not alike(theirs, right), alike(yours, theirs)
            if probe in by_hand:
                shown |= differs and yours is not None
                if not equals:
                    return False
            elif differs or not alike(yours, right):
                wrong, explained = wrong + 1, explained + equals
                shown |= probe is situations[0] and equals
                if wrong - explained > ((1 - share) * len(situations) if shown else 0):
                    return False
        return bool(results) and explained >= (share if shown else 1) * wrong and wrong + shown > 0

    def _explained(self, mistakes: tuple[Mistake, ...], results: Results) -> Iterator[str]:
        """The lines on each mistake: name, paper, effect on a translator."""
        if len(mistakes) > 1:
            yield "One of these mistakes; the probes cannot tell them apart."
        names = [name for mistake in mistakes for name in mistake]
        for name in names:
            known = self.lesson.mistakes[name]
            yield known.says
            yield known.paper
            yield f"In a translator: {known.costs}"
            if cost := cost_of(name):
                yield cost
        if len(mistakes) == 1:
            yield from self._difference(results)

    def _difference(
        self, results: Results, *, gradients: bool = False, seen: bool = True
    ) -> Iterator[str]:
        """The lines on the first wrong value: the facts, both values, the input of the probe.

        With ``gradients``, only gradients count; otherwise only other values count. Without
        ``seen``, a sentence on all wrong values stands already there.
        """
        for probe in self.probes:
            right = self.right[probe.__name__]
            for name, value in results.get(probe.__name__, {}).items():
                if name.startswith(GRADIENT) != gradients or equal(value, right[name]):
                    continue
                if gradients:
                    yield from gradients_seen(
                        probe, results[probe.__name__], right, solution(self.lesson)
                    )
                elif says := getattr(probe, "says", ""):
                    yield says
                if seen:
                    row = getattr(probe, "situation", {})
                    yield from observations(results[probe.__name__], right, row)
                    yield from cause_of(self.probes, self.right, results)
                yield compared(name, value, right[name])
                yield f"The input: {probe.__doc__}."
                return

    def _cut_off(self, results: Results) -> Iterator[str]:
        """A line of the message if no gradient comes back in a probe."""
        for name, values in results.items():
            gradients = [each for each in values if each.startswith(GRADIENT)]
            right = any(self.right[name][each].any() for each in gradients)
            if right and not any(values[each].any() for each in gradients):
                yield (
                    "Nothing learns through your code: no gradient gets to inputs and weights."
                    " Look for no_grad, detach, .data, torch.tensor(…) or NumPy."
                )
                return

    def _where(self, results: Results) -> Iterator[str]:
        yield from right_parts(self.right, results)
        if where := situation_of(self.probes, self.right, results):
            yield where


@cache
def _values(lesson: Lesson, mistake: Mistake, probe: Probe) -> Values | None:
    """The values of a probe with a mistake, measured once; None if the probe raises an error.

    Values alone identify a mistake, so the judge measures no gradients.
    """
    return measure((probe,), solution(lesson, *mistake), gradients=False).get(probe.__name__)
