"""Writes a tokenizer as ``tokenizer.json``, which transformers and transformers.js read.

The file names each step from a text to ids. The steps are normalisers, a model (BPE or unigram),
and a template that adds the end symbol. The file is plain JSON, so this module needs no package.

SentencePiece's BPE joins the two neighbours that form the best piece; ``tokenizer.json`` lists
joins, the best first. So each piece gives a join for each place that cuts it into two pieces.

The format has no unused pieces, which Marian's joint vocabulary has: no text is cut into the other
side's pieces. But a run of characters that the model does not know may be such a piece as a whole.
So a mark stands at both ends of each such run, and at both ends of each unused piece.
"""

import base64
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, get_args

from glassformer.config import Subwords
from glassformer.data.normaliser import FULLWIDTH, INVISIBLE, Normalisation
from glassformer.data.sentencepiece_model import Piece, PieceType, SentencePieceModel
from glassformer.data.tokenizer import ESCAPES, SPACE, Tokenizer
from glassformer.support.errors import UsageError

__all__ = ["tokenizer_config", "tokenizer_json"]

_NEVER = -1e9  # a score so low that other unigrams cut a text if any can
_MARK = "\ufdd1"  # a noncharacter: no text has it


def tokenizer_json(
    tokenizer: Tokenizer, *, size: int, normalisation: Normalisation = "none"
) -> dict[str, Any]:
    """The content of ``tokenizer.json`` for the first ``size`` ids of ``tokenizer``.

    The file encodes a text as ``tokenizer`` does after ``normalisation``, and adds the end symbol.

    Raises UsageError for a kind of SentencePiece model that the format lacks.
    """
    model = SentencePieceModel.parse(tokenizer.serialized)
    space_as_suffix = model.rest.trainer_spec.treat_whitespace_as_suffix
    if model.kind not in get_args(Subwords) or space_as_suffix:
        raise UsageError(
            f"the SentencePiece model is of kind {model.kind!r}"
            f"{', with spaces as suffixes' if space_as_suffix else ''}:"
            " tokenizer.json holds bpe and unigram with spaces as prefixes; export to ctranslate2"
        )
    beyond = model.pieces[tokenizer.vocab_size :]
    if model.kind == "bpe" and any(piece.type is PieceType.UNUSED for piece in beyond):
        raise UsageError(
            "the vocabulary is trimmed: BPE joins subwords by way of missing ones, as no"
            " tokenizer.json can: export to ctranslate2 or page, or train without --trim-vocabulary"
        )
    pieces = _pieces(tokenizer, model, size)
    has_bytes = any(piece.type is PieceType.BYTE for piece in pieces)
    escapes = list(ESCAPES.items()) if has_bytes else []
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": _added_tokens(pieces),
        "normalizer": {
            "type": "Sequence",
            "normalizers": [
                *(_text_normalisers() if normalisation == "text" else []),
                *(_replace(character, pair) for pair, character in reversed(escapes)),
                *_sentencepiece_normalisers(model),
                *([] if has_bytes else [_marks(model)]),
            ],
        },
        "pre_tokenizer": None if has_bytes else _runs(),
        "post_processor": _template(tokenizer, pieces),
        "decoder": _decoder(
            [(_MARK, ""), *escapes], dummy_prefix=model.rest.normalizer_spec.add_dummy_prefix
        ),
        "model": _model(model.kind, pieces, unknown=tokenizer.unk_id, has_bytes=has_bytes),
    }


def tokenizer_config(tokenizer: Tokenizer, *, size: int, longest: int) -> dict[str, Any]:
    """The content of ``tokenizer_config.json``; ``longest`` is the limit of a source.

    The tokenizer reads special symbols inside a text as text, as glassformer does.
    """
    ids = {"pad": tokenizer.pad_id, "unk": tokenizer.unk_id, "eos": tokenizer.eos_id}
    if tokenizer.bos_id < size:
        ids["bos"] = tokenizer.bos_id
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": longest,
        "clean_up_tokenization_spaces": False,
        "split_special_tokens": True,
        **{f"{name}_token": tokenizer.subword(index) for name, index in ids.items()},
    }


def _pieces(tokenizer: Tokenizer, model: SentencePieceModel, size: int) -> list[Piece]:
    """The piece of each id; marks enclose unused ones; padding comes last if the model lacks it."""
    pieces = [
        replace(piece, text=f"{_MARK}{piece.text}{_MARK}")
        if piece.type is PieceType.UNUSED
        else piece
        for piece in model.pieces[:size]
    ]
    if len(pieces) < size:
        pieces.append(Piece(tokenizer.subword(tokenizer.pad_id), type=PieceType.CONTROL))
    return pieces


def _model(kind: str, pieces: Sequence[Piece], *, unknown: int, has_bytes: bool) -> dict[str, Any]:
    if kind == "unigram":
        scores = {PieceType.UNUSED: 0.0, PieceType.USER_DEFINED: 0.0}
        vocabulary = [
            [p.text, p.score if p.type is PieceType.NORMAL else scores.get(p.type, _NEVER)]
            for p in pieces
        ]
        return {
            "type": "Unigram",
            "unk_id": unknown,
            "vocab": vocabulary,
            "byte_fallback": has_bytes,
        }
    return {
        "type": "BPE",
        "dropout": None,
        "unk_token": pieces[unknown].text,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": True,
        "byte_fallback": has_bytes,
        "ignore_merges": not has_bytes,  # a run between marks is a piece or unknown
        "vocab": {piece.text: index for index, piece in enumerate(pieces)},
        "merges": _joins(pieces),
    }


