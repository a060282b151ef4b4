"""The figures of the lessons: each is computed here, or stands in a paragraph with its source.

A figure is a decimal number, a percentage, or a number with a comma between its thousands. The
functions below have the lessons' names, and return the lessons' sentences with computed figures.
"""

import math
import re
from importlib import import_module
from pathlib import Path

import pytest
import torch
from torch import nn

import glassformer as g
from glassformer.config import presets
from glassformer.decoding.beam import best_continuations, divide, penalty
from glassformer.decoding.protocols import Candidate
from glassformer.decoding.vocabulary import Vocabulary
from glassformer.tools.learn.lesson import EVERY, lesson
from glassformer.tools.learn.lessons.schedule.plain import adam_step
from glassformer.tools.learn.table_model import TableModel

ROOT = Path(__file__).parents[3]
LESSONS = ROOT / "src" / "glassformer" / "tools" / "learn" / "lessons"
FIGURE = re.compile(r"(?<![\w.])\d+\.\d+|\d+(?= %)|\b\d{1,3}(?:,\d{3})+|\de-\d")
# The paper's sections, tables and equations; the years of other papers.
SOURCE = re.compile(r"\b([Ss]ection|table|[Ee]quation|algorithm) \d|\b(19|20)\d\d\b")
EXPONENT = re.compile(r"(10_000\.0|\*\*|\^)[-−.\d]*")  # of the paper's formulas


def rows(*values):
    return torch.tensor(values, dtype=torch.float64)


def shown(values, digits=2):
    return f"[{', '.join(f'{value:.{digits}f}' for value in values)}]"


def short(values):
    """The numbers without needless zeros, as the lessons' examples have them."""
    return f"[{', '.join(f'{value:g}' for value in values)}]"


def attention():
    output, weights = g.scaled_dot_product_attention(
        rows([1, 0]), rows([1, 0], [0, 1]), rows([10], [20])
    )
    return [
        f"scores of ±{2 * math.sqrt(64):.0f} are common",  # two standard deviations
        f"the weights {weights[0, 0]:.2f} and {weights[0, 1]:.2f}",
        f"the output {shown(output[0], 1)}",
    ]


def padding():
    scores = torch.zeros(1, 3)
    some, none = torch.tensor([[True, True, False]]), torch.zeros(1, 3, dtype=torch.bool)
    return [
        f"with mask [[True, True, False]] -> [{short(g.masked_softmax(scores, some)[0])}]",
        f"with mask [[False, False, False]] -> [{short(g.masked_softmax(scores, none)[0])}]",
        f"e⁻¹⁰ ≈ {math.exp(-10):.5f}",
    ]


def causal():
    return []


def heads():
    one, eight = (
        sum(weight.numel() for weight in g.MultiHeadAttention(512, heads).parameters())
        for heads in (1, 8)
    )
    assert one == eight
    return [f"{eight:,} both: four matrices of 512 x 512, and four biases of 512"]


def positions():
    table = g.sinusoidal_positions(100, 512)
    assert {round(float(table[p] @ table[p + 3]), 3) for p in (0, 7, 90)} == {211.749}
    halves = g.sinusoidal_positions(100, 512, layout="halves")
    assert torch.equal(torch.cat((table[:, 0::2], table[:, 1::2]), -1), halves)
    pairs = torch.arange(256, dtype=torch.float64)
    paper, authors = (50 / 10_000 ** (pairs / steps) for steps in (256, 255))
    far = max(float((wave(paper) - wave(authors)).abs().max()) for wave in (torch.sin, torch.cos))
    placed = g.PositionalEncoding(4)(torch.zeros(1, 1, 4), start=1)[0, 0]
    rate = f"{10_000 ** (-2 / 4):g}"
    return [
        f"numbers of d_model 512 differ by up to {far:.2f}",
        f"interleaved [sin 1, cos 1, sin {rate}, cos {rate}]",
        f"halves [sin 1, sin {rate}, cos 1, cos {rate}]",
        f"without dropout: {shown(placed)}",
        f"{float(table[5] @ table[8]):.1f} for d_model 512: the sum of cos(3·rate)",
        f"A row with itself gives d_model/2, which is {float(table[5] @ table[5]):.0f}",
    ]


