import base64
import hashlib
import json
import os
import re
import threading
import tomllib
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path

import pytest

from glassformer.bundle import load_bundle, save_bundle
from glassformer.tools.cli.main import main
from glassformer.tools.inspection.trace.build import trace
from glassformer.tools.inspection.trace.schema import Changes, Head, Query
from glassformer.tools.web.look.single_file import build_page
from glassformer.tools.web.look.stored import stored_answers
from tests.tables import every

HOSTILE = '</script><img src=x onerror="alert(1)"> <!-- \u2028 & "'


class Elements(HTMLParser):
    """Every element's name and attributes, and the text inside of scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None], str]] = []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes), ""))

    def handle_endtag(self, tag):
        self.found.append((f"/{tag}", {}, ""))

    def handle_data(self, data):
        if self.found:
            tag, attributes, text = self.found[-1]
            self.found[-1] = (tag, attributes, text + data)

    def named(self, tag: str) -> list[tuple[dict[str, str | None], str]]:
        return [(attributes, text) for name, attributes, text in self.found if name == tag]


def modules() -> dict[str, str]:
    folder = files("glassformer.tools.web") / "static" / "look"
    return {
        file.name: file.read_text("utf-8") for file in folder.iterdir() if file.name.endswith(".js")
    }


def test_the_stored_data_comes_back_whole_and_starts_no_element():
    page = Elements(build_page({"trace": {"text": HOSTILE}}, title=HOSTILE))

    scripts = page.named("script")
    kinds = [attributes.get("type") for attributes, _ in scripts]
    assert kinds == ["application/json", "importmap", None]
    assert json.loads(scripts[0][1]) == {"trace": {"text": HOSTILE}}
    assert page.named("img") == []


def test_the_policy_names_each_script_and_style_by_its_hash():
    page = Elements(build_page({"trace": None}))

    policy = next(
        attributes["content"]
        for attributes, _ in page.named("meta")
        if attributes.get("http-equiv") == "Content-Security-Policy"
    )
    allowed = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    _, imports, loader = (text for _, text in page.named("script"))
    style = page.named("style")[0][1]
    assert allowed["script-src"] == f"'strict-dynamic' {digest(imports)} {digest(loader)}"
    assert allowed["style-src"] == digest(style)
    assert allowed["default-src"] == "'none'"
    assert "connect-src" not in allowed


def digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_the_import_map_holds_every_module_and_each_imports_from_it():
    page = Elements(build_page({"trace": None}))

    urls = json.loads(page.named("script")[1][1])["imports"]
    sources = {name: base64.b64decode(url.partition(",")[2]).decode() for name, url in urls.items()}
    equation = {"engine/attention.js", "engine/tensor.js"}
    assert sources.keys() == {f"look/{name}" for name in modules()} | equation
    for name, source in sources.items():
        imported = re.findall(r'} from "([^"]*)";$', source, re.MULTILINE)
        assert set(imported) <= sources.keys(), name
    assert sources["look/dom.js"] == modules()["dom.js"]  # it imports nothing


def test_the_page_names_no_other_place():
    page = build_page({"trace": None})

    text = "".join([page, *modules().values()])
    assert set(re.findall(r"https?://[^\s\"'`]+", text)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r'(src|href)="(?!data:)', page)


def test_the_same_data_give_the_same_page():
    assert build_page({"trace": 1}) == build_page({"trace": 1})


@every("name", sorted(modules()))
def test_a_module_is_short_and_makes_no_markup(name):
    text = modules()[name]

    assert len(text.splitlines()) <= 300
    assert max(map(len, text.splitlines())) <= 120
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b", text)


def test_the_files_are_installed_with_the_package():
    stated = tomllib.loads((Path(__file__).parents[4] / "pyproject.toml").read_text("utf-8"))
    patterns = stated["tool"]["setuptools"]["package-data"]["glassformer"]
    package = Path(__file__).parents[4] / "src" / "glassformer"
    installed = {path for pattern in patterns for path in package.glob(pattern)}

    assert {package / "tools/web/static/look" / name for name in modules()} <= installed
    assert {
        package / "tools/web/static/look/look.html",
        package / "tools/web/static/look/look.css",
        package / "tools/web/static/look/theme.css",
    } <= installed


def test_each_head_off_has_the_librarys_effect(bundle_directory):
    bundle = load_bundle(bundle_directory)
    seen = trace(bundle, "Two men sit.")
    stored = stored_answers(bundle, seen)

    names = {f"{part}.0.{head}" for part in ("encoder", "decoder", "cross") for head in (0, 1)}
    assert stored["without"].keys() == names
    ids = [piece.id for piece in seen.target.pieces]
    off = Changes(heads_off=[Head("cross", 0, 1)])
    other = trace(bundle, Query("Two men sit.", forced_prefix=ids, changes=off))
    changes = [
        new.written.log_probability - old.written.log_probability
        for old, new in zip(seen.steps, other.steps, strict=True)
    ]
    assert stored["without"]["cross.0.1"] == pytest.approx(changes, abs=1e-4)
    assert stored["changed"]["source_order"]["source"] != stored["trace"]["source"]["pieces"]


def test_the_command_writes_one_file(bundle_directory, tmp_path, capsys):
    out = tmp_path / "look.html"
    words = ["look", str(bundle_directory), "--text", "Two men sit.", "--out", str(out)]

    assert main(words) == 0
    said = capsys.readouterr().out
    stored = json.loads(Elements(out.read_text("utf-8")).named("script")[0][1])
    assert said.startswith(f"wrote {out}: ")
    assert stored["trace"]["asked"]["text"] == "Two men sit."


def test_without_a_text_the_page_shows_an_example_of_the_bundle(bundle_directory, tmp_path, capsys):
    out, directory = tmp_path / "look.html", tmp_path / "bundle"
    words = ["--out", str(out)]
    save_bundle(replace(load_bundle(bundle_directory), examples=()), directory)

    assert main(["look", str(directory), *words]) == 2
    assert "the bundle has no example: give the sentence with --text" in capsys.readouterr().err
    assert not out.exists()
    save_bundle(replace(load_bundle(bundle_directory), examples=("A dog.", "A man.")), directory)
    assert main(["look", str(directory), *words]) == 0

    stored = json.loads(Elements(out.read_text("utf-8")).named("script")[0][1])
    assert stored["trace"]["asked"]["text"] == "A dog."


@every(
    ("words", "status", "message"),
    [
        (["--text", "a", "--out", "a.pdf"], 2, "--out a.pdf: expected a name that ends in .html"),
        (["--text", "\udcff"], 2, "--text '\\udcff': expected UTF-8"),
        (["--text", " "], 2, "--text ' ': expected a sentence"),
        (["--beam", "101"], 2, "--beam '101': expected at most 100"),
        (
            ["--length-penalty", "-1"],
            2,
            "--length-penalty '-1': expected at least 0",
        ),
        (["--port", "70000"], 2, "--port '70000': expected at most 65535"),
        (["--threads", "-1"], 2, "--threads '-1': expected at least 0"),
        (["--text", "a", "--out", "a.html"], 1, "nowhere: not a bundle (no such directory)"),
    ],
)
def test_bad_calls_are_one_clear_line(words, status, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    assert main(["look", "nowhere", *words]) == status
    assert capsys.readouterr().err == f"glassformer: error: {message}\n"


def test_a_page_that_cannot_be_written_is_named(bundle_directory, tmp_path, capsys):
    out = tmp_path / "absent" / "look.html"

    assert main(["look", str(bundle_directory), "--text", "Two men.", "--out", str(out)]) == 1
    assert f"--out {out}: there is no directory {out.parent}: make it" in capsys.readouterr().err


def test_a_page_goes_through_a_pipe_or_a_link(bundle_directory, tmp_path):
    pipe, link = tmp_path / "pipe.html", tmp_path / "link.html"
    os.mkfifo(pipe)
    link.symlink_to(tmp_path / "target")
    pages: list[bytes] = []
    reader = threading.Thread(target=lambda: pages.append(pipe.read_bytes()), daemon=True)
    reader.start()

    for out in (pipe, link):
        assert main(["look", str(bundle_directory), "--text", "Two men.", "--out", str(out)]) == 0

    reader.join(timeout=60)
    assert pipe.is_fifo()
    assert link.is_symlink()
    assert pages[0].startswith(b"<!doctype html>")
    assert (tmp_path / "target").read_bytes().startswith(b"<!doctype html>")
