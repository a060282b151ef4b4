"""Probes of the parts put together: embeddings, masks, towers, projection."""

from typing import Any

from glassformer import ModelConfig, Transformer
from glassformer.model.cache import Memory
from glassformer.tools.learn.check import Solution
from glassformer.tools.learn.holes import Hole, ids
from glassformer.tools.learn.situations import LEFT_OUT, NONE, PADDING, Situation

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


def model(solution: Solution, s: Situation) -> Any:
    return s.module(lambda: solution.Transformer(CONFIG))


def whole(solution: Solution, s: Situation) -> Any:
    """A model with the solution's forward, and with the package's encode and decode."""
    methods = {"encode": Transformer.encode, "decode": Transformer.decode}
    return s.module(lambda: type("Whole", (solution.Transformer,), methods)(CONFIG))


def memory(s: Situation, name: str) -> Memory:
    states = s.numbers(name, "batch", "src_len", 6)
    return Memory(states, s.mask(s.tgt_len, s.src_len, "hides the end"))


def source_mask(s: Situation, name: str) -> object:
    return s.mask(1, s.src_len, "hides the begin") if s.axes[name] else LEFT_OUT


def target_mask(s: Situation, name: str) -> object:
    return s.mask(s.tgt_len, s.tgt_len, "random") if s.axes[name] else LEFT_OUT


def parts(memory: object, _: Situation) -> dict[str, Any]:
    """The two values of a memory."""
    if not isinstance(memory, Memory):
        raise TypeError(f"encode returns {type(memory).__name__}; expected Memory(states, mask)")
    return {"states": memory.states, "mask": memory.mask}


SOURCE, TARGET = ids("src_len", 19, PAD), ids("tgt_len", 17, PAD)
MASKS = ("source_mask", "target_mask")
ENCODE = Hole(
    "Transformer.encode", parts, model, options=MASKS, source=SOURCE, source_mask=source_mask
)
DECODE = Hole(
    "Transformer.decode",
    "states",
    model,
    options=MASKS,
    target=TARGET,
    memory=memory,
    target_mask=target_mask,
)
FORWARD = Hole(
    "Transformer.forward",
    "logits",
    whole,
    options=MASKS,
    source=SOURCE,
    target=TARGET,
    source_mask=source_mask,
    target_mask=target_mask,
)
TOWER: dict[str, Any] = {"type": ("float64",), "strides": NONE, "padding": PADDING}
OF_SOURCE: dict[str, Any] = {"src_len": (7, 1), "source_mask": ("", "a source_mask")}
OF_TARGET: dict[str, Any] = {"tgt_len": (5, 1), "target_mask": ("", "a target_mask")}
PROBES = (
    ENCODE.probes(ENCODE.example(source=[[5, 6, 3]]), **TOWER, **OF_SOURCE),
    DECODE.probes(**TOWER, src_len=(7, 1, 5), **OF_TARGET),
    FORWARD.probes(
        FORWARD.example(source=[[5, 6, 3]], target=[[2, 7, 8]]),
        **TOWER,
        **OF_SOURCE,
        **OF_TARGET,
    ),
)
