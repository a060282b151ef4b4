"""The vocabulary of a directory as SentencePiece models whose ids are the model's own.

transformers maps each piece of SentencePiece's segmentation to an id by a table, or by an offset.
Here the pieces themselves stand in the order of the ids, so that no table is needed:

- A piece that the vocabulary has and the side's SentencePiece model lacks is unused: it cuts no
  text. But characters that SentencePiece does not know are looked up, and may be such a piece.
- A piece that the vocabulary lacks stands after its end. It cuts the text, and is unknown.
- Special symbols and languages are control symbols: no text holds them. transformers reads them
  from a text, so that ``</s>`` in a text ends it there.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from glassformer.data.languages import LanguageTokens, languages_in, standard_code
from glassformer.data.normaliser import Normalisation
from glassformer.data.preprocessing import SourceLengths
from glassformer.data.tokenizer import Tokenizer
from glassformer.errors import InputError
from glassformer.interchange.importing import read_json
from glassformer.interchange.piece_order import PieceOrder, read_sentencepiece

__all__ = [
    "KEY",
    "Languages",
    "OfBundle",
    "Tokenizers",
    "language_tokens",
    "read_vocabulary",
]

KEY = "glassformer"
"""Where ``tokenizer_config.json`` keeps an :class:`OfBundle`."""

_TOKENIZERS = {
    "marian": ("MarianTokenizer",),
    "m2m_100": ("M2M100Tokenizer", "NllbTokenizer", "NllbTokenizerFast"),
    "mbart": ("MBart50Tokenizer", "MBart50TokenizerFast"),
}
_LANGUAGES = {  # the token of a language, and its code in it
    "MarianTokenizer": re.compile(r">>(.+)<<"),
    "M2M100Tokenizer": re.compile(r"__([a-z_]+)__"),
    "NllbTokenizer": re.compile(r"([a-z]{3}_[A-Z][a-z]{3})"),
    "MBart50Tokenizer": re.compile(r"([a-z]{2}_[A-Z]{2})"),
}
_START = "<s>"


@dataclass(frozen=True)
class Languages:
    """The codes that a person asks for; None: not said."""

    source: str | None = None
    target: str | None = None


@dataclass(frozen=True)
class Tokenizers:
    """The tokenizers of both sides, and the languages, if they are known."""

    source: Tokenizer
    target: Tokenizer
    languages: tuple[str, str] | None
    language_tokens: LanguageTokens | None = None
    normalisation: Normalisation = "none"
    source_lengths: SourceLengths | None = None
    is_ours: bool = False
    """Whether ``export`` has written it."""


class OfBundle(BaseModel):
    """What export adds to ``tokenizer_config.json``, so that import makes the same bundle of it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    languages: tuple[str, str] | None
    normalisation: Normalisation
    source_lengths: SourceLengths | None
    source_prefix: tuple[str, ...]
    target_prefix: tuple[str, ...]
    source_known: int | None
    target_known: int | None
    language_tokens: LanguageTokens | None = None


@dataclass(frozen=True)
class _Files:
    """A directory with its ``tokenizer_config.json`` and ``config.json``."""

    directory: Path
    options: Mapping[str, Any]
    settings: Mapping[str, Any]


def read_vocabulary(directory: Path, settings: Mapping[str, Any], wanted: Languages) -> Tokenizers:
    """The vocabulary of a directory; ``settings``: the content of its ``config.json``.

    Raises:
        InputError: a file is missing or faulty, or the tokenizer is of another kind.
        UsageError: the model needs a language, or does not know it.
    """
    path, model_type = directory / "tokenizer_config.json", settings["model_type"]
    options = read_json(path) if path.is_file() else {}
    if KEY in options:
        return _exported(directory, options[KEY], wanted)
    if model_type not in _TOKENIZERS:
        raise InputError(
            f"{directory}: a {model_type} model sums up texts, unless `export` has written it;"
            f" import reads {', '.join(_TOKENIZERS)}"
        )
    kind = options.get("tokenizer_class") or settings.get("tokenizer_class")
    if kind is None and model_type != "mbart":  # the first mBART has another order of symbols
        nllb = model_type == "m2m_100" and not (directory / "vocab.json").is_file()
        kind = _TOKENIZERS[model_type][int(nllb)]
    if kind not in _TOKENIZERS[model_type]:
        raise InputError(
            f"{path}: tokenizer_class {kind!r}: of a {model_type} model, import reads"
            f" {', '.join(_TOKENIZERS[model_type])}"
        )
    if options.get("legacy_behaviour"):
        raise InputError(
            f"{path}: legacy_behaviour: the language stands behind the text there, and this program"
            " puts it before the text"
        )
    files = _Files(directory, options, settings)
    if model_type == "marian":
        return _marian(files, wanted)
    return _one_model(files, kind.removesuffix("Fast"), wanted)


