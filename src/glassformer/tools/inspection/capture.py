"""Record every sublayer of a run, without a change of the model's code.

Inside the context each residual block reports the input, the sublayer's output and the sum. Each
attention runs in the plain form, which gives the weights. Outside, the model is as before. A search
runs the model's own forms if its parts are ``PLAIN``.
"""

import copy
import math
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeVar

from jaxtyping import Bool, Float
from torch import Tensor, nn

from glassformer.model.attention import observe
from glassformer.support.displays import Shown, Table
from glassformer.support.errors import check_kind, nearest
from glassformer.support.reading import reading

__all__ = ["Attended", "Call", "Capture", "Sublayer", "capture", "twin"]

M = TypeVar("M", bound=nn.Module)


@dataclass(frozen=True)
class Attended:
    """One run of an attention: projections by heads, mask, weights."""

    query: Float[Tensor, "batch heads q_len d_head"]
    key: Float[Tensor, "batch heads k_len d_head"]
    value: Float[Tensor, "batch heads k_len d_head"]
    mask: Bool[Tensor, "..."] | None
    weights: Float[Tensor, "batch heads q_len k_len"]

    @property
    def scores(self) -> Float[Tensor, "batch heads q_len k_len"]:
        r"""The scores before mask and softmax, :math:`QK^T/\sqrt{d_k}` (equation 1)."""
        return self.query @ self.key.transpose(-2, -1) / math.sqrt(self.query.size(-1))


@dataclass(frozen=True)
class Call:
    """The tensors, not copied, of one run of a sublayer in its residual block.

    ``input`` is the stream before the residual block, ``output`` the stream after it, residual
    connection and LayerNorm included. ``added`` is the sublayer's output before dropout.
    ``attended`` is None for a feed-forward network. ``text`` is the text of the rows, as the model
    reads it, if a translator runs the model: a row is a beam's hypothesis, best first.
    """

    input: Float[Tensor, "batch len d_model"]
    added: Float[Tensor, "batch len d_model"]
    output: Float[Tensor, "batch len d_model"]
    attended: Attended | None
    text: str | None = None


class Sublayer:
    """The ``calls`` of one sublayer, in order; the properties belong to the last call.

    A whole forward pass is one call. Decoding step by step makes one call a step.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.calls: list[Call] = []

    @property
    def input(self) -> Float[Tensor, "batch len d_model"]:
        return self._last.input

    @property
    def added(self) -> Float[Tensor, "batch len d_model"]:
        return self._last.added

    @property
    def output(self) -> Float[Tensor, "batch len d_model"]:
        return self._last.output

    @property
    def attended(self) -> Attended:
        attended = self._last.attended
        if attended is None:
            raise ValueError(f"{self.name} has no attention weights")
        return attended

    @property
    def weights(self) -> Float[Tensor, "batch heads q_len k_len"]:
        return self.attended.weights

    @property
    def _last(self) -> Call:
        if not self.calls:
            raise ValueError(f"{self.name} has not run inside the capture")
        return self.calls[-1]


class Capture(Shown, Mapping[str, Sublayer]):
    """Every sublayer of a model, by the path of its residual block, in the model's order.

    ``texts`` are the texts that a translator has read, in order, a segment each.
    """

    def __init__(self, names: list[str]) -> None:
        self._sublayers = {name: Sublayer(name) for name in names}
        self.texts: list[str] = []
        self.text: str | None = None  # now

    def read(self, text: str | None) -> None:
        """Note the text that the model reads from now on."""
        self.text = text
        self.texts += [text] if text is not None else []

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

    def records(self) -> Table:
        """Each sublayer with its number of calls, and the shape of the last attention."""
        shapes = {name: tuple(weights.shape) for name, weights in self.attention_maps()}
        return Table(
            {"sublayer": name, "calls": len(each.calls), "weights": shapes.get(name)}
            for name, each in self.items()
        )

    def attention_maps(self) -> Iterator[tuple[str, Float[Tensor, "batch heads q_len k_len"]]]:
        """Name and weights (of the last call) of each attention that ran, in the model's order."""
        for name, sublayer in self._sublayers.items():
            if sublayer.calls and sublayer.calls[-1].attended is not None:
                yield name, sublayer.weights


@contextmanager
def capture(model: nn.Module) -> Iterator[Capture]:
    """Record each sublayer of each run of ``model`` while the context is open.

    The model's outputs stay equal, up to rounding. If training drops attention weights, the context
    records the weights before dropout. Tensors keep the graph of gradients, unless you wrap the run
    in ``torch.no_grad()``.

    A translator gives the model one segment (a line or a sentence) after another, in the order of
    the texts. So all rows of a call are of one text, ``call.text``.

    One capture of a model can be open at a time; if other threads use the model, capture a
    :func:`twin`. A context in which no sublayer ran ends in a RuntimeError.

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
    check_kind(model, nn.Module, wants="capture takes a model, such as translator.model")
    residuals = {
        name: module for name, module in model.named_modules() if "sublayer" in module._modules
    }
    if not residuals:
        raise ValueError(
            f"{type(model).__name__} has no residual block, so nothing can be captured; for a"
            " single attention, call with_weights(query, key, value, mask)"
        )
    if any("add" in vars(residual) for residual in residuals.values()):
        raise RuntimeError("a capture of this model is open already: use the open capture")
    seen = Capture(list(residuals))
    with ExitStack() as undo:
        for name, residual in residuals.items():
            undo.enter_context(_recorded(residual, seen, seen[name].calls))
        undo.callback(reading.reset, reading.set(seen.read))
        yield seen
    if not any(sublayer.calls for sublayer in seen.values()):
        raise RuntimeError(
            "capture saw no run of this model: if a translator runs it, load that with plain parts:"
            " Translator.load(directory, parts=glassformer.PLAIN)"
        )


def twin(model: M) -> M:
    """A copy of the modules of ``model`` on shared weights, so that hooks stay in the copy.

    A twin takes hardly any memory, and a change of the weights shows in both models.

    >>> original = nn.Linear(2, 3)
    >>> other = twin(original)
    >>> other is original, other.weight is original.weight
    (False, True)
    """
    shared = {id(tensor): tensor for tensor in chain(model.parameters(), model.buffers())}
    return copy.deepcopy(model, dict[int, Any](shared))


@contextmanager
def _recorded(residual: Any, seen: Capture, calls: list[Call]) -> Iterator[None]:
    """Record each call of one residual block until the context closes."""
    attended: list[Attended] = []  # the last run is the call's; an error ended earlier runs
    add, sublayer = residual.add, residual.sublayer
    attention = getattr(sublayer, "attention", None)

    def recorded(x: Tensor, output: Tensor) -> Tensor:
        after: Tensor = add(x, output)
        calls.append(Call(x, output, after, attended[-1] if attended else None, seen.text))
        attended.clear()
        return after

    residual.add = recorded  # shadows the method of the class
    if attention is not None:
        sublayer.attention = observe(attention, lambda *run: attended.append(Attended(*run)))
    try:
        yield
    finally:
        del residual.add
        if attention is not None:
            sublayer.attention = attention
