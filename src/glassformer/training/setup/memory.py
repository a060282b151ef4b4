"""The memory of a training, estimated for a CPU in float32 (docs/measurements.md)."""

import sys

from glassformer.model.transformer import Transformer
from glassformer.parts import FAST
from glassformer.support.tensors import unfilled
from glassformer.training.setup.options import TrainConfig
from glassformer.training.setup.recipe import model_config

__all__ = ["memory_needed", "tokens_that_fit"]

# Bytes of a process, of a weight in an update (weight, gradient, Adam's moments, the loss), of a
# weight with a validation's decoder, of each further share's gradient of a weight, and of each
# number of width that a layer keeps of a token.
_PROCESS, _UPDATED, _VALIDATED, _SHARED, _KEPT = 350e6, 18, 24, 4, 96


def memory_needed(model: Transformer, config: TrainConfig, shares: int) -> str:
    """A line about the greatest memory of a training, and about what would lower it."""
    settings, tokens = model.config, config.batch_tokens or 0
    weights = sum(weight.numel() for weight in model.parameters())
    tables = {model.source_embedding.weight, model.target_embedding.weight, model.output_weight}
    embedded = sum(table.numel() for table in tables)
    layers = (settings.num_encoder_layers + settings.num_decoder_layers) / 2
    batch = _KEPT * settings.d_model * layers * tokens
    updated = _UPDATED + _SHARED * max(0, shares - 1)
    size = max(_VALIDATED * weights, updated * weights + batch) + _PROCESS
    lower = [f"a smaller {'parent' if config.parent else 'model'}"]
    if batch > size / 4:
        lower.insert(0, f"batch_tokens below {tokens:,}")
    if config.parent and not config.trim_vocabulary and 4 * embedded > weights:
        lower.insert(0, "trim_vocabulary")
    return f"memory: about {size / 1e9:.1f} GB; less with {', or '.join(lower)}"


def tokens_that_fit(settled: TrainConfig, memory: int) -> int:
    """The tokens of a batch that ``memory`` bytes hold in training; no limit if ``memory`` is 0."""
    if not memory:
        return sys.maxsize
    words = settled.vocab_size or 1
    model = model_config(settled, {"source_vocab_size": words, "target_vocab_size": words})
    weights = sum(weight.numel() for weight in unfilled(lambda: FAST.build(model)).parameters())
    layers = (model.num_encoder_layers + model.num_decoder_layers) / 2
    return max(16, int((memory - _UPDATED * weights) / (_KEPT * model.d_model * layers)))