def language_tokens(texts: Collection[str], *kinds: str) -> LanguageTokens | None:
    """The languages among a tokenizer's tokens, if it is of one of these kinds, or of any."""
    for kind in kinds or _LANGUAGES:
        if known := languages_in(texts, _LANGUAGES[kind]):
            return LanguageTokens(known, before="source" if kind == "MarianTokenizer" else "each")
    return None


def _exported(directory: Path, stored: object, wanted: Languages) -> Tokenizers:
    """The tokenizers that ``export`` has written: SentencePiece models beside the JSON."""
    try:
        own = OfBundle.model_validate(stored)
    except ValidationError as error:
        fault = error.errors()[0]
        field = ".".join(map(str, (KEY, *fault["loc"])))
        path = directory / "tokenizer_config.json"
        raise InputError(f"{path}: {field}: {fault['msg']}: export the bundle anew") from error
    pair = (wanted.source, wanted.target) if wanted.source and wanted.target else None
    return Tokenizers(
        Tokenizer.load(
            directory / "source.model", prefix=own.source_prefix, known=own.source_known
        ),
        Tokenizer.load(
            directory / "target.model", prefix=own.target_prefix, known=own.target_known
        ),
        own.languages or pair,
        own.language_tokens,
        normalisation=own.normalisation,
        source_lengths=own.source_lengths,
        is_ours=True,
    )


def _marian(files: _Files, wanted: Languages) -> Tokenizers:
    """Two SentencePiece models; the language of the target stands before the source."""
    directory, settings = files.directory, files.settings
    tables = {"vocab.json": settings["vocab_size"]}
    if not settings.get("share_encoder_decoder_embeddings", True):
        size = settings.get("decoder_vocab_size") or settings["vocab_size"]
        tables["target_vocab.json"] = size
    pattern = _LANGUAGES["MarianTokenizer"]
    sides = []
    for table, size in tables.items():
        path = directory / table
        texts = _texts(path, size)
        languages = filter(pattern.fullmatch, texts)
        sides.append(_piece_order(files, texts, controls=languages, path=path))
    source = wanted.source or files.options.get("source_lang")
    target = wanted.target or files.options.get("target_lang")
    prefix: tuple[str, ...] = ()
    if tokens := language_tokens(sides[0].texts, "MarianTokenizer"):
        source, target = tokens.pair(source, wanted.target)
        prefix, _ = tokens.prefixes(source, target)
    return Tokenizers(
        sides[0].tokenizer(read_sentencepiece(directory / "source.spm"), prefix),
        sides[-1].tokenizer(read_sentencepiece(directory / "target.spm")),
        (standard_code(source), standard_code(target)) if source and target else None,
        tokens,
    )


