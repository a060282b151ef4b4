"""Text to subword ids and back, without the loss of a character.

One :class:`Tokenizer` wraps one SentencePiece model. A model that is trained here has byte
fallback: a character outside the vocabulary becomes its UTF-8 bytes. By default it has no
normalisation, so ``decode(encode(text)) == text`` for any text. SentencePiece alone breaks that
promise for one character: it writes a space as U+2581 (``▁``). This file escapes that character,
reversibly.

A person may bring another SentencePiece model. Without byte fallback, an unknown character
becomes the unknown symbol; changes of the model's own normalisation stay.

A multilingual model reads its language as the first subwords: a tokenizer has them as its prefix.

Sources: Sennrich et al. 2016 (BPE), Kudo 2018 (unigram).
"""

import io
import os
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain, compress, islice
from pathlib import Path
from typing import Any, SupportsInt, get_args

import sentencepiece

from glassformer.config import Subwords
from glassformer.errors import InputError, UsageError, check_choice
from glassformer.files import read_regular, write_atomically
from glassformer.hashes import sha256

__all__ = [
    "BOS",
    "EOS",
    "ESCAPES",
    "PAD",
    "SMALLEST_VOCABULARY",
    "SPACE",
    "UNK",
    "Tokenizer",
    "train_tokenizer",
]

PAD, UNK, BOS, EOS = 0, 1, 2, 3  # the special symbols of every model that is trained here
_LARGEST_VOCABULARY = 1_000_000
_MOST_BYTES = 256 << 20  # of a model's file; those of a million subwords have a tenth
SMALLEST_VOCABULARY = 300  # 256 bytes, 4 special symbols, and a few subwords of text
SPACE = "\u2581"  # SentencePiece writes it for a space
_ESCAPE = "\ufdd0"  # a noncharacter: Unicode keeps it for use inside programs like this one
ESCAPES = {_ESCAPE + "_": SPACE, _ESCAPE + "=": _ESCAPE}
"""The characters that the model never sees, by the two characters that stand for each."""

# Bytes of white space, as SentencePiece writes them.
_BLANK_BYTES = frozenset(f"<0x{code:02X}>" for code in range(128) if chr(code).isspace())
_TRAINING_LINES = 2_000_000  # more lines do not change the subwords, only the memory
_LINE_CHARACTERS = 4_000  # longer lines are cut: SentencePiece would drop them
_TRAINING_THREADS = 4  # a constant: the number of threads changes the sums of the unigram model


