"""Writes the pages of the lessons, of their mistakes and of the names, from the package's files."""

import re
import textwrap
from pathlib import Path

from formulas import as_latex
from lesson_map import lesson_map

import glassformer
from glassformer.tools.learn.edits import changed_lines
from glassformer.tools.learn.judge import Judge
from glassformer.tools.learn.lesson import EVERY, EXERCISES, Lesson, lessons
from glassformer.tools.learn.measured import cost_of

__all__ = ["write"]

LESSONS = Path(__file__).parents[1] / "src" / "glassformer" / "tools" / "learn" / "lessons"

NAMES = LESSONS.parents[2] / "support" / "other_names.md"
SINGLE_COLUMN = "---\nhtml_theme.sidebar_secondary.remove: true\n---\n"

# Words by which a reader searches for a page; the site's search shows it before other places.
SEARCHED = {
    "generated/from-other-names": ("fairseq", "Joey NMT", "OpenNMT", "Hugging Face", "Keras"),
    "generated/lessons": ("hints", "solutions", "exercises", "answers", "tutorials"),
    "generated/positions": ("cats and dogs", "word order"),
    "how-to/curves": ("TensorBoard", "learning curve"),
    "how-to/export": ("ONNX", "quantization"),
    "how-to/other-translators": ("pretrained models", "zoo of pretrained models"),
    "how-to/own-files": ("dataset", "data loader", "training data", "parallel corpus"),
    "paper": ("The Annotated Transformer", "nanoGPT", "source code", "from scratch"),
    "recurrence": ("RNN", "LSTM", "GRU", "CNN", "convolution", "recurrent network"),
}

# The panel of `glassformer look` that shows a lesson's part, and the figure's title.
FIGURES = {
    "attention": ("worked", "One attention as a worked sum"),
    "padding": ("masks&part=encoder", "The mask of the encoder"),
    "causal": ("masks&part=decoder", "The mask of the decoder"),
    "heads": ("attention&part=encoder", "The heads of a trained encoder"),
    "positions": ("positions", "Embeddings, positions, and their sums"),
    "encoder": ("attention&part=encoder&layer=1", "The attention of a trained encoder"),
    "decoder": ("attention&part=cross", "The attention of a trained decoder over the memory"),
    "greedy": ("player", "A translation, step by step"),
    "beam": ("beam", "A beam search as a tree"),
    "whole": ("lens", "The piece that each layer would write"),
}

# The figure of _static/figures.js for a lesson, its title, and what the reader can do.
SMALL_FIGURES = {
    "embeddings": (
        "embedding",
        "A word beside its position",
        "Choose a token, a position and a width; take the factor away.",
    ),
    "blocks": (
        "norm",
        "A vector before and after LayerNorm",
        "Move the numbers of the vector. Then multiply all of them, or add to all of them.",
    ),
    "subwords": (
        "merges",
        "The merges of your own words",
        "Write a text, and move the slider: each step is one merge.",
    ),
    "loss": (
        "target",
        "The smoothed target and a prediction",
        "Choose ε, the number of symbols, and the probability that the model gives to the label.",
    ),
    "schedule": (
        "rate",
        "The learning rate",
        "Choose the width of the model, the warm-up and the factor.",
    ),
}


def write(directory: Path) -> None:
    """Write a page for each lesson and exercise, their index, and the page of the mistakes."""
    directory.mkdir(exist_ok=True)
    every = list(lessons())
    (directory / "notebooks").mkdir(exist_ok=True)
    for lesson in lessons(EVERY):
        (directory / notebook_name(lesson)).write_text(lesson.notebook, encoding="utf-8")
        (directory / f"{lesson.name}.md").write_text(lesson_page(lesson), encoding="utf-8")
    (directory / "lessons.md").write_text(lessons_page(every), encoding="utf-8")
    (directory / "mistakes.md").write_text(mistakes_page(every), encoding="utf-8")
    (directory / "from-other-names.md").write_text(names_page(), encoding="utf-8")
    (directory / "names.md").write_text(short_reference(), encoding="utf-8")
    (directory / "map.html").write_text(lesson_map("generated/"), encoding="utf-8")


def short_reference() -> str:
    """The table of the package's docstring, with a link from each name to its long entry."""
    rows = re.findall(r"^ {4}(\S.*?) {2,}(.+)$", glassformer.__doc__ or "", re.MULTILINE)
    links = [(wish, re.sub(r"\w+", entry_of, names)) for wish, names in rows]
    table = [f"| {wish} | {names} |" for wish, names in links]
    return "\n".join(["| to | take |", "|---|---|", *table, ""])


