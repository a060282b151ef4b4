"""The attention weights of a translator for one sentence, with labels."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.bundle import Bundle
from glassformer.support.errors import InputError, UsageError, check_choice
from glassformer.tools.inspection.capture import capture, twin
from glassformer.tools.inspection.trace.schema import ATTENTION_PATHS, AttentionPart
from glassformer.tools.inspection.trace.subwords import ended_ids, token_labels
from glassformer.translator import Translator

__all__ = ["AXES_LABELS", "PART_NAMES", "Attention", "attention_of", "check_index"]

PART_NAMES: dict[AttentionPart, str] = {
    "encoder": "Encoder's self-attention",
    "decoder": "Decoder's self-attention",
    "cross": "Decoder's cross-attention",
}
AXES_LABELS: dict[AttentionPart, tuple[str, str]] = {
    "encoder": ("query (source)", "key (source)"),
    "decoder": ("query (target)", "key (target)"),
    "cross": ("query (target): the token it predicts", "key (source)"),
}


@dataclass(frozen=True)
class Attention:
    """The weights of one part of a model for one sentence, and the labels of its tokens.

    In ``cross``, the label of a query is the token that the query predicts, as in alignments. In
    ``decoder``, the label of a query or a key is the token at the position.
    """

    part: AttentionPart
    weights: Float[Tensor, "layers heads q_len k_len"]
    query_labels: list[str]
    key_labels: list[str]


def attention_of(
    translator: Translator | Bundle, source: str, target: str, *, part: AttentionPart = "cross"
) -> Attention:
    """Run the model once on a sentence pair, and keep the weights of one part."""
    check_choice("part", part, ATTENTION_PATHS)
    if not source.strip():
        raise InputError("the source sentence is empty: there is no token to attend to")
    (of_source, of_target), config = translator.tokenizers, translator.model.config
    ids = ended_ids(of_source, source, config.max_length_of_source, name="the source")
    written = ended_ids(of_target, target, config.max_length, name="the target")
    read = [config.bos_id, *written[:-1]]
    model = twin(translator.model).eval()  # without dropout
    device = model.output_weight.device
    with torch.no_grad(), capture(model) as sublayers:
        model(torch.tensor([ids], device=device), torch.tensor([read], device=device))
    wanted = {ATTENTION_PATHS[part].format(number) for number in range(len(sublayers))}
    maps = [weights[0] for name, weights in sublayers.attention_maps() if name in wanted]
    keys = token_labels(of_target, read) if part == "decoder" else token_labels(of_source, ids)
    queries = token_labels(of_target, written) if part == "cross" else keys
    return Attention(part, torch.stack(maps).float().cpu(), queries, keys)


def check_index(name: str, index: int | None, count: int) -> None:
    """Raise UsageError for an index of a layer or head that the model lacks; None passes.

    The message counts from 1, as the pictures and the command line do.

    >>> check_index("layer", 6, 6)
    Traceback (most recent call last):
    glassformer.support.errors.UsageError: layer 7: expected 1 to 6; layers count from 1
    """
    if index is not None and not 0 <= index < count:
        raise UsageError(f"{name} {index + 1}: expected 1 to {count}; {name}s count from 1")
