"""The tour and the projector: the picture, of which a sentence speaks, is on the screen."""

from dataclasses import replace

import pytest

from glassformer.bundle import load_bundle, save_bundle
from glassformer.tools.cli.main import main

# The picture of each step, and how much of its height must be seen.
PICTURES = ["[data-candidates]", "svg.matrix", "svg.matrix", "svg.matrix", "svg.matrix", "svg.tree"]
SEEN = """([picture, high]) => {
  const card = document.querySelector(".tour").getBoundingClientRect();
  const { top, bottom } = document.querySelector(`.panel ${picture}`).getBoundingClientRect();
  return top >= 0 && card.bottom <= innerHeight && card.top - top >= Math.min(bottom - top, high);
}"""


@pytest.mark.parametrize(("width", "height"), [(1280, 720), (360, 740)])
def test_each_picture_of_the_tour_is_in_sight(tab, look, width, height):
    tab.set_viewport_size({"width": width, "height": height})
    tab = look()
    tab.click("[data-key=tour]")
    pictures = PICTURES[1:] if width < 600 else PICTURES  # the first has its bars below the pieces
    for number, picture in enumerate(PICTURES, start=1):
        if picture in pictures:
            assert tab.evaluate(SEEN, [picture, 0.3 * height]), number
        assert tab.evaluate("document.querySelector('.tour').contains(document.activeElement)")
        tab.keyboard.press("Enter")
    assert tab.evaluate("document.activeElement.dataset.key") == "tour"


def test_a_projector_shows_the_picture(tab, look):
    tab.set_viewport_size({"width": 1280, "height": 800})
    tab = look(panel="attention", large=1)
    top, bottom = tab.evaluate(
        "(({ top, bottom }) => [top, bottom])"
        "(document.querySelector('.panel svg.matrix').getBoundingClientRect())"
    )
    assert 0 < top < bottom < 800


def test_back_goes_to_the_panel_before(look):
    tab = look(panel="masks")
    tab.click("#tab-beam")
    tab.click("#tab-lens")
    tab.go_back()
    tab.wait_for_selector(".panel[data-panel=beam]")
    tab.go_back()
    tab.wait_for_selector(".panel[data-panel=masks]")


@pytest.mark.parametrize(
    ("heads", "title"),
    [((1,), "Layer 1, head 2: it aligns the words"), ((0, 1), "Layer 1, mean of the heads: it")],
)
def test_attention_opens_at_the_heads_that_align(tab, run_directory, tmp_path, heads, title):
    aligned = {"layer": 0, "heads": list(heads), "row": "output"}
    save_bundle(replace(load_bundle(run_directory), alignment=aligned), tmp_path / "bundle")
    out = tmp_path / "look.html"
    assert main(["look", str(tmp_path / "bundle"), "--text", "Two men.", "--out", str(out)]) == 0
    tab.goto(f"{out.as_uri()}#panel=attention")
    tab.wait_for_selector("#app:not([aria-busy])")
    assert tab.inner_text(".panel h3 >> nth=0").startswith(title)
    dots = tab.locator(".head.aligns").all()
    names = [dot.get_attribute("aria-label") for dot in dots]
    assert names == [f"layer 1, head {head + 1}, aligns words" for head in heads]
    assert "layer" not in tab.url
    tab.click("[data-key='Attention of:encoder']")  # it aligns nothing
    assert tab.inner_text(".panel h3 >> nth=0") == "Layer 1, head 1"
