"""A model of Marian with its vocabularies and SentencePiece models as a bundle."""

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import torch
import yaml
from torch import Tensor

from glassformer.archive import unpacked
from glassformer.bundle import Bundle
from glassformer.data.languages import LanguageTokens, languages_in, standard_code
from glassformer.data.preprocessing import SINGLE_SENTENCES
from glassformer.errors import InputError
from glassformer.interchange.ctranslate2.export import weights_by_name
from glassformer.interchange.hugging_face.configuration import length_penalty
from glassformer.interchange.hugging_face.load import OPUS_NOTE
from glassformer.interchange.hugging_face.vocabulary import OPUS_LANGUAGE
from glassformer.interchange.imported import Imported
from glassformer.interchange.marian.configuration import model_config, weight_table
from glassformer.interchange.marian.model_file import MarianFile, read_marian_file
from glassformer.interchange.marian.vocabulary import read_vocabulary
from glassformer.interchange.tokens import Tokens, append_rows, same_symbols, tokens_of
from glassformer.model.transformer import Transformer

__all__ = ["import_marian"]

_ENDINGS = (".npz", ".yml", ".spm", ".bpe")
# Of decoder.yml's options.
_EXPECTED = {"models": "a list of files", "vocabs": "a list of files", "normalize": "a number"}
_SYMBOLS = {"unk": "<unk>", "eos": "</s>"}


def import_marian(
    source: Path, *, source_language: str | None = None, target_language: str | None = None
) -> Imported:
    """The translator in a zip file of OPUS-MT, in its directory, or in an ``.npz`` file there.

    A model with several targets needs one of them, as ``>>deu<<`` names it: ``deu``.

    Raises:
        InputError: a file is missing or faulty, or this program has no place for some of it.
        UsageError: the target language is missing or unknown.
    """
    languages = source_language, target_language
    if source.is_dir():
        return _import(source, None, languages)
    if source.suffix == ".npz":
        return _import(source.parent, source, languages)
    with unpacked(source, lambda name: name.endswith(_ENDINGS)) as place:
        directory = min((path.parent for path in place.rglob("*.npz")), default=place)
        return _import(directory, None, languages)


def _import(
    directory: Path, path: Path | None, languages: tuple[str | None, str | None]
) -> Imported:
    decoder = _decoder(directory)
    path = path or _only(directory, decoder.get("models"), "*.npz", "model")
    file = read_marian_file(path)
    names = decoder.get("vocabs") or [_only(directory, None, "*vocab.yml", "vocabulary").name]
    paths = [directory / PurePosixPath(str(name)).name for name in names]
    sides = [
        tokens_of(read_vocabulary(path), path, symbols=_SYMBOLS, begin=None)
        for path in dict.fromkeys([paths[0], paths[-1]])
    ]
    source, target = sides[0], sides[-1]
    same_symbols(source, target, directory)
    config = model_config(file, source, target)
    table = weight_table(file, config)
    with torch.device("meta"):  # without memory, so that shapes are checked first
        _read_weights(Transformer(config), file, table, (source, target))
    model = Transformer(config)
    _read_weights(model, file, table, (source, target))
    known = languages_in(source.texts, OPUS_LANGUAGE)
    tokens = LanguageTokens(known, before="source") if known else None
    of_source, of_target = tokens.pair(*languages) if tokens else languages
    [prefix] = tokens.prefixes(of_source, str(of_target))[0] if tokens else [""]
    source_model, target_model = _sentencepiece(directory)
    bundle = Bundle(
        model.eval().requires_grad_(False),
        source.tokenizer(source_model, prefix=prefix, controls=known.values()),
        target.tokenizer(target_model, controls=known.values()),
        (standard_code(of_source), standard_code(of_target)) if of_source and of_target else None,
        about={"imported from": "a model of Marian"},
        source_lengths=SINGLE_SENTENCES,
        language_tokens=tokens,
        length_penalty=length_penalty({"length_penalty": float(decoder.get("normalize", 1.0))}),
    )
    return Imported(bundle, "Marian", (OPUS_NOTE,))


def _read_weights(
    model: Transformer, file: MarianFile, table: Mapping[str, str], sides: tuple[Tokens, Tokens]
) -> None:
    """Fill the model's parameters; InputError for a weight that is missing or of another shape."""
    ours = weights_by_name(model)
    source, target = sides
    sizes = {"source_embedding.weight": source.size}
    sizes |= dict.fromkeys(("target_embedding.weight", "output.weight", "output.bias"), target.size)
    with torch.no_grad():
        for name, place in table.items():
            rows = ours[place][: sizes.get(place)]
            if name not in file.weights:
                raise InputError(f"{file.path}: it lacks the weight {name}: copy it anew")
            values = file.weights[name]
            if rows.dim() == 1:
                found: Tensor = values.squeeze()
            else:  # embeddings, and an output matrix named Wt, have a row for each token
                as_ours = name.endswith(("Wemb", "_Wt"))
                found = values if as_ours else values.transpose(0, -1)
            if not found.is_floating_point() or found.shape != rows.shape:
                raise InputError(
                    f"{file.path}: {name} is {found.dtype} of shape {tuple(found.shape)}, expected"
                    f" floating-point numbers of shape {tuple(rows.shape)}"
                )
            rows.copy_(found)
        append_rows(ours, source, target)


def _decoder(directory: Path) -> dict[str, Any]:
    """The options of decoder.yml: which files belong together, and how Marian searches."""
    path = directory / "decoder.yml"
    if not path.is_file():
        return {}
    try:
        options = yaml.safe_load(path.read_bytes())
    except (OSError, ValueError, yaml.YAMLError, RecursionError) as error:
        raise InputError(f"{path}: not YAML: copy it anew") from error
    if not isinstance(options, dict):
        raise InputError(f"{path}: expected names and values")
    for name, kind in (("models", list), ("vocabs", list), ("normalize", int | float)):
        if name in options and (not isinstance(options[name], kind) or options[name] == []):
            raise InputError(f"{path}: {name} {options[name]!r}: expected {_EXPECTED[name]}")
    return options


def _only(directory: Path, named: list[Any] | None, pattern: str, noun: str) -> Path:
    """The one file: the only one that decoder.yml names, or that the directory holds."""
    paths = [directory / PurePosixPath(str(name)).name for name in named or []]
    paths = paths or sorted(directory.glob(pattern))
    if len(paths) != 1:
        found = ", ".join(path.name for path in paths) or "none"
        raise InputError(f"{directory}: expected one {noun}, {pattern}, found {found}")
    return paths[0]


def _sentencepiece(directory: Path) -> tuple[Path, Path]:
    source, target = directory / "source.spm", directory / "target.spm"
    if not source.is_file() and (directory / "source.bpe").is_file():
        raise InputError(
            f"{directory / 'source.bpe'}: Moses with subword-nmt, not SentencePiece: this program"
            " has no such tokenizer; OPUS-MT has other models with source.spm"
        )
    return source, target
