"""The site's sources: pages of the lessons, and commands that the program knows.

``make docs`` runs every example of the site itself.
"""

import importlib
import importlib.util
import inspect
import re
import shlex
import sys
from pathlib import Path

import pytest

import glassformer
from glassformer.support.other_names import rows
from glassformer.tools.cli.main import COMMANDS, module_of
from glassformer.tools.cli.options import parse_options
from glassformer.tools.learn.lesson import EVERY, EXERCISES, LESSONS, lessons
from tests.tables import every

DOCS = Path(__file__).parent.parent / "docs"
_YAML = re.compile(r"`([\w-]+\.yaml)` holds [^\n]*\n\n```yaml\n(.*?)```", re.DOTALL)


def commands():
    """The lines of all shell blocks, and of the table of other names, that call this program."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(DOCS.rglob("*.md"))]
    blocks = [block for text in texts for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL)]
    lines = [line.split("  #")[0] for block in blocks for line in block.splitlines()]
    lines += [line.strip("`") for _, _, _, line in rows().values()]
    return sorted({m[1] for line in lines if (m := re.search(r"\bglassformer (.*)", line))})


@pytest.fixture
def _yaml_files(tmp_path, monkeypatch):
    """The YAML files that pages show, in the working directory."""
    monkeypatch.chdir(tmp_path)
    for path in DOCS.rglob("*.md"):
        for name, content in _YAML.findall(path.read_text(encoding="utf-8")):
            Path(name).write_text(content, encoding="utf-8")


@pytest.mark.usefixtures("_yaml_files")
@every("command", commands())
def test_the_program_knows_the_command(command):
    name, *words = shlex.split(re.sub(r" [<>] \S+", "", command))  # without redirections
    assert name in COMMANDS
    module = module_of(name)
    options = module.OPTIONS
    if isinstance(options, dict):
        kind = words.pop(0) if words and words[0] in options else module.DEFAULT_KIND
        options = options[kind]
    parse_options(options, words)


def test_every_public_name_is_in_the_reference():
    text = (DOCS / "api.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"(?:auto\w+|py:data):: \S+\.(\w+)", text))
    assert set(glassformer.__all__) <= listed
    assert set(types_of_public_names()) <= listed


def types_of_public_names():
    """The package's classes that public functions, and public methods, take or give."""
    for name in glassformer.__all__:
        item = getattr(glassformer, name)
        methods = vars(item).items() if inspect.isclass(item) else ()
        for call in (item, *(method for key, method in methods if not key.startswith("_"))):
            if not callable(call):
                continue
            signature, home = inspect.signature(call), vars(sys.modules[call.__module__])
            hints = [each.annotation for each in signature.parameters.values()]
            for hint in (*hints, signature.return_annotation):
                words = re.findall(r"\w+", hint.__name__ if inspect.isclass(hint) else str(hint))
                kinds = [kind for word in words if inspect.isclass(kind := home.get(word))]
                yield from (k.__name__ for k in kinds if k.__module__.startswith("glassformer."))


@pytest.fixture
def pages(monkeypatch):
    monkeypatch.syspath_prepend(DOCS)
    return importlib.import_module("pages")


def test_each_lesson_has_a_page_with_its_solution_folded(pages, tmp_path):
    pages.write(tmp_path)
    contents = (tmp_path / "lessons.md").read_text(encoding="utf-8")
    mistakes = (tmp_path / "mistakes.md").read_text(encoding="utf-8")
    for lesson in lessons(EVERY):
        page = (tmp_path / f"{lesson.name}.md").read_text(encoding="utf-8")
        assert f"({lesson.name}.md)" in contents
        notebook = re.search(r"{download}`as a notebook <(.*?)>`", page)[1]
        assert (tmp_path / notebook).read_text("utf-8") == lesson.notebook
        assert re.match(r"---\n.*\n---\n# ", page)
        assert ("::::{dropdown} Why it is so\n" in page) == bool(lesson.hints)
        for hole, hints in lesson.hints.items():
            for number, hint in enumerate(hints, start=1):
                assert hint.strip() in page.partition(f"{hole}, hint {number}: ")[2]
        for source in lesson.solutions().values():
            assert source.strip().splitlines()[-1].strip() in page
        for name in lesson.mistakes:
            entry = page.partition(f"::::{{dropdown}} {lesson.mistakes[name].says.rstrip('.')}\n")[
                2
            ]
            assert entry.startswith(f"({name})=\n")
            assert "```diff\n" in entry.partition("\n::::\n")[0]
            assert f"({lesson.name}.md#{name})" in mistakes
        assert ("## Known mistakes" in page) == bool(lesson.mistakes)
    harder = contents.partition(":caption: Harder exercises\n")[2].split()
    assert harder[:-1] == list(EXERCISES)


