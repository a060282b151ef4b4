"""The Transformer of *Attention Is All You Need*: to read, to draw, and to train with.

The names by what you want to do; ``help(glassformer.train)`` says more of one name:

    translate                 Translator, Translation
    train a translator        train, TrainConfig
    score translations        evaluate, corpus_scores
    align words               pharaoh, alignment_error_rate
    attend                    scaled_dot_product_attention, MultiHeadAttention, masked_softmax
    hide positions            padding_mask, subsequent_mask, target_mask
    embed tokens              ScaledEmbedding, PositionalEncoding, sinusoidal_positions
    build blocks              FeedForward, ResidualBlock, EncoderBlock, DecoderBlock
    build a whole model       Encoder, Decoder, Transformer, ModelConfig, presets, Memory
    give your own parts       Parts, PLAIN, FAST, fused_attention
    write your own loop       label_smoothed_cross_entropy, noam_schedule, token_accuracy
    search for a target       greedy, beam_search, sample, Sampling, OutputRules
    turn text into ids        train_tokenizer, Tokenizer, pad_rows, read_vectors
    look inside a model       capture, figure1, attention_shapes, Table
    trace a translation       trace, Query, Changes, Head, ablated
    draw tensors              plot_mask, plot_attention, plot_positions, plot_similarity
    draw figure 2 and rates   plot_figure2, plot_schedule

``__init__.pyi`` names the module of each name.
"""

import ast
import sys
from importlib import import_module
from opcode import opname
from pathlib import Path
from traceback import walk_stack
from typing import Any

from glassformer.support.errors import nearest
from glassformer.support.other_names import remedy

__version__ = "0.1.0"

_TABLE = ast.parse(Path(__file__).with_suffix(".pyi").read_text("utf-8"))
_HOMES = {
    alias.name: str(statement.module)
    for statement in _TABLE.body
    if isinstance(statement, ast.ImportFrom)
    for alias in statement.names
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: torch loads in seconds, ``--help`` without it."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    hint = "" if name.startswith("_") else remedy(name, ()) or nearest(name, _HOMES)
    # `from glassformer import X` replaces the message of an AttributeError by its own.
    caller = sys._getframe(1)
    if opname[caller.f_code.co_code[caller.f_lasti]] == "IMPORT_FROM":
        raise ImportError(f"cannot import {name!r} from 'glassformer'{hint}", name=__name__)
    raise AttributeError(f"module 'glassformer' has no attribute {name!r}{hint}")


def __dir__() -> list[str]:
    """The public names; none for ``help``, whose pages of them would hide the table above."""
    askers = (frame.f_globals.get("__name__") for frame, _ in walk_stack(sys._getframe()))
    return [] if "pydoc" in askers else __all__
