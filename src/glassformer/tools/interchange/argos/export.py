"""Exports a bundle as a package of Argos Translate, complete for use without a network.

A package is a zip file with one directory. The directory holds a CTranslate2 model, a SentencePiece
model, a sentence splitter, and ``metadata.json``.

The splitter is a network that reads characters; Argos Translate downloads a splitter if the package
has none. The splitter written here has no trained weights, but rules for languages with the signs
of ``_CLASSES``. Argos Translate gives the splitter ``units`` (batch, length): ids of characters,
with one blank for white space and 0 for nothing. The splitter ignores ``features``. ``predictions``
(batch, length, 3) has its greatest number at index 2 where a sentence ends, and elsewhere at index
0. The file's properties hold settings and ids of characters as JSON.

A rule is one kernel of a convolution. The conditions of a rule are classes of characters near a
place. Each condition has a weight of 1, each exception a weight of -1; the bias is 1 minus the
number of conditions. The sum is 1 if all conditions and no exceptions hold; else it is at most 0.
"""

import json
import re
import tempfile
import zipfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from glassformer.bundle import Bundle
from glassformer.support.errors import UsageError, check_choice, missing_extra
from glassformer.support.files import check_output, open_atomically
from glassformer.support.language_names import language_name
from glassformer.tools.interchange.argos.package_in import (
    LENGTH_PENALTY,
    METADATA,
    MODEL,
    TOKENIZER,
)
from glassformer.tools.interchange.ctranslate2.export import (
    QUANTIZATIONS,
    export_ctranslate2,
    token_names,
)

__all__ = ["export_argos", "splitter"]

_CODE = re.compile(r"[A-Za-z]{2,8}([_-][A-Za-z0-9]{1,8})*")  # part of file names
_VERSION, _FOR_VERSION = "1.0", "1.9.0"  # of the package, and of the oldest Argos Translate
_DIFFERENCES = (
    "Argos Translate writes a space for each _ of a translation",
    f"it always searches with a beam of 4 and a length penalty of {LENGTH_PENALTY:g}",
    "it does not normalise text, and words in capitals stay so",
)

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
# A rule has a place for each class of characters, from -3 to 2, counted from the sign that may end
# a sentence. "not" marks an exception.
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
_GRAPH = f"""
<ir_version: 7, opset_import: ["": 13]>
sentence_ends (int64[batch, length] units, float[batch, length, number] features)
    => (float[batch, length, 3] predictions) {{
    classes = Gather (classes_of_units, units)
    columns = Transpose <perm = [0, 2, 1]> (classes)
    sums = Conv <pads = [{_BEFORE}, {_AFTER}]> (columns, rules, biases)
    holds = Relu (sums)
    rows = Conv (holds, weights_of_rules, no_end)
    predictions = Transpose <perm = [0, 2, 1]> (rows)
}}
"""
_SETTINGS = {
    "skip_newline": False,
    "max_seqlen": 1000,  # characters that Argos Translate reads at once
    "no_ssplit": False,
    "batch_size": 32,
    "feat_funcs": [],
    "use_dictionary": False,
    "num_dict_feat": 0,
}


def export_argos(
    bundle: Bundle,
    path: Path,
    *,
    quantization: str = "int8",
    languages: tuple[str | None, str | None] = (None, None),
) -> list[str]:
    """Write ``bundle`` as the new package ``path``; return the differences in Argos Translate.

    ``languages`` are source and target; None means the bundle's. A killed export leaves no file.

    Raises:
        UsageError: ``path`` exists, a language is missing, or a package cannot hold the bundle.
        InputError: ctranslate2 or onnx is not installed.
    """
    check_choice("quantization", quantization, QUANTIZATIONS)
    if path.exists():
        raise UsageError(f"{path} exists: give a new file")
    check_output("OUT", path)
    source, target = _languages(bundle, languages)
    prefix = _target_prefix(bundle)
    name = f"translate-{source}_{target}-{_VERSION.replace('.', '_')}"
    metadata = {
        "package_version": _VERSION,
        "argos_version": _FOR_VERSION,
        "from_code": source,
        "from_name": language_name(source),
        "to_code": target,
        "to_name": language_name(target),
        **({"target_prefix": prefix} if prefix else {}),
    }
    files = {
        METADATA: json.dumps(metadata, indent=2, ensure_ascii=False).encode(),
        TOKENIZER: bundle.source_tokenizer.serialized,
        f"minisbd/{source}.onnx": splitter(source),
        "README.md": _readme(metadata).encode(),
    }
    with tempfile.TemporaryDirectory(prefix="glassformer-") as temporary:
        model = Path(temporary, MODEL)
        export_ctranslate2(bundle, model, quantization=quantization)
        with (
            open_atomically(path) as file,
            zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as package,
        ):
            for part, content in files.items():
                package.writestr(f"{name}/{part}", content)
            for each in sorted(model.iterdir()):
                if each.suffix != ".model":  # the tokenizer stands beside the model
                    package.write(each, f"{name}/{MODEL}/{each.name}")
    return list(_DIFFERENCES)


