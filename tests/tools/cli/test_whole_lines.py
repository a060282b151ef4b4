"""What a command prints into a pipe or a log: each path and each command stands on one line."""

import io
from contextlib import nullcontext, redirect_stderr, redirect_stdout
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glassformer.tools.cli.main import COMMANDS, main
from glassformer.tools.learn import examine
from glassformer.tools.learn.folder import Folder
from glassformer.tools.learn.worker import answer_on

pytestmark = pytest.mark.usefixtures("without_shape_types")
# No file is at PATH, so that the command names it.
REFUSED = """\
demo --out PATH --size 100
doctor PATH
train PATH PATH --out out
backtranslate PATH PATH --out out.tsv
translate PATH
serve PATH --port 0
import PATH out
export PATH out
evaluate PATH PATH
look PATH
learn check PATH
plot attention PATH May --out out.svg
""".splitlines()
# Lessons are in the folder PATH; they are checked in this process.
LEARN = ["check PATH", "hint PATH", "solution PATH", "status PATH", "reset PATH"]
HERE = SimpleNamespace(answer=lambda chosen, file: answer_on(file, chosen.name))
NAMES = st.integers(1, 200).map(lambda length: ("a-long-name-" * 20)[:length])


def printed(words, path, columns):
    """The exit status of a command on the path, and all that it prints."""
    out = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(out):
        patch.setenv("COLUMNS", str(columns))
        patch.chdir(path.parent)
        patch.setattr(examine, "Worker", lambda: nullcontext(HERE))
        status = main([str(path) if word == "PATH" else word for word in words.split()])
    return status, out.getvalue()


def test_each_command_is_here():
    assert {words.split()[0] for words in REFUSED} == set(COMMANDS)


@settings(max_examples=3)
@pytest.mark.parametrize("words", REFUSED)
@given(name=NAMES, columns=st.integers(40, 250))
def test_an_error_names_the_whole_path(words, name, columns, tmp_path_factory):
    place = tmp_path_factory.mktemp("place")
    path = place / name
    if words.startswith("demo"):
        path.touch()
    status, text = printed(words, path, columns)
    assert status != 0
    assert str(path) in text
    assert text.count("\n") == 1


@settings(max_examples=3)
@pytest.mark.parametrize("words", LEARN)
@given(name=NAMES, columns=st.integers(40, 250))
def test_the_lines_do_not_depend_on_path_and_columns(words, name, columns, tmp_path_factory):
    texts = []
    for each, width in (("x", 80), (name, columns)):
        path = tmp_path_factory.mktemp("place") / each
        Folder(path).make()
        text = printed(f"learn {words}", path, width)[1]
        texts.append(text.replace(str(path), "PATH"))
    assert texts[0] == texts[1]