def entry_of(name: re.Match[str]) -> str:
    """A link to the long entry of a public name, in the module of its definition."""
    home = getattr(getattr(glassformer, name[0]), "__module__", "glassformer.config")
    return f"{{py:obj}}`{name[0]} <{home}.{name[0]}>`"


def notebook_name(lesson: Lesson) -> str:
    return f"notebooks/{Path(lesson.file_name).stem}.ipynb"


def names_page() -> str:
    """The package's table of other names, with each name in the site's index."""
    title, *sections = NAMES.read_text(encoding="utf-8").split("\n## ")
    for place, section in enumerate(sections):
        heading, table = section.split("\n", 1)
        cells = [row.split(" | ")[0] for row in table.splitlines() if " | " in row][1:]
        names = re.split(r"[,;] ", "; ".join(cells).replace("|", "").replace("`", ""))
        sections[place] = "\n".join([heading, index(*names), table])
    return "\n## ".join([SINGLE_COLUMN + title, *sections])


def index(*names: str) -> str:
    """Entries of the site's index, which the search shows before all other places."""
    return f"\n```{{index}} {', '.join(f'! {name.strip()}' for name in names)}\n```\n"


def lessons_page(every: list[Lesson]) -> str:
    """The lessons in their order, and how to begin."""
    judge = Judge.of(every[0], next(iter(every[0].holes)))
    answer = judge.verdict(judge.results(("mask-not-used",)))
    lines = "\n".join(answer.lines if answer else ())
    hours = sum(each.minutes for each in every) / 60
    rows, names = contents(every)
    harder_rows, harder_names = contents(list(lessons(EXERCISES)))
    return f"""\
# The lessons

You build the Transformer part by part, in about {hours:.0f} hours. The first line installs, in a
clone, with Python 3.11 or newer:

```sh
{install()}
glassformer learn my-transformer
```

This makes a folder with a file for each lesson, and checks your file at each save. Each file has
one to five holes, and many of them take one line. The lessons do not depend on each other: begin
where you want, such as with `glassformer learn my-transformer heads`, or save another file.
`glassformer learn check my-transformer heads --own` runs a lesson with your own
earlier parts in place of the package's, and names a wrong one first.

Each box of figure 1 leads to its lesson:

```{{raw}} html
{lesson_map("")}
```

Each page offers its lesson as a notebook too, for Jupyter or for a
[hosted notebook](../how-to/notebooks.md).

If a softmax in the first lesson reads no mask, the check answers:

```text
{lines}
```

{rows}

```{{toctree}}
:hidden:
{names}
```

## Harder exercises

Later work puts these in the place of the paper's parts. There are no hints; a check tells you the
first number that differs. Their files lie in the same folder.

{harder_rows}

```{{toctree}}
:hidden:
:caption: Harder exercises
{harder_names}
```
"""


def install() -> str:
    """The line of the landing page that installs the package."""
    index = (Path(__file__).parent / "index.md").read_text(encoding="utf-8")
    return next(line for line in index.splitlines() if "pip install" in line)


def contents(some: list[Lesson]) -> tuple[str, str]:
    """A line for each lesson, and the names of the pages."""
    rows = (
        f"{each.number}. [{each.title}]({each.name}.md) ({each.minutes} minutes,"
        f" {each.difficulty}). Afterwards you know {each.understood}."
        for each in some
    )
    return "\n".join(rows), "\n".join(each.name for each in some)


def lesson_page(lesson: Lesson) -> str:
    """The learner's file as a page, with hints, solution and answers folded."""
    title, *cells = [page_of_cell(cell) for cell in lesson.template.split("# %%")[1:]]
    kind = "Lesson" if lesson.hints else "Harder exercise"
    place = f"{kind} {lesson.number} · {lesson.place} · {lesson.minutes} minutes"
    place += f" · {lesson.difficulty}"
    kinds = ("the idea", "the shapes", "almost the code")
    hints = "\n".join(
        folded(f"{hole}, hint {number}: {kind}", hint)
        for hole, three in lesson.hints.items()
        for number, (kind, hint) in enumerate(zip(kinds, three, strict=True), start=1)
    )
    solutions = "\n".join(
        f"```python\n{textwrap.dedent(source).rstrip()}\n```\n"
        for source in lesson.solutions().values()
    )
    answers = "\n\n".join(f"**{each.question}** {each.answer}" for each in lesson.questions)
    heading, text = title.split("\n", 1)
    return "\n".join(
        [
            SINGLE_COLUMN + heading,  # code needs the whole width
            f"\n{place}. Afterwards you know {lesson.understood}.\n",
            text,
            *picture(lesson.name),
            *why(lesson.name),
            cells[0],
            f"Your file: `{lesson.file_name}`. The check:"
            f" `glassformer learn check my-transformer {lesson.name}`. The same"
            f" {{download}}`as a notebook <{notebook_name(lesson)}>`,"
            " which checks itself: [how to open it](../how-to/notebooks.md).\n",
            hints,
            folded("Solution: the package's own source", solutions),
            *cells[1:],
            folded("Answers", answers),
            *live_figure(lesson.name),
            *small_figure(lesson.name),
            "## Known mistakes\n\nThe check knows these by name. Open one after your own attempt:"
            " - is the right line, + the wrong one.\n"
            if lesson.mistakes
            else "",
            *(mistake_entry(lesson, name) for name in lesson.mistakes),
        ]
    )


