"""Pages that hold a toy translator: the face that looks inside, and the translator's."""

from dataclasses import replace

import pytest

from glassformer.bundle import load_bundle, save_bundle
from glassformer.tools.cli.main import main
from glassformer.tools.inspection.trace.build import trace
from glassformer.tools.inspection.trace.schema import Query
from glassformer.tools.web.living_page import rounded
from tests.browser import without_complaints

EXAMPLES = ("An old hat.", "A <i>dog</i> runs.")
TEXT = "Two men sit in the <b>snow</b>."


@pytest.fixture(scope="session")
def run_directory(bundle_directory, tmp_path_factory):
    """The bundle with example sentences and a licence."""
    directory = tmp_path_factory.mktemp("run") / "en-de"
    bundle = replace(load_bundle(bundle_directory), examples=EXAMPLES, about={"licence": "CC0-1.0"})
    save_bundle(bundle, directory)
    return directory


@pytest.fixture(scope="session")
def files(run_directory, tmp_path_factory):
    """The file of each face."""
    folder = tmp_path_factory.mktemp("pages")
    looking, translating = folder / "look.html", folder / "translate.html"
    words = ["look", str(run_directory), "--live", "--text", TEXT, "--out", str(looking)]
    assert main(words) == 0
    assert main(["export", str(run_directory), str(translating), "--to", "page"]) == 0
    return {"look": looking, "translate": translating}


@pytest.fixture(scope="session")
def traced(run_directory):
    """Python's trace of a text by the page's rounded weights."""
    bundle, _ = rounded(load_bundle(run_directory), "int8")
    return lambda text, **options: trace(bundle, Query(text, **options))


@pytest.fixture(scope="module")
def one_tab(browser):
    """A new tab takes a second."""
    tab = browser.new_page(viewport={"width": 1280, "height": 900})
    tab.set_default_timeout(20_000)
    yield tab
    tab.close()


@pytest.fixture
def tab(one_tab):
    """A tab that fails the test at its end if the page has complained."""
    with without_complaints(one_tab):
        yield one_tab
        one_tab.goto("about:blank")
