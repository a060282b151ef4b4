"""From a configuration to the parts of a model that is not the paper's.

Each departure is from a later model: BART, Marian, M2M-100. The defaults of :class:`ModelConfig`
are the paper's.
"""

from collections.abc import Callable
from typing import Protocol

from jaxtyping import Float
from torch import Tensor, nn

from glassformer.config import ModelConfig
from glassformer.model.attention import Attention
from glassformer.model.blocks import BlockSettings
from glassformer.model.positions import PositionalEncoding

__all__ = ["ModelParts", "NormedPositions", "block_settings", "final_norm", "positions"]


class ModelParts(Protocol):
    """The forms that a model is built from: two fields of :class:`glassformer.parts.Parts`."""

    @property
    def attention(self) -> Attention: ...

    @property
    def dropout(self) -> Callable[[float], nn.Module]: ...


class NormedPositions(nn.Module):
    """Positional encoding followed by a LayerNorm, as BART's ``layernorm_embedding``."""

    def __init__(
        self, positions: PositionalEncoding, norm: nn.LayerNorm, dropout: nn.Module
    ) -> None:
        super().__init__()
        self.positions = positions
        self.norm = norm
        self.dropout = dropout

    def forward(
        self, embedded: Float[Tensor, "batch len d_model"], *, start: int = 0
    ) -> Float[Tensor, "batch len d_model"]:
        return self.dropout(self.norm(self.positions(embedded, start=start)))


def block_settings(config: ModelConfig, parts: ModelParts | None) -> BlockSettings:
    """The settings of each block; without ``parts`` the forms are the blocks' own."""
    settings: BlockSettings = {
        "dropout": config.dropout,
        "attention_dropout": config.attention_dropout,
        "activation_dropout": config.activation_dropout,
        "activation": config.activation,
        "norm": config.norm,
        "norm_epsilon": config.norm_epsilon,
    }
    if parts is not None:
        settings |= {"attention": parts.attention, "new_dropout": parts.dropout}
    return settings


def positions(config: ModelConfig, max_length: int, settings: BlockSettings) -> nn.Module:
    """Positions, then dropout; BART has a LayerNorm in between."""
    normed, new_dropout = config.embedding_norm, settings.get("new_dropout", nn.Dropout)
    encoding = PositionalEncoding(
        config.d_model,
        dropout=0.0 if normed else config.dropout,
        kind=config.positions,
        max_length=max_length,
        new_dropout=new_dropout,
        layout=config.position_layout,
        frequencies=config.position_frequencies,
        offset=config.position_offset,
    )
    if not normed:
        return encoding
    norm = nn.LayerNorm(config.d_model, eps=config.norm_epsilon)
    return NormedPositions(encoding, norm, new_dropout(config.dropout))


def final_norm(config: ModelConfig) -> nn.Module | None:
    """The LayerNorm at the end of a stack of pre-norm blocks."""
    return nn.LayerNorm(config.d_model, eps=config.norm_epsilon) if config.norm == "pre" else None
