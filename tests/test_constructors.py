"""A wrong argument of any public part, or of its settings, is refused in a line that names it."""

import inspect

import pytest
import torch
from torch import nn

import glassformer
from glassformer import (
    DecoderBlock,
    EncoderBlock,
    FeedForward,
    ModelConfig,
    noam_schedule,
    sinusoidal_positions,
)
from glassformer.config import Options
from glassformer.decoding.sampling import Sampling
from glassformer.model.forms import ModelParts
from glassformer.model.positions import TableOptions
from tests.tables import every

BLOCK = {"d_model": 8, "num_heads": 2, "d_ff": 16}
SIZES = {"source_vocab_size": 9, "target_vocab_size": 9}
RIGHT = {
    "MultiHeadAttention": {"d_model": 8, "num_heads": 2},
    "FeedForward": {"d_model": 8, "d_ff": 16},
    "ResidualBlock": {"sublayer": FeedForward(8, 16), "d_model": 8},
    "EncoderBlock": BLOCK,
    "DecoderBlock": BLOCK,
    "Encoder": {"blocks": [EncoderBlock(**BLOCK)]},
    "Decoder": {"blocks": [DecoderBlock(**BLOCK)]},
    "PositionalEncoding": {"d_model": 8},
    "ScaledEmbedding": {"vocab_size": 9, "d_model": 8},
    "Transformer": {"config": ModelConfig(**SIZES, **BLOCK, num_encoder_layers=1)},
    "ModelConfig": SIZES,
    "TrainConfig": {"pairs": ("a", "b"), "run": "run"},
    "Parts": {},
}
ODD = object()
VALUES = (ODD, "x", -1, 2.5, float("nan"), 10**30, None, (), [], {}, torch.ones(2, 3), nn.Tanh())


def parameters():
    """Each public part or record of settings, with each parameter and its type."""
    for name in glassformer.__all__:
        made = getattr(glassformer, name)
        if inspect.isclass(made) and issubclass(made, nn.Module | ModelParts | Options):
            for key, parameter in inspect.signature(made).parameters.items():
                if parameter.kind is not parameter.VAR_KEYWORD:
                    yield name, key, parameter.annotation
                else:
                    yield from ((name, *option) for option in TableOptions.__annotations__.items())


@pytest.mark.usefixtures("own_messages")
@every(("name", "key", "kind"), [*parameters()])
def test_a_wrong_argument_is_named(name, key, kind):
    make, right = getattr(glassformer, name), RIGHT[name]
    make(**right)
    taken = []
    for value in VALUES:
        try:
            make(**right | {key: value})
        except (TypeError, ValueError) as error:
            line = str(error)
            assert key in line.replace("ModelConfig(", "config")
            assert "\n" not in line
            assert len(line) < 200
        else:
            taken.append(value)
    assert ODD not in taken
    if kind in (int, float) and issubclass(make, nn.Module):
        assert not taken


@pytest.mark.usefixtures("own_messages")
@every(
    ("call", "right", "keys"),
    [
        (Sampling, {}, ["temperature", "top_k", "top_p", "seed"]),
        (noam_schedule, {"update": 1, "d_model": 8}, ["update", "d_model", "warmup", "factor"]),
        (sinusoidal_positions, {"length": 3, "d_model": 8}, ["length", "offset"]),
    ],
)
def test_a_wrong_number_is_named(call, right, keys):
    for key in keys:
        for value in ("x", None, [], ODD):
            with pytest.raises((TypeError, ValueError), match=f"^{call.__name__} takes .*{key}"):
                call(**right | {key: value})
