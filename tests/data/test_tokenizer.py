import io
import random

import numpy as np
import pytest
import sentencepiece
from hypothesis import example, given
from hypothesis import strategies as st

from glassformer.data import subword_training as module
from glassformer.data.sentencepiece_model import Piece, PieceType, SentencePieceModel
from glassformer.data.subword_training import train_tokenizer
from glassformer.data.tokenizer import BOS, EOS, PAD, UNK, Tokenizer
from glassformer.data.words import knows_no_word
from glassformer.support.errors import InputError, UsageError
from tests.tables import every

WORDS = ["ein", "eine", "der", "Hund", "Hunde", "Katze", "läuft", "spielt", "Park", "alte"]


def corpus(lines: int = 400) -> list[str]:
    chance = random.Random(0)
    return [" ".join(chance.choices(WORDS, k=chance.randint(2, 9))) for _ in range(lines)]


def foreign_model(**options) -> bytes:
    """A model as another program would train it; by default with BPEmb's symbols."""
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(corpus()),
        model_writer=written,
        hard_vocab_limit=False,
        minloglevel=2,
        **{"vocab_size": 80, "model_type": "bpe"} | options,
    )
    return written.getvalue()


@pytest.fixture(scope="module", params=["bpe", "unigram"])
def tokenizer(request) -> Tokenizer:
    return train_tokenizer(corpus(), vocab_size=400, kind=request.param)


@pytest.fixture(scope="module")
def bpemb() -> Tokenizer:
    return Tokenizer(foreign_model())


AWKWARD = [
    *["", " ", "   ", " a", "a ", "  a  b  ", "\t", "a\tb"],  # spaces
    *["a\nb", "\n", "\r", "a\r\n", "\0", "a\0b", "\x01\x7f", "a\u2028b\u0085"],  # control
    *["▁", "▁▁", "a▁b", " ▁ a", "⁇", " ⁇ "],  # what SentencePiece writes itself
    *["\ufdd0", "\ufdd0_", "\ufdd0=▁", "\ufdd0\ufdd0▁_=", "_="],  # what the escape writes
    *["<unk>", "<s>", "</s>", "<pad>", "<0x41>", "a<0x41>b"],  # names of symbols
    *["\ufeffa", "\u00a0\u3000", "\u200b", "\U0010ffff", "\ue000"],
    *["😀👩‍👩‍👧", "e\u0301é", "漢字かな", "Hund " * 300],
]


@every("text", AWKWARD)
def test_awkward_text_comes_back(tokenizer, text):
    assert tokenizer.decode(tokenizer.encode(text)) == text


@given(st.text(st.sampled_from(" ▁_=\ufdd0\ufdd1aHund\n\t\0<>ü😀") | st.characters(codec="utf-8")))
@example("▁ \ufdd0=")
def test_any_text_comes_back(tokenizer, text):
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert not {PAD, UNK, BOS, EOS} & set(ids)


def test_text_is_also_exact_where_the_escapes_were_in_the_training_text():
    tokenizer = train_tokenizer(["a▁b \ufdd0_ \ufdd0= ▁▁"] * 50, vocab_size=400)
    for text in ("a▁b", "▁_=\ufdd0", "\ufdd0=_▁▁ a"):
        assert tokenizer.decode(tokenizer.encode(text)) == text


def test_special_symbols_have_their_fixed_ids(tokenizer):
    assert (tokenizer.pad_id, tokenizer.unk_id, tokenizer.bos_id, tokenizer.eos_id) == (0, 1, 2, 3)
    assert [tokenizer.subword(i) for i in range(4)] == ["<pad>", "<unk>", "<s>", "</s>"]


def test_decode_leaves_out_specials_and_takes_numpy_integers(tokenizer):
    ids = [BOS, *tokenizer.encode("der Hund"), EOS, PAD, PAD]
    assert tokenizer.decode(ids) == "der Hund"
    assert tokenizer.decode(np.array(ids, dtype=np.uint16)) == "der Hund"


