"""Learns the subwords of a corpus with SentencePiece: BPE (Sennrich et al. 2016), or unigrams (Kudo
2018).

A model trained here has byte fallback, and by default no normalisation.
"""

import io
import random
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any, get_args

import sentencepiece

from glassformer.config import Subwords
from glassformer.data.tokenizer import BOS, EOS, PAD, UNK, Tokenizer, escaped, require_unicode
from glassformer.support.errors import InputError, UsageError, check_choice, check_texts

__all__ = ["SMALLEST_VOCABULARY", "train_tokenizer"]

SMALLEST_VOCABULARY = 300  # 256 bytes, 4 special symbols, and a few subwords of text
_LARGEST_VOCABULARY = 1_000_000
_TRAINING_LINES = 2_000_000  # more lines take memory, and change no subwords
_LINE_CHARACTERS = 4_000  # SentencePiece would drop longer lines, so they are cut
_TRAINING_THREADS = 4  # a constant: the number of threads changes the sums of the unigram model


def train_tokenizer(
    lines: Iterable[str],
    *,
    vocab_size: int,
    kind: str = "bpe",
    character_coverage: float = 1.0,
    normalization: str = "identity",
    seed: int = 0,
) -> Tokenizer:
    """Learn the subwords of ``lines``; equal lines and options give equal bytes.

    ``kind`` is "bpe" or "unigram"; ``normalization`` is "identity" or Unicode's "nfkc". The
    function reads ``lines`` once; of more than two million lines, ``seed`` draws two million. If
    the corpus is too small for ``vocab_size``, the tokenizer's ``vocab_size`` is smaller. If the
    characters do not fit, or ``character_coverage`` is below 1, the rarest become bytes.
    """
    check_texts("lines", lines)
    _check_options(vocab_size, kind, character_coverage, normalization)
    sample = _sample(lines, seed)
    if not any(sample):
        raise InputError("no text to learn subwords from: every line is empty")
    require_unicode(sample)
    options: dict[str, Any] = {
        "vocab_size": vocab_size,
        "model_type": kind,
        "normalization_rule_name": normalization,
        "character_coverage": character_coverage,
    }
    try:
        return _train(map(escaped, sample), options)
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
    """All lines, or a uniform sample if the lines are too many (reservoir sampling)."""
    remaining = iter(lines)
    sample = list(islice(remaining, _TRAINING_LINES))
    generator = random.Random(seed)
    for number, line in enumerate(remaining, start=len(sample) + 1):
        place = int(generator.random() * number)
        if place < _TRAINING_LINES:
            sample[place] = line
    return sample


def _without_rare_characters(lines: list[str], characters: int) -> Iterator[str]:
    """The lines with the most frequent characters; a space replaces each other character."""
    counts = Counter(chain.from_iterable(map(escaped, lines)))
    kept = {character for character, _ in counts.most_common(characters)}
    for line in lines:
        yield "".join(character if character in kept else " " for character in escaped(line))
