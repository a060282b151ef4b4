"""Pieces of SentencePiece models, read and written."""

import io
import sys

import pytest
import sentencepiece
from google.protobuf import runtime_version
from google.protobuf.runtime_version import VersionError

from glassformer.data.sentencepiece_model import Piece, PieceType, SentencePieceModel
from glassformer.data.tokenizer import Tokenizer
from glassformer.support.errors import InputError


def trained(**options) -> bytes:
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["ein Hund läuft", "eine Katze sitzt 日本"] * 20),
        model_writer=written,
        hard_vocab_limit=False,
        minloglevel=2,
        **options,
    )
    return written.getvalue()


OPTIONS = [
    {"vocab_size": 60, "model_type": "unigram"},
    {"vocab_size": 60, "model_type": "bpe", "normalization_rule_name": "identity"},
    {"vocab_size": 320, "byte_fallback": True, "user_defined_symbols": ["<a>", "日本"]},
]


@pytest.mark.parametrize("options", OPTIONS)
def test_every_piece_is_read_as_sentencepiece_reads_it(options):
    serialized = trained(**options)
    oracle = sentencepiece.SentencePieceProcessor(model_proto=serialized)
    model = SentencePieceModel.parse(serialized)

    assert len(model.pieces) == oracle.get_piece_size()
    for index, piece in enumerate(model.pieces):
        assert piece.text == oracle.id_to_piece(index)
        assert piece.score == oracle.get_score(index)
        assert (piece.type is PieceType.BYTE) == oracle.is_byte(index)
        assert (piece.type is PieceType.CONTROL) == oracle.is_control(index)
        assert (piece.type is PieceType.UNKNOWN) == oracle.is_unknown(index)
    assert SentencePieceModel.parse(model.serialized()) == model


@pytest.mark.parametrize("options", OPTIONS)
def test_pieces_in_another_order_cut_as_before(options):
    serialized = trained(**options)
    oracle = sentencepiece.SentencePieceProcessor(model_proto=serialized)
    model = SentencePieceModel.parse(serialized)
    symbols = {"unk": "<what>", "bos": "<go>", "eos": "<stop>", "pad": "<fill>"}
    special = (PieceType.UNKNOWN, PieceType.CONTROL)
    pieces = [piece for piece in reversed(model.pieces) if piece.type not in special]
    pieces += [Piece(symbols[name], type=PieceType.CONTROL) for name in ("pad", "eos", "bos")]
    pieces.append(Piece(symbols["unk"], type=PieceType.UNKNOWN))
    turned = sentencepiece.SentencePieceProcessor(
        model_proto=model.with_pieces(pieces, symbols).serialized()
    )

    for text in ("ein Hund läuft", "Katzen  sitzen ☃ <a>日本", "</s>", "<stop>", "ﬁ\t▁x"):
        assert turned.encode(text, out_type=str) == oracle.encode(text, out_type=str)
    last = len(pieces) - 1
    found = [turned.unk_id(), turned.bos_id(), turned.eos_id(), turned.pad_id()]
    assert found == [last, last - 1, last - 2, last - 3]
    assert "<stop>" not in turned.encode("a <stop>", out_type=str)


def test_other_bytes_are_refused():
    serialized = trained(**OPTIONS[0])
    no_text = serialized.replace("▁".encode(), b"\xff\xff\xff")
    for faulty in (serialized[:-3], serialized[:100], b"\xff" * 9, b"{}", b"", no_text):
        with pytest.raises(InputError, match=r"x\.spm: not a SentencePiece model, or cut short"):
            SentencePieceModel.parse(faulty, name="x.spm")


def test_a_self_test_of_the_old_order_stays_behind():
    serialized = trained(**OPTIONS[0])
    self_test = b"\x22\x08\x0a\x06\x0a\x01a\x12\x01b"  # field 4: a sample, "a" becomes "b"
    model = SentencePieceModel.parse(serialized + self_test)
    assert model == SentencePieceModel.parse(serialized)
    assert self_test not in model.serialized()


def newer(*_):
    raise VersionError("the code was generated for a newer protobuf")


@pytest.mark.parametrize("cause", ["absent", "old"])
def test_without_protobuf_the_extra_is_named(monkeypatch, cause):
    module = "sentencepiece.sentencepiece_model_pb2"
    if cause == "absent":
        monkeypatch.setitem(sys.modules, module, None)
    else:
        monkeypatch.delitem(sys.modules, module, raising=False)
        monkeypatch.setattr(runtime_version, "ValidateProtobufRuntimeVersion", newer)
    tokenizer = Tokenizer(trained(**OPTIONS[0]))  # it needs none
    assert tokenizer.decode(tokenizer.encode("ein Hund")) == "ein Hund"
    with pytest.raises(InputError, match=r"protobuf: pip install 'glassformer\[import\]'$"):
        SentencePieceModel.parse(tokenizer.serialized)


def test_the_options_of_segmentation():
    options = {"normalization_rule_name": "identity", "add_dummy_prefix": False}
    options |= {"remove_extra_whitespaces": False, "treat_whitespace_as_suffix": True}
    model = SentencePieceModel.parse(trained(vocab_size=60, model_type="bpe", **options))
    again = model.with_pieces(model.pieces, {"unk": "<unk>"})
    for each in (model, again):
        assert each.kind == "bpe"
        assert each.rest.trainer_spec.treat_whitespace_as_suffix
        assert not each.rest.normalizer_spec.add_dummy_prefix
        assert not each.rest.normalizer_spec.remove_extra_whitespaces
        assert not each.rest.normalizer_spec.precompiled_charsmap
