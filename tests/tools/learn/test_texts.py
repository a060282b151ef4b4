"""The lessons' texts: their numbers and answers hold, and their plain forms are those of others.

Learners' solutions are in ``solutions.md``, every known mistake in ``test_checks.py``.
"""

import math
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from glassformer import (
    DecoderBlock,
    Encoder,
    EncoderBlock,
    ModelConfig,
    MultiHeadAttention,
    ScaledEmbedding,
    Transformer,
    label_smoothed_cross_entropy,
    noam_schedule,
    sinusoidal_positions,
    subsequent_mask,
    target_mask,
)
from glassformer.tools.learn.check import measure
from glassformer.tools.learn.edits import solution
from glassformer.tools.learn.inputs import filled, numbers
from glassformer.tools.learn.judge import Judge
from glassformer.tools.learn.lesson import lesson
from glassformer.tools.learn.lessons.blocks.plain import layer_norm
from glassformer.tools.learn.lessons.schedule.plain import adam_step
from glassformer.tools.learn.lessons.subwords import plain as byte_pairs
from glassformer.tools.learn.lessons.subwords.probes import FIVE_WORDS
from glassformer.tools.learn.parts import Part, own_parts
from tests.own_parts import rebuilt


def test_the_padding_behind_the_words_changes_only_its_own_rows():
    tokens = torch.tensor([[2, 7, 8, 0, 0]])
    changed = (target_mask(tokens, 0)[0, 0] != subsequent_mask(5)).any(dim=1)
    assert changed.tolist() == [False, False, False, True, True]


def test_heads_change_neither_the_number_of_weights_nor_does_their_order_the_output():
    counts = {
        sum(weight.numel() for weight in MultiHeadAttention(512, heads).parameters())
        for heads in (8, 1)
    }
    assert counts == {1_050_624}

    attention, x = MultiHeadAttention(15, 3), torch.randn(2, 7, 15)
    before = attention(x, x, x)
    order = torch.tensor([*range(5, 10), *range(5), *range(10, 15)])
    with torch.no_grad():
        for projection in (attention.query, attention.key, attention.value):
            projection.weight.copy_(projection.weight[order])
            projection.bias.copy_(projection.bias[order])
        attention.output.weight.copy_(attention.output.weight[:, order])
    torch.testing.assert_close(attention(x, x, x), before)


def test_weights_are_seen_if_a_learners_attend_calls_no_attention():
    def inline(self, query, keys, values, mask=None):
        queries = self.split(self.query(query))
        return self.output(self.merge(F.scaled_dot_product_attention(queries, keys, values, mask)))

    sizes = {"d_model": 8, "num_heads": 2, "d_ff": 16}
    model = Transformer(ModelConfig(source_vocab_size=11, target_vocab_size=13, **sizes)).eval()
    own = own_parts([Part("model.attention.MultiHeadAttention.attend", inline, "heads")])
    x = torch.randn(1, 3, 8)
    seen, expected = (
        each.encoder.blocks[0].self_attention.sublayer.with_weights(x)
        for each in (rebuilt(model, own), model)
    )
    torch.testing.assert_close(seen, expected)


def test_the_plain_norm_is_what_torch_has():
    norm, x = filled(nn.LayerNorm(5)), numbers(2, 3, 5)
    assert torch.allclose(layer_norm(x, norm.weight, norm.bias, 1e-5), norm(x), atol=1e-12)


@torch.no_grad()
@pytest.mark.parametrize(("norm", "size"), [("post", 1.0), ("pre", 2.3)])
def test_the_size_of_the_stream_after_six_blocks(norm, size):
    torch.manual_seed(0)
    x = torch.randn(1, 20, 512)
    for _ in range(6):
        block = EncoderBlock(512, 8, 2048, norm=norm).eval()
        for weight in block.parameters():
            if weight.dim() == 2:
                nn.init.xavier_uniform_(weight)
        x = block(x)
    assert float(x.square().mean().sqrt()) == pytest.approx(size, abs=0.15)


@torch.no_grad()
def test_the_sizes_of_embeddings():
    torch.manual_seed(0)
    embedding = ScaledEmbedding(37_000, 512)
    embedded = embedding(torch.arange(100)[None])
    assert float(embedding.weight.std()) == pytest.approx(0.044, abs=0.001)
    assert float(embedded.std()) == pytest.approx(1.0, abs=0.02)
    assert float(sinusoidal_positions(100, 512).square().mean().sqrt()) == pytest.approx(
        0.707, 0.01
    )
    logits = embedded[0] @ embedding.weight.T
    assert logits.argmax(-1).tolist() == list(range(100))
    assert float(logits.diagonal().mean()) == pytest.approx(22.6, abs=0.5)


