"""A sentence splitter as an ONNX graph, as packages of Argos Translate carry one.

Argos Translate cuts text at sentence ends with a network that reads characters. Without one in the
package it downloads one. This graph has no trained weights: it is rules for any language that ends
its sentences with these signs.

The contract: ``units`` (batch, length) are ids of characters, in which white space is one blank and
0 is nothing; ``features`` are not used here; ``predictions`` (batch, length, 3) has its greatest
number at 2 where a sentence ends, else at 0. Settings and the ids of characters stand in the
file's properties as JSON.

A rule is one kernel of a convolution. Its conditions are classes of characters, at this place or
near it. With a weight of 1 for each condition, -1 for each exception, and a bias of 1 minus the
number of conditions, the sum is 1 if all conditions hold and no exception does; else at most 0.
"""

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glassformer.errors import missing_extra

__all__ = ["splitter"]

_CHARACTERS = [chr(code) for code in range(0x21, 0x590)]  # Latin, Greek, Cyrillic, Armenian
_CLASSES: dict[str, str] = {
    "blank": " ",
    "period": ".",
    "end": ".!?…‼⁇⁈⁉؟۔।॥։።",
    "wide end": "。！？｡",  # no blank follows
    "closing": "\"'”’»)]}“›」』）】〉》",
    "lower": "".join(filter(str.islower, _CHARACTERS)),
    "upper": "".join(filter(str.isupper, _CHARACTERS)),
    "letter": "".join(filter(str.isalpha, _CHARACTERS)),
    "digit": "0123456789",
}
# Each rule: a class and its place, which counts from the sign that may end a sentence; "not": an
# exception. The places are -3 to 2.
_ENDS = (
    {"end": 0, "blank": 1},  # A dog. Two
    {"closing": 0, "end": -1, "blank": 1},  # "A dog." Two
    {"wide end": 0, "not closing": 1},  # 犬。猫, but 「犬。」と
)
_NO_ENDS = (
    {"blank": 1, "lower": 2},  # etc. and
    {"period": 0, "letter": -1, "not letter": -2},  # J. Smith, z. B.
    {"period": 0, "letter": -1, "upper": -2, "not letter": -3},  # Dr. Smith
    {"period": 0, "digit": -1, "not digit": -3},  # 3. Mai
)
_BEFORE, _AFTER = 3, 2
_LONGEST = 1000  # characters that are read at once


def splitter(language: str) -> bytes:
    """The file of the splitter; InputError if onnx is not installed."""
    try:
        from onnx import TensorProto, checker, helper, numpy_helper
    except ImportError as error:
        raise missing_extra("onnx", "export") from error
    units = [*dict.fromkeys("".join(_CLASSES.values()))]
    values = {
        "classes_of_units": _classes_of(units),
        **_kernels(),
        "weights_of_rules": _weights_of_rules(),
        "no_end": np.array([0.5, -1.0, 0.0], dtype=np.float32),
    }
    nodes = [
        helper.make_node("Gather", ["classes_of_units", "units"], ["classes"]),
        helper.make_node("Transpose", ["classes"], ["columns"], perm=[0, 2, 1]),
        helper.make_node("Conv", ["columns", "rules", "biases"], ["sums"], pads=[_BEFORE, _AFTER]),
        helper.make_node("Relu", ["sums"], ["holds"]),
        helper.make_node("Conv", ["holds", "weights_of_rules", "no_end"], ["rows"]),
        helper.make_node("Transpose", ["rows"], ["predictions"], perm=[0, 2, 1]),
    ]
    shape: list[str | int] = ["batch", "length"]
    graph = helper.make_graph(
        nodes,
        "sentence_ends",
        [
            helper.make_tensor_value_info("units", TensorProto.INT64, shape),
            helper.make_tensor_value_info("features", TensorProto.FLOAT, [*shape, "features"]),
        ],
        [helper.make_tensor_value_info("predictions", TensorProto.FLOAT, [*shape, 3])],
        [numpy_helper.from_array(value, name) for name, value in values.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7)
    helper.set_model_props(model, _properties(language, units))
    checker.check_model(model, full_check=True)
    return bytes(model.SerializeToString())


def _classes_of(units: list[str]) -> NDArray[np.float32]:
    """Row ``id``: 1 for each class of that character; 0 is nothing, and 1 any other character."""
    table = np.zeros((len(units) + 2, len(_CLASSES)), dtype=np.float32)
    for column, characters in enumerate(_CLASSES.values()):
        for character in characters:
            table[units.index(character) + 2, column] = 1.0
    return table


def _kernels() -> dict[str, NDArray[np.float32]]:
    """The rules as kernels (rule, class, place) and biases (rule)."""
    rules = (*_ENDS, *_NO_ENDS)
    kernels = np.zeros((len(rules), len(_CLASSES), _BEFORE + 1 + _AFTER), dtype=np.float32)
    biases = np.ones(len(rules), dtype=np.float32)
    names = list(_CLASSES)
    for rule, conditions in enumerate(rules):
        for name, place in conditions.items():
            exception = name.startswith("not ")
            column = names.index(name.removeprefix("not "))
            kernels[rule, column, _BEFORE + place] = -1.0 if exception else 1.0
            biases[rule] -= not exception
    return {"rules": kernels, "biases": biases}


def _weights_of_rules() -> NDArray[np.float32]:
    """Class 2 wins over 0.5 if a rule for an end holds, and none against one."""
    weights = np.zeros((3, len(_ENDS) + len(_NO_ENDS), 1), dtype=np.float32)
    weights[2, : len(_ENDS)] = 1.0
    weights[2, len(_ENDS) :] = -len(_ENDS)
    return weights


def _properties(language: str, units: list[str]) -> dict[str, str]:
    ids = {"<PAD>": 0, "<UNK>": 1, **{unit: index for index, unit in enumerate(units, 2)}}
    vocabulary = {"_unit2id": ids, "_id2unit": list(ids), "lang": language}
    settings: dict[str, Any] = {
        "skip_newline": False,
        "max_seqlen": _LONGEST,
        "no_ssplit": False,
        "batch_size": 32,
        "feat_funcs": [],
        "use_dictionary": False,
        "num_dict_feat": 0,
    }
    return {
        "lang_code": language,
        "config": json.dumps(settings),
        "vocab": json.dumps(vocabulary),
        "lexicon": "null",
    }
