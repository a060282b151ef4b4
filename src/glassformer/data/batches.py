"""Batches by length: the plan of an epoch, and the tensors of a batch.

A batch is padded to its longest sentence, so sentences of similar length go together. A budget of
tokens limits a batch (section 5.1: "sentence pairs were batched together by approximate sequence
length"). The plan of an epoch is a function of lengths, budget, seed and epoch. The number of
processes does not change a plan, so two integers, epoch and batch, name a place in the data.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import torch
from jaxtyping import Int
from numpy.typing import NDArray
from torch import Tensor, nn

from glassformer.data.token_store import Packed, Sentences
from glassformer.support.reading import reading

__all__ = [
    "Batch",
    "Shift",
    "grouped_by_size",
    "make_batch",
    "pad_rows",
    "plan_batches",
    "shift",
    "to_device",
]

_LENGTHENED = 0.3  # share of the rows that count as one token longer, so that epochs differ


@dataclass(frozen=True)
class Batch:
    """The tensors of one step; ``tokens`` and ``target_tokens`` count end symbols, no padding.

    If the rows are the share of one process or thread, ``tokens`` and ``target_tokens`` still count
    the whole batch.
    """

    source: Int[Tensor, "batch src_len"]
    target: Int[Tensor, "batch tgt_len"]
    labels: Int[Tensor, "batch tgt_len"]
    tokens: int
    target_tokens: int

    @property
    def tensors(self) -> dict[str, Tensor]:
        return {name: value for name, value in vars(self).items() if isinstance(value, Tensor)}

    def to(self, device: torch.device | str) -> Self:
        """The batch on another device."""
        moved = to_device([*self.tensors.values()], device)
        changes: dict[str, Any] = dict(zip(self.tensors, moved, strict=True))
        return replace(self, **changes)

    def share(self, rows: slice) -> Self:
        """The batch's ``rows``, whose tokens still count the whole batch."""
        shared: dict[str, Any] = {name: tensor[rows] for name, tensor in self.tensors.items()}
        return replace(self, **shared)


def to_device(tensors: Sequence[Tensor], device: torch.device | str) -> list[Tensor]:
    """The tensors, all of one type, on ``device``.

    One copy takes all of them to a GPU, and does not wait for the GPU's work.
    """
    if tensors[0].device.type != "cpu" or torch.device(device).type != "cuda":
        return [tensor.to(device) for tensor in tensors]
    row = torch.cat([tensor.flatten() for tensor in tensors]).pin_memory()
    parts = row.to(device, non_blocking=True).split([tensor.numel() for tensor in tensors])
    return [part.view_as(tensor) for part, tensor in zip(parts, tensors, strict=True)]


def plan_batches(
    source_lengths: NDArray[np.integer],
    target_lengths: NDArray[np.integer],
    *,
    tokens: int,
    seed: int,
    epoch: int,
) -> list[NDArray[np.int64]]:
    """The rows of each batch of an epoch, in the order of training; every row is in one batch.

    A batch of ``rows`` sentences has ``rows * (longest source + longest target)`` tokens with
    padding, at most ``tokens``. A pair with more than ``tokens`` tokens is a batch of its own. The
    tokens include end symbols; ``source_lengths`` and ``target_lengths`` do not.

    >>> lengths = np.array([3, 9, 3, 9])
    >>> plan = plan_batches(lengths, lengths, tokens=40, seed=1, epoch=0)
    >>> sorted(sorted(rows.tolist()) for rows in plan)
    [[0, 2], [1, 3]]
    """
    source = np.asarray(source_lengths, dtype=np.int64) + 1
    target = np.asarray(target_lengths, dtype=np.int64) + 1
    generator = np.random.default_rng((seed, epoch))
    order = _by_length(source, target, generator)
    batches = _cut(order, source[order], target[order], tokens)
    return [batches[place] for place in generator.permutation(len(batches))]


def grouped_by_size(sizes: Sequence[int], budget: int) -> Iterator[list[int]]:
    """The indices of ``sizes`` in groups of similar size, the smallest first.

    The number of sizes in a group, times its largest size, is at most ``budget``. A size above
    ``budget`` is a group alone. While a capture is open, each index is a group alone, in order.

    >>> list(grouped_by_size([5, 2, 9, 3], 10))
    [[1, 3], [0], [2]]
    """
    if reading.get():
        yield from ([place] for place in range(len(sizes)))
        return
    group: list[int] = []
    for place in sorted(range(len(sizes)), key=sizes.__getitem__):
        if group and sizes[place] * (len(group) + 1) > budget:
            yield group
            group = []
        group.append(place)
    if group:
        yield group


