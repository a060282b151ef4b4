"""Look at every sublayer of a run, while the model knows nothing of it.

Inside the context each residual block reports what went in and came out, and each attention runs
by its explicit form (:func:`scaled_dot_product_attention`), which shows its weights. Outside, the
model is as it was: no flag, no hook, the fused kernel.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from glassformer.errors import nearest
from glassformer.model.attention import MultiHeadAttention, scaled_dot_product_attention
from glassformer.model.blocks import ResidualBlock

__all__ = ["Call", "Capture", "Sublayer", "capture"]


@dataclass(frozen=True)
class Call:
    """One run of a sublayer in its residual block; the tensors are the run's own, no copies.

    ``input`` is the stream that entered the residual block and ``output`` the stream that left
    it, residual connection and LayerNorm included. ``weights`` is None for a feed-forward.
    """

    input: Float[Tensor, "batch len d_model"]
    output: Float[Tensor, "batch len d_model"]
    weights: Float[Tensor, "batch heads q_len k_len"] | None


class Sublayer:
    """What one sublayer did: ``calls`` in order, and the last of them by its parts.

    A whole forward pass is one call. Decoding step by step is one call a step.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.calls: list[Call] = []

    @property
    def input(self) -> Float[Tensor, "batch len d_model"]:
        return self._last.input

    @property
    def output(self) -> Float[Tensor, "batch len d_model"]:
        return self._last.output

    @property
    def weights(self) -> Float[Tensor, "batch heads q_len k_len"]:
        weights = self._last.weights
        if weights is None:
            raise ValueError(f"{self.name} is no attention: it has no weights")
        return weights

    @property
    def _last(self) -> Call:
        if not self.calls:
            raise ValueError(f"{self.name} has not run inside the capture")
        return self.calls[-1]

    def __repr__(self) -> str:
        return f"Sublayer({self.name!r}, calls={len(self.calls)})"


class Capture(Mapping[str, Sublayer]):
    """Every sublayer of a model, by the path of its residual block, in the model's order."""

    def __init__(self, names: list[str]) -> None:
        self._sublayers = {name: Sublayer(name) for name in names}

    def __getitem__(self, name: str) -> Sublayer:
        try:
            return self._sublayers[name]
        except KeyError:
            hint = nearest(name, self._sublayers)
            raise KeyError(f"{name} is no sublayer of this model{hint}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._sublayers)

    def __len__(self) -> int:
        return len(self._sublayers)

    def attention_maps(self) -> Iterator[tuple[str, Float[Tensor, "batch heads q_len k_len"]]]:
        """Name and weights (of the last call) of each attention that ran, in the model's order."""
        for name, sublayer in self._sublayers.items():
            if sublayer.calls and sublayer.calls[-1].weights is not None:
                yield name, sublayer.weights


@contextmanager
def capture(model: nn.Module) -> Iterator[Capture]:
    """Record each sublayer of each run of ``model`` while the context is open.

    The outputs are those of the model alone, up to rounding. While training with dropout of the
    weights, the weights before dropout are recorded. Tensors keep their gradients' graph: wrap
    the run in ``torch.no_grad()`` where none is wanted. One capture at a time can be open.

    >>> import torch
    >>> from glassformer.model.encoder import Encoder, EncoderBlock
    >>> encoder = Encoder([EncoderBlock(8, 2, 32) for _ in range(2)])
    >>> with capture(encoder) as seen:
    ...     output = encoder(torch.randn(3, 5, 8))
    >>> seen["blocks.0.self_attention"].weights.shape
    torch.Size([3, 2, 5, 5])
    >>> torch.equal(seen["blocks.0.feed_forward"].output, seen["blocks.1.self_attention"].input)
    True
    """
    residuals = {
        name: module for name, module in model.named_modules() if isinstance(module, ResidualBlock)
    }
    if not residuals:
        raise ValueError(f"{type(model).__name__} has no residual block: nothing to capture")
    if any("attend" in vars(residual.sublayer) for residual in residuals.values()):
        raise RuntimeError("a capture of this model is open already: use that one")
    seen = Capture(list(residuals))
    with ExitStack() as undo:
        for name, residual in residuals.items():
            undo.enter_context(_watched(residual, seen[name].calls.append))
        yield seen


@contextmanager
def _watched(residual: ResidualBlock, record: Callable[[Call], None]) -> Iterator[None]:
    """Report each call of one residual block; as it was afterwards."""
    # The attention runs inside its residual block, so its weights are there before the hook.
    weights: list[Tensor] = []

    def report(_: nn.Module, arguments: tuple[Any, ...], output: Tensor) -> None:
        record(Call(arguments[0], output, weights.pop() if weights else None))
        weights.clear()

    hook = residual.register_forward_hook(report)
    own = vars(residual.sublayer)
    if isinstance(residual.sublayer, MultiHeadAttention):
        own["attend"] = _explicit(residual.sublayer, weights.append)  # shadows the class's method
    try:
        yield
    finally:
        hook.remove()
        own.pop("attend", None)


def _explicit(
    attention: MultiHeadAttention, keep: Callable[[Tensor], None]
) -> Callable[..., Tensor]:
    """:meth:`MultiHeadAttention.attend` by the explicit form, which hands out its weights."""

    def attend(query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None = None) -> Tensor:
        heads, weights = scaled_dot_product_attention(
            attention.split(attention.query(query)), keys, values, mask
        )
        keep(weights)
        if attention.training and attention.dropout:
            heads = F.dropout(weights, attention.dropout) @ values
        return attention.output(attention.merge(heads))

    return attend
