"""The learner's status: figure 1 with the learner's own parts, and the list of the lessons."""

from collections.abc import Collection
from itertools import zip_longest

from rich.console import Console
from rich.table import Table
from rich.text import Text

from glassformer.config import ModelConfig, presets
from glassformer.model.transformer import Transformer
from glassformer.tools.inspection.figure1 import figure1
from glassformer.tools.inspection.trace.schema import Box
from glassformer.tools.learn.folder import Folder
from glassformer.tools.learn.lesson import EXERCISES, lessons

__all__ = ["own_boxes", "print_list", "print_status"]

_MARKS = {"yours": ("[x]", "bold green"), "partly yours": ("[/]", "green"), None: ("[ ]", "dim")}
_WORDS = 37_000  # the paper's shared vocabulary


def own_boxes(learned: Collection[str], preset: str = "base") -> list[Box]:
    """Figure 1 of a preset's model; a box is "yours" if all its lessons are learned."""
    parts = {
        place: "yours" if lesson.name in learned else ""
        for lesson in lessons()
        for place in lesson.holes.values()
    }
    sizes = {"source_vocab_size": _WORDS, "target_vocab_size": _WORDS} | presets[preset]
    return figure1(Transformer(ModelConfig(**sizes)), 1, 1, parts=parts)


def print_status(console: Console, folder: Folder) -> None:
    """Print figure 1, the list, and the next lesson; the list is the end of the screen."""
    console.print(_figure(folder.learned_names()))
    console.print(Text("[x] yours   [/] partly yours   one block of N\n", style="dim"))
    print_list(console, folder)
    console.print(Text(folder.onward()), soft_wrap=True)


def print_list(console: Console, folder: Folder) -> None:
    """Print a line for each lesson, and a line of exercises."""
    learned = folder.learned_names()
    for lesson in lessons():
        tick = "x" if lesson.name in learned else " "
        console.print(Text(f"[{tick}] {lesson.number:2}. {lesson.title}"))
    marks = (f"[{'x' if name in learned else ' '}] {name}" for name in EXERCISES)
    console.print(Text(f"Harder: {'  '.join(marks)}"))


def _figure(learned: Collection[str]) -> Table:
    """Figure 1 as a table: encoder and decoder side by side, with one block of each, upwards."""
    # A tiny model has the same titles as a large model, and takes no time to build.
    boxes = [box for box in own_boxes(learned, "tiny") if box.layer in (None, 0)]
    encoder = [_cell(box) for box in boxes if box.stack == "encoder"]
    decoder = [_cell(box) for box in boxes if box.stack != "encoder"]
    table = Table.grid(padding=(0, 2))
    for row in reversed(list(zip_longest(encoder, decoder, fillvalue=""))):
        table.add_row(*row)
    return table


def _cell(box: Box) -> Text:
    mark, style = _MARKS[box.own]
    return Text(f"{mark} {box.title}", style=style)
