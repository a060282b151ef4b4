"""Blocks and stacks: the paper's formulas in numpy, what sees what, and one step at a time."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from glassformer.config import ModelConfig
from glassformer.model.decoder import Decoder, DecoderBlock
from glassformer.model.encoder import Encoder, EncoderBlock
from glassformer.model.masks import subsequent_mask
from glassformer.model.transformer import Transformer
from tests.tables import every

D_MODEL, HEADS, D_FF, BATCH, SRC_LEN, TGT_LEN = 14, 2, 19, 3, 5, 7


def stream(length: int, *, seed: int = 0, grad: bool = False) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(BATCH, length, D_MODEL, generator=generator, dtype=torch.float64)
    return x.requires_grad_(grad)


def block(kind: type[nn.Module], **options: object) -> nn.Module:
    """A block whose biases and norms are not left at 0 and 1."""
    torch.manual_seed(1)
    made = kind(D_MODEL, HEADS, D_FF, **options).double().eval()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter += 0.2 * torch.randn_like(parameter)
    return made


def padding(*lengths: int) -> Tensor:
    return (torch.arange(max(lengths)) < torch.tensor(lengths)[:, None])[:, None, None]


class Paper:
    """Sections 3.1 to 3.3 in numpy, written from the paper, one sentence and head at a time."""

    def __init__(self, module: nn.Module) -> None:
        self.weights = {name: x.detach().numpy() for name, x in module.named_parameters()}

    def linear(self, name, x):
        return x @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]

    def norm(self, name, x):
        centred = x - x.mean(1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5)
        return scaled * self.weights[f"{name}.norm.weight"] + self.weights[f"{name}.norm.bias"]

    def attention(self, name, x, memory, visible):
        """``visible[i]`` lists the keys that query ``i`` sees."""
        query, key, value = (
            self.linear(f"{name}.sublayer.{role}", of)
            for role, of in [("query", x), ("key", memory), ("value", memory)]
        )
        d_head = D_MODEL // HEADS
        joined = np.zeros_like(x)
        for head in range(HEADS):
            part = slice(head * d_head, (head + 1) * d_head)
            for i, keys in enumerate(visible):
                scores = key[keys][:, part] @ query[i, part] / np.sqrt(d_head)
                shares = np.exp(scores) / np.exp(scores).sum()
                joined[i, part] = shares @ value[keys][:, part]
        return self.norm(name, x + self.linear(f"{name}.sublayer.output", joined))

    def feed_forward(self, x):
        inner = np.maximum(0, self.linear("feed_forward.sublayer.inner", x))
        return self.norm("feed_forward", x + self.linear("feed_forward.sublayer.outer", inner))


def test_an_encoder_block_is_the_paper_s():
    made, x, lengths = block(EncoderBlock), stream(SRC_LEN), (5, 2, 3)
    paper, out = Paper(made), made(x, padding(*lengths))
    for row, length in enumerate(lengths):
        sentence = x[row].numpy()
        seen = paper.attention("self_attention", sentence, sentence, [np.arange(length)] * SRC_LEN)
        torch.testing.assert_close(out[row], torch.from_numpy(paper.feed_forward(seen)))


def test_a_decoder_block_is_the_paper_s():
    made, x, memory, lengths = (
        block(DecoderBlock),
        stream(TGT_LEN),
        stream(SRC_LEN, seed=1),
        (5, 2, 3),
    )
    paper, out = Paper(made), made(x, memory, subsequent_mask(TGT_LEN), padding(*lengths))
    for row, length in enumerate(lengths):
        sentence = x[row].numpy()
        past = [np.arange(i + 1) for i in range(TGT_LEN)]
        y = paper.attention("self_attention", sentence, sentence, past)
        y = paper.attention(
            "cross_attention", y, memory[row].numpy(), [np.arange(length)] * TGT_LEN
        )
        torch.testing.assert_close(out[row], torch.from_numpy(paper.feed_forward(y)))


def influence(output: Tensor, x: Tensor) -> list[list[bool]]:
    """``[i][j]``: does output position ``i`` of the first sentence depend on input ``j``?"""
    weights = torch.arange(
        1.0, D_MODEL + 1, dtype=output.dtype
    )  # a plain sum of a norm is constant
    rows = []
    for position in range(output.size(1)):
        score = (output[0, position] * weights).sum()
        (grad,) = torch.autograd.grad(score, x, retain_graph=True)
        assert not grad[1:].any(), "one sentence of a batch sees another"
        rows.append(grad[0].any(-1).tolist())
    return rows


def test_an_encoder_position_sees_every_word_but_no_padding():
    x = stream(SRC_LEN, grad=True)
    out = block(EncoderBlock)(x, padding(3, 5, 5))
    expected = [[j < 3 or j == i for j in range(SRC_LEN)] for i in range(SRC_LEN)]
    assert influence(out, x) == expected  # a padded place still sees itself, past attention


def test_a_decoder_position_sees_the_past_and_the_whole_source_but_no_padding():
    x, memory = stream(TGT_LEN, grad=True), stream(SRC_LEN, seed=1, grad=True)
    out = block(DecoderBlock)(x, memory, subsequent_mask(TGT_LEN), padding(3, 5, 5))
    assert influence(out, x) == [[j <= i for j in range(TGT_LEN)] for i in range(TGT_LEN)]
    assert influence(out, memory) == [[True] * 3 + [False] * 2] * TGT_LEN


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_step_by_step_a_block_gives_its_forward(norm):
    made, x, memory = block(DecoderBlock, norm=norm), stream(TGT_LEN), stream(SRC_LEN, seed=1)
    mask = padding(5, 2, 3)
    whole = made(x, memory, subsequent_mask(TGT_LEN), mask)
    state = made.start(memory)
    for position in range(TGT_LEN):
        out, state = made.step(x[:, position : position + 1], state, mask)
        torch.testing.assert_close(out[:, 0], whole[:, position])
    assert state.self_keys.shape == (BATCH, HEADS, TGT_LEN, D_MODEL // HEADS)


def test_stacks_run_their_blocks_in_turn_then_the_final_norm():
    x, memory = stream(TGT_LEN), stream(SRC_LEN, seed=1)
    torch.manual_seed(2)
    encoders = [EncoderBlock(D_MODEL, HEADS, D_FF, norm="pre").double() for _ in range(2)]
    decoders = [DecoderBlock(D_MODEL, HEADS, D_FF, norm="pre").double() for _ in range(2)]
    norm = nn.LayerNorm(D_MODEL, bias=False).double()
    assert Encoder(encoders, final_norm=norm)(x).equal(norm(encoders[1](encoders[0](x))))
    assert Encoder(encoders)(x).equal(encoders[1](encoders[0](x)))
    expected = decoders[1](decoders[0](x, memory), memory)
    assert Decoder(decoders)(x, memory).equal(expected)
    assert Decoder(decoders, final_norm=norm)(x, memory).equal(norm(expected))


def configured_block(kind, **options):
    """A block as a Transformer of these options has it."""
    sizes = {"source_vocab_size": 9, "target_vocab_size": 9, "dropout": 0.0}
    sizes |= {"d_model": D_MODEL, "num_heads": HEADS, "d_ff": D_FF}
    model = Transformer(ModelConfig(**(sizes | options))).double().eval()
    return (model.encoder if kind is EncoderBlock else model.decoder).blocks[0]


@every("kind", [EncoderBlock, DecoderBlock])
@every("option", ["dropout", "attention_dropout", "activation_dropout"])
def test_each_dropout_acts_while_training_and_only_then(kind, option):
    made, x = configured_block(kind, **{option: 0.5}), stream(TGT_LEN)
    of = (x, stream(SRC_LEN, seed=1))[: 1 if kind is EncoderBlock else 2]
    exact = made(*of)
    assert made(*of).equal(exact)
    torch.manual_seed(0)
    dropped = made.train()(*of)
    assert not dropped.allclose(exact)
    torch.manual_seed(0)
    assert made(*of).equal(dropped)


@pytest.mark.parametrize("kind", [EncoderBlock, DecoderBlock])
def test_every_option_reaches_every_sublayer(kind):
    made = configured_block(
        kind,
        dropout=0.25,
        attention_dropout=0.5,
        activation_dropout=0.75,
        activation="gelu",
        norm="pre",
        norm_epsilon=0.125,
    )
    for residual in made.children():
        assert (residual.dropout.p, residual.norm_first, residual.norm.eps) == (0.25, True, 0.125)
    attentions = [part for name, part in made.named_children() if "attention" in name]
    assert {part.sublayer.dropout for part in attentions} == {0.5}
    assert made.feed_forward.sublayer.dropout.p == 0.75
    assert made.feed_forward.sublayer.activation is nn.functional.gelu