def why(name: str) -> list[str]:
    """Why the part of a lesson is so, and where it comes from; an exercise says it in its text."""
    file = LESSONS / name / "why.md"
    return [folded("Why it is so", file.read_text(encoding="utf-8"))] if file.exists() else []


def picture(name: str) -> list[str]:
    """The axes of the weights, for the lesson that first has all four; two losses."""
    if name == "causal":
        return [
            "![The loss of two trainings: the one without a mask sees the answers. Its loss is"
            " lower, and not one of its translations is right](../losses.png)\n"
        ]
    return ["```{raw} html\n:file: ../_static/axes.svg\n```\n"] if name == "heads" else []


def live_figure(name: str) -> list[str]:
    """The panel of the lesson's part, for a sentence and a translator that ``make docs`` trains."""
    if name not in FIGURES:
        return []
    panel, title = FIGURES[name]
    return [
        f"## {title}\n",
        "The figure is live: click a word, a head, or a step. `glassformer look` shows it for"
        " your own translator.\n",
        f'<iframe class="look" loading="lazy" title="{title}"'
        f' src="../_static/look.html#only=1&amp;panel={panel.replace("&", "&amp;")}"></iframe>\n',
    ]


def small_figure(name: str) -> list[str]:
    """The figure of a lesson that the page's own script computes."""
    if name not in SMALL_FIGURES:
        return []
    figure, title, to_do = SMALL_FIGURES[name]
    return [
        f"## {title}\n",
        f"{to_do}\n",
        f'<div class="live" data-figure="{figure}" role="group" aria-label="{title}">This figure'
        " needs JavaScript.</div>\n",
        '<script src="../_static/figures.js"></script>\n',
    ]


def page_of_cell(cell: str) -> str:
    """A percent cell as Markdown; code is shown and not run, because its holes are empty."""
    kind, text = cell.split("\n", 1)
    if "[markdown]" in kind:
        text = re.sub(r"^# ?", "", text.strip(), flags=re.MULTILINE)
        return re.sub(r"(?:^ {4}.*\n?)+", drawn, text, flags=re.MULTILINE) + "\n"
    return f"```python\n{text.strip()}\n```\n"


def drawn(block: re.Match[str]) -> str:
    """A formula as mathematics; a table or a drawing of letters as it is."""
    text = textwrap.dedent(block[0])
    if formula := as_latex(text):
        return "".join(f"$$\n{line}\n$$\n\n" for line in formula)
    return f"```{{code-block}} text\n:class: drawing\n\n{text.rstrip()}\n```\n"


def folded(title: str, text: str) -> str:
    return f"::::{{dropdown}} {title}\n{text.strip()}\n::::\n"


def mistake_entry(lesson: Lesson, name: str) -> str:
    """A mistake, folded: the wrong line beside the right one, the paper, and the harm.

    A link to the mistake leads inside the fold, so that the browser opens it.
    """
    known = lesson.mistakes[name]
    diff = f"```diff\n{changed_lines(lesson, name)}\n```"
    harm = f"*In a translator:* {known.costs} {cost_of(name) or ''}"
    return folded(known.says.rstrip("."), f"({name})=\n{known.paper}\n\n{diff}\n\n{harm}")


def mistakes_page(every: list[Lesson]) -> str:
    """A link to each mistake that the checks know, by lesson."""
    parts = [
        "# The mistakes",
        "The page of each lesson shows the wrong line beside the right one, quotes the paper, and"
        " says how the mistake harms a translator.\n",
    ]
    for lesson in every:
        parts.append(f"## {lesson.title}\n")
        parts += [
            f"- [{known.says}]({lesson.name}.md#{name})" for name, known in lesson.mistakes.items()
        ]
        parts.append("")
    return "\n".join(parts)
