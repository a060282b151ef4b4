"""MarianMT (OPUS-MT) as a bundle: the ids, the numbers and the translations of transformers."""

import json
import random
import shutil

import pytest
import torch

from glassformer.bundle import load_bundle, save_bundle
from glassformer.evaluation import evaluate
from glassformer.tools.inspection.trace.build import trace
from glassformer.tools.interchange.hugging_face.load import import_hugging_face
from glassformer.translator import Translator

transformers = pytest.importorskip("transformers", reason="transformers is not installed")


def tokenizer_of(directory):
    tokenizer = transformers.MarianTokenizer.from_pretrained(directory)
    tokenizer.punc_normalizer = lambda text: text  # Moses's, if sacremoses is there
    return tokenizer


def beside(compared, directory, *, prefix=""):
    """An imported bundle beside its original."""
    code = prefix.strip("<>") or None
    tokenizer = tokenizer_of(directory)
    return compared(
        import_hugging_face(directory, target_language=code).bundle,
        transformers.MarianMTModel.from_pretrained(directory),
        lambda text: tokenizer(prefix + text).input_ids,
    )


@pytest.mark.parametrize("shared", [True, False])
def test_ids_and_logits(make_marian, compared, texts, tmp_path, shared):
    both = beside(compared, make_marian(tmp_path / "model", shared=shared))

    expected, found = both.ids(texts)
    assert found == expected
    expected, found = both.logits(texts)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_ids_of_mixed_texts(make_marian, pairs, tmp_path, kind):
    directory = make_marian(tmp_path / "model", kind=kind)
    bundle, theirs = import_hugging_face(directory).bundle, tokenizer_of(directory)
    draw = random.Random(1)
    words = " ".join(text for pair in pairs for text in pair).split()
    endings = ["", "x", "é", "ßH", "🐕", *words]
    texts = [
        " ".join(draw.choice(words)[: draw.randint(1, 9)] + draw.choice(endings) for _ in range(5))
        for _ in range(300)
    ]

    assert bundle.source_tokenizer.encode_batch(texts) == [
        theirs(text).input_ids[:-1] for text in texts
    ]
    targets = bundle.target_tokenizer.encode_batch(texts)
    assert targets == [theirs(text_target=text).input_ids[:-1] for text in texts]
    known = [ids for ids in targets if bundle.target_tokenizer.unk_id not in ids]
    assert len(known) > 50
    assert [text.strip() for text in bundle.target_tokenizer.decode_batch(known)] == [
        theirs.decode(ids) for ids in known
    ]


def test_searches_find_what_generate_finds(marian, compared, texts):
    beside(compared, marian).assert_searches_alike([texts[0], texts[2]])


def test_a_bundle_of_it_works_everywhere(marian, pairs, tmp_path):
    bundle = import_hugging_face(marian).bundle
    save_bundle(bundle, tmp_path / "bundle")
    loaded = load_bundle(tmp_path / "bundle")
    assert loaded.languages == ("en", "de")
    assert loaded.source_tokenizer.encode("a ß HE") == bundle.source_tokenizer.encode("a ß HE")
    translator = Translator.load(tmp_path / "bundle", device="cpu")
    sources, targets = map(list, zip(*pairs, strict=True))

    sources, targets = sources[:2], targets[:2]
    translations = translator.translate(sources, alignment=True)
    fast = Translator.load(tmp_path / "bundle", device="cpu", engine="ctranslate2")
    for ours, theirs in zip(translations, fast.translate(sources), strict=True):
        assert theirs.text == ours.text
        assert theirs.score == pytest.approx(ours.score, abs=1e-4)
    assert all(score < 0 for score in translator.score(sources, targets))
    assert evaluate(translator, sources, targets).chrf >= 0
    traced = trace(translator, sources[0])
    assert traced.answer.text == translations[0].text
    assert [piece.piece for piece in traced.source.pieces][-1] == "</s>"


def test_a_target_language_stands_before_each_source(make_marian, compared, texts, tmp_path):
    directory = make_marian(tmp_path / "model", languages=("deu", "fra"))
    both = beside(compared, directory, prefix=">>fra<<")

    expected, found = both.ids(texts)
    assert found == expected
    assert {ids[0] for ids in found} == {both.bundle.source_tokenizer.prefix_ids[0]}
    assert both.bundle.languages == ("en", "fr")
    save_bundle(both.bundle, tmp_path / "bundle")
    loaded = load_bundle(tmp_path / "bundle")
    assert loaded.source_tokenizer.prefix == (">>fra<<",)
    other = loaded.between(None, "deu")
    assert other.source_tokenizer.prefix == (">>deu<<",)
    assert other.languages == ("en", "de")


def test_a_saved_bundle_has_the_same_weights(marian, tmp_path):
    bundle = import_hugging_face(marian).bundle
    save_bundle(bundle, tmp_path / "bundle")
    again = load_bundle(tmp_path / "bundle").model.state_dict()
    for name, weight in bundle.model.state_dict().items():
        assert torch.equal(again[name], weight)


def test_half_precision_in_several_files(marian, tmp_path):
    model = transformers.MarianMTModel.from_pretrained(marian).half()
    model.save_pretrained(tmp_path / "model", max_shard_size="20KB")
    tokenizer_of(marian).save_pretrained(tmp_path / "model")
    assert len(list((tmp_path / "model").glob("*.safetensors"))) > 2

    found, whole = (import_hugging_face(d).bundle for d in (tmp_path / "model", marian))

    assert found.source_tokenizer.encode("A dog") == whole.source_tokenizer.encode("A dog")
    for half, weight in zip(found.model.parameters(), whole.model.parameters(), strict=True):
        assert torch.equal(half, weight.half().float())


def test_search_options_without_a_place_are_said(marian, tmp_path):
    directory = shutil.copytree(marian, tmp_path / "model")
    options = json.loads((directory / "generation_config.json").read_text())
    options |= {"length_penalty": 2.0, "no_repeat_ngram_size": 3, "num_beams": 6, "max_length": 99}
    (directory / "generation_config.json").write_text(json.dumps(options))

    imported = import_hugging_face(directory)

    assert imported.bundle.length_penalty == 2.5
    assert imported.notes[1:] == (
        "a bundle holds none of these search options of the model: no_repeat_ngram_size 3,"
        " num_beams 6, max_length 99",
    )
