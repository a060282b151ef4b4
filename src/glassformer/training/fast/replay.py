"""The gradient of a packed batch as one captured CUDA graph.

An update launches over a thousand small kernels, and the GPU often waits for the next launch. A
graph launches all of them at once. Its shapes, addresses and numbers are fixed, and it may not wait
for the device; packed batches allow both. The optimiser's step stays outside, because the quick
decoder counts steps by a hook. The readable version is ``Learner.backward``; a test checks that
both give equal gradients (tests/training/fast/test_replay.py, and tests/test_cuda.py on a GPU).
"""

from collections.abc import Callable, Iterable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.data.batches import Batch
from glassformer.model.transformer import Transformer

__all__ = ["CudaGraph", "ReplayedBackward"]

_EAGER_RUNS = 3  # before a capture, in which kernels and libraries prepare themselves


class CudaGraph:
    """A CUDA graph, whose work first runs and is then captured on a stream of its own."""

    def __init__(self) -> None:
        self._graph, self._stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
        self.replay = self._graph.replay

    def run(self, work: Callable[[], None]) -> None:
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            work()
        torch.cuda.current_stream().wait_stream(self._stream)

    def capture(self, work: Callable[[], None]) -> None:
        """Note the kernels of ``work``, of which none runs."""
        mode = "thread_local"  # NCCL has a thread that calls CUDA meanwhile
        with torch.cuda.graph(self._graph, stream=self._stream, capture_error_mode=mode):
            work()


class ReplayedBackward:
    """Does what ``backward`` does for the ``weights``, with batches of one shape.

    The graph reads each batch from the memory of the first, and writes into fixed memory.
    """

    def __init__(
        self,
        backward: Callable[..., Tensor],
        weights: Iterable[Tensor],
        new_graph: Callable[[], CudaGraph] = CudaGraph,
    ) -> None:
        self._backward, self._weights, self._graph = backward, list(weights), new_graph()
        self._batch: Batch | None = None
        self._target_tokens = self._losses = torch.empty(0)
        self._gradients: list[Tensor] = []  # of the weights that get one

    def __call__(
        self, model: Transformer, batches: Sequence[Batch], *, target_tokens: int
    ) -> Float[Tensor, " 2"]:
        """Give the weights the sums of the batches' gradients; return both losses."""
        device = model.output_weight.device
        own = [batch.to(device) for batch in batches if batch.labels.size(0)]  # of this rank
        losses, sums = torch.zeros(2, device=device), list[Tensor]()
        for batch in own:
            if self._batch is None:
                self._capture(model, batch)
            else:
                old, new = ([*each.tensors.values()] for each in (self._batch, batch))
                torch._foreach_copy_(old, new)
            self._target_tokens.fill_(target_tokens)
            self._graph.replay()
            losses += self._losses
            if sums:
                torch._foreach_add_(sums, self._gradients)
            else:
                sums = [g.clone() for g in self._gradients] if len(own) > 1 else self._gradients
        for weight, gradient in zip(self._weights if own else [], sums, strict=True):
            weight.grad = gradient
        return losses

    def _capture(self, model: Transformer, batch: Batch) -> None:
        device = model.output_weight.device
        self._batch, self._target_tokens = batch, torch.ones((), device=device)

        def work() -> None:
            for weight in self._weights:
                weight.grad = None
            self._losses = self._backward(model, [batch], target_tokens=self._target_tokens)

        # A resumed run captures at another update, and must draw equal random numbers.
        with torch.random.fork_rng([device] if device.type == "cuda" else []):
            for _ in range(_EAGER_RUNS):
                self._graph.run(work)
            self._graph.capture(work)
        self._weights = [weight for weight in self._weights if weight.grad is not None]
        self._gradients = [weight.grad for weight in self._weights if weight.grad is not None]
