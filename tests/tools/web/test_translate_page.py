"""The translator's page in a real browser; skipped where there is none."""

import threading
import time
from dataclasses import replace

import pytest
import uvicorn

from glassformer.tools.web.server import Settings, create_app, listen
from glassformer.translator import Translator
from tests.browser import without_complaints

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


@pytest.fixture
def page(browser, address, request):
    """The page with an answer; at the end, nothing may have been complained of."""
    width = getattr(request, "param", 360)
    opened = browser.new_page(viewport={"width": width, "height": 900})
    with without_complaints(opened):
        opened.goto(address)
        opened.fill("#source", TEXT)
        opened.wait_for_selector("#choices li", timeout=60_000)
        yield opened
    opened.close()


@pytest.mark.parametrize("page", [360, 1920], indirect=True)
def test_the_page_shows_what_the_library_says(page, translator):
    lines = [line.strip() for line in TEXT.split("\n") if line]
    best = translator.translate(lines, n_best=5, alignment=True)

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
    (first,) = translator.translate([TEXT.split("\n")[0]], n_best=5, alignment=True)
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
    best = translator.translate([TEXT.split("\n")[0]], n_best=5)[0]
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
    announced = f"Translation: {page.text_content('#target')} {page.text_content('#doubts')}"
    assert page.text_content("#announced") == announced.strip()


def test_a_fault_stands_in_the_place_of_the_translation(page):
    page.fill("#source", "a" * 20_001)
    page.wait_for_selector("#problem:has-text('longer than this server allows')")
    assert not page.is_visible("#target")

    def doubtful(way):
        answer = way.fetch().json()
        hypotheses = answer["documents"][0]["segments"][0]["hypotheses"]
        hypotheses[0] |= {"share": 0.0004, "doubts": ["One <b>reason</b>.", "Another."]}
        hypotheses[1] |= {"share": 0.996, "doubts": []}
        way.fulfill(json=answer)

    page.route("**/api/v1/translate", doubtful)
    page.fill("#source", "An old hat.")
    page.wait_for_selector("#target:has(.segment)")
    assert not page.is_visible("#problem")
    assert page.locator("#choices .share").all_inner_texts()[:2] == ["below 1 of 100", "100 of 100"]
    assert "%" not in page.inner_text("body")

    # The reasons stand beside the translation, whose letters are dotted; they are its own.
    assert page.locator("#doubts li").all_inner_texts() == ["One <b>reason</b>.", "Another."]
    assert page.locator("#target .doubtful").count() == 1
    assert page.text_content("#announced").endswith("One <b>reason</b>.Another.")
    page.click("#choices li:nth-child(2) button")
    assert page.locator("#doubts li, #target .doubtful").count() == 0


def test_of_several_parts_the_doubtful_one_is_open(page):
    def doubtful(way):
        answer = way.fetch().json()
        first, second = answer["documents"][0]["segments"]
        first["hypotheses"][0]["doubts"], second["hypotheses"][0]["doubts"] = [], ["A reason."]
        way.fulfill(json=answer)

    page.route("**/api/v1/translate", doubtful)
    page.fill("#source", "An old hat.\nTwo men.")
    page.wait_for_selector("#doubts:has-text('A reason.')")
    assert page.locator("#target .doubtful").get_attribute("data-segment") == "1"
    assert page.locator("#doubts li").all_inner_texts() == ["On “Two men.”:", "A reason."]
    assert page.text_content("#segment-of") == "of “Two men.”"
    page.click("#target [data-segment='0']")
    assert page.locator("#doubts li").count() == 0


def test_a_text_that_stays_is_shown_too(page):
    """As a line without letters, and a text by way of a third language: it has no segments."""
    page.route(
        "**/api/v1/translate",
        lambda way: way.fulfill(json={"documents": [{"text": "2026", "segments": []}]}),
    )
    page.fill("#source", "2026")
    page.wait_for_selector("#target:has-text('2026')")
    assert not page.is_disabled("#copy")
    assert not page.is_visible("#others")
    assert not page.is_visible("#look")


