"""The same numbers and gradients as torch's own layers, with their weights put into ours."""

from dataclasses import replace
from functools import partial

import pytest
import torch
from torch import Tensor, nn

from glassformer.model.attention import MultiHeadAttention
from glassformer.model.blocks import FeedForward
from glassformer.model.decoder import Decoder, DecoderBlock
from glassformer.model.encoder import Encoder, EncoderBlock
from glassformer.model.forms import PAPER
from glassformer.model.masks import padding_mask, subsequent_mask
from tests.tables import every

D_MODEL, HEADS, D_FF, SRC_LEN, TGT_LEN = 14, 7, 19, 11, 5
SOURCE = torch.tensor([[5] * 11, [5] * 3 + [0] * 8, [5] * 7 + [0] * 4])

# float32 at 1e-5 is what is promised; float64 shows that it is the same formula.
PRECISIONS = [(torch.float32, 1e-5), (torch.float64, 1e-12)]
precisions = pytest.mark.parametrize(("dtype", "tolerance"), PRECISIONS)
norms = pytest.mark.parametrize("norm", ["post", "pre"])

NORMS = {"encoder": ("norm1", "norm2"), "decoder": ("norm1", "norm2", "norm3")}
PARTS = {
    "encoder": ("self_attention", "feed_forward"),
    "decoder": ("self_attention", "cross_attention", "feed_forward"),
}
ATTENTIONS = {"self_attention": "self_attn", "cross_attention": "multihead_attn"}


def attention_weights(theirs: nn.MultiheadAttention) -> dict[str, Tensor]:
    """Their three projections are one matrix; ours are three."""
    weights = {}
    for kind in ("weight", "bias"):
        thirds = getattr(theirs, f"in_proj_{kind}").chunk(3)
        for role, third in zip(("query", "key", "value"), thirds, strict=True):
            weights[f"{role}.{kind}"] = third
        weights[f"output.{kind}"] = getattr(theirs.out_proj, kind)
    return weights


def block_weights(theirs: nn.Module, kind: str) -> dict[str, Tensor]:
    weights = {}
    for part, norm in zip(PARTS[kind], NORMS[kind], strict=True):
        if part == "feed_forward":
            layers = {"inner": theirs.linear1, "outer": theirs.linear2}
            inside = {f"{n}.{k}": x for n, of in layers.items() for k, x in of.named_parameters()}
        else:
            inside = attention_weights(getattr(theirs, ATTENTIONS[part]))
        weights |= {f"{part}.sublayer.{name}": x for name, x in inside.items()}
        weights |= {f"{part}.norm.{k}": x for k, x in getattr(theirs, norm).named_parameters()}
    return weights


def disturbed(module: nn.Module, dtype: torch.dtype) -> nn.Module:
    """No bias or norm is left at the value with which it begins."""
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter += 0.2 * torch.randn_like(parameter)
    return module.to(dtype).eval()


def streams(dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    torch.manual_seed(2)
    source, target = torch.randn(3, SRC_LEN, D_MODEL), torch.randn(3, TGT_LEN, D_MODEL)
    return source.to(dtype).requires_grad_(), target.to(dtype).requires_grad_()


def assert_same(ours: Tensor, theirs: Tensor, leaves: tuple[Tensor, ...], tolerance: float) -> None:
    """Outputs, and the gradients of one and the same loss."""
    torch.testing.assert_close(ours, theirs, atol=tolerance, rtol=tolerance)
    torch.manual_seed(3)
    towards = torch.randn_like(ours)
    for mine, other in zip(
        torch.autograd.grad(ours, leaves, towards, retain_graph=True),
        torch.autograd.grad(theirs, leaves, towards),
        strict=True,
    ):
        assert other.any()
        torch.testing.assert_close(mine, other, atol=tolerance, rtol=tolerance)


@precisions
@every("kind", ["none", "padding", "causal"])
def test_multi_head_attention(dtype, tolerance, kind):
    theirs = disturbed(nn.MultiheadAttention(D_MODEL, HEADS, batch_first=True), dtype)
    ours = MultiHeadAttention(D_MODEL, HEADS).to(dtype)
    ours.load_state_dict(attention_weights(theirs))
    memory, query = streams(dtype)
    if kind == "causal":
        query = memory
    # Their masks say what is hidden, ours what may be seen.
    mask, options = {
        "none": (None, {}),
        "padding": (padding_mask(SOURCE, 0), {"key_padding_mask": SOURCE == 0}),
        "causal": (subsequent_mask(SRC_LEN), {"attn_mask": ~subsequent_mask(SRC_LEN)}),
    }[kind]
    expected, expected_weights = theirs(
        query, memory, memory, average_attn_weights=False, **options
    )
    output, weights = ours.with_weights(query, memory, memory, mask)
    leaves = (query,) if query is memory else (query, memory)
    assert_same(weights, expected_weights, leaves, tolerance)
    expected, _ = theirs(query, memory, memory, need_weights=False, **options)
    for mine in (output, ours(query, memory, memory, mask)):
        torch.testing.assert_close(mine, expected, atol=tolerance, rtol=tolerance)
    assert_same(ours(query, memory, memory, mask), expected, leaves, tolerance)


@precisions
@norms
@every("activation", ["relu", "gelu"])
def test_encoder(dtype, tolerance, norm, activation):
    layer = nn.TransformerEncoderLayer(
        D_MODEL, HEADS, D_FF, activation=activation, batch_first=True, norm_first=norm == "pre"
    )
    final = nn.LayerNorm(D_MODEL) if norm == "pre" else None
    stack = nn.TransformerEncoder(layer, 2, norm=final, enable_nested_tensor=False)
    theirs = disturbed(stack, dtype)
    parts = replace(PAPER, feed_forward=partial(FeedForward, activation=activation))
    blocks = [
        EncoderBlock(D_MODEL, HEADS, D_FF, norm=norm, parts=parts).to(dtype) for _ in theirs.layers
    ]
    for ours, layer in zip(blocks, theirs.layers, strict=True):
        ours.load_state_dict(block_weights(layer, "encoder"))
    source, _ = streams(dtype)
    mine = Encoder(blocks, final_norm=theirs.norm)(source, padding_mask(SOURCE, 0))
    expected = theirs(source, src_key_padding_mask=SOURCE == 0)
    assert_same(mine, expected, (source,), tolerance)


@precisions
@norms
def test_decoder(dtype, tolerance, norm):
    layer = nn.TransformerDecoderLayer(
        D_MODEL, HEADS, D_FF, batch_first=True, norm_first=norm == "pre"
    )
    final = nn.LayerNorm(D_MODEL) if norm == "pre" else None
    theirs = disturbed(nn.TransformerDecoder(layer, 2, norm=final), dtype)
    blocks = [DecoderBlock(D_MODEL, HEADS, D_FF, norm=norm).to(dtype) for _ in theirs.layers]
    for ours, layer in zip(blocks, theirs.layers, strict=True):
        ours.load_state_dict(block_weights(layer, "decoder"))
    memory, target = streams(dtype)
    causal = subsequent_mask(TGT_LEN)
    mine = Decoder(blocks, final_norm=theirs.norm)(target, memory, causal, padding_mask(SOURCE, 0))
    expected = theirs(target, memory, tgt_mask=~causal, memory_key_padding_mask=SOURCE == 0)
    assert_same(mine, expected, (target, memory), tolerance)
