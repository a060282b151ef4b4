"""The live figures of the lessons: the sums of their script are the package's own.

The script runs in node or in Chromium; without both the tests are skipped.
"""

import json
import math
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest
import torch

from glassformer import ScaledEmbedding, label_smoothed_cross_entropy, noam_schedule
from glassformer.model.positions import sinusoidal_positions
from glassformer.tools.learn.lessons.blocks.plain import layer_norm
from glassformer.tools.learn.lessons.subwords.plain import encode, learn_merges
from tests.browser import without_complaints

SCRIPT = Path(__file__).parent.parent / "docs" / "_static" / "figures.js"
STYLE = SCRIPT.with_name("glassformer.css")
NODE = shutil.which("node")
TEXT = "sing sing singer ring king bringing bringing naïve 😀😀😀 aaaa"


@pytest.fixture(scope="module")
def computed(request):
    """The value of an expression over the script's ``figures``."""
    source = SCRIPT.read_text("utf-8")
    if NODE is None:
        page = request.getfixturevalue("browser").new_page()
        page.add_script_tag(content=source)
        return lambda expression: json.loads(page.evaluate(f"JSON.stringify({expression})"))

    def run(expression):
        command = [NODE, "-e", f"{source};process.stdout.write(JSON.stringify({expression}))"]
        return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)

    return run


def test_the_learning_rate_is_equation_3(computed):
    for warmup, update in [(4000, 1), (4000, 4000), (500, 1234), (16000, 50000)]:
        sizes = {"d_model": 256, "warmup": warmup, "factor": 1.25}
        expected = noam_schedule(update, **sizes)
        assert computed(f"figures.rate({update}, {json.dumps(sizes)})") == pytest.approx(expected)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
def test_the_loss_of_the_smoothed_target(computed, smoothing):
    prediction = [0.6, 0.1, 0.25, 0.05]
    logits = torch.tensor([prediction], dtype=torch.float64).log()
    target = torch.tensor([0])
    expected = label_smoothed_cross_entropy(logits, target, smoothing=smoothing, pad_id=9)
    loss = computed(
        f"figures.crossEntropy(figures.smoothedTarget({smoothing}, 4), {json.dumps(prediction)})"
    )
    assert loss == pytest.approx(expected.item(), rel=1e-9)


def test_layer_norm(computed):
    for numbers in ([1.0, -2.0, 3.0, 0.5], [7.0, 7.0, 7.0, 7.0], [57.0, -43.0, 7.5, 0.0]):
        x = torch.tensor([[numbers]], dtype=torch.float64)
        ones, zeros = torch.ones(4, dtype=torch.float64), torch.zeros(4, dtype=torch.float64)
        norm = computed(f"figures.layerNorm({json.dumps(numbers)})")
        assert norm["result"] == pytest.approx(layer_norm(x, ones, zeros, 1e-5)[0, 0].tolist())
        assert norm["mean"] == pytest.approx(x.mean().item())
        assert norm["variance"] == pytest.approx(x.var(correction=0).item())


@pytest.mark.parametrize("count", [0, 1, 2, 5, 99])
def test_the_merges(computed, count):
    frequencies = Counter(TEXT.split())
    expected = learn_merges(frequencies, count)
    pairs = json.dumps(list(frequencies.items()))
    learned = computed(f"figures.learnMerges({pairs}, {count})")
    assert [tuple(pair) for pair in learned["merges"]] == expected
    words = [[list(encode(word, expected)), often] for word, often in frequencies.items()]
    assert learned["words"] == words
    merges = json.dumps(expected)
    assert computed(f"figures.encode('singing', {merges})") == list(encode("singing", expected))
    following = learn_merges(frequencies, count + 1)[count:]
    assert [tuple(learned["next"]["pair"])] == following if following else "next" not in learned


def test_the_embedding_and_the_position(computed):
    for d_model in (16, 512):
        row = computed(f"figures.tableRow(3, {d_model})")
        embedding = ScaledEmbedding(1, d_model).double()
        with torch.no_grad():
            embedding.weight.copy_(torch.tensor([row]))
            expected = embedding(torch.tensor([[0]]))[0, 0]
        assert computed(f"figures.embedded({row})") == pytest.approx(expected.tolist())
        size = expected.square().mean().sqrt().item()
        assert computed(f"figures.size(figures.embedded({row}))") == pytest.approx(size)
        assert 0.7 < size < 1.3  # a table begins as N(0, 1/d_model)
        waves = sinusoidal_positions(8, d_model)[7].tolist()
        assert computed(f"figures.positionRow(7, {d_model})") == pytest.approx(waves, abs=1e-7)
        assert math.isclose(computed(f"figures.size(figures.positionRow(7, {d_model}))"), 0.5**0.5)


@pytest.mark.parametrize("figure", ["rate", "target", "norm", "merges", "embedding"])
@pytest.mark.parametrize("width", [320, 1280])
def test_a_figure_answers_to_the_keyboard(browser, tmp_path, figure, width):
    """In a telephone's width nothing scrolls sideways, and nothing is complained of."""
    file = tmp_path / "page.html"
    file.write_text(
        f'<meta charset="utf-8"><link rel="stylesheet" href="{STYLE.as_uri()}">'
        f'<div class="live" data-figure="{figure}"></div><script src="{SCRIPT.as_uri()}"></script>'
    )
    page = browser.new_page(viewport={"width": width, "height": 700})
    with without_complaints(page):
        page.goto(file.as_uri())
        before = page.inner_text("[role=status]")
        page.focus("input[type=range]")
        for _ in range(4):
            page.keyboard.press("ArrowRight")
        after = page.inner_text("[role=status]")
        assert before != after
        assert (
            page.locator("label:not(:has(span:not(:empty)))").count() == 0
        )  # each field has a name
        assert page.locator("svg[aria-label], ul").count() > 0
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.close()
