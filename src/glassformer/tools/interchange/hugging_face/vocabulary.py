"""Reads the vocabulary of a directory as SentencePiece models with the ids of the directory.

transformers maps each piece of SentencePiece's segmentation to an id by a table, or by an offset.
Here the pieces stand in the order of the ids, so that import needs no table:

- A piece that the vocabulary has and the side's SentencePiece model lacks is unused, and cuts
  no text. But transformers looks up characters that SentencePiece does not know.
- A piece that the vocabulary lacks stands after the last id, cuts the text, and is unknown.
- Special symbols and languages are control symbols, which no text holds. In transformers, ``</s>``
  in a text would end the text.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict

from glassformer.data.known import Known
from glassformer.data.normaliser import Normalisation
from glassformer.data.preprocessing import SourceLengths
from glassformer.data.tokenizer import Tokenizer
from glassformer.support.errors import InputError
from glassformer.support.languages import LanguageTokens, languages_in
from glassformer.support.strangers import MOST_JSON, read_json, shown
from glassformer.tools.interchange.hugging_face.configuration import Settings
from glassformer.tools.interchange.piece_order import PieceOrder, read_sentencepiece

__all__ = [
    "KEY",
    "OfBundle",
    "Tokenizers",
    "language_tokens",
    "read_vocabulary",
]

KEY = "glassformer"
"""The key of an :class:`OfBundle` in ``tokenizer_config.json``."""

_TOKENIZERS = {
    "marian": ("MarianTokenizer",),
    "m2m_100": ("M2M100Tokenizer", "NllbTokenizer", "NllbTokenizerFast"),
    "mbart": ("MBart50Tokenizer", "MBart50TokenizerFast"),
}
_LANGUAGES = {  # the token of a language; the group is the language's code
    "MarianTokenizer": re.compile(r">>(.+)<<"),
    "M2M100Tokenizer": re.compile(r"__([a-z_]+)__"),
    "NllbTokenizer": re.compile(r"([a-z]{3}_[A-Z][a-z]{3})"),
    "MBart50Tokenizer": re.compile(r"([a-z]{2}_[A-Z]{2})"),
}
_START = "<s>"
_SYMBOLS = {_START, "</s>", "<unk>", "<pad>", "<mask>"}


class OfBundle(BaseModel):
    """A record in ``tokenizer_config.json`` from which import makes an exported bundle again."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    languages: tuple[str, str] | None
    normalisation: Normalisation
    source_lengths: SourceLengths | None
    known: Known | None = None
    source_prefix: tuple[str, ...]
    target_prefix: tuple[str, ...]
    source_known: int | None
    target_known: int | None
    language_tokens: LanguageTokens | None = None


@dataclass(frozen=True)
class Tokenizers:
    """The tokenizers of both sides; ``languages`` is None if the files name no languages.

    ``exported`` is the record of the bundle from which ``export`` has written the files.
    """

    source: Tokenizer
    target: Tokenizer
    languages: tuple[str | None, str | None] = (None, None)
    language_tokens: LanguageTokens | None = None
    exported: OfBundle | None = None


def _text_of(token: object) -> object:
    """The text of a token, from a string or from an object with settings."""
    return token.get("content") if isinstance(token, dict) else token


_Text = Annotated[str, BeforeValidator(_text_of)]


class _Options(BaseModel):
    """The fields of ``tokenizer_config.json`` or ``special_tokens_map.json`` that import reads."""

    glassformer: OfBundle | None = None
    tokenizer_class: str | None = None
    legacy_behaviour: bool | None = None
    source_lang: str | None = None
    target_lang: str | None = None
    added_tokens_decoder: dict[int, _Text] = {}
    additional_special_tokens: list[_Text] | None = None
    extra_special_tokens: list[_Text] | dict[str, Any] | None = None
    unk_token: _Text | None = None
    eos_token: _Text | None = None
    pad_token: _Text | None = None


class _AddedToken(BaseModel):
    id: int
    content: str


class _AddedTokens(BaseModel):
    """The tokens beside the model in ``tokenizer.json``."""

    added_tokens: list[_AddedToken] = []


@dataclass(frozen=True)
class _Files:
    """A directory with its ``tokenizer_config.json`` and ``config.json``."""

    directory: Path
    options: _Options
    settings: Settings


