"""mBART-50 and Pegasus as bundles: ids, numbers and translations of transformers."""

import json
import shutil

import pytest
import torch

from glassformer.bundle import load_bundle, save_bundle
from glassformer.decoding.engine import Job, SearchOptions
from glassformer.errors import InputError
from glassformer.inspection.trace.build import trace
from glassformer.interchange.hugging_face.load import import_hugging_face
from glassformer.text_engine import torch_engine
from glassformer.translator import Translator

transformers = pytest.importorskip("transformers", reason="transformers is not installed")

FAMILIES = {
    "mbart50": ("MBart", {"source_language": "en_XX", "target_language": "de_DE"}),
    "pegasus": ("Pegasus", {}),
}


@pytest.fixture(params=FAMILIES)
def both(request, compared):
    name, languages = FAMILIES[request.param]
    directory, tokenizer = request.getfixturevalue(request.param)
    bundle = import_hugging_face(directory, **languages).bundle
    [*prefix] = bundle.target_tokenizer.prefix
    return compared(
        bundle,
        getattr(transformers, f"{name}ForConditionalGeneration").from_pretrained(directory),
        lambda text: tokenizer(text.strip()).input_ids,  # theirs keeps a space at the end
        forced=tokenizer.convert_tokens_to_ids(prefix[0]) if prefix else None,
    )


def test_ids_and_logits(both, texts):
    expected, found = both.ids(texts)
    assert found == expected
    expected, found = both.logits(texts)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


def test_searches_find_what_generate_finds(both, texts):
    bundle = both.bundle
    engine = torch_engine(bundle.model, (bundle.source_tokenizer, bundle.target_tokenizer))
    for beam in (1, 4):
        for text in texts[:6] if beam == 1 else texts[:1]:  # a search takes a second
            job = Job([bundle.source_tokenizer.encode(text)])
            options = SearchOptions(beam=beam, length_penalty=0.0)
            [[found]] = engine.submit(job, options).result()
            tokens, score = both.generated(text, beam=beam, alpha=0.0)
            assert list(found.tokens) == tokens
            if score is not None:
                assert found.score == pytest.approx(score, abs=1e-3)


def test_a_bundle_of_it_works_everywhere(both, pairs, tmp_path):
    save_bundle(both.bundle, tmp_path / "bundle")
    translator = Translator.load(tmp_path / "bundle", device="cpu")
    sources = [source for source, _ in pairs[:3]]

    options = {"beam": 3, "length_penalty": 0.0}
    translations = translator.translate(sources, **options)
    fast = Translator.load(tmp_path / "bundle", device="cpu", engine="ctranslate2")
    for ours, theirs in zip(translations, fast.translate(sources, **options), strict=True):
        assert theirs.text == ours.text
        assert theirs.score == pytest.approx(ours.score, abs=1e-4)
    traced = trace(translator, sources[0], **options)
    assert traced.answer.text == translations[0].text
    again = load_bundle(tmp_path / "bundle").model
    assert all(map(torch.equal, again.parameters(), both.bundle.model.parameters()))


def test_the_first_mbart_is_refused(mbart50, tmp_path):
    copied = shutil.copytree(mbart50[0], tmp_path / "model")
    path = copied / "tokenizer_config.json"
    for content in ({"tokenizer_class": "MBartTokenizer"}, {}):
        path.write_text(json.dumps(content))
        with pytest.raises(InputError, match="of a mbart model, import reads MBart50Tokenizer"):
            import_hugging_face(copied)