def test_many_are_decoded_as_one_by_one(tokenizer):
    batch = [tokenizer.encode("der Hund"), [], [BOS, EOS], tokenizer.encode("▁\n")]
    assert tokenizer.decode_batch(batch) == [tokenizer.decode(ids) for ids in batch]
    assert tokenizer.decode_batch([]) == []


def test_pieces_are_the_words_where_all_are_known(tokenizer):
    assert tokenizer.subwords("der Hund spielt") == ["▁der", "▁Hund", "▁spielt"]


@pytest.mark.parametrize("index", [-1, 10**6])
def test_an_id_outside_the_vocabulary_is_named(tokenizer, index):
    message = f"token id {index}: expected 0 to {tokenizer.vocab_size - 1}"
    with pytest.raises(ValueError, match=message):
        tokenizer.decode([5, index])
    with pytest.raises(ValueError, match=message):
        tokenizer.subword(index)


def test_half_a_surrogate_pair_is_an_error_that_says_where(tokenizer):
    with pytest.raises(InputError, match=r"text 2: character 3 .*\\udc80.* half a surrogate pair"):
        tokenizer.encode_batch(["fine", "ab\udc80"])
    with pytest.raises(InputError, match="half a surrogate pair"):
        train_tokenizer(["fine", "\ud800"], vocab_size=400)


def test_a_batch_equals_its_texts_one_by_one(tokenizer):
    texts = [*corpus(50), *AWKWARD]
    assert tokenizer.encode_batch(texts) == [tokenizer.encode(text) for text in texts]
    assert tokenizer.encode_batch([]) == []


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_training_twice_gives_the_same_bytes(kind):
    first, second, other = (
        train_tokenizer(iter(corpus(n)), vocab_size=380, kind=kind) for n in (400, 400, 300)
    )
    assert first.serialized == second.serialized
    assert first.fingerprint == second.fingerprint != other.fingerprint


@every("kind", ["bpe", "unigram"])
@every("lines", [["Hallo Welt", "hello world"], ["a"], ["", " "], ["▁"], ["\0"]])
def test_a_tiny_corpus_gives_a_smaller_vocabulary(kind, lines):
    tokenizer = train_tokenizer(lines, vocab_size=8000, kind=kind)
    assert 260 < tokenizer.vocab_size < 320
    for text in [*lines, "anything ▁ else"]:
        assert tokenizer.decode(tokenizer.encode(text)) == text


@pytest.mark.parametrize("lines", [[], [""], ["", ""]])
def test_no_text_is_an_error(lines):
    with pytest.raises(InputError, match="no text to learn subwords from"):
        train_tokenizer(lines, vocab_size=400)


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
@pytest.mark.parametrize("vocab_size", [300, 700])
def test_more_characters_than_fit_are_left_to_the_bytes(kind, vocab_size):
    lines = [chr(0x4E00 + i) * (2 + 3 * (i < 50)) + " ab" for i in range(2000)]
    tokenizer = train_tokenizer(lines, vocab_size=vocab_size, kind=kind)
    assert 280 <= tokenizer.vocab_size <= vocab_size
    assert tokenizer.decode(tokenizer.encode(lines[0] + lines[-1])) == lines[0] + lines[-1]
    assert len(tokenizer.encode(chr(0x4E00))) < len(tokenizer.encode(chr(0x4E00 + 1999)))


def test_coverage_below_one_leaves_the_rarest_characters_to_the_bytes():
    lines = ["Hund Katze " * 20] * 10 + ["漢"]
    whole, partial = (
        train_tokenizer(lines, vocab_size=400, character_coverage=c) for c in (1.0, 0.99)
    )
    assert len(whole.subwords("漢")) < len(partial.subwords("漢")) == 4


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_very_long_lines_and_words_are_learnt_from(kind, capfd):
    tokenizer = train_tokenizer(["Hundekatze " * 10_000, "xy" * 40_000], vocab_size=300, kind=kind)
    assert len(tokenizer.subwords("Hundekatze")) <= 2
    captured = capfd.readouterr()
    assert captured.out == captured.err == ""  # nor does SentencePiece talk


