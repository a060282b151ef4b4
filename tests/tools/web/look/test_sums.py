"""From any square to its sum, from a written piece to the sublayers that moved it, and a tour."""

import math
import re

import torch

from glassformer.tools.cli.main import main
from glassformer.tools.inspection.capture import capture
from tests.tools.web.look.test_numbers import shown

KINDS = ("self_attention", "cross_attention", "feed_forward")


def test_the_lens_says_which_sublayer_moved_the_piece_and_by_how_much(look, bundle, seen):
    written = torch.tensor([piece.id for piece in seen.target.pieces])
    source = torch.tensor([[piece.id for piece in seen.source.pieces]])
    read = torch.tensor([[piece.id for piece in seen.target.read]])
    with torch.no_grad(), capture(bundle.model) as run:
        bundle.model(source, read)
        calls = [run[f"decoder.blocks.0.{kind}"] for kind in KINDS]
        tables = [bundle.model.project(call.output[0]).double().log_softmax(-1) for call in calls]
    readings = torch.stack([table.gather(1, written[:, None])[:, 0] for table in tables])
    by_log, by_chance = (
        each.diff(dim=0).abs().argmax(dim=0) for each in (readings, readings.exp())
    )
    step = next(i for i in range(len(written)) if by_log[i] != by_chance[i])
    changes, chances = readings[:, step].diff().tolist(), readings[:, step].exp().tolist()
    most = int(by_chance[step]) + 1
    name = [None, "cross-attention", "feed-forward network"][most]

    tab = look(panel="lens", step=step, layer=0)
    label = tab.inner_text("[data-moves] h3").removeprefix("What moved “").removesuffix("”?")
    bars = tab.locator("[data-moves] .bar-text").all_inner_texts()
    signs = ["+" if change > 0 else "" for change in changes]
    pairs = zip(signs, changes, strict=True)
    assert bars == ["start", *(f"{sign}{shown(change, 2)}" for sign, change in pairs)]
    percents = [f"{shown(100 * chances[place], 1)} %" for place in (most - 1, most)]
    words = tab.inner_text("[data-moves] .note >> nth=0")
    assert f"the {name} of layer 1 moved it most: from {percents[0]} to {percents[1]}" in words

    tab.click("[data-key='move:0:cross_attention']")
    vectors = (calls[1].input, calls[1].added, calls[1].output)
    lengths = [shown(float(vector[0, step].norm()), 1) for vector in vectors]
    assert re.findall(r"length (\d+\.\d)", tab.inner_text("[data-lengths]")) == lengths
    assert tab.get_attribute(".figure [aria-pressed=true]", "data-box") == "decoder.cross_attention"
    tab.click("[data-key=sum]")
    assert "panel=worked&part=cross&layer=0&head=" in tab.url
    assert f"query of {label} with" in tab.inner_text(".panel h3 >> nth=0")


def test_a_square_of_the_mean_leads_to_the_sum_of_its_strongest_head(look, seen, worked_sum):
    rows = range(len(seen.target.pieces))
    sums = [[worked_sum(seen, "cross", 0, head, row) for head in (0, 1)] for row in rows]
    row, column = next(
        (row, column)
        for row in rows
        for column in range(1, len(seen.source.pieces))
        if 0.9 > sums[row][1].weights[column] > max(0.1, sums[row][0].weights[column])
    )
    head, found = 1, sums[row][1]

    tab = look(panel="attention", part="cross", layer=0, head=-1, row=row, column=column)
    tab.click("[data-key=sum]")
    assert f"part=cross&layer=0&head={head}&row={row}&column={column}" in tab.url
    assert tab.evaluate("document.activeElement.id") == "tab-worked"
    assert tab.inner_text("[data-product]") == shown(found.products[column], 3)
    sums = [math.exp(found.scores[column]), sum(map(math.exp, found.scores))]
    power, total = (shown(each, 3) if each < 1e6 else f"{each:.2e}" for each in sums)
    sentence = f"{power} / {total} = {shown(found.weights[column], 3)}."
    assert sentence in tab.inner_text("[data-softmax]")
    (attention,) = [each for each in seen.attention if each.part == "cross"]
    value = attention.value.array()[head, column]
    for name, numbers in {"v": value, "weight × v": found.weights[column] * value}.items():
        strip = tab.locator(f"[data-strip='{name}'] > span").all_inner_texts()
        assert strip == [shown(float(number), 2) for number in numbers]


def test_enter_on_a_hidden_square_opens_its_sum_and_back_returns(look):
    tab = look(panel="masks", part="decoder", head=1, row=0, column=1)
    tab.focus("[data-key='matrix:weights']")
    tab.keyboard.press("ArrowRight")
    tab.keyboard.press("Enter")
    assert "panel=worked&part=decoder&layer=0&head=1&column=2" in tab.url
    assert "The mask makes it −∞." in tab.inner_text(".panel .answer >> nth=0")
    assert ": 0.000 / " in tab.inner_text("[data-softmax]")
    tab.go_back()
    tab.wait_for_selector(".panel[data-panel=masks]")


def test_the_tour_speaks_about_the_reader_s_own_sentence(tab, run_directory, bundle, tmp_path):
    out = tmp_path / "live.html"
    assert main(["look", str(run_directory), "--live", "--out", str(out), "--text", "An hat."]) == 0
    tab.goto(out.as_uri())
    tab.wait_for_selector("#app:not([aria-busy]) .tabs")
    tab.click("[data-key=tour]")
    for text in ("x", "A 狗 <0x41> ▁"):  # one word, and pieces that do not exist
        tab.fill(".ask input", text)
        length = len(bundle.source_tokenizer.encode(text)) + 1
        tab.wait_for_selector(f"[data-key='source:{length - 1}']:has-text('</s>')")
        for number in range(1, 7):
            source, target = (
                tab.locator(f"[data-key^='{side}:']").evaluate_all(
                    "all => all.map(({ firstChild }) => `“${firstChild.textContent}”`)"
                )
                for side in ("source", "target")
            )
            named = (target[0], source[-1], source[0], "“<s>”", target[0], "up to 5")[number - 1]
            assert named in tab.inner_text("[data-here]"), number
            assert tab.locator(".panel .error").count() == 0
            if number < 6:
                tab.click("[data-key='tour:Next']")
        tab.evaluate("location.hash = location.hash.replace('tour=6', 'tour=1')")
        tab.wait_for_selector("text=Step 1 of 6")
