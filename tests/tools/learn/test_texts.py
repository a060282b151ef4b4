"""The lessons' texts: their numbers and answers hold, and their plain forms are those of others.

Learners' solutions are in ``solutions.md``, every known mistake in ``test_checks.py``.
"""

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
    Transformer,
    subsequent_mask,
    target_mask,
)
from glassformer.tools.learn.check import measure
from glassformer.tools.learn.edits import solution
from glassformer.tools.learn.inputs import drawn, filled
from glassformer.tools.learn.judge import Judge
from glassformer.tools.learn.lesson import EVERY, lesson, lessons
from glassformer.tools.learn.lessons.blocks.plain import layer_norm
from glassformer.tools.learn.lessons.schedule.plain import adam_step
from glassformer.tools.learn.lessons.subwords import plain as byte_pairs
from glassformer.tools.learn.lessons.subwords.probes import FIVE_WORDS
from glassformer.tools.learn.parts import Part, own_parts
from tests.own_parts import rebuilt


def test_a_file_fits_a_terminal_imports_torch_and_asks_its_questions(subtests):
    for each in lessons(EVERY):
        with subtests.test(lesson=each.name):
            lines = each.template.splitlines()
            assert max(map(len, lines)) <= 79
            assert "import torch" in lines
            words = " ".join(each.template.replace("\n#", " ").split())
            assert all(question.question in words for question in each.questions)


def test_the_padding_behind_the_words_changes_only_its_own_rows():
    tokens = torch.tensor([[2, 7, 8, 0, 0]])
    changed = (target_mask(tokens, 0)[0, 0] != subsequent_mask(5)).any(dim=1)
    assert changed.tolist() == [False, False, False, True, True]


def test_the_order_of_heads_changes_no_output():
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
    norm, x = filled(nn.LayerNorm(5)), drawn((2, 3, 5), 0)
    assert torch.allclose(layer_norm(x, norm.weight, norm.bias, 1e-5), norm(x), atol=1e-12)


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


INPUT = "The decoder's input begins with bos, and lacks the last label."
EVIDENCE = [
    (*("causal", "shift", zero_in_front), INPUT),
    (*("causal", "shift", bos_in_the_place_of_the_first_label), INPUT),
    (
        *("causal", "subsequent_mask", triangle_from_the_other_corner),
        "The places of your mask are right, but in reverse order along axis 1.",
    ),
    (*("causal", "subsequent_mask", triangle_of_numpy), "Your mask is no tensor."),
    (
        *("heads", "MultiHeadAttention.split", reversed_heads),
        "The numbers of your heads are right, but in reverse order along axis 1.",
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