def embeddings():
    torch.manual_seed(0)
    embedding, place = g.ScaledEmbedding(37_000, 512), g.sinusoidal_positions(100, 512)
    embedded, root = embedding(torch.arange(100)[None]), 512**0.5
    louder = place.square().mean().sqrt() / embedding.weight.std()
    assert 15.5 < louder < 16.5
    logits = (embedded[0] @ embedding.weight.T).detach()  # of 100 tokens
    own = logits.diagonal().mean().item()
    assert logits.argmax(-1).tolist() == list(range(100))
    assert own == pytest.approx(root, abs=0.5)
    others = logits.fill_diagonal_(0)
    example = g.ScaledEmbedding(2, 2)
    example.weight.data = torch.tensor([[0.0, 0.0], [3.0, 4.0]])
    with torch.device("meta"):
        sizes = {"source_vocab_size": 37_000, "target_vocab_size": 37_000}
        model = g.Transformer(g.ModelConfig(**sizes | presets["base"]))
    saved = 2 * 37_000 * 512 / 1e6
    assert sum(weight.numel() for weight in model.parameters()) / 1e6 - saved < saved
    return [
        f"with d_model 512 its numbers are about {embedding.weight.std():.2f}",
        f"have the size {place.square().mean().sqrt():.1f}",
        f"The factor {root:.1f} brings the words to {embedded.std():.1f}",
        f"-> [[{shown(example(torch.tensor([[1]]))[0, 0])}]]: √2 is {math.sqrt(2):.2f}",
        "with 37,000 tokens for both sides",
        f"37,000 · 512 = {saved / 2:.1f} million numbers",
        f"{saved:.1f} million less, more than half of the 65 million",
        f"so {root:.1f} with d_model 512",
        f"variance {others.var():.0f}",
        f"the greatest of 37,000 is about {others.max(-1)[0].mean():.0f}",
    ]


@torch.no_grad()
def stream(norm, *, xavier=False):
    """The size of a stream after six untrained blocks."""
    torch.manual_seed(0)
    x = torch.randn(1, 20, 512)
    for _ in range(6):
        block = g.EncoderBlock(512, 8, 2048, norm=norm).eval()
        for weight in block.parameters() if xavier else ():
            if weight.dim() == 2:
                nn.init.xavier_uniform_(weight)
        x = block(x)
    return float(x.square().mean().sqrt())


def blocks():
    assert 2.0 < stream("pre", xavier=True) < 2.6
    return [
        f"post stays at {stream('post'):.1f}",
        f"pre grows to about {stream('pre'):.1f}, and to about 2.3",
    ]


def encoder():
    counts = [
        sum(weight.numel() for weight in g.Encoder(some).parameters())
        for some in (
            [g.EncoderBlock(64, 4, 256)] * 6,
            [g.EncoderBlock(64, 4, 256) for _ in range(6)],
        )
    ]
    return [f"{counts[0]:,}, as many as one block has; six blocks of their own have {counts[1]:,}"]


def decoder():
    return []


def subwords():
    return []


def loss():
    logs = -rows([1 / 4, 1 / 2, 1 / 4])[0].log()
    mean = g.label_smoothed_cross_entropy(-logs[None, None], torch.tensor([[1]])).item()
    share, other = 0.9 + 0.1 / 37_000, 0.1 / 37_000
    entropy = -share * math.log(share) - 36_999 * other * math.log(other)
    return [
        f"{logs[0]:.3f}, {logs[1]:.3f}, {logs[2]:.3f}: {logs[1]:.3f} at the label",
        f"at the label, {logs.mean():.3f} in the mean",
        f"The loss is 0.9 · {logs[1]:.3f} + 0.1 · {logs.mean():.3f} = {mean:.3f}",
        f"{entropy:.3f}, the entropy of the smoothed labels",
        f"a loss of {entropy:.1f} is nearly perfect",
        f"(10 · 1 + 2 · 4) / 12 = {(10 * 1 + 2 * 4) / 12:.1f} and (1 + 4) / 2 = {(1 + 4) / 2:.1f}",
        "with ε = 0.1 and 37000 symbols",
    ]


def schedule():
    first, top, later = (g.noam_schedule(n, d_model=4, warmup=100) for n in (1, 100, 400))
    begin = (0, torch.zeros(1), torch.zeros(1))
    weight, (_, mean, square) = adam_step(torch.ones(1), torch.tensor([4.0]), state=begin, rate=0.1)
    peaks = [g.noam_schedule(n, d_model=512, warmup=n) for n in (4000, 2000)]
    root, corrected = 4**-0.5, (mean.item() / (1 - 0.9), square.item() / (1 - 0.98))
    return [
        f"the rate {root:g} · {100**-1.5:g} = {first:g}, update 100 the highest,"
        f" {root:g} · {100**-0.5:g} = {top:g},"
        f" and update 400 has {root:g} · {400**-0.5:g} = {later:g}",
        f"rate 0.1, first update: mean {shown(mean, 1)}, square {shown(square)}",
        f"1 − 0.9 and 1 − 0.98 they are [{corrected[0]:.0f}] and [{corrected[1]:.0f}]",
        f"the step is 0.1 · 4 / 4, the new weight {shown(weight, 1)}",
        f"from {peaks[0]:.5f} to {peaks[1]:.5f}: the peak",
    ]


