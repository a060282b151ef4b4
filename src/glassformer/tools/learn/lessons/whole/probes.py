"""Probes of the parts put together: embeddings, masks, towers, projection."""

from typing import Any

import torch

from glassformer import ModelConfig, Transformer
from glassformer.model.cache import Memory
from glassformer.tools.learn.check import Check, Solution
from glassformer.tools.learn.inputs import filled, numbers
from glassformer.tools.learn.situations import NONE, PADDING, Situation, situations

PAD = 4
CONFIG = ModelConfig(
    source_vocab_size=19,
    target_vocab_size=17,
    d_model=6,
    num_heads=3,
    d_ff=11,
    num_encoder_layers=1,
    num_decoder_layers=1,
    dropout=0.0,
    pad_id=PAD,
    max_length=1024,
)


def one_source(solution: Solution) -> dict[str, Any]:
    """source [[5, 6, 3]], pad_id 4, random weights"""
    return _memory(_model(solution).encode(torch.tensor([[5, 6, 3]])))


def one_target(solution: Solution) -> dict[str, Any]:
    """target [[2, 7]], a memory of three words, random weights"""
    memory = Memory(numbers(1, 3, 6, name="memory"), torch.ones(1, 1, 1, 3, dtype=torch.bool))
    return {"states": _model(solution).decode(torch.tensor([[2, 7]]), memory)}


def encoded(solution: Solution, s: Situation) -> dict[str, Any]:
    model = s.module(lambda: solution.Transformer(CONFIG))
    source = s.tokens("source", s.src_len, 19, PAD)
    return _memory(model.encode(source, **_given(s, "source_mask")))


def decoded(solution: Solution, s: Situation) -> dict[str, Any]:
    model = s.module(lambda: solution.Transformer(CONFIG))
    memory = Memory(
        s.numbers("memory", s.batch, s.src_len, 6),
        *s.mask(s.tgt_len, s.src_len, "hides the end"),  # type: ignore[arg-type]
    )
    target = s.tokens("target", s.tgt_len, 17, PAD)
    return {"states": model.decode(target, memory, **_given(s, "target_mask"))}


def called(solution: Solution, s: Situation) -> dict[str, Any]:
    methods = {"encode": Transformer.encode, "decode": Transformer.decode}
    model = s.module(lambda: type("Whole", (solution.Transformer,), methods)(CONFIG))
    tokens = s.tokens("source", s.src_len, 19, PAD), s.tokens("target", s.tgt_len, 17, PAD)
    return {"logits": model(*tokens, **_given(s, "source_mask"), **_given(s, "target_mask"))}


def _given(s: Situation, name: str) -> dict[str, Any]:
    """A mask that the caller gives, by its name, or nothing."""
    q_len, k_len = (1, s.src_len) if name == "source_mask" else (s.tgt_len, s.tgt_len)
    kind = "hides the begin" if name == "source_mask" else "random"
    return {name: s.mask(q_len, k_len, kind)[0]} if name in s.masks else {}


def one_pair(solution: Solution) -> dict[str, Any]:
    """source [[5, 6, 3]], target [[2, 7, 8]], random weights"""
    return {"logits": _whole(solution)(torch.tensor([[5, 6, 3]]), torch.tensor([[2, 7, 8]]))}


def _model(solution: Solution) -> Any:
    return filled(solution.Transformer(CONFIG))


def _whole(solution: Solution) -> Any:
    """A model with the solution's forward, and with the package's encode and decode."""
    methods = {"encode": Transformer.encode, "decode": Transformer.decode}
    return filled(type("Whole", (solution.Transformer,), methods)(CONFIG))


def _memory(memory: object) -> dict[str, Any]:
    """The two values of a memory."""
    if not isinstance(memory, Memory):
        raise TypeError(f"encode returns {type(memory).__name__}; expected Memory(states, mask)")
    return {"states": memory.states, "mask": memory.mask}


TOWER: dict[str, Any] = {"type": ("float64",), "layout": NONE}
OF_SOURCE: dict[str, Any] = {
    "src_len": (7, 1),
    "padding": PADDING,
    "masks": ("", "a source_mask"),
}
OF_TARGET: dict[str, Any] = {
    "tgt_len": (5, 1),
    "padding": PADDING,
    "masks": ("", "a target_mask"),
}
BOTH = {"masks": ("", "a source_mask", "a target_mask", "a source_mask, a target_mask")}
CHECK = Check(
    probes={
        "Transformer.encode": (
            one_source,
            *situations("source", encoded, **TOWER, **OF_SOURCE),
        ),
        "Transformer.decode": (
            one_target,
            *situations("target and memory", decoded, **TOWER, src_len=(7, 1, 5), **OF_TARGET),
        ),
        "Transformer.forward": (
            one_pair,
            *situations("source and target", called, **TOWER, **(OF_SOURCE | OF_TARGET | BOTH)),
        ),
    },
)
