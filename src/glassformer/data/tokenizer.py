"""Turns text into subword ids and back, without the loss of a character.

One :class:`Tokenizer` wraps one SentencePiece model. A model that is trained here has byte
fallback: a character outside the vocabulary becomes its UTF-8 bytes. By default such a model has no
normalisation, so ``decode(encode(text)) == text`` for any text. SentencePiece alone would lose
U+2581 (``▁``), because it writes a space as U+2581. This module escapes U+2581 in a text.

A person may bring another SentencePiece model. Without byte fallback, an unknown character becomes
the unknown symbol. Decoding does not undo the model's own normalisation.

A multilingual model reads the language as the first subwords, the prefix of the tokenizer.
"""

from collections.abc import Iterable, Sequence
from copy import copy
from functools import cached_property
from itertools import compress, pairwise
from pathlib import Path
from typing import SupportsInt

import sentencepiece

from glassformer.support.cores import usable_cores
from glassformer.support.errors import InputError, check_kind, check_texts
from glassformer.support.files import write_atomically
from glassformer.support.hashes import sha256
from glassformer.support.strangers import read_bytes, shown

__all__ = [
    "BOS",
    "EOS",
    "ESCAPES",
    "MOST_BYTES",
    "PAD",
    "SPACE",
    "UNK",
    "Tokenizer",
    "escaped",
    "require_unicode",
]

PAD, UNK, BOS, EOS = 0, 1, 2, 3  # the special symbols of every model that is trained here
MOST_BYTES = 256 << 20
"""The greatest size of a model's file in bytes; a million subwords take a tenth."""
SPACE = "\u2581"  # SentencePiece's character for a space
_ESCAPE = "\ufdd0"  # a noncharacter: Unicode keeps it for use inside programs like this one
ESCAPES = {_ESCAPE + "_": SPACE, _ESCAPE + "=": _ESCAPE}
"""The characters that the model never sees, by the two characters that replace each one."""

# SentencePiece's byte pieces of white space.
_BLANK_BYTES = frozenset(f"<0x{code:02X}>" for code in range(128) if chr(code).isspace())