def _joins(pieces: Sequence[Piece]) -> list[list[str]]:
    """Each pair of neighbours that forms a piece, the best piece first."""
    normal = [piece for piece in pieces if piece.type is PieceType.NORMAL]
    parts = {piece.text for piece in normal}
    parts |= {p.text for p in pieces if p.type is PieceType.USER_DEFINED and len(p.text) == 1}
    return [
        [piece.text[:place], piece.text[place:]]
        for piece in sorted(normal, key=lambda piece: -piece.score)
        for place in range(1, len(piece.text))
        if piece.text[:place] in parts and piece.text[place:] in parts
    ]


def _added_tokens(pieces: Sequence[Piece]) -> list[dict[str, Any]]:
    """Special symbols, which a decoder leaves out, and pieces that the model's maker defined."""
    special = {PieceType.CONTROL: True, PieceType.UNKNOWN: True, PieceType.USER_DEFINED: False}
    return [
        {
            "id": index,
            "content": piece.text,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": not special[piece.type],
            "special": special[piece.type],
        }
        for index, piece in enumerate(pieces)
        if piece.type in special
    ]


def _template(tokenizer: Tokenizer, pieces: Sequence[Piece]) -> dict[str, Any]:
    """The template of a text: prefix, text and end symbol."""

    def symbol(text: str) -> dict[str, Any]:
        return {"SpecialToken": {"id": text, "type_id": 0}}

    end = pieces[tokenizer.eos_id].text
    before = [symbol(text) for text in tokenizer.prefix]
    ids = {**dict(zip(tokenizer.prefix, tokenizer.prefix_ids, strict=True)), end: tokenizer.eos_id}
    first, second = ({"Sequence": {"id": name, "type_id": 0}} for name in "AB")
    return {
        "type": "TemplateProcessing",
        "single": [*before, first, symbol(end)],
        "pair": [*before, first, second, symbol(end)],
        "special_tokens": {
            text: {"id": text, "ids": [index], "tokens": [text]} for text, index in ids.items()
        },
    }


def _sentencepiece_normalisers(model: SentencePieceModel) -> list[dict[str, Any]]:
    """The normalising steps of the SentencePiece model, with ``▁`` for each space at the end."""
    options, steps = model.rest.normalizer_spec, []
    if options.precompiled_charsmap:
        table = base64.b64encode(options.precompiled_charsmap).decode()
        steps.append({"type": "Precompiled", "precompiled_charsmap": table})
    if options.remove_extra_whitespaces:
        steps += [_replace_pattern("^ +| +$", ""), _replace_pattern(" {2,}", " ")]
    if options.add_dummy_prefix:
        steps.append({"type": "Prepend", "prepend": SPACE})
    return [*steps, _replace(" ", SPACE)]


def _marks(model: SentencePieceModel) -> dict[str, Any]:
    """The step that puts a mark at both ends of each run of unknown characters."""
    pieces = (p.text for p in model.pieces if p.type in (PieceType.NORMAL, PieceType.USER_DEFINED))
    known = "".join(f"\\{c}" if c in "\\]^-[" else c for c in sorted({*SPACE}.union(*pieces)))
    before, after = f"(?<=[^{known}])", f"(?=[^{known}])"
    return _replace_pattern(f"(?<![^{known}]){after}|{before}(?![^{known}])", _MARK)


def _runs() -> dict[str, Any]:
    """The step that takes a run between marks as a word of its own."""
    pattern = {"Regex": f"{_MARK}[^{_MARK}]*{_MARK}"}
    return {"type": "Split", "pattern": pattern, "behavior": "Isolated", "invert": False}


def _text_normalisers() -> list[dict[str, Any]]:
    """The steps of :func:`glassformer.data.normaliser.normalised`."""
    spaces = "".join(filter(str.isspace, map(chr, range(sys.maxunicode + 1))))
    return [
        _replace_pattern(INVISIBLE, ""),
        *(_replace(chr(code), chr(ascii_code)) for code, ascii_code in FULLWIDTH.items()),
        {"type": "NFC"},
        _replace_pattern(f"[{spaces}]+", " "),
        _replace_pattern("^ | $", ""),
    ]


def _decoder(escapes: Sequence[tuple[str, str]], *, dummy_prefix: bool) -> dict[str, Any]:
    """The steps from pieces to a text: spaces, bytes, the first space, escaped characters."""
    steps: list[dict[str, Any]] = [
        _replace(SPACE, " "),
        {"type": "ByteFallback"},
        {"type": "Fuse"},
    ]
    if dummy_prefix:
        steps.append({"type": "Strip", "content": " ", "start": 1, "stop": 0})
    steps += [_replace(pair, character) for pair, character in escapes]
    return {"type": "Sequence", "decoders": steps}


def _replace(text: str, content: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": {"String": text}, "content": content}


def _replace_pattern(pattern: str, content: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": {"Regex": pattern}, "content": content}
