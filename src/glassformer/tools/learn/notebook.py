"""The lessons as notebooks, and the check of a lesson inside a notebook."""

import io
import json
import re
from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from glassformer.support.consoles import new_console
from glassformer.support.files import write_atomically
from glassformer.tools.learn.lesson import EVERY, Lesson, lesson, lessons

__all__ = ["check", "notebook_of", "write_notebooks"]

_CHECK = """\
# %% [markdown]
# ## Check
# %%
from glassformer.tools.learn.notebook import check

check("{name}", globals())
"""


def write_notebooks(directory: Path) -> list[Path]:
    """Write lessons and exercises as notebooks, without overwriting files; return new paths."""
    directory.mkdir(parents=True, exist_ok=True)
    written = []
    for each in lessons(EVERY):
        path = directory / Path(each.file_name).with_suffix(".ipynb")
        if not path.exists():
            write_atomically(path, json.dumps(notebook_of(each), indent=1).encode())
            written.append(path)
    return written


def notebook_of(lesson: Lesson) -> dict[str, Any]:
    """A lesson in the notebook format 4.5, with a last cell that checks it.

    >>> notebook = notebook_of(lesson("attention"))
    >>> notebook["cells"][0]["source"].splitlines()[0]
    '# Scaled dot-product attention'
    """
    text = lesson.template.rstrip() + "\n\n" + _CHECK.format(name=lesson.name)
    parts = re.findall(r"^# %%([^\n]*)\n(.*?)(?=^# %%|\Z)", text, re.MULTILINE | re.DOTALL)
    cells = [_cell(number, kind, text) for number, (kind, text) in enumerate(parts)]
    return {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


def _cell(number: int, kind: str, text: str) -> dict[str, Any]:
    cell: dict[str, Any] = {"id": f"cell-{number}", "metadata": {}, "source": text.strip()}
    if "[markdown]" in kind:
        source = re.sub(r"^# ?", "", text.strip(), flags=re.MULTILINE)
        return cell | {"cell_type": "markdown", "source": source}
    return cell | {"cell_type": "code", "execution_count": None, "outputs": []}


def check(name: str, solution: Mapping[str, Any]) -> None:
    """Check a lesson in this process, print the verdict, and raise the errors of your code.

    ``solution`` has the lesson's functions by name, such as ``globals()`` in a notebook.
    """
    from glassformer.tools.learn.check import values_of
    from glassformer.tools.learn.judge import UNSTEADY, Judge, same
    from glassformer.tools.learn.messages import hint_text, print_verdict
    from glassformer.tools.learn.verdict import Verdict

    chosen, learner, verdict = lesson(name), SimpleNamespace(**solution), Verdict(name, "right")
    for hole in chosen.holes:
        judge = Judge.of(chosen, hole)
        try:
            results = {probe.__name__: values_of(probe, learner) for probe in judge.probes}
            with redirect_stdout(io.StringIO()):  # a print is shown once
                again = {probe.__name__: values_of(probe, learner) for probe in judge.probes}
            if same(results, again):
                verdict = judge.verdict(results) or verdict
            else:
                verdict = Verdict(name, "law", (UNSTEADY,))
        except NotImplementedError:
            verdict = Verdict(name, "empty", (f"{hole} is not written yet.",))
        if verdict.outcome != "right":
            verdict = replace(verdict, hole=hole)
            break
    print_verdict(new_console(color_system=None), chosen, verdict)
    if verdict.hole:
        print(hint_text(chosen, verdict.hole, 1))