def test_a_corpus_beyond_the_limit_is_sampled_from_end_to_end(monkeypatch):
    monkeypatch.setattr(module, "_TRAINING_LINES", 500)
    lines = ["vorne"] * 2000 + ["hinten"] * 2000
    sample = module._sample(iter(lines), seed=3)
    assert len(sample) == 500
    assert 150 < sample.count("vorne") < 350
    assert sample == module._sample(iter(lines), seed=3) != module._sample(iter(lines), seed=4)


def test_nfkc_is_an_option():
    lines = [*corpus(50), "ﬁne ①"]
    plain = train_tokenizer(lines, vocab_size=350)
    nfkc = train_tokenizer(lines, vocab_size=350, normalization="nfkc")
    assert plain.decode(plain.encode("ﬁne ①")) == "ﬁne ①"
    assert nfkc.decode(nfkc.encode("ﬁne ①")) == "fine 1"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vocab_size": 299}, "vocab_size 299: expected 300 .* to 1,000,000"),
        (
            {"kind": "unigramm"},
            r"'unigramm': expected bpe, unigram \(did you mean 'unigram'",
        ),
        ({"normalization": "nfc"}, "normalization 'nfc': expected identity, nfkc"),
        ({"character_coverage": 0.5}, "character_coverage 0.5: expected 0.98 to 1"),
        ({"character_coverage": 1.1}, "character_coverage 1.1: expected 0.98 to 1"),
    ],
)
def test_wrong_options_are_named(options, message):
    with pytest.raises(UsageError, match=message):
        train_tokenizer(["a"], **{"vocab_size": 400} | options)


def test_save_and_load(tokenizer, tmp_path):
    path = tmp_path / "tokenizer.model"
    tokenizer.save(path)
    tokenizer.save(path)
    loaded = Tokenizer.load(str(path))
    assert loaded.serialized == tokenizer.serialized
    assert loaded.encode("der Hund") == tokenizer.encode("der Hund")
    assert [entry.name for entry in tmp_path.iterdir()] == ["tokenizer.model"]


@pytest.mark.parametrize("content", [b"", b"der\t0\nHund\t-1\n" * 50, b"\0" * 1000])
def test_a_file_that_is_no_model_is_named(tmp_path, content, capfd):
    path = tmp_path / "some.vocab"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"some.vocab: not a SentencePiece model; expected"):
        Tokenizer.load(path)
    assert capfd.readouterr().err == ""