def searched():
    """The probabilities of the targets of greedy search and of a beam of 2, in one example."""
    table = {1: [0, 0, 0, 0, 0.6, 0.4], 4: [0, 0, 0.5, 0.3, 0, 0.2], 5: [0, 0, 1, 0, 0, 0]}
    language = TableModel.table({key: [float(x) for x in row] for key, row in table.items()})
    rules = g.OutputRules(torch.tensor([5]), Vocabulary(bos_id=1, eos_id=2))
    found = [
        g.beam_search(language.step, language.state(), rules, beam=beam)[0][0] for beam in (1, 2)
    ]
    assert [each.tokens for each in found] == [(4,), (5,)]
    return [math.exp(each.log_probability) for each in found]


def greedy():
    one, two = searched()
    return [
        f"1 + 2 + … + 50 = {sum(range(1, 51))} without it",
        f"has probability 0.6 and the best token after it 0.5, that target has {one:.1f}",
        f"If 5 has 0.4 and is followed by the end for certain, it has {two:.1f}",
    ]


def beam():
    one, two = searched()
    [best] = best_continuations(
        [Candidate((5,), -1.0, 0)], rows([-0.5, -3.0]), torch.tensor([[8, 9]]), count=1
    )
    candidates = [Candidate((8, 2), -1.0, 0), Candidate((8, 5), -2.0, 0)]
    [ended], [live] = divide(candidates, 2, beam=1, length_penalty=0.0)
    assert live == candidates[1]
    of_end = f"[Hypothesis({ended.tokens}, {ended.score}, {ended.log_probability}, True)]"
    return [
        f"Length 1: {penalty(1, 0.5):g}. Length 13, alpha 0.5:",
        f"alpha 0.5: (18 / 6)^0.5 = {penalty(13, 0.5):.3f}",
        "live [Candidate((5,), -1.0, 0)], log-probabilities [[-0.5, -3.0]], ids [[8, 9]], count 1:"
        f" [Candidate({best.tokens}, {best.log_probability}, {best.row})]",
        f"[Candidate((8, 2), -1.0, 0), Candidate((8, 5), -2.0, 0)] gives {of_end}, and the second",
        "after 1 come 4 (0.6) and 5 (0.4); the end has 0.5 after 4, and 1.0 after 5."
        f" Greedy search finds [4], with probability {one:.1f};"
        f" beam search finds [5], with {two:.1f}",
        f"With 5 tokens the divisor is (10/6)² = {penalty(5, 2.0):.1f}, with 10 tokens it is"
        f" {penalty(10, 2.0):g}",
    ]


def whole():
    torch.manual_seed(0)
    sizes = {"d_model": 128, "num_heads": 4, "d_ff": 512, "dropout": 0.0}
    layers = {"num_encoder_layers": 3, "num_decoder_layers": 3}
    config = g.ModelConfig(source_vocab_size=1000, target_vocab_size=1000, **sizes, **layers)
    source, target, labels = torch.randint(4, 1000, (3, 16, 60))
    with torch.no_grad():
        logits = g.Transformer(config)(source, target)
    loss = g.label_smoothed_cross_entropy(logits, labels, smoothing=0.0)
    return [
        "With 1,000 tokens, d_model 128, three blocks on each side and random labels:"
        f" {loss:.1f} and {math.log(1000):.1f}"
    ]


def of(name):
    return import_module(f"glassformer.tools.learn.lessons.{name}.plain")


def rotary():
    angles = of("rotary").rotary_angles(torch.tensor([0, 3]), 4).tolist()
    keys, values = rows([1, 0], [1, 0])[None, None], rows([10], [20])[None, None]
    output = of("rotary").rotary_attention(keys[:, :, :1], keys, values).item()
    far = torch.tensor(1_000_000)
    off = of("rotary").rotary_angles(far[None], 64) - far / 10_000 ** (torch.arange(32) / 32)
    assert 0.005 < off.abs().max() < 0.5
    return [
        f"Positions 0 and 3 with d_head 4: [{short(angles[0])}, {short(angles[1])}]",
        "A float32 angle of position 1,000,000 is wrong in the second decimal",
        f"cos(1)/√2 = {math.cos(1) / 2**0.5:.2f} and 1/√2 = {0.5**0.5:.2f},"
        f" and the output is {shown([output], 1)}",
        "Add 1,000 to the positions",
    ]


