"""The Transformer of *Attention Is All You Need*: to read, to draw, and to train with.

The parts can be used alone (``from glassformer import MultiHeadAttention``); ``Translator`` and
``train`` are the practical face; the command ``glassformer`` has both. ``Parts`` are the forms that
they run: ``FAST``, ``PLAIN``, or some of one's own.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:  # what the table below does, said so that type checkers and editors see it
    from glassformer.config import ModelConfig, presets
    from glassformer.data.batches import pad_rows
    from glassformer.data.subword_training import train_tokenizer
    from glassformer.data.tokenizer import Tokenizer
    from glassformer.decoding.beam import beam_search
    from glassformer.decoding.greedy import greedy
    from glassformer.decoding.sampling import Sampling, sample
    from glassformer.evaluation import corpus_scores, evaluate
    from glassformer.inspection.capture import capture
    from glassformer.inspection.figure1 import figure1
    from glassformer.inspection.plots.attention import plot_attention_grid, plot_attention_head
    from glassformer.inspection.plots.figure2 import plot_figure2
    from glassformer.inspection.plots.masks import plot_masks
    from glassformer.inspection.plots.positions import plot_position_heatmap, plot_position_lines
    from glassformer.inspection.plots.schedule import plot_schedule
    from glassformer.inspection.trace.build import trace
    from glassformer.inspection.trace.schema import Changes, Head
    from glassformer.model.attention import (
        MultiHeadAttention,
        fused_attention,
        masked_softmax,
        scaled_dot_product_attention,
    )
    from glassformer.model.blocks import FeedForward, ResidualBlock
    from glassformer.model.cache import Memory
    from glassformer.model.decoder import Decoder, DecoderBlock
    from glassformer.model.embeddings import ScaledEmbedding
    from glassformer.model.encoder import Encoder, EncoderBlock
    from glassformer.model.masks import padding_mask, subsequent_mask, target_mask
    from glassformer.model.positions import PositionalEncoding, sinusoidal_positions
    from glassformer.model.transformer import Transformer
    from glassformer.parts import FAST, PLAIN, Parts
    from glassformer.training.loss import label_smoothed_cross_entropy, token_accuracy
    from glassformer.training.schedule import noam_schedule
    from glassformer.training.setup.options import TrainConfig
    from glassformer.training.train import train
    from glassformer.translator import Translation, Translator

__all__ = [
    "FAST",
    "PLAIN",
    "Changes",
    "Decoder",
    "DecoderBlock",
    "Encoder",
    "EncoderBlock",
    "FeedForward",
    "Head",
    "Memory",
    "ModelConfig",
    "MultiHeadAttention",
    "Parts",
    "PositionalEncoding",
    "ResidualBlock",
    "Sampling",
    "ScaledEmbedding",
    "Tokenizer",
    "TrainConfig",
    "Transformer",
    "Translation",
    "Translator",
    "beam_search",
    "capture",
    "corpus_scores",
    "evaluate",
    "figure1",
    "fused_attention",
    "greedy",
    "label_smoothed_cross_entropy",
    "masked_softmax",
    "noam_schedule",
    "pad_rows",
    "padding_mask",
    "plot_attention_grid",
    "plot_attention_head",
    "plot_figure2",
    "plot_masks",
    "plot_position_heatmap",
    "plot_position_lines",
    "plot_schedule",
    "presets",
    "sample",
    "scaled_dot_product_attention",
    "sinusoidal_positions",
    "subsequent_mask",
    "target_mask",
    "token_accuracy",
    "trace",
    "train",
    "train_tokenizer",
]

_HOMES = {
    "config": "ModelConfig presets",
    "data.batches": "pad_rows",
    "data.subword_training": "train_tokenizer",
    "data.tokenizer": "Tokenizer",
    "decoding.beam": "beam_search",
    "decoding.greedy": "greedy",
    "decoding.sampling": "Sampling sample",
    "evaluation": "corpus_scores evaluate",
    "inspection.capture": "capture",
    "inspection.figure1": "figure1",
    "inspection.plots.attention": "plot_attention_grid plot_attention_head",
    "inspection.plots.figure2": "plot_figure2",
    "inspection.plots.masks": "plot_masks",
    "inspection.plots.positions": "plot_position_heatmap plot_position_lines",
    "inspection.plots.schedule": "plot_schedule",
    "inspection.trace.build": "trace",
    "inspection.trace.schema": "Changes Head",
    "model.attention": "MultiHeadAttention fused_attention masked_softmax"
    " scaled_dot_product_attention",
    "model.blocks": "FeedForward ResidualBlock",
    "model.cache": "Memory",
    "model.decoder": "Decoder DecoderBlock",
    "model.embeddings": "ScaledEmbedding",
    "model.encoder": "Encoder EncoderBlock",
    "model.masks": "padding_mask subsequent_mask target_mask",
    "model.positions": "PositionalEncoding sinusoidal_positions",
    "model.transformer": "Transformer",
    "parts": "FAST PLAIN Parts",
    "training.loss": "label_smoothed_cross_entropy token_accuracy",
    "training.train": "train",
    "training.schedule": "noam_schedule",
    "training.setup.options": "TrainConfig",
    "translator": "Translation Translator",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: torch takes seconds, ``--help`` needs none."""
    for module, names in _HOMES.items():
        if name in names.split():
            return getattr(import_module(f"glassformer.{module}"), name)
    raise AttributeError(f"module 'glassformer' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