def test_a_cut_off_model_is_named(tokenizer, tmp_path):
    path = tmp_path / "tokenizer.model"
    path.write_bytes(tokenizer.serialized[: len(tokenizer.serialized) // 2])
    with pytest.raises(InputError, match=r"tokenizer.model: not a SentencePiece model"):
        Tokenizer.load(path)


def test_a_missing_file_or_a_directory_is_named(tmp_path):
    with pytest.raises(InputError, match=r"absent.model: cannot be read: No such file"):
        Tokenizer.load(tmp_path / "absent.model")
    with pytest.raises(InputError, match="a directory, expected a regular file: name a file"):
        Tokenizer.load(tmp_path)


def test_a_bpemb_model_gets_the_padding_that_it_lacks(bpemb):
    assert (bpemb.unk_id, bpemb.bos_id, bpemb.eos_id) == (0, 1, 2)
    assert bpemb.pad_id == bpemb.vocab_size - 1
    assert bpemb.subword(bpemb.pad_id) == "<pad>"
    ids = bpemb.encode("der alte Hund")
    assert max(ids) < bpemb.pad_id
    assert bpemb.decode([bpemb.bos_id, *ids, bpemb.eos_id, bpemb.pad_id]) == "der alte Hund"


def test_without_bytes_an_unknown_character_is_the_unknown_symbol(bpemb):
    assert bpemb.unk_id in bpemb.encode("漢")
    assert "⁇" in bpemb.decode(bpemb.encode("Hund 漢"))
    assert bpemb.decode(bpemb.encode("der▁Hund")) == "der Hund"  # not escaped into unknowns


@pytest.mark.parametrize(
    ("options", "symbols"),
    [
        ({"bos_id": -1}, r"start \(<s>\)"),
        ({"eos_id": -1}, r"end \(</s>\)"),
        ({"bos_id": -1, "eos_id": -1}, r"start \(<s>\), end \(</s>\)"),
    ],
)
def test_missing_symbols_are_named(tmp_path, options, symbols):
    path = tmp_path / "t5.model"
    path.write_bytes(foreign_model(**options))
    with pytest.raises(InputError, match=rf"t5.model: the tokenizer lacks the symbols {symbols}; "):
        Tokenizer.load(path)


def test_a_prefix_stands_before_every_text_and_is_no_text():
    plain = train_tokenizer(["a dog", "a cat"] * 3, vocab_size=300)
    control = SentencePieceModel.parse(plain.serialized)
    pieces = [*control.pieces, Piece("deu_Latn", type=PieceType.CONTROL)]
    tokenizer = Tokenizer(control.with_pieces(pieces, {}).serialized(), prefix=["deu_Latn"])
    language = plain.vocab_size

    assert tokenizer.prefix_ids == (language,)
    assert tokenizer.encode("a dog") == [language, *plain.encode("a dog")]
    assert tokenizer.encode_batch(["a dog", "", "a cat"]) == [
        [language, *plain.encode("a dog")],
        [],
        [language, *plain.encode("a cat")],
    ]
    assert tokenizer.encode_batch(["a dog"], prefixed=False) == [plain.encode("a dog")]
    assert tokenizer.encode("deu_Latn")[1:] == plain.encode("deu_Latn")
    assert tokenizer.decode(tokenizer.encode("a dog")) == "a dog"
    assert tokenizer.fingerprint != Tokenizer(tokenizer.serialized).fingerprint
    with pytest.raises(InputError, match="x: the tokenizer lacks the subword 'fra_Latn' of its"):
        Tokenizer(tokenizer.serialized, name="x", prefix=["fra_Latn"])


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_vocabulary_that_is_a_list_of_its_own(kind):
    cuts = SentencePieceModel.parse(foreign_model(model_type=kind, pad_id=3))
    whole = Tokenizer(cuts.serialized())
    lost = whole.subwords("Hund Katze")[-1]
    listed = [piece for piece in cuts.pieces if piece.text != lost]
    foreign = [Piece(text, -999.0, PieceType.UNUSED) for text in ("é", "ßß", "éa")]
    rest = [piece for piece in cuts.pieces if piece.text == lost]
    known = len(listed) + len(foreign)
    model = cuts.with_pieces([*listed, *foreign, *rest], {})
    tokenizer = Tokenizer(model.serialized(), known=known)
    unknown = tokenizer.unk_id

    assert tokenizer.vocab_size == known
    # A subword of SentencePiece that the list lacks, and one of the list that it lacks.
    assert tokenizer.encode("Hund Katze") == [*tokenizer.encode("Hund Katze")[:-1], unknown]
    for text, last in (("ein é", "é"), ("ein ßß", "ßß"), ("ein ß", "<unk>"), ("éa", "a")):
        assert tokenizer.subwords(text)[-1] == last
    assert tokenizer.encode("der Hund") == [
        tokenizer._model.piece_to_id(text) for text in whole.subwords("der Hund")
    ]
    assert tokenizer.decode(tokenizer.encode("ein é")) == "ein é"


@pytest.mark.parametrize("kind", ["bpe", "char", "word"])
def test_words_of_the_training_are_known_by_any_kind_of_tokenizer(kind):
    tokenizer = Tokenizer(foreign_model(model_type=kind, vocab_size=400))
    for word in WORDS:
        assert not knows_no_word(tokenizer, f"{word}."), word
    assert knows_no_word(tokenizer, "Ψυχή Ωδή")
