"""Exports a bundle as a package of Argos Translate, complete for use without a network.

A package is a zip file with one directory: the model of CTranslate2, one SentencePiece model, a
sentence splitter, and ``metadata.json``.
"""

import json
import re
import tempfile
import zipfile
from pathlib import Path

from glassformer.bundle import Bundle
from glassformer.data.language_names import language_name
from glassformer.errors import UsageError
from glassformer.files import check_output, open_atomically
from glassformer.interchange.argos.package_in import LENGTH_PENALTY, METADATA, MODEL, TOKENIZER
from glassformer.interchange.argos.splitter import splitter
from glassformer.interchange.ctranslate2.export import (
    check_quantization,
    export_ctranslate2,
    token_names,
)

__all__ = ["export_argos"]

_CODE = re.compile(r"[A-Za-z]{2,8}([_-][A-Za-z0-9]{1,8})*")  # it is part of file names
_VERSION, _FOR_VERSION = "1.0", "1.9.0"  # the package's; the first Argos Translate for it
_DIFFERENCES = (
    "Argos Translate writes a space for each _ of a translation",
    f"it searches with a beam of 4 and a length penalty of {LENGTH_PENALTY:g}, its own",
    "it reads text as it is: no normalisation, and words in capitals stay so",
)


def export_argos(
    bundle: Bundle,
    path: Path,
    *,
    quantization: str = "int8",
    languages: tuple[str | None, str | None] = (None, None),
) -> list[str]:
    """Write ``bundle`` as the new package ``path``; what will differ there, for a person to read.

    ``languages``: source and target, if they are not the bundle's. Nothing is left after a kill.

    Raises:
        UsageError: ``path`` exists, a language is missing, or a package cannot hold the bundle.
        InputError: ctranslate2 or onnx is not installed.
    """
    check_quantization(quantization)
    if path.exists():
        raise UsageError(f"{path}: it exists; give a new file")
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


def _languages(bundle: Bundle, given: tuple[str | None, str | None]) -> tuple[str, str]:
    known = bundle.languages or (None, None)
    source, target = (code or own for code, own in zip(given, known, strict=True))
    for option, code in (("--source-language", source), ("--target-language", target)):
        if code is None:
            raise UsageError(f"{option} is missing: the bundle does not say it; give a code: en")
        if not _CODE.fullmatch(code):
            raise UsageError(f"{option} {code!r}: expected a code such as en or pt_BR")
    return str(source), str(target)


def _target_prefix(bundle: Bundle) -> str:
    """The token before every target; UsageError if a package cannot hold the tokenizers."""
    source, target = bundle.tokenizers
    if token_names(source) != token_names(target):
        raise UsageError(
            "Argos Translate has one vocabulary for both sides, and this bundle has two: train one"
            " without --no-joint, or export it --to ctranslate2"
        )
    if source.prefix or len(target.prefix) > 1:
        raise UsageError(
            f"Argos Translate puts no token before a source, and this bundle puts"
            f" {' '.join(source.prefix or target.prefix)}: export it --to ctranslate2"
        )
    return "".join(target.prefix)


def _readme(metadata: dict[str, str]) -> str:
    lines = [
        f"# {metadata['from_name']} to {metadata['to_name']}",
        "",
        "Made by `glassformer export --to argos`; Argos Translate and LibreTranslate read it.",
        "The sentence splitter in it is a set of rules, so nothing is downloaded.",
        "",
        *(f"- {difference}." for difference in _DIFFERENCES),
    ]
    return "\n".join(lines) + "\n"
