"""M2M100, NLLB-200 and mBART-50 as bundles: a pair of languages, beside transformers itself."""

import json
import shutil

import pytest
import torch

from glassformer.bundle import load_bundle, save_bundle
from glassformer.decoding.engine import Job, SearchOptions
from glassformer.decoding.sampling import Sampling
from glassformer.evaluation import evaluate
from glassformer.parts import FAST, PLAIN
from glassformer.support.errors import InputError, UsageError
from glassformer.text_engine import torch_engine
from glassformer.tools.inspection.trace.build import trace
from glassformer.tools.inspection.trace.schema import Query
from glassformer.tools.interchange.hugging_face.export import export_hugging_face
from glassformer.tools.interchange.hugging_face.load import import_hugging_face
from glassformer.training.setup.options import TrainConfig
from glassformer.training.train import train
from glassformer.translator import Translator

transformers = pytest.importorskip("transformers", reason="transformers is not installed")

FAMILIES = {
    "m2m100": ("en", "de"),
    "nllb": ("eng_Latn", "deu_Latn"),
    "mbart50": ("en_XX", "de_DE"),
}


@pytest.fixture(params=FAMILIES)
def family(request):
    return request.param


@pytest.fixture
def directory(request, family):
    return request.getfixturevalue(family)


@pytest.fixture
def tokenizer(directory, tokenizer_of):
    return tokenizer_of(directory)


def imported(directory, family):
    source, target = FAMILIES[family]
    return import_hugging_face(directory, source_language=source, target_language=target).bundle


@pytest.fixture
def bundle(directory, family):
    return imported(directory, family)


@pytest.fixture
def both(bundle, directory, tokenizer, compared):
    return compared(
        bundle,
        transformers.AutoModelForSeq2SeqLM.from_pretrained(directory),
        lambda text: tokenizer(text.strip()).input_ids,  # theirs keeps a space at the end
        forced=tokenizer.convert_tokens_to_ids(bundle.target_tokenizer.prefix[0]),
    )


def test_ids_and_logits(both, tokenizer, texts, pairs):
    expected, found = both.ids(texts)
    assert found == expected
    targets = [target for _, target in pairs]
    ours = both.bundle.target_tokenizer.encode_batch(targets)
    assert ours == [tokenizer(text_target=target).input_ids[:-1] for target in targets]
    assert both.bundle.target_tokenizer.decode(ours[0]) == tokenizer.decode(
        ours[0], skip_special_tokens=True
    )
    expected, found = both.logits(texts)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


def test_searches_find_what_generate_finds(both, texts):
    both.assert_searches_alike([texts[0], texts[2], texts[3]])


@pytest.fixture
def one(m2m100):
    """A bundle of the family whose answers are short: the rest of the program knows no family."""
    return imported(m2m100, "m2m100")


def test_a_bundle_of_it_works_everywhere(one, pairs, tmp_path):
    bundle = one
    save_bundle(bundle, tmp_path / "bundle")
    names = {path.name for path in (tmp_path / "bundle").iterdir()}
    assert names == {"config.json", "model.safetensors", "tokenizer.model", "README.md"}
    loaded = load_bundle(tmp_path / "bundle")
    assert loaded.languages == ("en", "de")
    assert loaded.source_tokenizer.prefix_ids == bundle.source_tokenizer.prefix_ids
    assert loaded.source_tokenizer.prefix_ids != loaded.target_tokenizer.prefix_ids
    translator = Translator.load(tmp_path / "bundle", device="cpu")
    sources, targets = map(list, zip(*pairs, strict=True))

    translations = translator.translate(sources, beam=1, alignment=True)
    assert any(translation.text for translation in translations)  # some write languages only
    assert any(translation.alignment for translation in translations)
    assert not any(bundle.target_tokenizer.prefix[0] in t.text for t in translations)
    plain = Translator.load(tmp_path / "bundle", device="cpu", parts=PLAIN)
    plain = plain.translate(sources, beam=1)
    assert [t.text for t in plain] == [t.text for t in translations]
    fast = Translator.load(tmp_path / "bundle", device="cpu", engine="ctranslate2")
    options = {"beam": 5, "length_penalty": 0.0}
    ours = translator.translate(sources, **options)
    for mine, theirs in zip(ours, fast.translate(sources, **options), strict=True):
        assert theirs.text == mine.text
        assert theirs.score == pytest.approx(mine.score, abs=1e-4)
    assert evaluate(translator, sources, targets).chrf >= 0
    drawn = translator.translate(sources[:1], sampling=Sampling(seed=3))
    assert drawn[0].score < 0