def test_the_products_of_positions():
    table = sinusoidal_positions(100, 512)
    assert [round(float(table[p] @ table[p + 3]), 1) for p in (0, 7, 90)] == [211.7] * 3
    assert float(table[5] @ table[5]) == pytest.approx(256)
    halves = sinusoidal_positions(100, 512, layout="halves")
    assert torch.equal(torch.cat((table[:, 0::2], table[:, 1::2]), -1), halves)


def silent(*layers):
    """Linear layers that give zeros: of a block, the residual stream is left."""
    for layer in layers:
        nn.init.zeros_(layer.weight)
        nn.init.zeros_(layer.bias)


def test_the_worked_examples_of_the_encoder():
    x = torch.tensor([[[3.0, 1.0]]])
    for norm, words in (("post", [1, -1]), ("pre", [3, 1])):
        block = EncoderBlock(2, 1, 3, norm=norm)
        silent(block.self_attention.sublayer.output, block.feed_forward.sublayer.outer)
        assert torch.allclose(block(x), torch.tensor([[words]]).float(), atol=1e-4)

    def size(blocks):
        return sum(weight.numel() for weight in Encoder(blocks).parameters())

    assert size([EncoderBlock(64, 4, 256)] * 6) == 49_984
    assert size([EncoderBlock(64, 4, 256) for _ in range(6)]) == 299_904

    words, exchanged = torch.randn(1, 5, 64), torch.tensor([0, 3, 2, 1, 4])
    encoder = Encoder([EncoderBlock(64, 4, 256) for _ in range(2)])
    outputs = encoder(words)[:, exchanged]
    assert torch.allclose(encoder(words[:, exchanged]), outputs, atol=1e-5)


def test_the_worked_example_of_the_decoder_and_its_answers():
    block = DecoderBlock(2, 1, 3, norm="pre")
    cross = block.cross_attention.sublayer.output
    silent(block.self_attention.sublayer.output, cross, block.feed_forward.sublayer.outer)
    cross.bias.data = torch.tensor([0.0, 2.0])
    assert block(torch.tensor([[[3.0, 1.0]]]), torch.ones(1, 4, 2)).tolist() == [[[3.0, 3.0]]]

    block = DecoderBlock(8, 2, 16)
    x, memory = torch.randn(1, 5, 8), torch.randn(1, 7, 8)
    changed = torch.cat((x[:, :-1], -x[:, -1:]), dim=1)
    mask = subsequent_mask(5)
    with_mask = (block(x, memory, mask) - block(changed, memory, mask)).abs().sum(-1) > 1e-5
    assert with_mask.tolist() == [[False, False, False, False, True]]
    assert ((block(x, memory) - block(changed, memory)).abs().sum(-1) > 1e-5).all()
    exchanged = memory[:, [0, 3, 2, 1, 4, 5, 6]]
    assert torch.allclose(block(x, memory), block(x, exchanged), atol=1e-5)


def test_the_worked_numbers_of_the_loss():
    text = lesson("loss")
    assert "0.739" in text.template
    logits = torch.tensor([[[0, math.log(2), 0]]])
    assert round(label_smoothed_cross_entropy(logits, torch.tensor([[1]])).item(), 3) == 0.739
    share, other = 0.9 + 0.1 / 37000, 0.1 / 37000
    entropy = -share * math.log(share) - 36999 * other * math.log(other)
    assert f"{entropy:.3f}" in text.questions[0].answer


def test_adam_by_hand_is_torchs():
    generator = torch.Generator().manual_seed(1)
    gradients = [10 ** (3 - i) * torch.randn(3, 5, generator=generator) for i in range(7)]
    weight = torch.randn(3, 5, generator=generator)
    torchs = torch.nn.Parameter(weight.clone())
    optimiser = torch.optim.Adam([torchs], lr=0.03, betas=(0.9, 0.98), eps=1e-9)
    state = (0, torch.zeros(3, 5), torch.zeros(3, 5))
    for gradient in gradients:
        weight, state = adam_step(weight, gradient, state=state, rate=0.03)
        torchs.grad = gradient
        optimiser.step()
    assert torch.allclose(weight, torchs.detach(), atol=1e-6)


