"""The page in a real browser: it fits, keys and links work, and nothing typed is markup."""

import re
import select
from urllib.parse import quote

import pytest

from glassformer.tools.cli.main import main
from tests.browser import MISNAMED, NAMELESS, without_complaints
from tests.processes import Command

PANELS = ("player", "attention", "masks", "positions", "beam", "lens", "worked", "erase")


def test_every_panel_fits_its_window_and_every_control_has_a_name(tab, look):
    windows = [(panel, 360, "light") for panel in PANELS]
    windows += [("masks", 360, "dark"), ("attention", 1920, "light"), ("beam", 1920, "dark")]
    for panel, width, theme in windows:
        tab.set_viewport_size({"width": width, "height": 800})
        tab = look(panel=panel, theme=theme)
        assert tab.get_attribute(".panel", "data-panel") == panel
        assert tab.get_attribute("html", "data-theme") == theme
        assert tab.evaluate("document.documentElement.scrollWidth") <= width, panel
        assert tab.inner_text(".panel h2")
        assert tab.locator(".panel .error").count() == 0
        assert tab.evaluate(NAMELESS) == [], panel
        assert tab.evaluate(MISNAMED) == [], panel


def test_a_panel_alone_is_a_figure(look):
    tab = look(panel="masks", only="1")
    assert tab.inner_text(".panel h2")
    assert tab.locator(".sentence .pieces").first.is_visible()
    for rest in (".bar-top", ".tabs", ".ask", ".architecture"):
        assert not tab.locator(rest).is_visible(), rest


def test_what_was_typed_is_no_markup(look, text, seen):
    tab = look()

    assert tab.input_value(".ask input") == text
    assert tab.locator("b").count() == 0
    first = seen.source.pieces[0]
    name = tab.get_attribute("[data-key='source:0']", "aria-label")
    assert name == f"{first.text}1: piece {first.piece}, id {first.id}"  # it begins as it is shown
    assert tab.inner_text("[data-key='source:0']").replace(" ", "") == f"{first.text}1"


@pytest.mark.parametrize(
    "markup",
    [
        "<script>document.title = 'mine'</script>",
        "<script src=\"data:text/javascript,document.title='mine'\"></script>",
        "<script type=module>document.title = 'mine'</script>",
        "<img src=x onerror=\"document.title = 'mine'\">",
    ],
)
def test_the_policy_runs_no_other_script(browser, file, tmp_path, markup):
    changed = tmp_path / "changed.html"
    before, app, after = file.read_text("utf-8").partition('<div id="app"')
    assert app
    changed.write_text(before + markup + app + after, "utf-8")
    tab = browser.new_page()
    tab.goto(changed.as_uri())
    tab.wait_for_selector("#app:not([aria-busy]) .tabs")

    assert "Glassformer" in tab.title()
    tab.close()


def test_keys_go_through_tabs_and_squares_and_the_address_follows(look):
    tab = look()
    tab.focus("#tab-player")
    tab.keyboard.press("ArrowRight")
    assert tab.get_attribute("#tab-attention", "aria-selected") == "true"
    assert tab.evaluate("document.activeElement.id") == "tab-attention"

    tab.focus("[data-key='matrix:attention']")
    tab.keyboard.press("ArrowDown")
    for _ in range(30):  # the row's largest weight is chosen at first
        tab.keyboard.press("ArrowLeft")
    tab.keyboard.press("ArrowRight")
    tab.keyboard.press("ArrowRight")
    assert tab.evaluate("document.activeElement.dataset.key") == "matrix:attention"
    words = tab.inner_text("[data-readout=attention]")
    assert re.search(r"panel=attention.*&row=1&column=2", tab.url)

    tab.reload()
    tab.wait_for_selector("#app:not([aria-busy])")
    assert tab.inner_text("[data-readout=attention]") == words


def test_the_tour_opens_six_views_and_each_is_a_link(look):
    tab = look()
    tab.click("[data-key=tour]")
    panels = ["player", "positions", "attention", "masks", "attention", "beam"]
    for number, panel in enumerate(panels, start=1):
        assert f"Step {number} of 6" in tab.inner_text(".tour")
        assert tab.get_attribute("#panel", "data-panel") == panel
        assert f"tour={number}" in tab.url
        if number == 5:
            tab.reload()
            tab.wait_for_selector("#app:not([aria-busy])")
            assert "Step 5 of 6" in tab.inner_text(".tour")
        tab.click("[data-key='tour:End the tour']" if number == 6 else "[data-key='tour:Next']")
    assert not tab.is_visible(".tour")
    assert "tour" not in tab.url


