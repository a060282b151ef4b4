"""Pages that hold their translator, opened as files in a real browser."""

import base64
import json
import re
import struct
import zlib
from dataclasses import replace
from urllib.parse import parse_qs, quote

import pytest

from glassformer.bundle import load_bundle
from glassformer.data.preprocessing import SINGLE_SENTENCES
from glassformer.tools.web.living_page import write_page
from glassformer.translator import Translator
from tests.browser import MISNAMED, NAMELESS

SENTENCE = "An old dog sits in the grass."
LONG = "\n".join(f"{number} men sit in the snow." for number in range(10))
# The engine pauses at each step, for some milliseconds, and the pauses are counted.
SLOW = """() => {
  const Channel = MessageChannel;
  window.pauses = 0;
  let time = 0;
  performance.now = () => (time += 1000);
  window.MessageChannel = class {
    constructor() {
      window.pauses += 1;
      const { port1, port2 } = new Channel();
      const postMessage = (message) => setTimeout(() => port2.postMessage(message), 5);
      Object.assign(this, { port1, port2: { postMessage } });
    }
  };
}"""
# Each text of the counter, beside the number of translated lines at that moment.
WATCH_PROGRESS = """() => {
  window.parts = [];
  const progress = document.getElementById("progress");
  new MutationObserver(() => {
    const lines = document.getElementById("target").textContent.trim().split("\\n").length;
    if (progress.textContent) window.parts.push([progress.textContent, lines]);
  }).observe(progress, { childList: true });
}"""


@pytest.fixture
def look(tab, files):
    """Opens the page that looks inside in a state, as ``look(panel="beam")``; gives the tab."""

    def opened(**state):
        address = "&".join(f"{name}={quote(str(value))}" for name, value in state.items())
        tab.set_viewport_size({"width": 1280, "height": 900})
        tab.goto("about:blank")
        tab.goto(f"{files['look'].as_uri()}#{address}")
        tab.wait_for_selector("#app:not([aria-busy]) .tabs")
        return tab

    return opened


@pytest.fixture
def translator(tab, files):
    """The translator's page at the width of a phone."""
    tab.set_viewport_size({"width": 360, "height": 800})
    tab.goto("about:blank")
    tab.goto(files["translate"].as_uri())
    tab.wait_for_selector("#facts:not(:empty)")
    return tab


def pieces(tab, side):
    """The ids of the pieces that the page shows."""
    titles = tab.eval_on_selector_all(
        f".sentence [data-key^='{side}:']", "all => all.map(({ title }) => title)"
    )
    return [int(re.search(r"id (\d+)$", title)[1]) for title in titles]


def write(tab, text):
    """Type a sentence letter by letter, and wait for its answer."""
    tab.fill(".ask input", "")
    tab.type(".ask input", text)
    tab.wait_for_function(
        """text => new URLSearchParams(location.hash.slice(1)).get('text') === text
          && !document.querySelector('.app > .note').textContent""",
        arg=text,
    )


def test_everything_follows_the_typing(look, traced):
    tab = look(panel="attention")
    before = tab.evaluate("history.length")
    write(tab, SENTENCE)

    seen = traced(SENTENCE)
    assert pieces(tab, "source") == [piece.id for piece in seen.source.pieces]
    assert pieces(tab, "target") == [piece.id for piece in seen.target.pieces]
    assert parse_qs(tab.url.partition("#")[2])["text"] == [SENTENCE]
    assert tab.evaluate("history.length") == before

    tab.fill(".ask input", " ")
    tab.wait_for_selector(".app > .note:has-text('The text has no word')")
    assert pieces(tab, "source") == [piece.id for piece in seen.source.pieces]


def test_every_question_about_a_sentence_is_answered_without_a_request(look, traced):
    tab = look()
    requests = []
    tab.on("request", lambda request: requests.append(request.url))
    write(tab, SENTENCE)

    first = traced(SENTENCE).steps[0]
    other = next(each for each in first.candidates if each.id != first.written.id)
    tab.click(f"[data-key='candidate:{other.id}']")
    tab.wait_for_selector("[data-branches]")
    for prefix, told in (("Ein", "is forced to write"), ("", "and writes")):
        tab.fill("[data-key='player:prefix']", prefix)
        tab.press("[data-key='player:prefix']", "Enter")
        tab.wait_for_selector(f".answer:has-text('{told}')")

    tab.click("#tab-attention")
    tab.click("[data-key='head:0:0']")
    tab.click("[data-key='head:off']")
    tab.wait_for_selector("[data-without] [data-total]")
    tab.click("#tab-positions")
    for kind in ("shuffle", "off"):
        tab.click(f"[data-key='Without:{kind}']")
        tab.wait_for_selector(f"[data-changed={kind}]")
    tab.click("#tab-beam")
    tab.fill("[data-key='slider:beam size']", "7")
    tab.wait_for_selector("text=Tree of a beam of 7")
    tab.fill("[data-key='beam:reference']", "Ein alter Hut.")
    tab.press("[data-key='beam:reference']", "Enter")
    tab.wait_for_selector("[data-verdict]")
    tab.click("#tab-masks")
    assert tab.locator("#panel .blocked").count() > 0
    tab.click("#panel >> text=/^Off$/")
    tab.wait_for_function("() => !document.querySelector('#panel .blocked')")
    tab.click("#tab-erase")
    words = tab.locator("[data-key^='erase:'] .bar-label").all_inner_texts()
    assert words == traced(SENTENCE, beam=7).erased.words
    assert requests == []