def test_each_formula_of_a_lesson_becomes_mathematics(pages):
    """The only indented texts without mathematics are drawings of letters and a line of code."""
    left, used = [], set()
    for lesson in lessons():
        for cell in lesson.template.split("# %%")[1:]:
            for block in re.findall(r"(?:^#     .*\n)+", cell, re.MULTILINE):
                text = " ".join(block.replace("#", "", 1).replace("\n#", " ").split())
                used.add(text)
                if not pages.as_latex(text):
                    left.append(lesson.name)
    assert sorted(left) == ["causal", "greedy", "heads", "whole"]
    assert set(importlib.import_module("formulas").FORMULAS) <= used
    page = pages.lesson_page(next(lessons()))
    assert "$$\n\\mathrm{Attention}(Q, K, V) = " in page
    assert "√d_k) V" not in page.partition("hint 1")[0]


@pytest.mark.usefixtures("pages")
def test_each_formula_is_drawn():
    convert = pytest.importorskip("latex2mathml.converter").convert
    for lines in importlib.import_module("formulas").FORMULAS.values():
        for line in lines:
            drawn = convert(line)
            assert "\\" not in drawn  # a command that the converter does not know stays as text
            assert "&amp;" not in drawn


def test_each_box_of_figure_1_leads_to_its_lesson(pages):
    svg = pages.lesson_map("generated/")
    links = re.findall(r'<a href="generated/(\w+)\.html" aria-label="([^"]+)">\s*<path', svg)
    assert svg.count("<a ") == len(links) == 16
    assert {name for name, _ in links} <= set(LESSONS)
    assert (
        "causal",
        "Masked Multi-Head Attention: lesson 3, Masks: no look ahead, and the shift",
    ) in (links)
    written = " ".join(re.findall(r">([^<>]+)</text>", svg))
    assert "parameters" not in written
    assert "Feed Forward" in written  # text, which a reader can copy, not its outlines
    assert "<style" not in svg  # it would hold for the whole page
    assert "http" not in svg.replace("http://www.w3.org/", "")


@pytest.fixture
def check_links():
    spec = importlib.util.spec_from_file_location("check_links", DOCS / "check_links.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_broken_link_and_a_foreign_file_are_named(check_links, tmp_path):
    (tmp_path / "a.html").write_text(
        '<a href="b.html#here">right</a><a href="https://example.org">not followed</a>'
        '<a href="c.html">no file</a><a href="b.html#there">no place</a>'
        '<script src="https://example.org/x.js"></script>'
    )
    (tmp_path / "b.html").write_text('<p id="here"></p>')
    assert check_links.faults(tmp_path) == [
        "a.html: b.html#there: no such place",
        "a.html: c.html: no such file",
        "a.html: loads https://example.org/x.js from another host",
    ]


def test_an_output_that_nobody_reads_is_named(check_links, tmp_path):
    """As myst-nb writes outputs: plain text, lines that a cell prints, HTML, source."""
    output = '<div class="output {}"><div class="highlight"><pre>{}</pre></div></div>'
    long = "12 345 " * 300
    (tmp_path / "a.html").write_text(
        output.format("text_plain", "&lt;Figure size 960x580 with 1 Axes&gt;")
        + output.format("stream highlight-myst-ansi", long)
        + output.format("text_plain", "short")
        + output.format("text_html", long)
        + f"<div>{long} &lt;Figure size 1x1 with 0 Axes&gt;</div>"
    )

    assert check_links.faults(tmp_path) == [
        "a.html: 2,100 characters of output: '12 345 12 345 12 345 12 345 12 345 12 34' …",
        "a.html: <Figure size 960x580 with 1 Axes> stands in the place of a picture",
    ]