class Tokenizer:
    """One SentencePiece model: its symbols, and the way from text to ids and back.

    The ids of the special symbols are the model's own. If only padding is missing (as in BPEmb's
    models), it gets an id after the last subword. Errors call the model ``name``.

    ``prefix``: subwords that stand before every text, such as the language ``deu_Latn``. ``decode``
    leaves control symbols out. ``known``: the size of a vocabulary that is a list of its own, as
    Marian's is: the first subwords of the model. Each subword of a text is looked up there. None:
    the vocabulary is the model's.

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
        self._has_bytes = any(map(self._model.is_byte, range(pieces)))
        controls = compress(range(pieces), self._model.is_control(list(range(pieces))))
        self.symbols: frozenset[int] = frozenset({self.pad_id, self.bos_id, self.eos_id, *controls})
        self.prefix_ids = tuple(map(self._model.piece_to_id, self.prefix))
        _require_symbols(self, name)

    @classmethod
    def load(
        cls, path: str | Path, *, prefix: Sequence[str] = (), known: int | None = None
    ) -> "Tokenizer":
        """Read a SentencePiece model of at most 256 MiB.

        :class:`InputError` if it is none, no regular file, or lacks a symbol.
        """
        try:
            serialized = read_regular(Path(path), most_bytes=_MOST_BYTES)
        except OSError as error:
            raise InputError(
                f"{path}: cannot read the tokenizer ({error.strerror}); "
                "expected a SentencePiece model such as tokenizer.model"
            ) from None
        return cls(serialized, name=str(path), prefix=prefix, known=known)

    def save(self, path: str | Path) -> None:
        """Write the model; a kill on the way leaves the old file or the new one, whole."""
        write_atomically(Path(path), self.serialized)

    def encode(self, text: str) -> list[int]:
        """The ids of ``text``, with the prefix and no start or end symbol."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str], *, prefixed: bool = True) -> list[list[int]]:
        """The ids of many texts at once, on several threads.

        Without ``prefixed``, the prefix is left out. A text without subwords has none either.
        """
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
        """The ids of a text's subwords in the list; unknown characters side by side are one."""
        if self.unk_id not in ids and max(ids, default=0) < self.vocab_size:
            return ids
        found = map(self._model.piece_to_id, self._model.encode(text, out_type=str))
        unknown = {self.pad_id, self.bos_id, self.eos_id}  # no text holds them
        return [self.unk_id if i in unknown or i >= self.vocab_size else i for i in found]

    def decode(self, ids: Iterable[SupportsInt]) -> str:
        """The text of ``ids``; control symbols are left out, unknown shows as ``⁇``."""
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
        """The hash of all that the ids of a text depend on."""
        changed = self.prefix or self.known is not None
        settings = repr((self.prefix, self.known)) if changed else ""
        return sha256(self.serialized + settings.encode())

    @cached_property
    def blank_ids(self) -> frozenset[int]:
        """The subwords of white space alone, as spaces and line ends in bytes are.

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

    def subwords(self, text: str) -> list[str]:
        """The subwords of ``text`` as strings; ``▁`` marks the beginning of a word."""
        return [self.subword(index) for index in self.encode(text)]

    def subword(self, index: int) -> str:
        """The subword with this id, as the model writes it."""
        if not 0 <= index < self.vocab_size:
            raise ValueError(f"token id {index}: expected 0 to {self.vocab_size - 1}")
        if index == self._model.get_piece_size():  # the padding that the model lacks
            return "<pad>"
        return self._model.id_to_piece(int(index))

    def _escaped(self, texts: Sequence[str]) -> list[str]:
        _require_unicode(texts)
        # Without byte fallback the escape itself could be an unknown character.
        return [_escape(text) for text in texts] if self._has_bytes else list(texts)

    def __repr__(self) -> str:
        return f"Tokenizer(vocab_size={self.vocab_size}, fingerprint={self.fingerprint[:12]!r})"


def train_tokenizer(
    lines: Iterable[str],
    *,
    vocab_size: int,
    kind: str = "bpe",
    character_coverage: float = 1.0,
    normalization: str = "identity",
    seed: int = 0,
) -> Tokenizer:
    """Learn the subwords of ``lines``; the same lines and options give the same bytes.

    ``kind`` is "bpe" or "unigram"; ``normalization`` is "identity" or "nfkc" (Unicode's).
    ``lines`` is read once; of more than two million lines, ``seed`` draws two million. If the
    corpus is too small for ``vocab_size``, the tokenizer's ``vocab_size`` is smaller. If its
    characters do not fit, the rarest become bytes, as with ``character_coverage`` below 1.
    """
    _check_options(vocab_size, kind, character_coverage, normalization)
    sample = _sample(lines, seed)
    if not any(sample):
        raise InputError("no text to learn subwords from: every line is empty")
    _require_unicode(sample)
    options: dict[str, Any] = {
        "vocab_size": vocab_size,
        "model_type": kind,
        "normalization_rule_name": normalization,
        "character_coverage": character_coverage,
    }
    try:
        return _train(map(_escape, sample), options)
    except RuntimeError as error:
        if "required_chars" not in str(error):
            raise
    room = vocab_size - 256 - 4  # without bytes and special symbols; subwords need half
    return _train(_without_rare_characters(sample, room // 2), options)


def _train(lines: Iterable[str], options: dict[str, Any]) -> Tokenizer:
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=(
            line[start : start + _LINE_CHARACTERS]
            for line in lines
            for start in range(0, len(line), _LINE_CHARACTERS)
        ),
        model_writer=written,
        pad_id=PAD,
        unk_id=UNK,
        bos_id=BOS,
        eos_id=EOS,
        byte_fallback=True,
        add_dummy_prefix=True,
        split_digits=True,  # the model copies an unseen number digit by digit
        remove_extra_whitespaces=False,
        hard_vocab_limit=False,  # a small corpus gives fewer subwords, not an error
        max_sentence_length=4 * _LINE_CHARACTERS + 4,  # in bytes
        num_threads=_TRAINING_THREADS,
        minloglevel=2,
        **options,
    )
    return Tokenizer(written.getvalue())


def _check_options(vocab_size: int, kind: str, coverage: float, normalization: str) -> None:
    if not SMALLEST_VOCABULARY <= vocab_size <= _LARGEST_VOCABULARY:
        raise UsageError(
            f"vocab_size {vocab_size}: expected {SMALLEST_VOCABULARY} (256 bytes, 4 special symbols"
            f" and some subwords) to {_LARGEST_VOCABULARY:,}"
        )
    if not 0.98 <= coverage <= 1.0:
        raise UsageError(f"character_coverage {coverage}: expected 0.98 to 1")
    check_choice("kind", kind, get_args(Subwords))
    check_choice("normalization", normalization, ("identity", "nfkc"))


def _sample(lines: Iterable[str], seed: int) -> list[str]:
    """All lines, or a uniform sample of too many (reservoir sampling)."""
    remaining = iter(lines)
    sample = list(islice(remaining, _TRAINING_LINES))
    generator = random.Random(seed)
    for number, line in enumerate(remaining, start=len(sample) + 1):
        place = int(generator.random() * number)
        if place < _TRAINING_LINES:
            sample[place] = line
    return sample


def _without_rare_characters(lines: list[str], characters: int) -> Iterator[str]:
    """The lines with only their most frequent characters; a space stands for each other one."""
    counts = Counter(chain.from_iterable(map(_escape, lines)))
    kept = {character for character, _ in counts.most_common(characters)}
    for line in lines:
        yield "".join(character if character in kept else " " for character in _escape(line))


def _threads(texts: int) -> int:
    return min(8, os.cpu_count() or 1, 1 + texts // 64)  # a thread is worth its start for 64 texts


def _escape(text: str) -> str:
    return text.replace(_ESCAPE, _ESCAPE + "=").replace(SPACE, _ESCAPE + "_")


def _unescape(text: str) -> str:
    return text.replace(_ESCAPE + "_", SPACE).replace(_ESCAPE + "=", _ESCAPE)


def _require_unicode(texts: Iterable[str]) -> None:
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
            raise InputError(f"{name}: the tokenizer lacks the subword {piece!r} of its prefix")