def read_vocabulary(directory: Path, settings: Settings) -> Tokenizers:
    """The vocabulary of a directory; ``settings`` are from ``config.json``.

    Raises InputError if a file is missing or faulty, or the tokenizer is of another kind.
    """
    path, model_type = directory / "tokenizer_config.json", settings.model_type
    options = read_json(path, _Options, most_bytes=MOST_JSON) if path.exists() else _Options()
    if options.glassformer is not None:
        return _exported(directory, options.glassformer)
    if model_type not in _TOKENIZERS:
        raise InputError(
            f"{directory}: import reads a {model_type} model, which summarises texts, only if"
            f" `export` wrote it; import also reads {', '.join(_TOKENIZERS)}"
        )
    kind = options.tokenizer_class or settings.tokenizer_class
    if kind is None and model_type != "mbart":  # the first mBART has another order of symbols
        nllb = model_type == "m2m_100" and not (directory / "vocab.json").exists()
        kind = _TOKENIZERS[model_type][int(nllb)]
    if kind is None or kind not in _TOKENIZERS[model_type]:
        first = kind is None or kind.startswith("MBartTokenizer")
        reason = "the first mBART has its language behind a text" if first else "another tokenizer"
        raise InputError(
            f"{path}: tokenizer_class {shown(kind)}: {reason}: for a {model_type} model, import"
            f" reads {', '.join(_TOKENIZERS[model_type])}"
        )
    if options.legacy_behaviour:
        raise InputError(
            f"{path}: legacy_behaviour puts the language behind a text, and this program puts it"
            " before a text"
        )
    files = _Files(directory, options, settings)
    if model_type == "marian":
        return _marian(files)
    return _one_model(files, kind.removesuffix("Fast"))


def language_tokens(texts: Collection[str], *kinds: str) -> LanguageTokens | None:
    """The languages in the tokens ``texts`` of a tokenizer of ``kinds``, or of any kind."""
    for kind in kinds or _LANGUAGES:
        if known := languages_in(texts, _LANGUAGES[kind]):
            return LanguageTokens(known, before="source" if kind == "MarianTokenizer" else "each")
    return None


def _exported(directory: Path, own: OfBundle) -> Tokenizers:
    """The tokenizers that ``export`` has written, from the directory's SentencePiece models."""
    source, target = (directory / f"{side}.model" for side in ("source", "target"))
    return Tokenizers(
        Tokenizer.load(source, prefix=own.source_prefix, known=own.source_known),
        Tokenizer.load(target, prefix=own.target_prefix, known=own.target_known),
        own.languages or (None, None),
        own.language_tokens,
        own,
    )


def _marian(files: _Files) -> Tokenizers:
    """Two SentencePiece models; the language of the target stands before the source."""
    directory, settings = files.directory, files.settings
    tables = {"vocab.json": settings.vocab_size}
    if not settings.share_encoder_decoder_embeddings:
        tables["target_vocab.json"] = settings.target_vocab_size
    pattern = _LANGUAGES["MarianTokenizer"]
    sides: list[PieceOrder] = []
    for table, size in tables.items():
        path = directory / table
        texts = _texts(path, size)
        if not sides:
            _add_tokens(files, "MarianTokenizer", texts)
        languages = filter(pattern.fullmatch, texts)
        sides.append(_piece_order(files, texts, controls=languages, path=path))
    tokens = language_tokens(sides[0].texts, "MarianTokenizer")
    return Tokenizers(
        sides[0].tokenizer(read_sentencepiece(directory / "source.spm")),
        sides[-1].tokenizer(read_sentencepiece(directory / "target.spm")),
        (files.options.source_lang, None if tokens else files.options.target_lang),
        tokens,
    )


def _one_model(files: _Files, kind: str) -> Tokenizers:
    """One SentencePiece model; before each text stands the text's language."""
    directory, size = files.directory, files.settings.vocab_size
    paths = [directory / name for name in ("sentencepiece.bpe.model", "tokenizer.json")]
    path = next(filter(Path.exists, paths), paths[0])
    model = read_sentencepiece(path)
    texts = [piece.text for piece in model.pieces]
    if kind == "M2M100Tokenizer":
        texts = _texts(directory / "vocab.json", size, filled=False)
    elif path == paths[0]:  # fairseq adds one to SentencePiece's id
        texts = [_START, "<pad>", "</s>", "<unk>", *texts[3:]]
    added = _add_tokens(files, kind, texts)
    texts += [f"<unused {place}>" for place in range(len(texts), size)]
    order = _piece_order(files, texts, controls=added, path=path)
    tokens = language_tokens(order.texts, kind)
    if tokens is None:
        raise InputError(
            f"{directory}: no language token stands in tokenizer_config.json, tokenizer.json or"
            " special_tokens_map.json: copy these files from the original model"
        )
    tokenizer = order.tokenizer(model)
    return Tokenizers(tokenizer, tokenizer, language_tokens=tokens)


