"""Tokenizers with the subwords of a corpus alone."""

import pytest

from glassformer.data.sentencepiece_model import Piece, PieceType, SentencePieceModel
from glassformer.data.subword_training import train_tokenizer
from glassformer.data.tokenizer import Tokenizer
from glassformer.data.trimming import trim_tokenizer

TEXTS = [
    "A dog runs over the green field.",
    "Zwei Hunde rennen über die Wiese.",
    "Собака бежит по полю.",
    "The children are running home, 12 of them.",
]
AWKWARD = ["Überraschung▁ 🐄", "qqq Zebra 7", "  two  spaces ", "", "Zwei children rennen"]


@pytest.fixture(scope="module", params=["bpe", "unigram"])
def tokenizer(request):
    return train_tokenizer(TEXTS * 9, vocab_size=400, kind=request.param)


def test_texts_have_the_subwords_of_before(tokenizer):
    trimmed, kept = trim_tokenizer(tokenizer, TEXTS[:2])
    assert trimmed.vocab_size == len(kept) < tokenizer.vocab_size
    assert [trimmed.subword(i) for i in range(len(kept))] == [tokenizer.subword(i) for i in kept]
    for text in TEXTS[:2]:
        ids = trimmed.encode(text)
        assert [kept[index] for index in ids] == tokenizer.encode(text)
        assert trimmed.decode(ids) == text


def test_other_texts_are_cut_into_smaller_subwords_without_loss(tokenizer):
    trimmed, _ = trim_tokenizer(tokenizer, TEXTS[:2])
    assert len(trimmed.encode(TEXTS[3])) > len(tokenizer.encode(TEXTS[3]))
    for text in [*TEXTS, *AWKWARD]:
        ids = trimmed.encode(text)
        assert max(ids, default=0) < trimmed.vocab_size
        assert trimmed.unk_id not in ids
        assert trimmed.decode(ids) == text


def test_letters_of_the_scripts_stay_and_others_go(tokenizer):
    trimmed, _ = trim_tokenizer(tokenizer, TEXTS[:1])
    subwords = {trimmed.subword(index) for index in range(trimmed.vocab_size)}
    assert {"ü", "W", "1", "."} <= subwords
    assert not subwords & {"б", "ю"}


def test_marks_go_with_the_letters_of_their_script():
    """A vowel sign of Devanagari is no letter by itself."""
    tokenizer = train_tokenizer(["a cat", "की कि"] * 9, vocab_size=300)
    for text, stays in (("a cat", False), ("क", True)):
        trimmed, _ = trim_tokenizer(tokenizer, [text])
        subwords = {trimmed.subword(index) for index in range(trimmed.vocab_size)}
        assert ({"ि", "ी"} <= subwords) == stays


def test_symbols_keep_their_ids(tokenizer):
    trimmed, _ = trim_tokenizer(tokenizer, ["x"])
    for name in ("pad_id", "unk_id", "bos_id", "eos_id"):
        assert getattr(trimmed, name) == getattr(tokenizer, name)


def test_a_prefix_and_symbols_at_the_end_stay(tokenizer):
    model = SentencePieceModel.parse(tokenizer.serialized)
    turned = [*model.pieces[4:], *model.pieces[:4], Piece("__de__", type=PieceType.CONTROL)]
    prefixed = Tokenizer(model.with_pieces(turned, {}).serialized(), prefix=("__de__",))
    trimmed, kept = trim_tokenizer(prefixed, TEXTS[:1])
    assert [kept[index] for index in trimmed.encode(TEXTS[0])] == prefixed.encode(TEXTS[0])
    assert kept[trimmed.eos_id] == prefixed.eos_id
    assert trimmed.eos_id < 4


def test_the_padding_that_a_model_lacks_has_a_row(tokenizer):
    model = SentencePieceModel.parse(tokenizer.serialized)
    lacking = model.with_pieces(model.pieces[1:], {"pad": "none such"})
    without = Tokenizer(lacking.serialized())
    assert without.pad_id == without.vocab_size - 1
    trimmed, kept = trim_tokenizer(without, TEXTS[:1])
    assert kept[trimmed.pad_id] == without.pad_id
    assert trimmed.decode(trimmed.encode(TEXTS[0])) == TEXTS[0]


def test_a_vocabulary_that_is_a_list_of_its_own_is_trimmed(tokenizer):
    listed = Tokenizer(tokenizer.serialized, known=tokenizer.vocab_size - 20)
    trimmed, kept = trim_tokenizer(listed, TEXTS)
    for text in TEXTS:
        assert [kept[index] for index in trimmed.encode(text)] == listed.encode(text)
