"""What the page shows are the library's numbers, to the digits shown."""

import copy
import json

import pytest
import torch

from glassformer.model.positions import sinusoidal_positions
from glassformer.tools.inspection.capture import capture
from glassformer.tools.inspection.trace.build import trace
from glassformer.tools.web.look.single_file import build_page
from glassformer.translator import Translator


def percent(value: float) -> str:
    """As the page writes a probability."""
    return "< 0.1 %" if 0 < value < 0.0005 else f"{shown(100 * value, 1)} %"


@pytest.fixture
def ids(bundle, seen):
    """Source, what the decoder reads and what it writes, each (1, len)."""
    written = [piece.id for piece in seen.target.pieces]
    read = [bundle.model.config.bos_id, *written[:-1]]
    rows = ([piece.id for piece in seen.source.pieces], read, written)
    return [torch.tensor([row]) for row in rows]


def number(text: str) -> float:
    return float(text.replace("−", "-").removesuffix(" %"))


def shown(value: float, digits: int) -> str:
    """As the page writes a number."""
    text = f"{value:.{digits}f}"
    return f"{0:.{digits}f}" if float(text) == 0 else text.replace("-", "−")


def test_the_figure_counts_the_models_parameters(look, bundle):
    tab = look(box="decoder.cross_attention")

    model = bundle.model
    total = sum(weight.numel() for weight in model.parameters())
    attention = model.decoder.blocks[0].cross_attention.sublayer
    assert f"{total:,} parameters" in tab.inner_text(".about")
    expected = sum(weight.numel() for weight in attention.parameters())
    assert tab.inner_text("[data-parameters]") == f"{expected:,}"


@pytest.mark.parametrize("side", ["source", "target"])
def test_the_figure_gives_the_shape_of_each_embedding_table(look, bundle, side):
    tab = look(box=f"{side}_embedding")

    config = bundle.model.config
    rows = {"source": config.source_vocab_size, "target": config.target_vocab_size}[side]
    assert f"{rows} × {config.d_model}" in tab.inner_text(".facts dd:nth-of-type(1)")


def test_the_candidates_are_the_models(look, bundle, ids):
    with torch.no_grad():
        likely = bundle.model(*ids[:2])[0].softmax(-1)
    for step in (0, len(likely) - 1):
        tab = look(panel="player", step=step)
        found = tab.locator("[data-candidates] .bar-text").all_inner_texts()
        best = likely[step].topk(len(found)).values.tolist()
        assert found == [percent(one) for one in best]


