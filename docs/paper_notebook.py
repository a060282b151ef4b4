"""``make notebook``: the page of the paper as a notebook, run, with its outputs stored.

The page's source is the only source: ``docs/paper.md``, which loads files of the package.
"""

import re
from pathlib import Path

import nbformat
from myst_nb.core.read import read_myst_markdown_notebook
from nbclient import NotebookClient

__all__ = ["NOTEBOOK", "new_notebook"]

PAGE = Path(__file__).with_name("paper.md")
NOTEBOOK = PAGE.parents[1] / "examples" / "transformer.ipynb"


def new_notebook() -> nbformat.NotebookNode:
    """The cells of the page without outputs; links lead from the notebook to the site's sources."""
    notebook = read_myst_markdown_notebook(PAGE.read_text(encoding="utf-8"), path=PAGE)
    for number, cell in enumerate(notebook.cells, start=1):
        cell.id, cell.metadata = f"cell-{number}", {}
        cell.source = cell.source.rstrip()
        if cell.cell_type == "markdown":
            cell.source = re.sub(r"\]\((?=[\w/-]+\.md)", "](../docs/", cell.source)
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook.metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return notebook


if __name__ == "__main__":
    notebook = new_notebook()
    NotebookClient(notebook, record_timing=False, coalesce_streams=True).execute()
    notebook.metadata["language_info"] = {"name": "python"}  # without the version that ran
    nbformat.write(notebook, NOTEBOOK)
    print(f"wrote {NOTEBOOK.relative_to(PAGE.parents[1])}")