def _languages(bundle: Bundle, asked: tuple[str | None, str | None]) -> tuple[str, str]:
    known = bundle.languages or (None, None)
    source, target = (code or known_code for code, known_code in zip(asked, known, strict=True))
    for argument, code in (("source_language", source), ("target_language", target)):
        if code is None:
            text = "is missing, and the bundle has none: give a code, such as en"
            raise UsageError(text, argument=argument)
        if not _CODE.fullmatch(code):
            raise UsageError(f"{code!r}: expected a code such as en or pt_BR", argument=argument)
    return str(source), str(target)


def _target_prefix(bundle: Bundle) -> str:
    """The token before every target; UsageError if a package cannot hold the tokenizers."""
    source, target = bundle.tokenizers
    if token_names(source) != token_names(target):
        raise UsageError(
            "Argos Translate has one vocabulary for both sides, and the bundle has two: train with"
            " a joint vocabulary, or export to ctranslate2"
        )
    if source.prefix or len(target.prefix) > 1:
        raise UsageError(
            f"Argos Translate puts no token before a source, and the bundle puts"
            f" {' '.join(source.prefix or target.prefix)}: export to ctranslate2"
        )
    return "".join(target.prefix)


def _readme(metadata: dict[str, str]) -> str:
    lines = [
        f"# {metadata['from_name']} to {metadata['to_name']}",
        "",
        "Made by `glassformer export --to argos`; Argos Translate and LibreTranslate read it.",
        "The package has a sentence splitter of rules, so nothing is downloaded.",
        "",
        *(f"- {difference}." for difference in _DIFFERENCES),
    ]
    return "\n".join(lines) + "\n"


def splitter(language: str) -> bytes:
    """The sentence splitter as an ONNX file; InputError if onnx is not installed."""
    try:
        from onnx import checker, helper, numpy_helper, parser
    except ImportError as error:
        raise missing_extra("onnx", "argos") from error
    units = [*dict.fromkeys("".join(_CLASSES.values()))]
    ids = {"<PAD>": 0, "<UNK>": 1, **{unit: index for index, unit in enumerate(units, 2)}}
    model = parser.parse_model(_GRAPH)
    for name, value in _weights(ids).items():
        model.graph.initializer.append(numpy_helper.from_array(value.astype(np.float32), name))
    properties = {
        "lang_code": language,
        "config": json.dumps(_SETTINGS),
        "vocab": json.dumps({"_unit2id": ids, "_id2unit": list(ids), "lang": language}),
        "lexicon": "null",
    }
    helper.set_model_props(model, properties)
    checker.check_model(model, full_check=True)
    return bytes(model.SerializeToString())


def _weights(ids: dict[str, int]) -> dict[str, NDArray[np.float64]]:
    """The constants of the graph: the classes of each id, and the rules as kernels."""
    names, rules = list(_CLASSES), (*_ENDS, *_NO_ENDS)
    classes = np.zeros((len(ids), len(names)))
    for column, characters in enumerate(_CLASSES.values()):
        classes[[ids[character] for character in characters], column] = 1
    kernels = np.zeros((len(rules), len(names), _BEFORE + 1 + _AFTER))
    biases = np.ones(len(rules))
    for rule, conditions in enumerate(rules):
        for name, place in conditions.items():
            exception = name.startswith("not ")
            column = names.index(name.removeprefix("not "))
            kernels[rule, column, _BEFORE + place] = -1 if exception else 1
            biases[rule] -= not exception
    # An end exceeds the 0.5 of no end if a rule of _ENDS holds, and none of _NO_ENDS.
    ends = np.zeros((3, len(rules), 1))
    ends[2] = [[1]] * len(_ENDS) + [[-len(_ENDS)]] * len(_NO_ENDS)
    return {
        "classes_of_units": classes,
        "rules": kernels,
        "biases": biases,
        "weights_of_rules": ends,
        "no_end": np.array([0.5, -1, 0]),
    }