def test_a_keystroke_ends_the_running_search(look):
    tab = look()
    tab.evaluate(SLOW)
    tab.fill("[data-key='player:prefix']", "Ein alter Hut. " * 60)
    tab.press("[data-key='player:prefix']", "Enter")
    tab.wait_for_function("() => window.pauses > 3")
    assert tab.inner_text(".app > .note") == "Asking the model …"
    tab.fill(".ask input", SENTENCE)
    tab.wait_for_selector("[data-key='source:0']:has-text('An')")
    nothing_runs(tab)


def test_a_keystroke_ends_the_translation_of_a_long_text(translator):
    translator.evaluate(SLOW)
    translator.fill("#source", LONG)
    translator.wait_for_selector("#progress:not(:empty)")
    translator.fill("#source", SENTENCE)
    translator.wait_for_selector("#target .segment:only-child")
    translator.wait_for_selector("body:not(.busy)")
    nothing_runs(translator)


def nothing_runs(tab):
    before = tab.evaluate("window.pauses")
    tab.wait_for_timeout(300)
    assert tab.evaluate("window.pauses") - before <= 1


def test_a_long_text_shows_its_translations_as_they_come(translator):
    translator.evaluate(SLOW)
    translator.evaluate(WATCH_PROGRESS)
    translator.fill("#source", LONG)
    translator.wait_for_function("() => window.parts.length > 3")
    translator.click("#choices li:nth-child(2) button")  # it stays chosen
    translator.wait_for_selector("body:not(.busy)")

    parts = translator.evaluate("window.parts")
    assert all(told == f"{lines} of 10 …" for told, lines in parts)
    assert translator.inner_text("#progress") == ""
    chosen = "document.querySelector('#choices [aria-pressed=true] [lang]').textContent"
    lines = translator.text_content("#target").split("\n")
    assert len(lines) == 10
    assert lines[0] == translator.evaluate(chosen)
    assert translator.locator("#choices li:nth-child(2) [aria-pressed=true]").count() == 1


def test_the_translator_s_face(translator, traced):
    assert translator.locator("#examples button").count() == 2
    text = "An old hat.\n\n  Two men <b sit."
    translator.fill("#source", text)
    translator.wait_for_selector("#choices li:nth-child(2)")
    for control in ("#look", "#file", "#key-form", "#swap"):  # a server's
        assert not translator.is_visible(control)

    first, second = (traced(line.strip()).answer.text for line in text.split("\n\n"))
    assert translator.text_content("#target") == f"{first}\n\n  {second}"
    translator.focus("#target")
    translator.keyboard.press("ArrowRight")
    assert re.search("↔|aligned with no word", translator.inner_text("#readout"))

    translator.click(".living summary")
    facts = translator.inner_text(".living dl")
    assert all(word in facts for word in ("en → de", "parameters", " MB", "CC0-1.0"))
    assert "It takes no documents" in translator.inner_text(".living")


def test_lists_tables_and_long_lines_come_back_as_in_python(tab, run_directory, tmp_path):
    bundle = load_bundle(run_directory)
    bundle = replace(bundle, source_lengths=SINGLE_SENTENCES, normalisation="text")
    page, python = tmp_path / "page.html", Translator(bundle)
    write_page(bundle, page, face="translate", quantization="float32")
    tab.goto(page.as_uri())
    tab.wait_for_selector("#facts:not(:empty)")
    for text in (
        "- An old hat.\n- [ ] Snow\n\n1. A dog runs.\n> Two men sit.",
        "| Dog | Hat |\n|---|---:|\n| An old dog | 12 |\n\nsnow\tgrass",
        "A dog runs across the grass " * 40,
        "hello {n} world",
    ):
        tab.fill("#source", text)
        tab.wait_for_selector("#target:not(.old)")
        tab.wait_for_selector("body:not(.busy)")
        assert tab.text_content("#target") == python.translate([text], protect=False)[0].text
    reasons = set(tab.locator("#doubts li").all_inner_texts())
    assert reasons >= {
        "The training had hardly any word of the text.",
        "The translation lacks these parts, which should stay: {n}.",
    }


