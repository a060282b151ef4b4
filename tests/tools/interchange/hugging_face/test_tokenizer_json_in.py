"""Directories that transformers 5 saves: SentencePiece is made anew from ``tokenizer.json``."""

import json
import random

import pytest

from glassformer.data.sentencepiece_model import PieceType
from glassformer.support.errors import InputError
from glassformer.tools.interchange.hugging_face.load import import_hugging_face
from glassformer.tools.interchange.piece_order import read_sentencepiece

pytest.importorskip("transformers", reason="transformers is not installed")

PAIR = {"source_language": "en", "target_language": "de"}


@pytest.fixture
def lines(pairs, texts):
    """A thousand lines of whole and cut words, of other scripts, and of awkward spaces."""
    draw = random.Random(1)
    words = " ".join(text for pair in pairs for text in pair).split()
    endings = ["", " ", "x", "é", "e\u0301", "ßH", "🐕", "ﬁ½", "…", "日本", *words]
    mixed = [
        " ".join(draw.choice(words)[: draw.randint(1, 9)] + draw.choice(endings) for _ in range(6))
        for _ in range(1000)
    ]
    return [*texts, *mixed]


@pytest.mark.parametrize("family", ["m2m100", "nllb", "mbart50"])
def test_the_ids_are_those_of_transformers(saved_by_5, tokenizer_of, lines, family):
    directory = saved_by_5(family)
    names = {path.name for path in directory.iterdir()}
    assert ("sentencepiece.bpe.model" in names) == (family == "m2m100")
    bundle, tokenizer = import_hugging_face(directory, **PAIR).bundle, tokenizer_of(directory)
    source, target = bundle.tokenizers

    texts = [text.strip() for text in lines]  # theirs keeps a space at the end
    ours = source.encode_batch(texts), target.encode_batch(texts)
    assert ours[0] == [tokenizer(text).input_ids[:-1] for text in texts]
    assert ours[1] == [tokenizer(text_target=text).input_ids[:-1] for text in texts]
    assert len({index for ids in ours[0] for index in ids}) > 80
    for ids in ours[1][:50]:
        if target.unk_id not in ids:
            assert target.decode(ids) == tokenizer.decode(ids, skip_special_tokens=True)


@pytest.mark.parametrize("family", ["nllb", "mbart50"])
def test_the_model_is_the_one_that_transformers_read(saved_by_5, request, family):
    original = read_sentencepiece(request.getfixturevalue(family) / "sentencepiece.bpe.model")
    rebuilt = read_sentencepiece(saved_by_5(family) / "tokenizer.json")

    assert rebuilt.kind == original.kind
    table = original.rest.normalizer_spec.precompiled_charsmap
    assert rebuilt.rest.normalizer_spec.precompiled_charsmap == table
    first, second = (
        [p.text for p in model.pieces if p.type is PieceType.NORMAL]
        for model in (original, rebuilt)
    )
    assert first == second
    controls = {piece.text for piece in rebuilt.pieces if piece.type is PieceType.CONTROL}
    assert {"<s>", "</s>", "<pad>", "<unk>", "<mask>"} < controls


def normaliser(*steps):
    return {"type": "Sequence", "normalizers": list(steps)}


BPE = {"type": "BPE", "vocab": {"a": 1}}
SPACES = {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}
WORD = {"content": "Glassformer", "special": False}
METASPACE = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never", "split": True}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"normalizer": None}, "normalizer None: expected an object"),
        ({"normalizer": normaliser()}, "normalizer.normalizers.0: it is missing"),
        (
            {"normalizer": normaliser({"type": "Lowercase"}, SPACES)},
            "normalizer.normalizers.0.type 'Lowercase': expected 'Precompiled'",
        ),
        ({"pre_tokenizer": {"type": "ByteLevel"}}, "pre_tokenizer.type 'ByteLevel': expected 'Met"),
        ({"pre_tokenizer": METASPACE}, "pre_tokenizer.prepend_scheme 'never': expected 'always'"),
        ({"added_tokens": [WORD]}, "the token 'Glassformer' was added to SentencePiece's"),
        ({"model": {"type": "WordPiece"}}, "model.type 'WordPiece': expected 'BPE' or 'Unigram'"),
        ({"model": BPE | {"byte_fallback": True}}, "model.byte_fallback True: expected False"),
        ({"model": BPE | {"fuse_unk": False}}, "model.fuse_unk False: expected True"),
        (
            {"model": {"type": "Unigram", "vocab": [["a", 0], ["a", -1]]}},
            "model.vocab has a piece twice",
        ),
        ({"model": BPE}, "the ids of model.vocab have gaps"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_another_tokenizer_is_refused(saved_by_5, change, message):
    path = saved_by_5("nllb") / "tokenizer.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    refused(path, message)


def refused(path, message):
    with pytest.raises(InputError) as caught:
        import_hugging_face(path.parent, **PAIR)
    assert str(caught.value).startswith(f"{path}: {message}")
    assert str(caught.value).endswith("copy the SentencePiece model from the original")
    assert "\n" not in str(caught.value)


def test_joins_that_sentencepiece_cannot_have_are_refused(saved_by_5):
    """A BPE that transformers itself has learnt has one join for a piece, not all of them."""
    path = saved_by_5("nllb") / "tokenizer.json"
    content = json.loads(path.read_text())
    merges = content["model"]["merges"]
    pieces = ["".join(pair) for pair in merges]
    place = next(i for i, piece in enumerate(pieces) if pieces.count(piece) > 1)
    for changed in (merges[:place] + merges[place + 1 :], [*merges, merges[0]]):
        content["model"]["merges"] = changed
        path.write_text(json.dumps(content))
        refused(path, "model.merges: not all joins of a piece stand together: import reads only")
    path.write_text("{")
    refused(path, "not JSON, or cut short (Invalid JSON: EOF while parsing")
