"""For each field of ``Parts`` three own forms: right, wrong in shape, wrong in value.

A form that is wrong in value runs, but two of its ways differ: a whole pass and its steps, a
sentence alone and with padding, the rules of a search and its answer.
"""

from copy import deepcopy

import torch
from torch import nn
from torch.nn import functional as F

from glassformer.data.batches import shift
from glassformer.decoding.protocols import Hypothesis
from glassformer.model.attention import MultiHeadAttention, scaled_dot_product_attention
from glassformer.model.blocks import ResidualBlock
from glassformer.model.decoder import DecoderBlock
from glassformer.model.positions import PositionalEncoding
from glassformer.parts import FAST, PLAIN
from tests.own_parts import OWN, Parallel, colder, with_blocks


def unmasked(query, key, value, _mask=None):
    return scaled_dot_product_attention(query, key, value)


class AlwaysDrops(nn.Module):
    def __init__(self, share):
        super().__init__()
        self.share = share

    def forward(self, x):
        return F.dropout(x, self.share)


class OverTime(nn.Module):
    """A norm, or a network, that reads all positions."""

    def __init__(self, *_sizes, **_):
        super().__init__()

    def forward(self, x):
        return x - x.mean(dim=1, keepdim=True)


class Unmoved(PositionalEncoding):
    """Each step has the first position."""

    def forward(self, embedded, **_):
        return super().forward(embedded)


class WithoutStart(Unmoved):
    def forward(self, embedded):
        return super().forward(embedded)


class ForwardAlone(MultiHeadAttention):
    def forward(self, *args, **options):
        return 2 * super().forward(*args, **options)


class ForwardAround(ResidualBlock):
    def forward(self, x, *context, **options):
        return x + super().forward(x, *context, **options)


class ForwardBlock(DecoderBlock):
    """Parallel attention and feed-forward; the steps are the stock block's."""

    def __init__(self, config, parts):
        super().__init__(config.d_model, config.num_heads, config.d_ff, parts=parts)

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        x = self.cross_attention(x, memory, mask=memory_mask)
        return self.self_attention(x, mask=self_mask) + self.feed_forward(x)


class Decoder:
    """Another object with the three methods of the model."""

    def __init__(self, model):
        self.encode, self.start, self.step = model.encode, model.start, model.step


class Louder(Decoder):
    def __init__(self, model):
        super().__init__(model)
        self.step = lambda *given: (2 * model.step(*given)[0], model.step(*given)[1])


def blurred(labels, bos):
    """Word dropout: some of the decoder's tokens are unknown."""
    target = shift(labels, bos)
    target[:, 1::3] = 1
    return target


def focal(model, batch, *, smoothing):
    loss, unsmoothed = PLAIN.losses(model, batch, smoothing=smoothing)
    return loss * (1 - torch.exp(-loss / batch.target_tokens)) ** 2, unsmoothed


def mean_losses(model, batch, *, smoothing):
    return tuple(x / batch.target_tokens for x in PLAIN.losses(model, batch, smoothing=smoothing))


class Signs(torch.optim.Optimizer):
    """Signed gradients; its state grows."""

    def __init__(self, weights):
        super().__init__(weights, {"lr": 0.0})

    @torch.no_grad()
    def step(self, _closure=None):
        for group in self.param_groups:
            for weight in group["params"]:
                mean = self.state[weight].setdefault("mean", torch.zeros_like(weight))
                mean.lerp_(weight.grad, 0.1)
                weight -= group["lr"] * mean.sign()


def own_muon(matrices, others, **options):
    return FAST.muon(matrices, others, **options)


def matrices_alone(matrices, _others, **_):
    return Signs(matrices)


def steady(_update, **_):
    return 1e-3


def falling(update, **_):
    return 1e-3 - 1e-3 * update


def own_copy(model):
    return FAST.mixed_precision(model)


def copy_alone(model):
    """A copy that keeps its gradients."""
    return deepcopy(model).bfloat16(), lambda: None


def first_choice(step, state, rules):
    """Greedy search without a score."""
    rows, sentences = len(rules.max_lengths), rules.sentences()
    tokens, last = sentences.new_empty(rows, 0), rules.start(rows)
    for _ in range(int(rules.max_lengths.max())):
        logits, state = step(last, state)
        last = rules.best(logits, tokens, sentences, count=1)[1][:, 0]
        tokens = torch.cat([tokens, last[:, None]], dim=1)
    eos = rules.vocabulary.eos_id
    return [[_cut(row, eos)] for row in tokens.tolist()]


def _cut(row, eos):
    ended = eos in row
    return Hypothesis(tuple(row[: row.index(eos)] if ended else row), -1.0, -1.0, finished=ended)


def own_beam(step, state, rules, *, beam, n_best, length_penalty):
    return PLAIN.beam_search(
        step, state, rules, beam=beam, n_best=n_best, length_penalty=length_penalty
    )


def unruled(step, state, rules, **_):
    """The first token of all steps, whatever the rules say."""
    logits, _ = step(rules.start(len(rules.max_lengths)), state)
    return [
        [Hypothesis((token,), -1.0, -1.0, finished=True)] for token in logits.argmax(1).tolist()
    ]


def ids_alone(_step, _state, rules, **_):
    return [[5, 6]] * len(rules.max_lengths)


def own_best(logits, count, never=()):
    return PLAIN.best_tokens(logits, count, never)


class Halved(nn.Module):
    """Half of the axis."""

    def __init__(self, *_sizes, **_):
        super().__init__()

    def forward(self, x, *_, **__):
        return x[..., ::2]


def of_half(weights):
    return Signs(weights[::2])


FORMS = {
    "attention": (colder, lambda _query, _key, value, _mask: value, unmasked),
    "dropout": (nn.AlphaDropout, Halved, AlwaysDrops),
    "norm": (nn.RMSNorm, Halved, OverTime),
    "positions": (OWN["positions"], WithoutStart, Unmoved),
    "self_attention": (OWN["self_attention"], Halved, ForwardAlone),
    "cross_attention": (OWN["cross_attention"], Halved, ForwardAlone),
    "feed_forward": (OWN["feed_forward"], nn.Linear, OverTime),
    "residual": (OWN["residual"], lambda sublayer, *_, **__: sublayer, ForwardAround),
    "model": (with_blocks(Parallel), lambda *_: nn.Linear(3, 3), with_blocks(ForwardBlock)),
    "decoder": (Decoder, lambda model: model.decoder, Louder),
    "shift": (blurred, lambda labels, _bos: labels[:, :-1], lambda labels, _bos: labels),
    "losses": (focal, lambda model, batch, **_: model(batch.source, batch.target), mean_losses),
    "optimiser": (Signs, lambda weights: len(weights), of_half),
    "muon": (own_muon, lambda *_, **__: None, matrices_alone),
    "schedule": (steady, lambda _update: 1e-3, falling),
    "mixed_precision": (own_copy, lambda model: model, copy_alone),
    "greedy": (first_choice, ids_alone, unruled),
    "beam_search": (own_beam, ids_alone, unruled),
    "best_tokens": (
        own_best,
        lambda *_: torch.zeros(2, 2),
        lambda logits, count, _never: own_best(logits, count),
    ),
}
KINDS = ("right", "wrong in shape", "wrong in value")
