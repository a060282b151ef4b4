"""The readable version of the loss, cross-entropy with label smoothing (section 5.4).

The fast version is :mod:`glassformer.training.fast.loss`.
"""

from collections.abc import Callable
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.config import check_arguments
from glassformer.data.batches import Batch
from glassformer.model.embeddings import check_ids
from glassformer.model.transformer import Transformer

__all__ = ["Losses", "batch_losses", "label_smoothed_cross_entropy", "token_accuracy"]


Losses = Callable[..., tuple[Tensor, Tensor]]
"""A function from a model and a batch in the CPU's memory to the sums of :func:`batch_losses`."""


def label_smoothed_cross_entropy(
    logits: Float[Tensor, "*batch vocab"],
    labels: Int[Tensor, "*batch"],
    *,
    smoothing: float = 0.1,
    pad_id: int = 0,
    reduction: Literal["mean", "sum"] = "mean",
) -> Float[Tensor, ""]:
    r"""Section 5.4: :math:`(1-\epsilon)(-\log p_{label}) + \epsilon\,\mathrm{mean}_v(-\log p_v)`.

    The function returns the mean (or sum) in nats over the labels that are not ``pad_id``, or zero
    without such labels. As in Szegedy et al. 2016, :math:`\epsilon` goes to the whole vocabulary,
    the label included.

    >>> logits = torch.zeros(1, 2, 4)
    >>> round(label_smoothed_cross_entropy(logits, torch.tensor([[3, 0]])).item(), 4)
    1.3863
    """
    check_arguments("label_smoothed_cross_entropy", smoothing=smoothing)
    if reduction not in ("mean", "sum"):
        raise ValueError(f"reduction {reduction!r}: expected 'mean' or 'sum'")
    _check_labels(logits, labels, pad_id)
    real = labels != pad_id
    wide = torch.promote_types(logits.dtype, torch.float32)
    log_probabilities = logits[real].to(wide).log_softmax(dim=-1)
    of_label = -log_probabilities.gather(-1, labels[real][:, None]).sum()
    of_all = -log_probabilities.mean(dim=-1).sum()  # infinite with a logit of -inf
    total = (1 - smoothing) * of_label + smoothing * of_all if smoothing else of_label
    return total / real.sum().clamp(min=1) if reduction == "mean" else total


def token_accuracy(
    logits: Float[Tensor, "*batch vocab"], labels: Int[Tensor, "*batch"], *, pad_id: int = 0
) -> float:
    """The share of the labels that have the highest logit; labels of ``pad_id`` do not count.

    Raises ValueError if no label counts, or if a logit is NaN.

    >>> logits = torch.tensor([[0.0, 0.1, 0.9], [0.0, 0.8, 0.2], [0.9, 0.0, 0.0]])
    >>> token_accuracy(logits, torch.tensor([2, 2, 0]))
    0.5
    """
    _check_labels(logits, labels, pad_id)
    real = labels != pad_id
    rows, ids = logits[real], labels[real]
    if not len(ids):
        raise ValueError(f"token_accuracy: each label is pad_id {pad_id}: give labels of tokens")
    if rows.isnan().any():
        raise ValueError("token_accuracy: a logit is NaN: look for NaN in the model's weights")
    return (rows.argmax(dim=-1) == ids).sum().item() / len(ids)


def _check_labels(logits: Tensor, labels: Tensor, pad_id: int) -> None:
    """Raise an error for logits and labels of unequal shapes, or labels outside the vocabulary."""
    if logits.shape[:-1] != labels.shape:
        raise ValueError(
            f"logits {tuple(logits.shape)} and labels {tuple(labels.shape)}: give labels of the"
            " logits' shape without its last axis, the vocabulary"
        )
    if labels.device.type == "cpu":  # on a GPU the check would wait for the device
        check_ids(labels[labels != pad_id], logits.size(-1), what="labels")


def batch_losses(
    model: Transformer, batch: Batch, *, smoothing: float
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """The sums over the target tokens of the smoothed loss and of the unsmoothed loss.

    The unsmoothed loss carries no gradient; the exponential of its mean is the perplexity.
    """
    batch = batch.to(model.output_weight.device)
    logits = model(batch.source, batch.target)
    pad_id = model.config.pad_id
    tokens = (batch.labels != pad_id).sum()
    loss, unsmoothed = (
        # tokens * mean = sum
        tokens * label_smoothed_cross_entropy(logits, batch.labels, smoothing=share, pad_id=pad_id)
        for share in (smoothing, 0.0)
    )
    return loss, unsmoothed.detach()
