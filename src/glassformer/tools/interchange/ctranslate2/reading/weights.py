"""Reads the weights of a CTranslate2 model into a Transformer, by the table of the export."""

import re
from collections.abc import Iterator

import torch
from torch import Tensor

from glassformer.model.transformer import Transformer
from glassformer.support.errors import InputError
from glassformer.support.tensors import load_weights
from glassformer.tools.interchange.ctranslate2.export import (
    encoding_of,
    module_table,
    weights_by_name,
)
from glassformer.tools.interchange.ctranslate2.reading.configuration import (
    refuse_others,
    source_embedding,
)
from glassformer.tools.interchange.ctranslate2.reading.model_file import ModelFile
from glassformer.tools.interchange.ctranslate2.reading.tokens import Tokens
from glassformer.tools.interchange.importing import with_rows

__all__ = ["read_weights"]


def read_weights(model: Transformer, file: ModelFile, sides: tuple[Tokens, Tokens]) -> None:
    """Fill a model on the meta device, with rows for appended tokens of both ``sides``.

    Raises InputError for a missing weight, a weight of another shape, or a weight of unknown use.
    """
    source, target = sides
    of_tokens = {"source_embedding": source, "target_embedding": target, "output": target}
    filled, known = {}, set()
    for name, places in _places(model, file):
        known.add(name)
        (first, weight), *_ = places.items()
        tokens = of_tokens.get(first.rpartition(".")[0])
        inserted = tokens.inserted if tokens else None
        size = tokens.size - (inserted is not None) if tokens else None
        rows = [size or len(each) for each in places.values()]
        expected = (sum(rows), *weight.shape[1:])
        for ours, part in zip(places, _stored(file, name, expected).split(rows), strict=True):
            filled[ours] = part.clone()
            if tokens:
                start = tokens.id_of("bos"), tokens.start
                if inserted is not None:
                    row = part.new_zeros(1, *part.shape[1:])
                    part = torch.cat([part[:inserted], row, part[inserted:]])
                filled[ours] = with_rows(part, len(tokens.texts) - tokens.size, start)
    known |= _read_positions(model, file, filled)
    refuse_others(file, known)
    parameters = dict(model.named_parameters())
    filled["output_bias"] = filled.pop("output.bias", torch.empty(0))
    weights = [(name, filled[name]) for name in parameters if name in filled]
    load_weights(model, weights, file.path)


def _stored(file: ModelFile, name: str, expected: tuple[int, ...]) -> Tensor:
    """A weight of the file; zeros for a missing bias, because OpenNMT's attention has none."""
    if name not in file.stored:
        if not name.endswith("/bias"):
            raise InputError(f"{file.path}: the weight {name} is missing: copy the file anew")
        return torch.zeros(expected)
    if (stored := tuple(file.stored[name].shape)) != expected:
        raise InputError(
            f"{file.path}: {name} has the shape {stored}, expected {expected}: copy it and the"
            " vocabularies from one model"
        )
    return file.weight(name)


def _places(model: Transformer, file: ModelFile) -> Iterator[tuple[str, dict[str, Tensor]]]:
    """Each name in the file, and the model's parameters that the file stacks there."""
    ours = weights_by_name(model)
    for path, modules in module_table(model.config).items():
        name = re.sub(r"\.(\d+)", r"_\1", path).replace(".", "/")
        norm = name.endswith(("layer_norm", "layernorm_embedding"))
        for kind, theirs in (("weight", "gamma"), ("bias", "beta")):
            names = [f"{module}.{kind}" for module in modules]
            places = {name: ours[name] for name in names if name in ours}
            if places and modules == ("source_embedding",):
                yield source_embedding(file), places
            elif places:
                yield f"{name}/{theirs if norm else kind}", places


def _read_positions(model: Transformer, file: ModelFile, filled: dict[str, Tensor]) -> set[str]:
    """Put learned tables of positions into ``filled``; return the names of all tables."""
    names = set()
    for side, ours in (("encoder", "source_positions"), ("decoder", "target_positions")):
        names.add(name := f"{side}/position_encodings/encodings")
        encoding = encoding_of(getattr(model, ours))
        if model.config.positions == "learned":
            table = _stored(file, name, (encoding.max_length, model.config.d_model))
            inner = ".positions" if model.config.embedding_norm else ""
            unread = table.new_zeros(encoding.offset, table.shape[1])
            filled[f"{ours}{inner}.table"] = torch.cat([unread, table])
    return names