def test_attention_begins_with_the_largest_weight_and_masks_with_a_mask(look):
    tab = look(panel="attention")
    words = tab.inner_text("[data-readout=attention]")
    weight = float(re.search(r"takes ([\d.]+) from", words)[1])
    tab.focus("[data-key='matrix:attention']")
    for _ in range(30):
        tab.keyboard.press("ArrowRight")
        other = re.search(r"takes ([\d.]+) from", tab.inner_text("[data-readout=attention]"))
        assert float(other[1]) <= weight
    assert look(panel="masks").locator(".matrix .blocked").count() > 0


def test_the_figure_lights_the_box_of_the_open_panel(look):
    lit = ".figure [aria-pressed=true]"
    tab = look(panel="positions")
    assert tab.get_attribute(lit, "data-box") == "source_positions"
    tab.click("[data-box='encoder.feed_forward']")
    assert tab.get_attribute(lit, "data-box") == "encoder.feed_forward"
    tab.click("#tab-attention")
    assert tab.get_attribute(lit, "data-box") == "decoder.cross_attention"
    tab.click("[data-key='Attention of:encoder']")
    assert tab.get_attribute(lit, "data-box") == "encoder.self_attention"


def test_a_larger_hand_is_part_of_the_link(look):
    tab = look()
    width = tab.evaluate("document.querySelector('.tabs button').getBoundingClientRect().width")
    tab.click("[data-key=large]")
    tab.reload()
    tab.wait_for_selector("#app:not([aria-busy])")
    larger = tab.evaluate("document.querySelector('.tabs button').getBoundingClientRect().width")
    assert larger > 1.2 * width


@pytest.fixture(scope="module")
def served(run_directory, text):
    pytest.importorskip("fastapi", reason="fastapi is not installed")
    pytest.importorskip("uvicorn", reason="uvicorn is not installed")
    words = ["look", run_directory, "--no-browser", "--threads", "1", "--text", text]
    with Command(words) as command:
        assert select.select([command.stdout], [], [], 180)[0], "the server does not begin"
        yield command.stdout.readline().strip()


def test_it_begins_with_an_example_and_leads_to_the_translator_and_back(tab, served, examples):
    tab.goto(served.partition("#")[0])
    tab.wait_for_selector("#app:not([aria-busy]) .tabs")
    assert tab.input_value(".ask input") == examples[0]
    tab.click("[data-key='example:1']")
    tab.wait_for_selector("a[href*='dog']")
    assert tab.locator(".examples button").all_inner_texts() == examples
    tab.click("[data-key=theme]")
    assert "theme" not in tab.url

    tab.click("text=Translator")
    tab.wait_for_selector("#choices li")
    assert tab.input_value("#source") == examples[1]
    assert tab.get_attribute("html", "data-theme") == "light"
    tab.click("#theme")

    tab.click("#look")
    tab.wait_for_selector("#app:not([aria-busy]) .tabs")
    assert tab.input_value(".ask input") == examples[1]
    assert tab.get_attribute("html", "data-theme") == "dark"
    tab.goto(f"{tab.url}&theme=light")
    tab.wait_for_selector("html[data-theme=light]")
    tab.click("[data-key=theme]")  # a choice comes before the address
    assert tab.get_attribute("html", "data-theme") == "dark"
    assert "theme" not in tab.url


def test_the_legend_names_the_signs_that_stand_there(tab, run_directory, tmp_path):
    out = tmp_path / "look.html"
    text = "Two men 狗 50%."
    assert main(["look", str(run_directory), "--text", text, "--out", str(out)]) == 0
    tab.goto(f"{out.as_uri()}#panel=beam")
    tab.wait_for_selector("#app:not([aria-busy])")
    assert "<0x…> is one byte" in tab.inner_text(".legend")
    labels = "".join(tab.locator(".pieces >> nth=0").locator(".piece").all_inner_texts())
    assert "%" in labels  # a byte that is a character is shown as the character
    assert "<0x25>" not in labels
    # Shades mean the reading of the step: on other panels there are none.
    assert tab.evaluate("document.querySelector('.piece').style.getPropertyValue('--share')") == "0"


def test_a_link_from_another_model_breaks_nothing(look):
    tab = look(panel="attention", off="cross.9.0")
    tab.wait_for_selector("text=This needs the model")


