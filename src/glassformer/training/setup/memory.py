"""The memory of a training, estimated for a CPU in float32 (docs/measurements.md)."""

from glassformer.model.transformer import Transformer
from glassformer.training.setup.options import TrainConfig

__all__ = ["memory_needed"]

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