def test_both_faces_fit_a_phone_and_every_control_has_a_name(tab, look, translator):
    translator.fill("#source", SENTENCE)
    translator.wait_for_selector("#choices li")
    places = ["translate", "player", "attention", "beam"]
    for place in places:
        if place != "translate":
            look(panel=place).set_viewport_size({"width": 360, "height": 800})
        assert tab.evaluate("document.documentElement.scrollWidth") <= 360, place
        assert tab.locator("#unstarted, .damaged").count() == 0, place
        assert tab.evaluate(NAMELESS) == [], place
        assert tab.evaluate(MISNAMED) == [], place


def test_the_longest_share_leaves_the_translation_its_place(translator):
    translator.set_viewport_size({"width": 1280, "height": 900})
    translator.fill("#source", SENTENCE)
    translator.wait_for_selector("#choices li:nth-child(2) .share")
    between = translator.evaluate("""() => {
      const [share, text] = document.querySelector("#choices li:nth-child(2) button").children;
      share.lastChild.data = "below 1 of 100";
      const words = document.createRange();
      words.selectNode(share.lastChild);
      return text.getBoundingClientRect().left - words.getBoundingClientRect().right;
    }""")
    assert between > 4


def opened(browser, file, tmp_path, change):
    """A tab with a changed copy of the file."""
    text = file.read_text("utf-8")
    copy = tmp_path / "copy.html"
    copy.write_text(change(text), "utf-8")
    assert copy.read_text("utf-8") != text
    tab = browser.new_page()
    tab.set_default_timeout(20_000)
    tab.goto(copy.as_uri())
    return tab


def flipped(pattern):
    """Changes the first letter after the pattern."""

    def change(text):
        place = re.search(pattern, text).end()
        return f"{text[:place]}{'A' if text[place] != 'A' else 'B'}{text[place + 1 :]}"

    return change


DAMAGED = "its numbers are not those that Python wrote"


@pytest.mark.parametrize(
    ("face", "change", "told"),
    [
        ("look", flipped(r'id="weights" data-crc="\d+">.{900}'), DAMAGED),
        ("translate", flipped('"licence":"C'), DAMAGED),
        (
            "look",
            flipped(r'"engine/attention\.js":"data:text/javascript;base64,.{99}'),
            "no script runs",
        ),
        ("translate", flipped(r"<script>document\.head"), "no script runs"),
    ],
    ids=["weights", "record", "module", "loader"],
)
def test_a_changed_byte_is_told(browser, files, tmp_path, face, change, told):
    tab = opened(browser, files[face], tmp_path, change)
    tab.wait_for_selector(f"body p:has-text('{told}')")
    tab.close()


def test_without_webassembly_the_numbers_are_the_same(browser, files, tmp_path, translator):
    tab = opened(
        browser, files["translate"], tmp_path, lambda text: text.replace(" 'wasm-unsafe-eval'", "")
    )
    answers = []
    for each in (translator, tab):
        each.fill("#source", SENTENCE)
        each.wait_for_selector("#choices li")
        answers.append(each.inner_text("#choices"))
        each.click("text=Check this file")
        each.wait_for_selector("text=This file is right.")
    assert answers[0] == answers[1]
    assert "by WebAssembly" in translator.inner_text("[data-check]")
    assert "by WebAssembly" not in tab.inner_text("[data-check]")
    assert tab.evaluate("fetch('data:,x').then(() => 'reached', ({ name }) => name)") == "TypeError"
    tab.close()


def with_nan(text):
    """The file with one weight that is no number, and the checksum of this."""
    opening, weights = re.search(r'(id="weights" data-crc="\d+">)([^<]+)', text).groups()
    content = bytearray(base64.b64decode(weights))
    begin = 8 + struct.unpack("<Q", content[:8])[0]
    tensors = json.loads(content[8:begin])
    place = begin + tensors["decoder.blocks.0.feed_forward.sublayer.inner.bias"]["data_offsets"][0]
    content[place : place + 4] = struct.pack("<f", float("nan"))
    record = re.search(r'id="about">(.*)</script>', text)[1]
    crc = zlib.crc32(content, zlib.crc32(record.encode()))
    changed = f'id="weights" data-crc="{crc}">{base64.b64encode(content).decode()}'
    return text.replace(opening + weights, changed)


def test_a_page_whose_numbers_are_wrong_says_so_in_red(browser, files, tmp_path):
    tab = opened(browser, files["translate"], tmp_path, with_nan)
    tab.click("text=Check this file")
    tab.wait_for_selector("[data-check].error p:has-text('The numbers of this page are WRONG.')")
    red, _, blue = re.findall(
        r"\d+", tab.evaluate("getComputedStyle(document.querySelector('.error p')).color")
    )
    assert int(red) > 2 * int(blue)
    tab.close()
