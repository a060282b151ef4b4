"""The first lesson's file as a learner fills it in."""

from pathlib import Path

from glassformer.tools.learn.folder import Folder
from glassformer.tools.learn.lesson import lesson

ATTENTION = lesson("attention")
HOLE = "    raise NotImplementedError\n"
RIGHT = """\
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.size(-1))
    weights = masked_softmax(scores, mask)
    return weights @ value, weights
"""


def folder_with(directory: Path, body: str = RIGHT) -> Folder:
    """A new folder of lessons; the first one has this body."""
    folder = Folder(directory)
    folder.make()
    text = ATTENTION.template.replace(HOLE, body)
    folder.file(ATTENTION).write_text(text, encoding="utf-8")
    return folder
