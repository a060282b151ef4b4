"""The check of a lesson inside a notebook, with hints and the solution folded below it."""

from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from glassformer.support.consoles import new_console
from glassformer.support.errors import UsageError
from glassformer.support.files import write_atomically
from glassformer.tools.learn.examine import checked_once
from glassformer.tools.learn.folder import Folder
from glassformer.tools.learn.lesson import lesson
from glassformer.tools.learn.messages import hint_text, next_command, print_solution, print_verdict
from glassformer.tools.learn.source import code_of

__all__ = ["Folded", "check"]


class Folded(dict[str, str]):
    """Texts by their titles: a notebook shows them folded, and a terminal does not show them."""

    def __repr__(self) -> str:
        return ""

    def _repr_html_(self) -> str:
        style = "white-space: pre-wrap; word-break: normal; font-family: monospace"
        fold = f'<details><summary>{{}}</summary><pre style="{style}">{{}}</pre></details>'
        return "\n".join(fold.format(*map(escape, texts)) for texts in self.items())


def check(name: str, namespace: Mapping[str, Any]) -> Folded:
    """Check a lesson in a notebook: print the verdict, and return the help on it.

    ``namespace`` is the notebook's ``globals()``, with the executed cells. Their code becomes the
    lesson's file in the folder ``from-notebooks``, which all actions of ``glassformer learn`` read.
    """
    if "In" not in namespace:
        raise UsageError(f"no cells: in a notebook, write check({name!r}, globals())")
    chosen, folder, code = lesson(name), Folder(Path("from-notebooks")), code_of(namespace["In"])
    folder.path.mkdir(exist_ok=True)
    write_atomically(folder.path / chosen.file_name, code.encode())
    verdict, console = checked_once(folder, chosen), new_console(color_system=None)
    right = verdict.outcome == "right"
    print_verdict(console, chosen, verdict)
    print(next_command(folder, chosen, 3 if right else 0).replace(": ", ": !", 1))
    hints = [hint_text(chosen, verdict.hole, number) for number in (1, 2, 3) if chosen.hints]
    with console.capture() as solution:
        print_solution(console, chosen, code, verdict.hole, right=right)
    texts = [*(hint.partition(":\n")[::2] for hint in hints if not right)]
    title = "Solution and answers" if right else "Solution"
    return Folded([*texts, (title, solution.get())])
