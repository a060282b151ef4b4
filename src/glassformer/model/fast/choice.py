"""The choice between the plain decoder and its fast twin."""

from dataclasses import dataclass
from functools import cached_property

from glassformer.model.fast.decoder import PreparedTransformer
from glassformer.model.transformer import Transformer

__all__ = ["DecoderChoice"]


@dataclass(frozen=True)
class DecoderChoice:
    """Each call returns the decoder to use now: the fast twin, or ``model`` itself.

    The model decodes plainly if its attention is explicit, or if hooks watch or change its
    sublayers. The twin computes in ``weights``, see :class:`PreparedTransformer`. It is made at the
    first call that needs it, and kept: make a new choice after you change the model's weights.
    """

    model: Transformer
    weights: str = "as they are"

    def __call__(self) -> Transformer | PreparedTransformer:
        return self.model if _decodes_plainly(self.model) else self._twin

    @cached_property
    def _twin(self) -> PreparedTransformer:
        return PreparedTransformer(self.model, weights=self.weights)


def _decodes_plainly(model: Transformer) -> bool:
    return any(
        module._forward_hooks
        or module._forward_pre_hooks
        or "add" in vars(module)
        or getattr(module, "explicit", False)
        for module in model.modules()
    )
