"""The translator's page in a real browser; skipped where there is none."""

import shutil
import threading
import time
from dataclasses import replace

import pytest
import uvicorn

from glassformer.documents.protection import ProtectingTranslator
from glassformer.translator import Translator
from glassformer.web.server import Settings, create_app, listen

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
EXAMPLES = ["An old hat.", "A <i>dog</i> runs."]
TEXT = "<b>A dog</b> runs.\n\n  Two men 😀 sit."


@pytest.fixture(scope="module")
def address(translator):
    place = listen("127.0.0.1", 0)
    bundle = replace(translator.bundle, examples=tuple(EXAMPLES))
    app = create_app({"toy": Translator(bundle)}, Settings())
    server = uvicorn.Server(uvicorn.Config(app, lifespan="on", ws="none", log_level="error"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [place]})
    thread.start()
    while not server.started:
        time.sleep(0.05)
    yield f"http://127.0.0.1:{place.getsockname()[1]}/"
    server.should_exit = True
    thread.join()


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("there is no chromium")
    with playwright.sync_playwright() as found:
        started = found.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield started
        started.close()


@pytest.fixture
def page(browser, address, request):
    """The page with an answer; at the end, nothing may have been complained of."""
    width = getattr(request, "param", 360)
    opened = browser.new_page(viewport={"width": width, "height": 900})
    complaints = []
    opened.on("console", lambda m: complaints.append(m.text) if m.type == "error" else None)
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.goto(address)
    opened.fill("#source", TEXT)
    opened.wait_for_selector("#choices li", timeout=60_000)
    yield opened
    opened.close()
    assert complaints == []


@pytest.mark.parametrize("page", [360, 1920], indirect=True)
def test_the_page_shows_what_the_library_says(page, translator):
    lines = [line.strip() for line in TEXT.split("\n") if line]
    best = ProtectingTranslator(translator).translate(lines, n_best=5, alignment=True)

    # The answer as text: what was typed, and what was answered, is no markup.
    assert page.text_content("#target") == f"{best[0].text}\n\n  {best[1].text}"
    assert page.text_content("#mirror").rstrip("\u200b") == TEXT
    assert page.query_selector("#mirror b, #target b, #choices b, #segment-of b") is None
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate(
        "document.getElementById('copy').getBoundingClientRect().right <= innerWidth"
    )  # its card clips

    # The words of the target are those that the alignment links.
    words = [span.text_content() for span in page.query_selector_all("#target .word")]
    linked = [
        one.text[slice(*place)]
        for one in best
        for place in sorted({link.target for link in one.alignment})
    ]
    assert words == linked


def test_words_that_belong_together_are_lit(page, translator):
    (first,) = ProtectingTranslator(translator).translate(
        [TEXT.split("\n")[0]], n_best=5, alignment=True
    )
    assert first.alignment
    place = min(link.target for link in first.alignment)
    sources = sorted(link.source for link in first.alignment if link.target == place)
    expected = [TEXT[slice(*one)] for one in sources]

    page.focus("#target")
    page.keyboard.press("ArrowRight")

    lit = [span.text_content() for span in page.query_selector_all("#mirror .lit")]
    assert lit == expected
    assert page.text_content("#readout") == f"{first.text[slice(*place)]} ↔ {' '.join(expected)}"


def test_another_translation_can_be_taken(page, translator):
    best = ProtectingTranslator(translator).translate([TEXT.split("\n")[0]], n_best=5)[0]
    others = [one.text for one in best.alternatives if one.text != best.text]
    before = page.text_content("#target")

    page.click("#choices li:nth-child(2) button")

    assert page.text_content("#target") == before.replace(best.text, others[0], 1)
    assert page.get_attribute("#choices li:nth-child(2) button", "aria-pressed") == "true"
    link = page.evaluate(
        "Object.fromEntries(new URLSearchParams(document.getElementById('look').hash.slice(1)))"
    )
    assert link == {"text": TEXT.split("\n")[0], "from": "en", "to": "de"}


def test_an_empty_box_has_no_answer_but_examples(page):
    assert not page.is_visible("#examples")
    page.click("#clear")
    page.wait_for_selector("#others", state="hidden")

    assert page.text_content("#target") == ""
    assert page.is_disabled("#copy")
    assert page.locator("#examples button").all_inner_texts() == EXAMPLES

    page.click("#examples button:nth-child(2)")
    page.wait_for_selector("#choices li")
    assert page.input_value("#source") == EXAMPLES[1]
    assert page.text_content("#announced") == f"Translation: {page.text_content('#target')}"


def test_a_fault_stands_in_the_place_of_the_translation(page):
    page.fill("#source", "a" * 20_001)
    page.wait_for_selector("#problem:has-text('longer than this server allows')")
    assert not page.is_visible("#target")

    def doubtful(way):
        answer = way.fetch().json()
        answer["documents"][0]["segments"][0]["hypotheses"][0]["confidence"] = 0.0004
        way.fulfill(json=answer)

    page.route("**/api/v1/translate", doubtful)
    page.fill("#source", "An old hat.")
    page.wait_for_selector("#target:has(.segment)")
    assert not page.is_visible("#problem")
    assert page.inner_text("#choices li:first-child .confidence") == "< 0.1 %"


def test_a_file_is_translated_and_saved(page, translator):
    upload = {"name": "a.txt", "mimeType": "text/plain", "buffer": b"A dog runs."}
    page.set_input_files("#file", upload)
    with page.expect_download() as download:
        page.click("#file-status a")

    assert download.value.suggested_filename == "a_de.txt"
    [found] = translator.translate(["A dog runs."])
    assert download.value.path().read_text() == found.text