def test_ctranslate2_itself_begins_with_the_language(nllb, pairs, tmp_path):
    bundle = imported(nllb, "nllb")
    save_bundle(bundle, tmp_path / "bundle")
    fast = Translator.load(tmp_path / "bundle", device="cpu", engine="ctranslate2")
    job = Job([bundle.source_tokenizer.encode(source) for source, _ in pairs])
    options = SearchOptions(beam=1, length_penalty=0.0)

    results = fast.engine._translated(job.sources, options)

    for result in results:
        assert [names[0] for names in result.hypotheses] == [*bundle.target_tokenizer.prefix]
    found = fast.engine.decode(job, options)
    lengths = map(len, job.sources)
    own = [fast.engine._ranked(*each, options) for each in zip(results, lengths, strict=True)]
    assert any(own)  # torch does not decode all of them
    assert all(mine in ([], theirs) for mine, theirs in zip(own, found, strict=True))


def test_the_score_of_a_pair_is_the_search_s(one, pairs):
    bundle, translator = one, Translator(one)
    source = pairs[0][0]
    [translation] = translator.translate([source], beam=4, length_penalty=0.0)
    tokens = bundle.target_tokenizer.encode(translation.text)
    engine = torch_engine(bundle.model, translator.tokenizers, FAST)
    job = Job([bundle.source_tokenizer.encode(source)], [tokens])
    [[forced]] = engine.decode(job, SearchOptions(beam=4, length_penalty=0.0))

    assert forced.finished
    assert list(forced.tokens) == tokens
    [score] = translator.score([source], [translation.text])
    assert score == pytest.approx(forced.log_probability, abs=1e-4)
    [prefixed] = translator.translate([source], prefixes=["Ein Hund"])
    assert prefixed.text.startswith("Ein Hund")


def test_a_trace_shows_the_languages(one, pairs):
    bundle, (source, target) = one, pairs[0]
    traced = trace(bundle, Query(source, reference=target))

    assert traced.source.pieces[0].piece == bundle.source_tokenizer.prefix[0]
    assert traced.source.pieces[0].word is None
    assert traced.source.pieces[1].word == 0
    assert traced.target.pieces[0].piece == bundle.target_tokenizer.prefix[0]
    assert [step.forced for step in traced.steps[:2]] == [True, False]
    assert traced.answer.text == Translator(bundle).translate([source])[0].text
    [score] = Translator(bundle).score([source], [target])
    assert traced.reference.log_probability == pytest.approx(score, abs=1e-4)


def test_faulty_directories(directory, family, tmp_path):
    source, target = FAMILIES[family]
    with pytest.raises(UsageError, match=r"target_language is missing: this model has \d+ lan"):
        import_hugging_face(directory, source_language=source)
    with pytest.raises(UsageError, match=rf"source_language '{source}x': .*mean '{source}'"):
        import_hugging_face(directory, source_language=f"{source}x", target_language=target)
    copied = shutil.copytree(directory, tmp_path / "model")
    options = (copied / "tokenizer_config.json").read_text()
    for tokens, message in (
        ('{"9999": "<mask>"}', r"config\.json has \d+ tokens, but a token has the id"),
        ('{"7": {}}', "added_tokens_decoder.7 None: expected text"),
    ):
        faulty = f'{options[:-1]}, "added_tokens_decoder": {tokens}}}'
        (copied / "tokenizer_config.json").write_text(faulty)
        with pytest.raises(InputError, match=message):
            imported(copied, family)
    (copied / "tokenizer_config.json").write_text(options)
    (copied / "special_tokens_map.json").unlink()
    with pytest.raises(InputError, match="no language token stands in tokenizer_config"):
        imported(copied, family)
    shutil.copy(directory / "special_tokens_map.json", copied)
    (copied / "sentencepiece.bpe.model").unlink()
    with pytest.raises(InputError, match=r"bpe\.model: cannot be read: No such file"):
        imported(copied, family)
    (copied / "tokenizer_config.json").write_text(f'{options[:-1]}, "legacy_behaviour": true}}')
    with pytest.raises(InputError, match="legacy_behaviour puts the language behind a text"):
        imported(copied, family)
    (copied / "tokenizer_config.json").write_text('{"tokenizer_class": "SMALL100Tokenizer"}')
    with pytest.raises(
        InputError, match=r"'SMALL100Tokenizer': another tokenizer: for a \w+ model"
    ):
        imported(copied, family)