def grouped():
    place = 8 * 64 * 2
    kept = 32 * 1000 * 6 * place
    return [
        f"8 heads · 64 features · 2 = {place:,} numbers a position in each block; with 2 groups it"
        f" keeps {place // 4}",
        "What do 32 sentences of 1,000 tokens keep",
        f"32 · 1,000 · 6 · {place:,} is {kept / 1e6:.0f} million numbers,"
        f" {2 * kept / 1e6:.0f} MB in bfloat16. With 2 groups it is a quarter of that,"
        f" {kept / 2e6:.0f} MB",
    ]


def running():
    most, total = of("running").running_sum(iter([1.0, 3.0, 2.0]))
    parts = [(rows([0]), rows([10]), None), (rows([math.log(3)]), rows([20]), None)]
    output = of("running").running_attention(rows([1]), iter(parts)).item()
    records = sum(1 / k for k in range(1, 1001))
    return [
        f"Scores 1, 3, 2: m is {most:g}, and the sum is exp(-2) + 1 + exp(-1) = {total:.3f}",
        f"the weights are 1/4 and 3/4, the output is [{short([output])}]",
        f"About {records:.1f} times",
        f"1 + 1/2 + … + 1/1000 is {records:.2f}",
        "For 50,000 keys that is too much memory",
        "if 1,000 scores come in random order",
    ]


def relative():
    table, keys, values = rows([0], [math.log(3)], [5]), rows([0], [0]), rows([10], [20])
    query = rows([1])[None, None]
    output = of("relative").relative_attention(query, keys[None, None], values[None, None], table)
    return [f"(distance -1) and log 3 (distance 0), the output is {short([output.item()])}"]


def minimum_risk():
    own = of("minimum_risk")
    answer, means = own.minimum_risk(["a b", "a b", "c"], own.overlap)
    return [
        f"2 · 2 / (3 + 3) = {own.overlap('the cat sat', 'the cat ran'):.3f}",
        f'the means are {short(means)[1:-1]}, and the answer is "{answer}"',
        f"100 · 99 = {100 * 99:,}, of each sample",
        f"Compared with 10 samples alone it is at most {100 * 10:,}",
    ]


def paragraphs(name):
    """The paragraphs of a lesson's file, questions, answers and reasons, without the code."""
    own = lesson(name)
    texts = re.sub(r"^# ?", "", own.template, flags=re.MULTILINE).split("\n\n")
    why = LESSONS / name / "why.md"
    texts += why.read_text("utf-8").split("\n\n") if why.exists() else []
    texts += [text for each in own.questions for text in (each.question, each.answer)]
    texts += [hint for three in own.hints.values() for hint in three]
    code = re.compile(r'(^|\n)(def|class|    def) .*?("""|$)', re.DOTALL)
    return [" ".join(code.sub(" ", text).split()) for text in texts]


@pytest.mark.parametrize("name", EVERY)
def test_each_figure_is_computed_or_has_its_source(name):
    texts = paragraphs(name)
    sentences = globals()[name]()
    for sentence in sentences:
        assert any(sentence in text for text in texts), sentence
    computed = {figure for sentence in sentences for figure in FIGURE.findall(sentence)}
    for text in texts:
        if not SOURCE.search(text):
            assert set(FIGURE.findall(EXPONENT.sub("", text))) <= computed, text


@torch.no_grad()
def test_the_order_of_words_is_seen_by_positions_alone():
    torch.manual_seed(0)
    encoder = g.Encoder([g.EncoderBlock(512, 8, 2048) for _ in range(6)]).eval()
    words, order = torch.randn(1, 7, 512), torch.randperm(7)
    for places, least, most in ((0, 0.0, 1e-5), (g.sinusoidal_positions(7, 512), 0.1, 0.2)):
        before = encoder(words + places)[:, order]
        moved = encoder(words[:, order] + places) - before
        change = (moved.norm(dim=-1) / before.norm(dim=-1)).mean()
        assert least <= change <= most


@pytest.mark.parametrize("page", ["life", "recurrence"])
def test_the_figures_of_a_page_are_printed_by_its_cells_or_have_their_source(page):
    text = (ROOT / "docs" / f"{page}.md").read_text("utf-8")
    for paragraph in re.sub(r"```.*?```", "", text, flags=re.DOTALL).split("\n\n"):
        assert SOURCE.search(paragraph) or not FIGURE.search(paragraph), paragraph
