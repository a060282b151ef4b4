"""The loss without the logits of a whole batch.

:func:`projected_cross_entropy` computes the projection to words, the loss and its gradient in
chunks of rows. The readable version is ``label_smoothed_cross_entropy`` in ``training/loss.py``. A
test checks that both give equal losses and gradients (tests/training/fast/test_loss.py).
"""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.data.batches import Batch, to_device
from glassformer.model.transformer import Transformer

__all__ = ["projected_cross_entropy", "projected_losses"]

# Rows of logits in one chunk: 256 rows of 8,000 words stay in a CPU's cache. If products are much
# faster, adding up the weight's gradient after each chunk costs more than the cache saves.
CHUNK_ROWS = 256
LARGE_CHUNK_ROWS = 2048


def projected_losses(
    model: Transformer, batch: Batch, *, smoothing: float
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """The sums over the target tokens of the smoothed loss and of the unsmoothed loss.

    The function computes no logits of padding. It counts the real labels of the batch on the host,
    which would have to wait for a GPU's count.
    """
    labels = batch.labels.flatten()
    real = (labels != model.config.pad_id).nonzero()[:, 0]
    on_host = [batch.source, batch.target, real, labels[real]]
    source, target, real, labels = to_device(on_host, model.output_weight.device)
    states = model.decode(target, model.encode(source)).flatten(0, 1)
    return projected_cross_entropy(
        states.index_select(0, real),
        model.output_weight,
        model.output_bias,
        labels,
        smoothing=smoothing,
    )


def projected_cross_entropy(
    states: Float[Tensor, "rows d_model"],
    weight: Float[Tensor, "vocab d_model"],
    bias: Float[Tensor, " vocab"] | None,
    labels: Int[Tensor, " rows"],
    *,
    smoothing: float = 0.1,
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    r"""The row sums of the smoothed and of the unsmoothed loss of ``states @ weight.T + bias``.

    The unsmoothed loss carries no gradient. Rows with a negative label count nothing; the caller
    leaves padding out, or makes its labels negative to keep the number of rows. The products have
    the type of ``states``; wider ``weight`` and ``bias`` get wider gradients.

    >>> states, weight = torch.ones(3, 2), torch.zeros(5, 2)
    >>> loss, plain = projected_cross_entropy(states, weight, None, torch.tensor([1, 2, 3]))
    >>> round(loss.item(), 4), round(plain.item(), 4)
    (4.8283, 4.8283)
    """
    if not torch.is_grad_enabled():
        return _sums_and_gradients((states, weight, bias), labels, smoothing, wanted=False)[0]
    apply: Any = _ProjectedCrossEntropy.apply  # torch leaves it untyped
    return apply(states, weight, bias, labels, smoothing)


class _ProjectedCrossEntropy(torch.autograd.Function):
    r"""The gradient of a row's loss by its logits is ``softmax - (1-ε) onehot - ε/V``.

    Each chunk's logits ``z`` become ``e = exp(z - max)`` in place, once. The softmax is then
    ``e / sum(e)``; instead of ``e``, small matrices beside ``e`` take the factor ``1 / sum(e)``.
    The one-hot part and the uniform part need a few vectors, and no matrix of the logits' size.
    """

    @staticmethod
    def forward(
        ctx: Any,
        states: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        labels: Tensor,
        smoothing: float,
    ) -> tuple[Tensor, Tensor]:
        inputs, wanted = (states, weight, bias), any(ctx.needs_input_grad)
        sums, gradients = _sums_and_gradients(inputs, labels, smoothing, wanted=wanted)
        kinds = (states, weight, gradients[2] if bias is None else bias)
        ctx.save_for_backward(*(g.to(k.dtype) for g, k in zip(gradients, kinds, strict=True)))
        ctx.has_bias = bias is not None
        ctx.mark_non_differentiable(sums[1])
        return sums

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        scale = upstream[0]
        states_gradient, weight_gradient, bias_gradient = ctx.saved_tensors
        return (
            states_gradient * scale,
            weight_gradient * scale,
            bias_gradient * scale if ctx.has_bias else None,
            *(None, None),  # labels, smoothing
        )


def _sums_and_gradients(
    inputs: tuple[Tensor, Tensor, Tensor | None], labels: Tensor, smoothing: float, *, wanted: bool
) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor, Tensor]]:
    """Both losses, and the gradients of the smoothed loss (zeros unless ``wanted``)."""
    states, weight, bias = inputs
    weight = weight.to(states.dtype)
    bias = None if bias is None else bias.to(states.dtype)
    vocab, rows = weight.size(0), labels.size(0)
    certain, uniform = 1.0 - smoothing, smoothing / vocab
    # Of the sums: over chunks, sums in bfloat16 would lose small addends.
    wide = torch.promote_types(states.dtype, torch.float32)
    skipped, labels = labels < 0, labels.clamp(min=0)
    states = states.masked_fill(skipped[:, None], 0.0)  # adds nothing to the weight's gradient
    weight_sum = weight.sum(dim=0)  # gives the mean logit without a pass over the logits
    bias_mean = bias.mean() if bias is not None else 0.0
    states_gradient = torch.zeros_like(states)
    weight_gradient = torch.zeros_like(weight, dtype=wide)
    bias_gradient = states.new_zeros(vocab, dtype=wide)
    loss, plain = states.new_zeros(2, dtype=wide).unbind()
    plain_cpu = states.device.type == "cpu" and states.dtype == wide
    size = CHUNK_ROWS if plain_cpu else LARGE_CHUNK_ROWS
    buffer = states.new_empty(min(size, rows), vocab)

    parts = (each.split(size) for each in (states, labels, skipped, states_gradient))
    for chunk, label, skip, gradient in zip(*parts, strict=True):
        logits = torch.mm(chunk, weight.t(), out=buffer[: label.size(0)])
        if bias is not None:
            logits += bias
        of_label = logits.gather(1, label[:, None])[:, 0].to(wide)
        highest = logits.amax(dim=1, keepdim=True)
        exponentials = logits.sub_(highest).exp_()
        # torch adds in float32, then rounds; rounded to float16, a large sum would be infinite.
        sum_type = wide if states.dtype == torch.float16 else None
        sums = exponentials.sum(dim=1, keepdim=True, dtype=sum_type).to(wide)
        log_sums = (sums.log() + highest)[:, 0]
        plain += (log_sums - of_label).masked_fill(skip, 0.0).sum()
        smoothed = log_sums - certain * of_label
        if smoothing:  # a bias of -inf gives an infinite mean, and 0 times infinity is NaN
            smoothed -= smoothing * ((chunk @ weight_sum).to(wide) / vocab + bias_mean)
        loss += smoothed.masked_fill(skip, 0.0).sum()

        if not wanted:
            continue
        inverse = sums.reciprocal().masked_fill(skip[:, None], 0.0).to(states.dtype)
        torch.mm(exponentials, weight, out=gradient).mul_(inverse)
        gradient.sub_(weight[label], alpha=certain).sub_(weight_sum, alpha=uniform)
        _add_product(weight_gradient, exponentials.t(), chunk * inverse)
        if bias is not None:
            bias_gradient += (exponentials.t() @ inverse)[:, 0]

    if not wanted:
        return (loss, plain), (states_gradient, weight_gradient, bias_gradient)
    states_gradient.masked_fill_(skipped[:, None], 0.0)
    weight_gradient.index_add_(0, labels, states.to(wide), alpha=-certain)
    weight_gradient.sub_(states.sum(dim=0, dtype=wide), alpha=uniform)
    if bias is not None:
        counted = (~skipped).to(wide)
        bias_gradient.index_add_(0, labels, counted, alpha=-certain)
        bias_gradient -= uniform * counted.sum()
    return (loss, plain), (states_gradient, weight_gradient, bias_gradient)


def _add_product(total: Tensor, left: Tensor, right: Tensor) -> None:
    """Do ``total += left @ right``, without a matrix in between if the types are equal."""
    if total.dtype == left.dtype:
        total.addmm_(left, right)
    else:
        total += left @ right