@pytest.mark.parametrize("beside", [True, False])
@pytest.mark.parametrize("name", ["marian", *FAMILIES])
def test_tokens_that_a_fine_tuner_added_are_named(with_added, name, beside):
    source, target = FAMILIES.get(name, (None, None))
    languages = {"source_language": source, "target_language": target}
    for special in (False, True):
        directory = with_added(name, special=special, beside=beside)
        with pytest.raises(InputError, match="the token '<ent>' was added to SentencePiece's"):
            import_hugging_face(directory, **languages)


def test_tokens_that_older_versions_added_are_named(marian, tmp_path):
    copied = shutil.copytree(marian, tmp_path / "model")
    (copied / "added_tokens.json").write_text('{"<ent>": 90}')
    with pytest.raises(InputError, match="the token '<ent>' was added to SentencePiece's"):
        import_hugging_face(copied)


def test_a_fine_tuned_model_goes_back_with_its_languages(one, pairs, tmp_path):
    parent = one
    save_bundle(parent, tmp_path / "parent")
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs * 4))

    train(
        TrainConfig(
            pairs=[path],
            valid=[path],
            parent=tmp_path / "parent",
            run=tmp_path / "child",
            updates=2,
            device="cpu",
            threads=1,
        )
    )

    child = load_bundle(tmp_path / "child")
    assert child.source_tokenizer.fingerprint == parent.source_tokenizer.fingerprint
    assert child.target_tokenizer.prefix == ("__de__",)
    assert child.languages == ("en", "de")
    export_hugging_face(child, tmp_path / "out")
    model = transformers.M2M100ForConditionalGeneration.from_pretrained(tmp_path / "out").eval()
    start, end = model.config.decoder_start_token_id, model.config.eos_token_id
    source = torch.tensor([[*child.source_tokenizer.encode(pairs[0][0]), end]])
    target = torch.tensor([[start, 5, 6]])
    with torch.no_grad():
        theirs = model(input_ids=source, decoder_input_ids=target).logits
        ours = child.model(source, target)
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)
    assert not torch.equal(child.model.output_weight, parent.model.output_weight)


@pytest.mark.parametrize("name", ["marian", *FAMILIES])
def test_a_trimmed_child_goes_back_to_its_family(request, name, pairs, tmp_path):
    """Both sides of a joint vocabulary keep the subwords that either side needs."""
    source, target = FAMILIES.get(name, (None, None))
    languages = {"source_language": source, "target_language": target}
    parent = import_hugging_face(request.getfixturevalue(name), **languages).bundle
    save_bundle(parent, tmp_path / "parent")
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{first}\t{second}\n" for first, second in pairs[:1] * 9))
    run = {"parent": tmp_path / "parent", "run": tmp_path / "child", "trim_vocabulary": True}
    train(TrainConfig(pairs=[path], valid=[path], updates=2, device="cpu", threads=1, **run))

    child = load_bundle(tmp_path / "child")
    ours = child.source_tokenizer
    assert ours.vocab_size == child.target_tokenizer.vocab_size < parent.source_tokenizer.vocab_size
    first, second = (t.subwords(text) for t, text in zip(child.tokenizers, pairs[0], strict=True))
    assert first == parent.source_tokenizer.subwords(pairs[0][0])
    assert second == parent.target_tokenizer.subwords(pairs[0][1])
    assert Translator(child).translate([pairs[0][0]], beam=1)
    if name in ("marian", "mbart50"):  # BPE that is trimmed has no tokenizer.json
        export_hugging_face(child, tmp_path / "out")
        exported = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
        text = pairs[0][1]
        assert exported(text).input_ids == [*ours.encode(text), ours.eos_id]


def test_the_first_mbart_is_refused(mbart50, tmp_path):
    copied = shutil.copytree(mbart50, tmp_path / "model")
    path = copied / "tokenizer_config.json"
    for content in ({"tokenizer_class": "MBartTokenizer"}, {}):
        path.write_text(json.dumps(content))
        with pytest.raises(InputError, match="the first mBART has its language behind a text: f"):
            imported(copied, "mbart50")