def _one_model(files: _Files, kind: str, wanted: Languages) -> Tokenizers:
    """One SentencePiece model; each side's language stands before its text."""
    directory, size = files.directory, files.settings["vocab_size"]
    paths = [directory / name for name in ("sentencepiece.bpe.model", "tokenizer.json")]
    path = next(filter(Path.is_file, paths), paths[0])
    model = read_sentencepiece(path)
    texts = [piece.text for piece in model.pieces]
    if kind == "M2M100Tokenizer":
        texts = _texts(directory / "vocab.json", None)
    elif path == paths[0]:  # fairseq's rule: SentencePiece's id plus one
        texts = [_START, "<pad>", "</s>", "<unk>", *texts[3:]]
    try:
        added = _added_texts(files, len(texts))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{directory}: its added tokens have no ids or texts: copy it anew"
        ) from error
    if max(added, default=0) >= size:
        raise InputError(
            f"{directory}: a token has the id {max(added)}, and config.json a vocabulary of {size}"
        )
    for index, text in sorted(added.items()):
        texts += [f"<unused {place}>" for place in range(len(texts), index + 1)]
        texts[index] = text
    texts += [f"<unused {place}>" for place in range(len(texts), size)]
    order = _piece_order(files, texts, controls=added.values(), path=path)
    tokens = language_tokens(order.texts, kind)
    if tokens is None:
        raise InputError(
            f"{directory}: no language token stands in tokenizer_config.json, tokenizer.json or"
            " special_tokens_map.json: copy them from the original model"
        )
    source, target = tokens.pair(wanted.source, wanted.target)
    before_source, before_target = tokens.prefixes(source, target)
    return Tokenizers(
        order.tokenizer(model, before_source),
        order.tokenizer(model, before_target),
        (source or "", target),
        tokens,
    )


def _texts(path: Path, size: int | None) -> list[str]:
    """The text of each id in a table of texts and ids; ``size``: the number of ids."""
    table = read_json(path)
    if not all(isinstance(index, int) and index >= 0 for index in table.values()):
        raise InputError(f"{path}: expected a table of pieces and ids")
    by_id = {index: text for text, index in table.items() if text}
    size = size or max(by_id, default=0) + 1
    if max(by_id, default=0) >= size:
        raise InputError(
            f"{path}: it has the id {max(by_id)}, and config.json a vocabulary of {size}"
        )
    return [by_id.get(index, f"<unused {index}>") for index in range(size)]


def _added_texts(files: _Files, size: int) -> dict[int, str]:
    """The tokens beside the SentencePiece model, by id; those without ids stand after ``size``."""
    listed = files.options.get("added_tokens_decoder") or {}
    added = {int(index): _content(token) for index, token in listed.items()}
    path = files.directory / "tokenizer.json"
    if not added and path.is_file():
        added = {token["id"]: token["content"] for token in read_json(path).get("added_tokens", [])}
    path = files.directory / "special_tokens_map.json"
    lists = [files.options, read_json(path)] if path.is_file() else [files.options]
    for names in lists:
        tokens = names.get("additional_special_tokens") or names.get("extra_special_tokens") or []
        missing = [text for text in map(_content, tokens) if text not in added.values()]
        first = max([size, *(index + 1 for index in added)])
        added |= dict(enumerate(missing, first))
    return added


def _content(token: object) -> str:
    """The text of a token, which stands alone or with its settings."""
    return str(token["content"] if isinstance(token, dict) else token)


def _piece_order(
    files: _Files, texts: Sequence[str], *, controls: Iterable[str], path: Path
) -> PieceOrder:
    """The texts; if no target starts with the end symbol, our start symbol stands after them.

    ``path``: the file of the texts. ``controls``: those that no input holds.
    """
    unknown = _content(files.options.get("unk_token") or "<unk>")
    if unknown not in texts:
        raise InputError(f"{path}: it lacks the token {unknown}: copy the file anew")
    symbols = {"unk": unknown, "bos": _START}
    for symbol, default in (("eos", "</s>"), ("pad", "<pad>")):
        index = files.settings.get(f"{symbol}_token_id")
        if not isinstance(index, int) or not 0 <= index < len(texts):
            raise InputError(f"{path}: it lacks the id {index}, config.json's {symbol}_token_id")
        symbols[symbol] = _content(files.options.get(f"{symbol}_token") or default)
        if texts[index] != symbols[symbol]:
            raise InputError(
                f"{path}: the id {index}, config.json's {symbol}_token_id, is {texts[index]!r},"
                f" expected {symbols[symbol]!r}"
            )
    if files.settings["decoder_start_token_id"] == files.settings["eos_token_id"]:
        symbols["bos"] = symbols["eos"]
    else:  # ours takes the name
        texts = [f"<s {index}>" if text == _START else text for index, text in enumerate(texts)]
        texts.append(_START)
    unused = {_START, *(text for text in texts if text.startswith(("<s ", "<unused ")))}
    return PieceOrder(texts, {*controls, *unused} - {*symbols.values()}, symbols)