class Tokenizer:
    """One SentencePiece model with its symbols, which turns text into ids and back.

    The model sets the ids of the special symbols. If the model lacks only padding, like BPEmb's
    models, padding gets an id after the last subword. Errors call the model ``name``.

    ``prefix`` holds the subwords before every text, such as the language ``deu_Latn``. ``decode``
    leaves control symbols out. ``known`` is the size of a vocabulary of the model's first subwords
    alone, as in Marian. A later subword is unknown. None means a vocabulary of all subwords.

    >>> from glassformer.data.subword_training import train_tokenizer
    >>> tokenizer = train_tokenizer(["the cat sat", "the dog sat"], vocab_size=400)
    >>> tokenizer.subwords("the cat"), tokenizer.decode(tokenizer.encode("the cow ▁ 🐄"))
    (['▁the', '▁cat'], 'the cow ▁ 🐄')
    """

    def __init__(
        self,
        serialized: bytes,
        *,
        name: str = "tokenizer model",
        prefix: Sequence[str] = (),
        known: int | None = None,
    ) -> None:
        check_kind(serialized, bytes, wants="Tokenizer takes bytes (see Tokenizer.load)")
        self.serialized = serialized
        self.prefix = tuple(prefix)
        self.known = known
        self._model = _parse(serialized, name)
        pieces = self._model.get_piece_size() if known is None else known
        if not 0 < pieces <= self._model.get_piece_size():
            raise InputError(
                f"{name}: a list of {known} subwords, expected 1 to {self._model.get_piece_size()}"
            )
        pad = self._model.pad_id()
        self.pad_id: int = pad if pad >= 0 else pieces
        self.unk_id: int = self._model.unk_id()
        self.bos_id: int = self._model.bos_id()
        self.eos_id: int = self._model.eos_id()
        self.vocab_size: int = pieces if pad >= 0 else pieces + 1
        fallback = compress(range(pieces), self._model.is_byte(list(range(pieces))))
        self.byte_ids: frozenset[int] = frozenset(fallback)  # of the bytes of unknown characters
        controls = compress(range(pieces), self._model.is_control(list(range(pieces))))
        self.symbols: frozenset[int] = frozenset({self.pad_id, self.bos_id, self.eos_id, *controls})
        self.prefix_ids = tuple(map(self._model.piece_to_id, self.prefix))
        _require_symbols(self, name)

    @classmethod
    def load(
        cls, path: str | Path, *, prefix: Sequence[str] = (), known: int | None = None
    ) -> "Tokenizer":
        """Read a SentencePiece model of at most 256 MiB.

        Any other file, and a model that lacks a symbol, raises :class:`InputError`.
        """
        serialized = read_bytes(Path(path), most_bytes=MOST_BYTES)
        return cls(serialized, name=str(path), prefix=prefix, known=known)

    def with_prefix(self, prefix: Sequence[str]) -> "Tokenizer":
        """The tokenizer of another prefix; both share one SentencePiece model."""
        other = copy(self)
        vars(other).pop("fingerprint", None)
        other.prefix = tuple(prefix)
        other.prefix_ids = tuple(map(self._model.piece_to_id, other.prefix))
        _require_symbols(other, "tokenizer model")
        return other

    def save(self, path: str | Path) -> None:
        """Write the model; a killed process leaves the old file or the new file, whole."""
        write_atomically(Path(path), self.serialized)

    def encode(self, text: str) -> list[int]:
        """The ids of ``text``, with the prefix, but without start and end symbol."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str], *, prefixed: bool = True) -> list[list[int]]:
        """The ids of many texts at once, on several threads.

        Without ``prefixed``, no text has the prefix. A text without subwords never has a prefix.
        """
        check_texts("texts", texts)
        escaped = self._escaped(texts)
        if len(escaped) == 1:  # a thread takes longer to begin than one text does
            encoded = [self._model.encode(escaped[0])]
        else:
            encoded = self._model.encode(escaped, num_threads=_threads(len(escaped)))
        if self.known is not None:
            encoded = list(map(self._looked_up, escaped, encoded))
        if self.prefix and prefixed:
            return [[*self.prefix_ids, *ids] if ids else [] for ids in encoded]
        return encoded

    def _looked_up(self, text: str, ids: list[int]) -> list[int]:
        """The ids in the known vocabulary; neighbouring unknown characters give one id."""
        odd = {self.unk_id, self.pad_id}.intersection(ids)
        if not odd and max(ids, default=0) < self.vocab_size:
            return ids
        listed = map(self._model.piece_to_id, self._model.encode(text, out_type=str))
        unknown = {self.pad_id, self.bos_id, self.eos_id}  # no text holds them
        return [self.unk_id if i in unknown or i >= self.vocab_size else i for i in listed]

    def decode(self, ids: Iterable[SupportsInt]) -> str:
        """The text of ``ids``, without control symbols; the unknown symbol becomes ``⁇``."""
        return self.decode_batch([ids])[0]

    def decode_batch(self, batch: Iterable[Iterable[SupportsInt]]) -> list[str]:
        """The texts of many lists of ids at once, on several threads."""
        kept = [self._without_symbols(ids) for ids in batch]
        if len(kept) == 1 and kept[0]:
            return [_unescape(self._model.decode(kept[0]))]
        return [_unescape(t) for t in self._model.decode(kept, num_threads=_threads(len(kept)))]

    def _without_symbols(self, ids: Iterable[SupportsInt]) -> list[int]:
        kept = [index for index in map(int, ids) if index not in self.symbols]
        if kept and not 0 <= min(kept) <= max(kept) < self.vocab_size:
            outside = next(index for index in kept if not 0 <= index < self.vocab_size)
            raise ValueError(f"token id {outside}: expected 0 to {self.vocab_size - 1}")
        return kept

    @cached_property
    def fingerprint(self) -> str:
        """The hash of the model and of all settings that change the ids of a text."""
        changed = self.prefix or self.known is not None
        settings = repr((self.prefix, self.known)) if changed else ""
        return sha256(self.serialized + settings.encode())

    @cached_property
    def blank_ids(self) -> frozenset[int]:
        """The ids of the subwords of white space alone, such as a space as a byte.

        >>> from glassformer.data.subword_training import train_tokenizer
        >>> tokenizer = train_tokenizer(["a b", "a c"], vocab_size=300)
        >>> sorted(map(tokenizer.subword, tokenizer.blank_ids))[-2:]
        ['<0x20>', '▁']
        """
        pieces = enumerate(map(self.subword, range(self.vocab_size)))
        return frozenset(
            index
            for index, piece in pieces
            if piece.replace(SPACE, " ").isspace() or piece in _BLANK_BYTES
        )

    def tears(self, word: str, *, begins: bool = True) -> bool:
        """Whether the tokenizer has only letters for a word, or no subword that begins the word.

        The word has two letters or more, and the first may be a capital. Without ``begins``, the
        word stands behind a sign, so that another subword may begin it.

        >>> from glassformer.data.subword_training import train_tokenizer
        >>> tokenizer = train_tokenizer(["the cat sat"] * 3, vocab_size=300)
        >>> tokenizer.subwords("heat"), tokenizer.tears("heat"), tokenizer.tears("cat")
        (['▁', 'he', 'at'], True, False)
        """
        ids = self.encode_batch([word], prefixed=False)[0]
        if self._letters.intersection(ids[:1]) and not self._letters.issuperset(ids):
            ids = self.encode_batch([word.lower()], prefixed=False)[0]
        return self._letters.issuperset(ids) or (begins and self.subword(ids[0]) == SPACE)

    def may_tear(self, text: str) -> bool:
        """Whether the tokenizer may tear a word of a text, without a look at each word."""
        [ids] = self.encode_batch([text], prefixed=False)
        return any(x in self._letters and y in self._inner for x, y in pairwise(ids))

    def lacks(self, ids: Sequence[int]) -> bool:
        """Whether bytes or the unknown symbol stand for a character without a subword."""
        return self.unk_id in ids or not self.byte_ids.isdisjoint(ids)

    @cached_property
    def _letters(self) -> frozenset[int]:
        """The ids of the subwords of one letter, but of no syllable, of bytes, and of a space."""
        pieces = ((n, self.subword(n).removeprefix(SPACE)) for n in range(self.vocab_size))
        single = (n for n, x in pieces if not x or (x.isalpha() and len(x) == 1 and x < "가"))
        return self.byte_ids.union(single)

    @cached_property
    def _inner(self) -> frozenset[int]:
        """The ids of the subwords that begin with a letter inside a word, and of bytes."""
        ids = range(self.vocab_size)
        return self.byte_ids.union(n for n in ids if self.subword(n)[:1].isalpha())

    @cached_property
    def cuts_subwords(self) -> bool:
        """Whether the model is BPE or unigram; other kinds cut only words, or all characters."""
        try:  # these two kinds alone can draw a segmentation
            self._model.encode("a", enable_sampling=True, alpha=0.1, nbest_size=-1)
        except RuntimeError:
            return False
        return True

    def subwords(self, text: str) -> list[str]:
        """The subwords of ``text`` as strings; ``▁`` marks the beginning of a word."""
        return [self.subword(index) for index in self.encode(text)]

    def subword(self, index: int) -> str:
        """The subword with the id ``index``, in the model's spelling."""
        if not 0 <= index < self.vocab_size:
            raise ValueError(f"token id {index}: expected 0 to {self.vocab_size - 1}")
        if index == self._model.get_piece_size():  # the padding that the model lacks
            return "<pad>"
        return self._model.id_to_piece(int(index))

    def _escaped(self, texts: Sequence[str]) -> list[str]:
        require_unicode(texts)
        # Without byte fallback the escape itself could be an unknown character.
        return [escaped(text) for text in texts] if self.byte_ids else list(texts)

    def __repr__(self) -> str:
        return f"Tokenizer(vocab_size={self.vocab_size}, fingerprint={self.fingerprint[:12]!r})"


