"""The forms of a model's parts, which take their settings from a configuration.

The paper's model needs no more than :data:`PAPER`. Each departure comes from a later model: BART,
Marian, M2M-100. The defaults of :class:`ModelConfig` follow the paper.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from typing import Any, TypeVar

from jaxtyping import Float
from torch import Tensor, nn

from glassformer.config import ModelConfig, Norm
from glassformer.model.attention import (
    Attention,
    MultiHeadAttention,
    scaled_dot_product_attention,
)
from glassformer.model.blocks import FeedForward, ResidualBlock
from glassformer.model.positions import PositionalEncoding
from glassformer.support.displays import shown_form
from glassformer.support.errors import UsageError

__all__ = ["PAPER", "ModelParts", "NormedPositions", "check_record", "configured", "joined"]

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class ModelParts:
    """The forms that a model is built from, functions or classes; the defaults are plain.

    Your own form takes the arguments of the default form. ``dropout`` makes a layer from the share
    to drop, ``norm`` makes a layer from its width. ``attention`` computes equation 1.
    :class:`glassformer.parts.Parts` adds the forms of decoding and training.

    >>> from dataclasses import replace
    >>> import torch
    >>> from glassformer.model.encoder import EncoderBlock
    >>> block = EncoderBlock(8, 2, 32, parts=replace(PAPER, norm=nn.RMSNorm))
    >>> block(torch.zeros(3, 5, 8)).shape, block.self_attention.norm
    (torch.Size([3, 5, 8]), RMSNorm((8,), eps=None, elementwise_affine=True))
    """

    attention: Attention = scaled_dot_product_attention
    dropout: Callable[[float], nn.Module] = nn.Dropout
    norm: Callable[..., nn.Module] = nn.LayerNorm
    positions: Callable[..., nn.Module] = PositionalEncoding
    self_attention: Callable[..., MultiHeadAttention] = MultiHeadAttention
    cross_attention: Callable[..., MultiHeadAttention] = MultiHeadAttention
    feed_forward: Callable[..., nn.Module] = FeedForward
    residual: Callable[..., ResidualBlock[Any]] = ResidualBlock

    def __repr__(self) -> str:
        forms = {field.name: shown_form(getattr(self, field.name)) for field in fields(self)}
        return f"{type(self).__name__}({', '.join(map('='.join, forms.items()))})"


PAPER = ModelParts()
"""The paper's forms, each in its readable version."""


class NormedPositions(nn.Module):
    """Positional encoding followed by a LayerNorm, as BART's ``layernorm_embedding``."""

    def __init__(self, positions: nn.Module, norm: nn.Module, dropout: nn.Module) -> None:
        super().__init__()
        self.positions = positions
        self.norm = norm
        self.dropout = dropout

    def forward(
        self, embedded: Float[Tensor, "batch len d_model"], *, start: int = 0
    ) -> Float[Tensor, "batch len d_model"]:
        return self.dropout(self.norm(self.positions(embedded, start=start)))


def check_record(parts: object) -> None:
    """Raise UsageError unless ``parts`` is a record of parts."""
    if isinstance(parts, type) or not is_dataclass(parts):
        kind = type(parts).__name__
        raise UsageError(f"parts is a {kind}: expected Parts, as in replace(PLAIN, attention=mine)")


def joined(parts: ModelParts, *, dropout: float, norm: Norm) -> ModelParts:
    """The forms of a block; each gets the forms that it contains, such as its norm."""
    check_record(parts)
    return replace(
        parts,
        self_attention=_with(parts.self_attention, attention=parts.attention),
        cross_attention=_with(parts.cross_attention, attention=parts.attention),
        feed_forward=_with(parts.feed_forward, new_dropout=parts.dropout),
        residual=_with(
            parts.residual,
            dropout=dropout,
            norm=norm,
            new_norm=parts.norm,
            new_dropout=parts.dropout,
        ),
    )


def configured(parts: ModelParts, config: ModelConfig) -> ModelParts:
    """The forms, each bound to its settings in ``config``."""
    check_record(parts)
    norm = _with(parts.norm, eps=config.norm_epsilon)
    positions = _with(
        parts.positions,
        dropout=0.0 if config.embedding_norm else config.dropout,
        kind=config.positions,
        new_dropout=parts.dropout,
        layout=config.position_layout,
        frequencies=config.position_frequencies,
        offset=config.position_offset,
    )

    def normed(d_model: int, **options: int) -> NormedPositions:
        encoding = positions(d_model, **options)
        return NormedPositions(encoding, norm(d_model), parts.dropout(config.dropout))

    return replace(
        parts,
        norm=norm,
        positions=normed if config.embedding_norm else positions,
        self_attention=_with(parts.self_attention, dropout=config.attention_dropout),
        cross_attention=_with(parts.cross_attention, dropout=config.attention_dropout),
        feed_forward=_with(
            parts.feed_forward,
            dropout=config.activation_dropout,
            activation=config.activation,
        ),
    )


def _with(form: Callable[..., T], **settings: object) -> Callable[..., T]:
    """The form with these settings, unless it is a ``partial`` that has others already."""
    own = form.keywords if isinstance(form, partial) else {}
    return partial(form, **(settings | own))