def test_a_late_answer_leaves_the_newer_one(tab, served):
    tab.goto(served)
    tab.wait_for_selector("#app:not([aria-busy]) .tabs")
    held = []
    tab.route(
        "**/api/v1/trace",
        lambda way: held.append(way) if "slow" in way.request.post_data else way.continue_(),
    )

    def ask(text: str) -> None:
        tab.fill(".ask input", text)
        tab.press(".ask input", "Enter")

    def let_go() -> None:
        for _ in range(500):  # the request may still be on its way from the page to the test
            if held:
                break
            tab.wait_for_timeout(20)
        with tab.expect_response("**/api/v1/trace"):
            held.pop().continue_()

    ask("slow one")
    with tab.expect_event("requestfailed"):  # nobody waits for it: the server may drop it
        ask("An old hat.")
    held.clear()
    tab.wait_for_selector("[data-key='source:0']:has-text('An')")
    tab.click("#tab-beam")
    assert tab.inner_text("[data-key='source:0']").startswith("An")

    ask("slow two")
    tab.click("#tab-lens")  # while it is waited for
    let_go()
    tab.wait_for_selector("[data-key='source:0']:has-text('s')")
    assert tab.get_attribute(".panel", "data-panel") == "lens"

    tab.evaluate("sessionStorage.setItem('glassformer-key', 'k')")
    with tab.expect_request("**/api/v1/trace") as asked:
        ask("An old man.")
    assert asked.value.headers["authorization"] == "Bearer k"


def test_a_question_that_cannot_be_can_be_asked_anew(browser, served):
    tab = browser.new_page()
    tab.goto(f"{served}&prefix=1%202".replace("beam=5", "beam=101"))
    tab.wait_for_selector(".error:not(:empty)")
    assert tab.locator("main .ask").count() == 1
    tab.fill(".ask input", "An old hat.")
    tab.press(".ask input", "Enter")
    tab.wait_for_selector("[data-key='source:0']:has-text('An')")
    assert "beam=" not in tab.url
    tab.close()


def test_the_server_answers_what_the_file_cannot(tab, served, seen):
    tab.goto(served)
    tab.wait_for_selector("#app:not([aria-busy]) .tabs")
    other = next(one for one in seen.steps[0].candidates if one.id != seen.steps[0].written.id)
    tab.click(f"[data-key='candidate:{other.id}']")
    tab.wait_for_selector("[data-branches]")
    assert f"branch={quote(f'0:{other.id}')}" in tab.url
    pieces = tab.locator("[data-branches] > div:last-child .piece").all()
    assert f"id {other.id}" in pieces[0].get_attribute("title")

    tab.click("#tab-positions")
    tab.click("[data-key='Without:off']")
    tab.wait_for_selector("[data-changed=off]")

    tab.fill(".ask input", "An old hat.")
    tab.press(".ask input", "Enter")
    tab.wait_for_selector("[data-key='source:0']:has-text('An')")
    assert "text=An+old+hat." in tab.url

    tab.click("#tab-player")
    tab.fill("[data-key='player:prefix']", "Ein")
    tab.press("[data-key='player:prefix']", "Enter")
    tab.wait_for_selector("text=is forced to write")
    assert "&prefix=Ein" in tab.evaluate("location.hash")


def test_the_glossary_s_pieces_are_underlined(tab, run_directory, text, tmp_path):
    terms, out = tmp_path / "terms.tsv", tmp_path / "look.html"
    terms.write_text("snow\tHut\tHüte\nmen\tMänner\n", "utf-8")
    words = ["look", str(run_directory), "--text", text, "--glossary", str(terms)]
    assert main([*words, "--out", str(out)]) == 0
    tab.goto(f"{out.as_uri()}#step=0")
    tab.wait_for_selector("#app:not([aria-busy])")
    note = tab.inner_text("[data-terms]")
    assert note == (
        "The glossary has terms for the underlined pieces: men → Männer; snow → Hut or Hüte (no"
        " place)."
    )
    tab.locator(".sentence .piece.term").first.click()
    assert "The glossary has a term for it: men → Männer." in tab.inner_text(".answer")


def test_the_page_works_in_the_frame_of_a_notebook_s_cell(one_tab, seen, tmp_path):
    """A frame has an address of its own kind, which the page changes with each click."""
    cell = tmp_path / "cell.html"
    cell.write_text(f'<!doctype html><meta charset="utf-8">{seen.page()._repr_html_()}', "utf-8")
    with without_complaints(one_tab) as tab:
        tab.goto(cell.as_uri())
        page = tab.frame_locator("iframe")
        page.get_by_role("tab", name="Masks").click()
        page.get_by_role("heading", name="Which piece may read which").wait_for()