def _threads(texts: int) -> int:
    return min(8, usable_cores(), 1 + texts // 64)  # a thread is worth its start for 64 texts


def escaped(text: str) -> str:
    """The text that a model with byte fallback reads, without the character ``▁``."""
    return text.replace(_ESCAPE, _ESCAPE + "=").replace(SPACE, _ESCAPE + "_")


def _unescape(text: str) -> str:
    return text.replace(_ESCAPE + "_", SPACE).replace(_ESCAPE + "=", _ESCAPE)


def require_unicode(texts: Iterable[str]) -> None:
    """Raise InputError for half a surrogate pair, which is no Unicode text."""
    for number, text in enumerate(texts, start=1):
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InputError(
                f"text {number}: character {error.start + 1} ({text[error.start]!r}) is half a "
                "surrogate pair, not Unicode text; read the text as UTF-8"
            ) from None


def _parse(serialized: bytes, name: str) -> sentencepiece.SentencePieceProcessor:
    model = sentencepiece.SentencePieceProcessor()
    try:
        # Empty bytes are a valid empty message: they would load as a model without subwords.
        usable = bool(serialized) and model.load_from_serialized_proto(serialized)
        pieces = model.id_to_piece(list(range(model.get_piece_size()))) if usable else []
    except (RuntimeError, UnicodeDecodeError):
        pieces = []
    if not pieces:
        raise InputError(
            f"{name}: not a SentencePiece model; expected the binary .model file "
            "(not the .vocab list beside it)"
        )
    return model


def _require_symbols(tokenizer: Tokenizer, name: str) -> None:
    ids = {"start (<s>)": tokenizer.bos_id, "end (</s>)": tokenizer.eos_id}
    missing = [symbol for symbol, index in ids.items() if index < 0]
    if missing:  # SentencePiece itself allows no model without an unknown symbol
        raise InputError(
            f"{name}: the tokenizer lacks the symbols {', '.join(missing)}; train it with bos_id "
            "and eos_id of 0 or more, or leave the tokenizer out to learn one from the text"
        )
    for piece, index in zip(tokenizer.prefix, tokenizer.prefix_ids, strict=True):
        if index == tokenizer.unk_id or index >= tokenizer.vocab_size:
            lacking = f"the tokenizer lacks the subword {shown(piece)} of its prefix"
            raise InputError(f"{name}: {lacking}")
