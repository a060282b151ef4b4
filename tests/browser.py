"""Debian's Chromium for the tests of pages."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

_PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
_FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync"
    " --disable-background-networking --disable-component-update"
)


# Controls without a name.
NAMELESS = """() => [...document.querySelectorAll('button, input, [role=button], [tabindex]')]
  .filter((one) => !one.getAttribute('aria-label') && !one.textContent.trim()
    && !one.labels?.length).map((one) => one.outerHTML.slice(0, 120))"""

# Who speaks to the page says what he sees (WCAG 2.5.3, label in name).
MISNAMED = """() => {
  const words = (text) => text.toLowerCase().replace(/[^\\p{L}\\p{N}]+/gu, ' ').trim();
  return [...document.querySelectorAll('button[aria-label], [role=button][aria-label]')]
    .filter((one) => !words(one.getAttribute('aria-label')).includes(words(one.textContent)))
    .map((one) => one.outerHTML.slice(0, 200));
}"""


@contextmanager
def chromium() -> "Iterator[Browser]":
    """A started browser; where there is none, the test is skipped."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = next(filter(None, map(shutil.which, _PROGRAMS)), None)
    if program is None:
        pytest.skip("there is no Chromium on this machine")
    with playwright.sync_playwright() as started:
        # The path of Chromium's socket has at most 107 characters.
        browser = started.chromium.launch(
            executable_path=program, args=_FLAGS.split(), env={**os.environ, "TMPDIR": "/tmp"}
        )
        yield browser
        browser.close()


@contextmanager
def without_complaints(page: "Page") -> "Iterator[Page]":
    """At the end, the page's scripts may have raised no error and logged none."""
    complaints: list[str] = []
    listeners = {
        "console": lambda line: complaints.append(line.text) if line.type == "error" else None,
        "pageerror": lambda error: complaints.append(str(error)),
    }
    for event, listener in listeners.items():
        page.on(event, listener)
    yield page
    for event, listener in listeners.items():
        page.remove_listener(event, listener)
    assert complaints == []