def _texts(path: Path, size: int, *, filled: bool = True) -> list[str]:
    """The text of each id below ``size``, by the table in a file; a made-up text fills each gap.

    Without ``filled``, the list ends at the last id of the table.
    """
    table = read_json(path, dict[str, Any], most_bytes=MOST_JSON)  # Any gives one fault, not many
    if not all(isinstance(index, int) and index >= 0 for index in table.values()):
        raise InputError(f"{path}: expected a table of pieces and ids")
    by_id = {index: text for text, index in table.items() if text}
    last = max(by_id, default=0)
    if last >= size:
        raise InputError(f"{path}: config.json has {size} tokens, but a piece has the id {last}")
    return [by_id.get(i, f"<unused {i}>") for i in range(size if filled else last + 1)]


def _add_tokens(files: _Files, kind: str, texts: list[str]) -> Collection[str]:
    """Put the tokens beside the SentencePiece model into ``texts``, and return them.

    Raises InputError for an id beyond the vocabulary, and for a token that is neither a language
    nor a symbol, because no text is cut into such a token.
    """
    directory, size = files.directory, files.settings.vocab_size
    added = _added_texts(files, texts)
    for index, text in sorted(added.items()):
        if not _LANGUAGES[kind].fullmatch(text) and text not in _SYMBOLS:
            raise InputError(
                f"{directory}: the token {shown(text)} was added to SentencePiece's, and this"
                " program cuts no text into such a token: import a model without it"
            )
        if not 0 <= index < size:
            raise InputError(
                f"{directory}: config.json has {size} tokens, but a token has the id {index}: copy"
                " all files from one model"
            )
        texts += [f"<unused {place}>" for place in range(len(texts), index + 1)]
        texts[index] = text
    return added.values()


def _added_texts(files: _Files, texts: Collection[str]) -> dict[int, str]:
    """The tokens beside the SentencePiece model, by id; tokens without ids follow ``texts``."""
    added = dict(files.options.added_tokens_decoder)
    path, old = files.directory / "tokenizer.json", files.directory / "added_tokens.json"
    if not added and path.exists():
        listed = read_json(path, _AddedTokens, most_bytes=MOST_JSON).added_tokens
        added = {token.id: token.content for token in listed}
    elif not added and old.exists():
        added = {index: text for text, index in read_json(old, dict[str, int]).items()}
    path = files.directory / "special_tokens_map.json"
    for names in [files.options, *([read_json(path, _Options)] if path.exists() else [])]:
        tokens = names.additional_special_tokens or names.extra_special_tokens or []
        present = {*texts, *added.values()}
        missing = [text for text in tokens if text not in present]
        first = max([len(texts), *(index + 1 for index in added)])
        added |= dict(enumerate(missing, first))
    return added


def _piece_order(
    files: _Files, texts: Sequence[str], *, controls: Iterable[str], path: Path
) -> PieceOrder:
    """The order of ``texts``, with an added start symbol unless targets start with the end symbol.

    ``path`` is the file of the texts. ``controls`` are the texts that no input holds.
    """
    options, settings = files.options, files.settings
    unknown = options.unk_token or "<unk>"
    if unknown not in texts:
        raise InputError(f"{path}: the token {shown(unknown)} is missing: copy the file anew")
    symbols = {"unk": unknown, "bos": _START}
    for symbol, text, index in (
        ("eos", options.eos_token or "</s>", settings.eos_id),
        ("pad", options.pad_token or "<pad>", settings.pad_id),
    ):
        if not 0 <= index < len(texts):
            raise InputError(f"{path}: no token has config.json's {symbol}_token_id, {index}")
        symbols[symbol] = text
        if texts[index] != text:
            raise InputError(
                f"{path}: config.json's {symbol}_token_id {index} is the token"
                f" {shown(texts[index])}, expected {shown(text)}"
            )
    if settings.start_id == settings.eos_id:
        symbols["bos"] = symbols["eos"]
    else:  # the added start symbol takes the name
        texts = [f"<s {index}>" if text == _START else text for index, text in enumerate(texts)]
        texts.append(_START)
    unused = {_START, *(text for text in texts if text.startswith(("<s ", "<unused ")))}
    return PieceOrder(texts, {*controls, *unused} - {*symbols.values()}, symbols)
