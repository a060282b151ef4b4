"""The weights of a CTranslate2 model into ours, by the table of the export."""

import re
from collections.abc import Iterator

import torch
from torch import Tensor

from glassformer.errors import InputError
from glassformer.interchange.ctranslate2.export import encoding_of, module_table, weights_by_name
from glassformer.interchange.ctranslate2.reading.configuration import (
    refuse_others,
    source_embedding,
)
from glassformer.interchange.ctranslate2.reading.model_file import ModelFile
from glassformer.interchange.ctranslate2.reading.tokens import Tokens, append_rows
from glassformer.model.transformer import Transformer

__all__ = ["read_weights"]

_WITH_TOKENS = ("source_embedding", "target_embedding", "output")  # a row for each token


def read_weights(model: Transformer, file: ModelFile, sides: tuple[Tokens, Tokens]) -> None:
    """Fill the model's parameters; the tokens of both sides say which rows the file lacks.

    Raises InputError for a weight that the file lacks, of another shape, or of unknown use.
    """
    source, target = sides
    sizes = {"source_embedding": source.size, "target_embedding": target.size}
    ours = weights_by_name(model)
    known = set()
    with torch.no_grad():
        for name, places in _places(model, file):
            known.add(name)
            rows = [
                place[: sizes.get(module, target.size)] if module in _WITH_TOKENS else place
                for module, place in places.items()
            ]
            expected = (sum(map(len, rows)), *rows[0].shape[1:])
            if name not in file.stored:
                if not name.endswith("/bias"):  # OpenNMT's attention has none
                    raise InputError(f"{file.path}: it lacks the weight {name}: copy it anew")
                for row in rows:
                    row.zero_()
            elif (found := tuple(file.stored[name].shape)) != expected:
                raise InputError(
                    f"{file.path}: {name} has the shape {found}, expected {expected}: copy it and"
                    " the vocabularies from one model"
                )
            else:
                for row, part in zip(rows, file.weight(name).split([*map(len, rows)]), strict=True):
                    row.copy_(part)
        known |= _read_positions(model, file)
        append_rows(ours, source, target)
    refuse_others(file, known)


def _places(model: Transformer, file: ModelFile) -> Iterator[tuple[str, dict[str, Tensor]]]:
    """Each name in the file, and our modules' parameters that stand there one below the other."""
    ours = weights_by_name(model)
    for path, modules in module_table(model.config).items():
        name = re.sub(r"\.(\d+)", r"_\1", path).replace(".", "/")
        norm = name.endswith(("layer_norm", "layernorm_embedding"))
        for kind, theirs in (("weight", "gamma"), ("bias", "beta")):
            places = {n: ours[f"{n}.{kind}"] for n in modules if f"{n}.{kind}" in ours}
            if places and modules == ("source_embedding",):
                yield source_embedding(file), places
            elif places:
                yield f"{name}/{theirs if norm else kind}", places


def _read_positions(model: Transformer, file: ModelFile) -> set[str]:
    """Fill learned tables; the names of all tables."""
    names = set()
    for side, positions in (
        ("encoder", model.source_positions),
        ("decoder", model.target_positions),
    ):
        name = f"{side}/position_encodings/encodings"
        names.add(name)
        if model.config.positions == "learned":
            encoding = encoding_of(positions)
            encoding.table.zero_()[encoding.offset :].copy_(file.weight(name))
    return names