def test_the_address_holds_the_text(page):
    page.fill("#source", "An old hat.")
    page.wait_for_url("**text=An+old+hat.*")
    page.reload()
    page.wait_for_selector("#choices li")
    assert page.input_value("#source") == "An old hat."


def test_a_link_of_libretranslate_opens_the_page_with_its_text(page, address):
    page.goto(f"{address}?source=en&target=de&q=An+old+hat.")
    page.wait_for_selector("#choices li")
    assert page.input_value("#source") == "An old hat."
    page.wait_for_url(f"{address}#*text=An+old+hat.*")  # the next text goes to no server's log


def test_of_a_bundle_with_many_languages_all_pairs_can_be_chosen(page, address):
    codes = {"de": "German", "en": "English", "fr": "French"}
    languages = [
        {"code": code, "name": name, "targets": [other for other in codes if other != code]}
        for code, name in codes.items()
    ]
    own = {"source": "en", "target": "de", "parameters": 9, "learnt_from": None, "through": None}
    infos = [own | {"examples": [], "languages": [*codes]}]
    page.route("**/languages", lambda way: way.fulfill(json=languages))
    page.route("**/api/v1/translators", lambda way: way.fulfill(json=infos))
    asked = []

    def answer(way):
        asked.append((way.request.post_data_json["source"], way.request.post_data_json["target"]))
        way.fulfill(json={"documents": [{"text": "2026", "segments": []}]})

    page.route("**/api/v1/translate", answer)
    page.goto("about:blank")
    page.goto(f"{address}#text=2026")
    page.wait_for_selector("#target:has-text('2026')")
    for select, code, options in (
        ("#from", "fr", ["English", "French", "German"]),
        ("#to", "en", ["English", "German"]),
        ("#from", "de", ["English", "French", "German"]),  # its target stays
    ):
        assert page.locator(f"{select} option").all_inner_texts() == options
        with page.expect_response("**/api/v1/translate"):
            page.select_option(select, code)
    page.wait_for_url("**source=de&target=en**")
    with page.expect_response("**/api/v1/translate"):
        page.click("#swap")
    page.wait_for_url("**source=en&target=de**")
    assert asked == [("en", "de"), ("fr", "de"), ("fr", "en"), ("de", "en"), ("en", "de")]
    assert "9 parameters" in page.inner_text("#facts")


def test_a_file_is_translated_and_saved(page, translator):
    upload = {"name": "a.txt", "mimeType": "text/plain", "buffer": b"A dog runs."}
    page.set_input_files("#file", upload)
    with page.expect_download() as download:
        page.click("#file-status a")

    assert download.value.suggested_filename == "a_de.txt"
    [found] = translator.translate(["A dog runs."])
    assert download.value.path().read_text() == found.text


def test_a_file_may_be_dropped_and_its_bounds_are_said(page):
    bounds = (
        "Or drop a file here: .txt .html .srt .vtt .po .docx, up to 5 MB and 200,000 characters."
    )
    assert page.inner_text("#file-status") == bounds

    drop = """([name, text]) => {
      const dataTransfer = new DataTransfer();
      dataTransfer.items.add(new File([text], name));
      document.body.dispatchEvent(new DragEvent("drop", { dataTransfer, bubbles: true }));
    }"""
    page.evaluate(drop, ["a.txt", "A dog runs."])
    page.wait_for_selector("#file-status a:has-text('Save the translation of a.txt')")
    page.evaluate(drop, ["b.txt", ""])
    assert page.inner_text("#file-status.error") == "b.txt is empty."


def test_a_choice_of_theme_comes_before_the_address(page, address):
    page.goto("about:blank")
    page.goto(f"{address}#theme=light&text=An+old+hat.")
    page.wait_for_selector("html[data-theme=light]")
    page.wait_for_url("**theme=light")  # it stays with the text
    page.click("#theme")
    assert page.get_attribute("html", "data-theme") == "dark"
    page.evaluate("localStorage.clear()")
