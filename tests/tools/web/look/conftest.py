"""The page in a real browser, of a toy translator; skipped where there is no browser."""

from dataclasses import replace
from urllib.parse import quote

import pytest

from glassformer.bundle import load_bundle, save_bundle
from glassformer.tools.cli.main import main
from glassformer.tools.inspection.trace.build import trace
from tests.browser import without_complaints

EXAMPLES = ["An old hat.", "A <i dog runs across the grass.", "Two men sing."]


@pytest.fixture(scope="session")
def text() -> str:
    """What the page is about."""
    return "Two men sit in the <b snow."


@pytest.fixture(scope="session")
def run_directory(bundle_directory, tmp_path_factory):
    """The bundle with example sentences."""
    directory = tmp_path_factory.mktemp("run") / "en-de"
    bundle = load_bundle(bundle_directory)
    save_bundle(replace(bundle, examples=tuple(EXAMPLES)), directory)
    return directory


@pytest.fixture(scope="session")
def examples() -> list[str]:
    """The examples of the run's bundle."""
    return EXAMPLES


@pytest.fixture(scope="session")
def file(run_directory, text, tmp_path_factory):
    out = tmp_path_factory.mktemp("page") / "look.html"
    assert main(["look", str(run_directory), "--text", text, "--out", str(out)]) == 0
    return out


@pytest.fixture(scope="session")
def bundle(bundle_directory):
    return load_bundle(bundle_directory)


@pytest.fixture(scope="session")
def seen(bundle, text):
    return trace(bundle, text)


@pytest.fixture(scope="module")
def one_tab(browser):
    """A new tab takes a second."""
    tab = browser.new_page()
    tab.set_default_timeout(20_000)
    yield tab
    tab.close()


@pytest.fixture
def tab(one_tab):
    """A tab that fails the test at its end where the page has complained."""
    one_tab.set_viewport_size({"width": 1280, "height": 900})
    with without_complaints(one_tab):
        yield one_tab
        one_tab.unroute_all()
        one_tab.evaluate("localStorage.clear(); sessionStorage.clear()")


@pytest.fixture
def look(tab, file):
    """Opens the file in a state, as ``look(panel="beam")``; gives the tab."""

    def opened(**state):
        hashed = "&".join(f"{name}={quote(str(value))}" for name, value in state.items())
        tab.goto("about:blank")
        tab.goto(f"{file.as_uri()}#{hashed}")
        tab.wait_for_selector("#app:not([aria-busy])")
        return tab

    return opened