def _by_length(
    source: NDArray[np.int64], target: NDArray[np.int64], generator: np.random.Generator
) -> NDArray[np.int64]:
    """Rows by source length, then by target length, with ties in random order.

    The target lengths rise under one source length and fall under the next. So no batch spans a
    jump from the longest target to the shortest. Random rows count as one token longer, so that
    the batches of two epochs differ. These rows cost about one percent of padding.
    """
    near_source = source + (generator.random(len(source)) < _LENGTHENED)
    near_target = target + generator.random(len(target))
    return np.lexsort((np.where(near_source % 2 == 0, near_target, -near_target), near_source))


def _cut(
    order: NDArray[np.int64], source: NDArray[np.int64], target: NDArray[np.int64], tokens: int
) -> list[NDArray[np.int64]]:
    """Cut the ordered rows into batches, each with as many rows as ``tokens`` allows."""
    batches = []
    start = 0
    while start < len(order):
        # A batch is at least as wide as its first row, so no more rows than this can fit.
        reach = slice(start, start + max(1, tokens // int(source[start] + target[start])))
        width = np.maximum.accumulate(source[reach]) + np.maximum.accumulate(target[reach])
        places = width * np.arange(1, len(width) + 1)  # of the first 1, 2, 3 … rows
        count = max(1, int(np.searchsorted(places, tokens, side="right")))
        batches.append(order[start : start + count])
        start += count
    return batches


def shift(labels: Int[Tensor, "batch tgt_len"], bos: int) -> Int[Tensor, "batch tgt_len"]:
    """The decoder's input: ``bos``, then all labels but the last (section 3.1).

    So at each position the decoder reads the tokens before the label of the position. Only this
    function shifts the target. In the example 1 is ``bos``, 2 is ``eos``, and 0 is padding:

    >>> labels = torch.tensor([[7, 8, 2], [9, 2, 0]])
    >>> shift(labels, bos=1).tolist()
    [[1, 7, 8], [1, 9, 2]]

    The end symbol of a shorter sentence is an input too. This input changes no loss: its label is
    padding, and no earlier position attends to the end symbol.
    """
    return torch.cat((torch.full_like(labels[:, :1], bos), labels[:, :-1]), dim=1)


Shift = Callable[[Tensor, int], Tensor]
"""A function from labels and the start symbol's id to the decoder's input, like :func:`shift`."""


def make_batch(
    packed: Packed,
    rows: NDArray[np.int64],
    share: slice = slice(None),
    *,
    backwards: bool = False,
    shift: Shift = shift,
) -> Batch:
    """The tensors of the given ``rows`` of a packed corpus, or of a ``share`` of ``rows``.

    ``backwards`` swaps source and target, which must have one vocabulary.

    For the target sentence ``[7, 8]`` the labels are ``[7, 8, eos]``; :func:`shift` makes the
    decoder's input from the labels.
    """
    rows = np.asarray(rows, dtype=np.int64)
    names = ("target", "source") if backwards else ("source", "target")
    sources, targets = (getattr(packed, name) for name in names)
    source_symbols, target_symbols = (packed.meta.symbols[name] for name in names)
    source_tokens, target_tokens = (
        int(side.lengths[rows].sum()) + len(rows) for side in (sources, targets)
    )
    labels = _ended(targets, rows[share], target_symbols)
    return Batch(
        source=_ended(sources, rows[share], source_symbols),
        target=shift(labels, target_symbols["bos"]),
        labels=labels,
        tokens=source_tokens + target_tokens,
        target_tokens=target_tokens,
    )


def _ended(
    side: Sentences, rows: NDArray[np.int64], symbols: Mapping[str, int]
) -> Int[Tensor, "batch len"]:
    """The sentences of the ``rows``, each with its end symbol, padded to one length."""
    ids, lengths = side.gather(rows)
    padded = np.full((len(rows), int(lengths.max(initial=0)) + 1), symbols["pad"], dtype=np.int64)
    padded[np.arange(padded.shape[1]) < lengths[:, None]] = ids
    padded[np.arange(len(rows)), lengths] = symbols["eos"]
    return torch.from_numpy(padded)


def pad_rows(rows: Sequence[Sequence[int]], pad: int) -> Int[Tensor, "batch len"]:
    """Rows of token ids as one tensor; ``pad`` fills up the shorter rows.

    >>> pad_rows([[5, 3], [7, 8, 3]], pad=0).tolist()
    [[5, 3, 0], [7, 8, 3]]
    """
    tensors = [torch.tensor(row) for row in rows]
    return nn.utils.rnn.pad_sequence(tensors, batch_first=True, padding_value=pad)