def test_the_worked_numbers_of_the_schedule():
    rates = [noam_schedule(update, d_model=4, warmup=100) for update in (1, 100, 400)]
    assert rates == pytest.approx([0.0005, 0.05, 0.025])
    begin = (0, torch.zeros(1), torch.zeros(1))
    weight, (_, mean, square) = adam_step(torch.ones(1), torch.tensor([4.0]), state=begin, rate=0.1)
    assert (weight.item(), mean.item(), square.item()) == pytest.approx((0.9, 0.4, 0.32))
    peaks = [noam_schedule(warmup, d_model=512, warmup=warmup) for warmup in (4000, 2000)]
    assert [f"{peak:.5f}" for peak in peaks] == ["0.00070", "0.00099"]


def test_the_plain_byte_pairs_agree_with_another_library():
    tokenizers = pytest.importorskip("tokenizers")
    merges = byte_pairs.learn_merges(FIVE_WORDS, 8)
    letters = {letter: None for word in ["▁wqu", *FIVE_WORDS] for letter in word}
    known = [*letters, *("".join(pair) for pair in merges)]
    ids = {subword: index for index, subword in enumerate(known)}
    other = tokenizers.models.BPE(ids, merges)
    for word in [*FIVE_WORDS, "wing", "singing", "queering", "bringer"]:
        subwords = tuple(token.value for token in other.tokenize(f"▁{word}"))
        assert byte_pairs.encode(word, merges) == subwords


def test_the_numbers_of_the_subwords():
    text = lesson("subwords")
    merges = byte_pairs.learn_merges(FIVE_WORDS, 99)
    assert f"after {len(merges)} merges" in text.questions[0].answer
    assert merges[:2] == [("i", "n"), ("in", "g")]
    assert byte_pairs.encode("wing", merges[:2]) == ("▁", "w", "ing")
    for count, subwords in ((2, "▁ s ing ing"), (5, "▁sing ing"), (99, "▁sing ing")):
        assert " ".join(byte_pairs.encode("singing", merges[:count])) == subwords
        assert subwords in text.questions[0].answer
    assert " ".join(byte_pairs.encode("singing", merges[::-1])) in text.questions[1].answer


def zero_in_front(labels, _bos):
    return torch.cat((torch.zeros_like(labels[:, :1]), labels[:, :-1]), 1)


def bos_in_the_place_of_the_first_label(labels, bos):
    return torch.cat((torch.full_like(labels[:, :1], bos), labels[:, 1:]), 1)


def triangle_from_the_other_corner(length):
    return torch.ones(length, length, dtype=torch.bool).tril().flip(1)


def triangle_of_numpy(length):
    return subsequent_mask(length).numpy()


def reversed_heads(self, joint):
    return joint.unflatten(-1, (self.num_heads, -1)).transpose(-3, -2).flip(1)


EVIDENCE = [
    (
        *("causal", "shift", zero_in_front),
        "The decoder's input begins with bos. With bos 2, your first input is 0.",
    ),
    (
        *("causal", "shift", bos_in_the_place_of_the_first_label),
        "The decoder does not read the label that it has to predict."
        " At step 1 the decoder reads 8, and has to predict 8.",
    ),
    (
        *("causal", "subsequent_mask", triangle_from_the_other_corner),
        "No position attends to a later one. With length 3, position 0 may attend to position 2.",
    ),
    (
        *("causal", "subsequent_mask", triangle_of_numpy),
        "Your mask is no tensor.",
    ),
    (
        *("heads", "MultiHeadAttention.split", reversed_heads),
        "Each head has its own part of every position's features. Position 0 has the features"
        " [0, 1, 2, 3]; its head 0 of 2 should be [0, 1], and is [2, 3].",
    ),
]


def test_a_fault_that_no_list_knows_is_shown_by_its_evidence(subtests):
    for name, hole, fault, line in EVIDENCE:
        with subtests.test(fault=fault.__name__):
            judge, own = Judge.of(lesson(name), hole), solution(lesson(name))
            owner, _, method = hole.rpartition(".")
            if owner:
                kind = type(owner, (getattr(own, owner),), {method: fault})
                own = SimpleNamespace(**vars(own) | {owner: kind})
            else:
                own = SimpleNamespace(**vars(own) | {method: fault})
            assert line in judge.verdict(measure(judge.probes, own)).lines[0]
