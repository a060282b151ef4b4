"""Models of transformers that CTranslate2's own converter wrote: numbers and languages stay."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from glassformer.parts import FAST
from glassformer.support.errors import InputError, UsageError
from glassformer.tools.interchange.ctranslate2.export import export_ctranslate2
from glassformer.tools.interchange.ctranslate2.reading.load import import_ctranslate2_model
from glassformer.tools.interchange.hugging_face.export import export_hugging_face
from glassformer.tools.interchange.hugging_face.load import import_hugging_face
from tests.own_parts import rebuilt

transformers = pytest.importorskip("transformers", reason="transformers is not installed")
converters = pytest.importorskip("ctranslate2.converters", reason="ctranslate2 is not installed")

PREFIXES = {  # of sources, of targets
    "m2m100": ("__en__", "__de__"),
    "nllb": ("eng_Latn", "deu_Latn"),
    "mbart50": ("en_XX", "de_DE"),
}
PAIR = {"source_language": "en", "target_language": "de"}


def change_json(path, **values):
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def without_padding(directory):
    """Marian's padding is a row of zeros, which its decoder starts with."""
    path = directory / "model.safetensors"
    weights = load_file(path)
    weights["model.shared.weight"][-1] = 0
    save_file(weights, path, metadata={"format": "pt"})


@pytest.fixture
def converted(saved_by_5, tmp_path):
    """Converts a family's directory, as transformers 5 saves it; gives both directories."""

    def make(family, **settings):
        original = saved_by_5(family)
        if family == "marian":
            without_padding(original)
        if family == "mbart50":  # as the hub has it
            names = ("normalize_before", "normalize_embedding")
            settings = {
                **dict.fromkeys(names, True),
                "tokenizer_class": "MBart50Tokenizer",
            } | settings
        change_json(original / "config.json", **settings)
        models = [path.name for path in original.iterdir() if path.suffix in (".spm", ".model")]
        files = models or ["tokenizer.json"]
        converter = converters.TransformersConverter(str(original), copy_files=files)
        converter.convert(str(tmp_path / "converted"))
        return original, tmp_path / "converted"

    return make


@pytest.mark.parametrize("family", ["marian", "unscaled", *PREFIXES])
def test_numbers_and_ids_are_those_of_transformers(converted, tokenizer_of, pairs, family):
    if family == "unscaled":
        original, directory = converted("marian", scale_embedding=False)
    else:
        original, directory = converted(family)
    imported = import_ctranslate2_model(directory, **PAIR)
    bundle, config = imported.bundle, imported.bundle.model.config
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(original)
    tokenizer = tokenizer_of(original)

    assert imported.notes == ()
    assert bundle.languages == ("en", "de")
    prefixes = (*bundle.source_tokenizer.prefix, *bundle.target_tokenizer.prefix)
    assert prefixes == PREFIXES.get(family, ())
    for text, reference in pairs:
        read = [*bundle.source_tokenizer.encode(text), config.eos_id]
        labels = [*bundle.target_tokenizer.encode(reference), config.eos_id]
        assert read == tokenizer(text).input_ids
        assert labels == tokenizer(text_target=reference).input_ids
        starts = model.config.decoder_start_token_id, config.bos_id
        source, *targets = (
            torch.tensor([ids]) for ids in (read, *([s, *labels[:-1]] for s in starts))
        )
        with torch.no_grad():
            theirs = model(input_ids=source, decoder_input_ids=targets[0]).logits[0]
            ours = rebuilt(bundle.model, FAST)(source, targets[1])[0]  # the kernel is theirs too
        theirs[:, model.config.pad_token_id] = -torch.inf  # CTranslate2's Marian has no padding
        ours[:, config.pad_id] = -torch.inf
        places = torch.arange(len(labels)), torch.tensor(labels)
        theirs, ours = (logits.log_softmax(-1)[places] for logits in (theirs, ours))
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)


@pytest.mark.parametrize("family", ["marian", *PREFIXES])
def test_it_goes_back_to_transformers(converted, tmp_path, family):
    original, directory = converted(family)
    export_hugging_face(import_ctranslate2_model(directory, **PAIR).bundle, tmp_path / "back")

    models = [
        transformers.AutoModelForSeq2SeqLM.from_pretrained(path)
        for path in (original, tmp_path / "back")
    ]
    assert type(models[0]) is type(models[1])
    assert models[0].config.decoder_start_token_id == models[1].config.decoder_start_token_id
    for name, weight in models[0].named_parameters():
        read = weight[2:] if name.endswith("embed_positions.weight") else weight  # of mBART
        back = models[1].state_dict()[name]
        assert torch.equal(back[2:] if read is not weight else back, read), name


def test_a_model_of_several_languages_needs_two(converted):
    _, directory = converted("nllb")
    for given, missing in (({}, "source"), ({"source_language": "fra_Latn"}, "target")):
        with pytest.raises(UsageError, match=r"is missing: this model has 202 languages") as caught:
            import_ctranslate2_model(directory, **given)
        assert caught.value.argument == f"{missing}_language"


def test_mbart_that_is_saved_without_its_tokenizer_s_name(converted):
    _, directory = converted("mbart50", tokenizer_class=None)
    with pytest.raises(InputError, match=r"null: .* mBART-50's is </s>"):
        import_ctranslate2_model(directory, **PAIR)
    change_json(directory / "config.json", decoder_start_token="</s>")
    assert import_ctranslate2_model(directory, **PAIR).bundle.languages == ("en", "de")


def test_our_own_exports_keep_the_languages(nllb, make_marian, tmp_path):
    marian = make_marian(tmp_path / "marian", languages=("deu", "fra"))
    for directory, source, target in ((nllb, "fr", "de"), (marian, None, "fr")):
        bundle = import_hugging_face(
            directory, source_language=source, target_language=target
        ).bundle
        out = tmp_path / f"{directory.name} out"
        export_ctranslate2(bundle, out)
        again = import_ctranslate2_model(out, source_language="fr", target_language="de").bundle

        expected = bundle.between("fr", "de")
        assert again.languages == expected.languages
        assert again.language_tokens == expected.language_tokens
        for ours, theirs in zip(again.tokenizers, expected.tokenizers, strict=True):
            assert ours.encode("A dog runs.") == theirs.encode("A dog runs.")
        ids = torch.tensor([again.source_tokenizer.encode("A dog runs.")])
        assert torch.equal(again.model(ids, ids), bundle.model(ids, ids))