@pytest.mark.parametrize("part", ["encoder", "decoder", "cross"])
def test_the_weights_are_the_models(look, bundle, ids, part):
    name = {
        "encoder": "encoder.blocks.0.self_attention",
        "decoder": "decoder.blocks.0.self_attention",
        "cross": "decoder.blocks.0.cross_attention",
    }[part]
    with torch.no_grad(), capture(bundle.model) as seen:
        bundle.model(*ids[:2])
    expected = seen[name].weights[0]
    rows, columns = expected.shape[1:]
    for head, row, column in ((0, 0, 0), (1, rows - 1, columns // 2)):
        tab = look(panel="attention", part=part, head=head, row=row, column=column)
        words = tab.inner_text("[data-readout=attention]")
        assert f" takes {shown(expected[head, row, column].item(), 2)} from " in words


def test_the_worked_sum_is_equation_1(look, seen, worked_sum):
    row = len(seen.target.pieces) - 1
    tab = look(panel="worked", part="decoder", head=1, row=row, column=0)

    found = worked_sum(seen, "decoder", 0, 1, row)
    assert tab.inner_text("[data-product]") == shown(found.products[0], 3)
    assert tab.inner_text("[data-score]") == shown(found.scores[0], 3)
    weights = tab.locator("[data-worked] tbody td:last-child").all_inner_texts()
    assert weights == [shown(one, 3) for one in found.weights]
    output = tab.locator("[data-strip=output] > span").all_inner_texts()
    assert output == [shown(one, 2) for one in found.output]


def test_the_masks_hide_what_comes_later(look, seen):
    tab = look(panel="masks", part="decoder", row=0, column=1)

    words = tab.locator(".panel .readout").all_inner_texts()
    scores = next(one for one in seen.attention if one.part == "decoder").scores.array()
    assert f"score {shown(float(scores[0, 0, 1]), 3)}"[:-1] in words[0]  # stored in 16 bits
    assert words[1].endswith("hidden, −∞")
    assert words[2].endswith("weight 0.000")


def test_the_dot_products_are_those_of_the_positions(look, bundle):
    tab = look(panel="positions", row=1)

    table = sinusoidal_positions(4, bundle.model.config.d_model)
    found = dict(part.split(": ") for part in tab.inner_text("[data-dots]").split(" · "))
    for distance in (-1, 0, 1, 2):
        name = "0" if distance == 0 else f"{distance:+d}".replace("-", "−")
        expected = (table[1] @ table[1 + distance]).item()
        assert number(found[name]) == pytest.approx(expected, abs=0.02)  # stored in 8 bits


def test_the_beam_ends_with_the_translators_hypotheses(look, bundle, text):
    tab = look(panel="beam")

    rows = tab.locator("[data-finished] tbody tr").all()
    found = [row.locator("td").all_inner_texts() for row in rows]
    best = Translator(bundle).translate([text], n_best=min(5, len(found)), protect=False)[0]
    expected = [best, *best.alternatives]
    assert [cells[4] for cells in found[: len(expected)]] == [
        shown(one.score, 3) for one in expected
    ]


def test_another_length_penalty_ranks_anew(look, seen):
    tab = look(panel="beam", penaltyView=0)

    sums = tab.locator("[data-finished] tbody td:nth-child(4)").all_inner_texts()
    assert tab.locator("[data-finished] tbody td:nth-child(5)").all_inner_texts() == sums
    assert list(map(number, sums)) == sorted(map(number, sums), reverse=True)
    assert len(sums) == len(seen.beam.finished)


def test_the_lens_shows_each_layers_word(look, seen):
    tab = look(panel="lens", step=1, layer=0)

    found = tab.locator("[data-lens] .bar-text").all_inner_texts()
    assert found == [percent(one.probability) for one in seen.steps[1].lens[0]]
    assert f"number {seen.steps[1].lens_rank[0] + 1} of" in tab.inner_text("[data-lens]")


def test_an_erased_word_changes_what_the_library_says(look, seen):
    tab = look(panel="erase", row=1, column=0)

    change = seen.erased.changes[1][0]
    sign = "+" if float(f"{change:.3f}") > 0 else ""
    assert f"({sign}{shown(change, 3)})" in tab.inner_text("[data-readout=erase]")


def test_a_head_off_costs_what_the_model_says_without_it(look, bundle, ids):
    tab = look(panel="attention", part="cross", head=1)
    tab.click("[data-key='head:off']")
    tab.wait_for_selector("[data-without]")

    other = copy.deepcopy(bundle.model)
    width = other.config.d_model // other.config.num_heads
    with torch.no_grad():  # what the second head hands on meets only zeros
        other.decoder.blocks[0].cross_attention.sublayer.output.weight[:, width : 2 * width] = 0.0
        before, after = (
            model(*ids[:2])[0].log_softmax(-1).gather(-1, ids[2][0, :, None]).sum().item()
            for model in (bundle.model, other)
        )
    total = number(tab.inner_text("[data-total]"))
    assert total == pytest.approx(after - before, abs=0.001)
    assert "off=cross.0.1" in tab.url


def test_of_a_long_sentence_the_weights_are_still_the_models(tab, bundle, tmp_path):
    long = "An old hat. " * 30
    seen = trace(bundle, long)
    assert seen.bounds.source_pieces > len(seen.source.pieces)
    stored = {"trace": json.loads(seen.to_json())}
    (tmp_path / "long.html").write_text(build_page(stored), "utf-8")
    weights = next(one for one in seen.attention if one.part == "encoder").weights.array()
    row, column = divmod(int(weights[1].argmax()), weights.shape[2])

    state = f"panel=attention&part=encoder&head=1&row={row}&column={column}"
    tab.goto(f"{(tmp_path / 'long.html').as_uri()}#{state}")
    words = tab.inner_text("[data-readout=attention]")
    assert f" takes {shown(float(weights[1, row, column]), 2)} from " in words
    tab.click("#tab-worked")
    assert "leaves out some" in tab.inner_text(".panel .reason")
    assert f"{seen.bounds.source_pieces}" in tab.inner_text("[data-bounds]")
    assert f"memory {seen.bounds.source_pieces} × " in tab.text_content(".architecture svg")
