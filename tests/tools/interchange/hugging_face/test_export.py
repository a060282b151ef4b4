"""Bundles as directories of transformers: its ids, numbers and translations are ours."""

import json
import random
import re
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file

from glassformer.bundle import Bundle
from glassformer.config import ModelConfig
from glassformer.data.normaliser import normaliser
from glassformer.data.preprocessing import SourceLengths
from glassformer.data.subword_training import train_tokenizer
from glassformer.data.trimming import trim_tokenizer
from glassformer.decoding.engine import Job, SearchOptions
from glassformer.model.transformer import Transformer
from glassformer.parts import FAST
from glassformer.support.errors import InputError, UsageError
from glassformer.text_engine import torch_engine
from glassformer.tools.interchange.hugging_face.export import export_hugging_face
from glassformer.tools.interchange.hugging_face.id_check import check_texts, id_note
from glassformer.tools.interchange.hugging_face.load import import_hugging_face
from glassformer.tools.interchange.hugging_face.tokenizer_json import tokenizer_json

transformers = pytest.importorskip("transformers", reason="transformers is not installed")

AWKWARD = [
    "A dog runs across the green grass.",
    "",
    " ",
    "  two   men,  17 apples\tand a hat ",
    "ﬁne cafe\u0301 “quoted” … ½ Ⅳ １２\u00a0\u200b.",
    "日本 and 🐕 run 👩‍🚒 ß",
    "a▁b \ufdd0=\ufdd0_ >>fra<< <0x41>",
    "..... ------- aaaaaaaa\r\n\x07",
    "A\u200e man\uf0b7 \ufffd می\u200cخواهم\u200c, 👩\u200d\u200d💻 ❤\ufe0f a\ufe0f",
    "\U000e0041\U000e0042 a",
]
SYMBOLS = "a </s> b <pad><unk>"
OPTIONS = {
    "the paper's": {},
    "pre-norm": {"norm": "pre", "activation": "gelu", "scale_embeddings": False},
    "a bias": {"output_bias": True, "activation": "swish", "tying": "embeddings"},
    "pre-norm in halves": {"norm": "pre", "position_layout": "halves", "tying": "embeddings"},
    "two vocabularies": {"tying": "target"},
    "two vocabularies, nothing tied": {"tying": "none", "output_bias": True},
    "learned": {
        "norm": "pre",
        "positions": "learned",
        "position_offset": 2,
        "embedding_norm": True,
    },
}
SEARCHED = ["the paper's", "pre-norm"]


@pytest.fixture(scope="module")
def tokenizers(pairs):
    """Of the source, of the target; and one for both."""
    sources, targets = map(list, zip(*pairs, strict=True))
    return (
        train_tokenizer(sources * 3, vocab_size=310),
        train_tokenizer(targets * 3, vocab_size=330),
        train_tokenizer((sources + targets) * 3, vocab_size=350),
    )


@pytest.fixture
def bundle_of(tokenizers):
    """Makes a random bundle of these options, whose answers differ and end."""

    def make(**options):
        source, target, both = tokenizers
        if options.get("tying", "three-way") in ("three-way", "embeddings"):
            source = target = both
        sizes = {"d_model": 12, "num_heads": 3, "d_ff": 20, "max_length": 60}
        layers = {"num_encoder_layers": 2, "num_decoder_layers": 1}
        vocabulary = {
            "source_vocab_size": source.vocab_size,
            "target_vocab_size": target.vocab_size,
        }
        torch.manual_seed(11)
        model = Transformer(ModelConfig(**{**vocabulary, **sizes, **layers, **options}))
        with torch.no_grad():
            for weight in model.parameters():  # no zero, no one: a weight left out would show
                weight.mul_(1.5).add_(0.3 * torch.randn_like(weight))
            last = (
                model.decoder.blocks[-1].feed_forward
                if model.config.norm == "post"
                else model.decoder
            )
            row = model.output_weight[target.eos_id]
            last.norm.bias += 2.0 * row / row.norm()  # the end is more probable
        return Bundle(
            model.eval().requires_grad_(False),
            source,
            target,
            ("en", "de"),
            normalisation="text",
            length_penalty=1.5,
            source_lengths=SourceLengths(10, 20, 0.0),
            about={"validation": "BLEU 12.3"},
        )

    return make


def loaded(directory):
    model, report = transformers.AutoModelForSeq2SeqLM.from_pretrained(
        directory, output_loading_info=True
    )
    for name in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        assert not report[name]
    return transformers.AutoTokenizer.from_pretrained(directory), model.eval()


def assert_same_translations(bundle, tokenizer, model, text):
    """Greedy and beam search without length penalty, token for token."""
    engine = torch_engine(bundle.model, bundle.tokenizers, FAST)
    batch = tokenizer(text, return_tensors="pt")
    ids = batch.input_ids[0].tolist()[:-1]
    for beam in (1, 4):
        options = SearchOptions(beam=beam, length_penalty=0.0)
        [[found]] = engine.decode(Job([ids]), options)
        [theirs] = model.generate(
            input_ids=batch.input_ids,
            attention_mask=batch.attention_mask,
            num_beams=beam,
            length_penalty=0.0,
            early_stopping="never" if beam > 1 else False,
            max_new_tokens=len(ids) + bundle.model.config.extra_length,
        )
        assert [i for i in theirs[1:].tolist() if i != tokenizer.eos_token_id] == [*found.tokens]
        assert len(found.tokens) > len(bundle.target_tokenizer.prefix)


@pytest.mark.parametrize("case", OPTIONS)
def test_ids_numbers_and_translations(bundle_of, tmp_path, case):
    bundle = bundle_of(**OPTIONS[case])
    export_hugging_face(bundle, tmp_path / "out")
    tokenizer, model = loaded(tmp_path / "out")

    source, normalised = bundle.source_tokenizer, normaliser("text")
    for text in [*AWKWARD, SYMBOLS]:
        assert tokenizer(text).input_ids == [*source.encode(normalised(text)), source.eos_id]

    batch = tokenizer(AWKWARD, return_tensors="pt", padding=True)
    config = bundle.model.config
    targets = torch.randint(4, config.target_vocab_size, (len(AWKWARD), 7))
    targets[:, 0] = config.bos_id
    if case in SEARCHED:
        assert_same_translations(bundle, tokenizer, model, "A dog, 17 🐕")
    with torch.no_grad():  # in float64: rounding hides nothing
        theirs = model.double()(**batch, decoder_input_ids=targets).logits
        ours = bundle.model.double()(batch.input_ids, targets)
    torch.testing.assert_close(theirs, ours, atol=1e-6, rtol=1e-6)


def test_a_target_is_decoded_by_its_own_tokenizer(bundle_of, tmp_path):
    bundle = bundle_of(tying="none")
    notes = export_hugging_face(bundle, tmp_path / "out")

    assert any("subfolder='target'" in note for note in notes)
    assert 'subfolder="target"' in (tmp_path / "out" / "README.md").read_text()
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "out", subfolder="target")
    target = bundle.target_tokenizer
    for text in [*AWKWARD, SYMBOLS]:
        ids = target.encode(text)
        assert theirs(text).input_ids == [*ids, target.eos_id]
        assert theirs.decode([target.bos_id, *ids, 3], skip_special_tokens=True) == text


@pytest.mark.parametrize(
    "options", [{"kind": "unigram"}, {"normalization": "nfkc"}, {"character_coverage": 0.98}]
)
def test_tokenizers_of_each_kind(pairs, tmp_path, options):
    lines = [text for pair in pairs for text in pair] * 3
    tokenizer = train_tokenizer(lines, vocab_size=340, **options)
    vocabulary = dict.fromkeys(("source_vocab_size", "target_vocab_size"), tokenizer.vocab_size)
    model = Transformer(ModelConfig(**vocabulary, d_model=4, num_heads=1, d_ff=4, max_length=99))
    export_hugging_face(Bundle(model, tokenizer, tokenizer), tmp_path / "out")

    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    for text in [*AWKWARD[:6], *lines, AWKWARD[7]]:
        ids = tokenizer.encode(text)
        assert theirs(text).input_ids == [*ids, tokenizer.eos_id]
        assert theirs.decode(ids) == tokenizer.decode(ids)


def test_a_trimmed_vocabulary(pairs, tmp_path):
    """BPE joins subwords by way of those that it lacks; with unigrams nothing else changes."""
    lines = [text for pair in pairs for text in pair] * 3
    for kind in ("unigram", "bpe"):
        whole = train_tokenizer(lines, vocab_size=340, kind=kind)
        tokenizer, _ = trim_tokenizer(whole, lines[:2])
        assert tokenizer.vocab_size < whole.vocab_size
        if kind == "bpe":
            with pytest.raises(UsageError, match=r"trimmed: .* ctranslate2 or page, or .* --trim"):
                tokenizer_json(tokenizer, size=tokenizer.vocab_size)
            continue
        path = tmp_path / "tokenizer.json"
        path.write_text(json.dumps(tokenizer_json(tokenizer, size=tokenizer.vocab_size)))
        theirs = transformers.PreTrainedTokenizerFast(tokenizer_file=str(path))
        for text in lines:
            assert theirs(text).input_ids == [*tokenizer.encode(text), tokenizer.eos_id]


@pytest.mark.parametrize("case", OPTIONS)
def test_import_takes_it_back(bundle_of, tmp_path, case):
    bundle = bundle_of(**OPTIONS[case])
    export_hugging_face(bundle, tmp_path / "out")
    back = import_hugging_face(tmp_path / "out").bundle

    assert back.tokenizers[0].serialized == bundle.source_tokenizer.serialized
    assert back.tokenizers[1].serialized == bundle.target_tokenizer.serialized
    for name in ("languages", "normalisation", "source_lengths", "length_penalty"):
        assert getattr(back, name) == getattr(bundle, name)
    config, halves = bundle.model.config, "halves"
    expected = {**config.model_dump(), "output_bias": True}
    if config.positions == "sinusoidal":
        expected["position_layout"] = halves
    assert back.model.config.model_dump() == expected
    ours = dict(bundle.model.named_parameters())
    for name, weight in back.model.named_parameters():
        if name not in ours:
            assert (name, weight.any().item()) == ("output_bias", False)
        elif config.position_layout == halves or config.positions == "learned":
            assert torch.equal(weight, ours[name])
        else:  # the same numbers in another order
            assert torch.equal(weight.flatten().sort()[0], ours[name].flatten().sort()[0])
    export_hugging_face(back, tmp_path / "again")
    first, second = (load_file(tmp_path / n / "model.safetensors") for n in ("out", "again"))
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)


FAMILIES = {
    "marian": ("MarianMTModel", {}),
    "m2m100": (
        "M2M100ForConditionalGeneration",
        {"source_language": "en", "target_language": "de"},
    ),
    "nllb": (
        "M2M100ForConditionalGeneration",
        {"source_language": "eng_Latn", "target_language": "deu_Latn"},
    ),
    "mbart50": (
        "MBartForConditionalGeneration",
        {"source_language": "en_XX", "target_language": "de_DE"},
    ),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_an_imported_model_goes_back_to_its_family(request, tmp_path, name):
    found = request.getfixturevalue(name)
    directory = found[0] if isinstance(found, tuple) else found
    kind, languages = FAMILIES[name]
    bundle = import_hugging_face(directory, **languages).bundle

    export_hugging_face(bundle, tmp_path / "out")

    original = getattr(transformers, kind).from_pretrained(directory)
    tokenizer, model = loaded(tmp_path / "out")
    expected, state = original.state_dict(), model.state_dict()
    assert type(model) is type(original)
    assert model.config.decoder_start_token_id == original.config.decoder_start_token_id
    assert expected.keys() == state.keys()
    assert all(torch.equal(expected[key], state[key]) for key in expected)
    back = import_hugging_face(tmp_path / "out").bundle
    assert back.model.config == bundle.model.config
    for ours, again in zip(bundle.model.parameters(), back.model.parameters(), strict=True):
        assert torch.equal(ours, again)
    texts = ["A dog runs", "Two men, 17 apples and a hat 🐕"]
    source = bundle.source_tokenizer
    for text in texts:
        assert tokenizer(text).input_ids == [*source.encode(text), source.eos_id]
        assert back.source_tokenizer.encode(text) == source.encode(text)
    if name == "m2m100":  # it forces the first token
        assert_same_translations(bundle, tokenizer, model, texts[0])


def test_subwords_that_the_vocabulary_lacks_are_cut_up(marian, tmp_path):
    bundle = import_hugging_face(marian).bundle
    notes = export_hugging_face(bundle, tmp_path / "out")

    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    source = bundle.source_tokenizer
    assert source.unk_id in source.encode("in the snow")
    assert source.unk_id not in tokenizer("in the snow").input_ids
    assert any(re.search(r"2 of \d+ texts have other ids, such as ' the", note) for note in notes)


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_runs_of_characters_that_only_the_target_knows(make_marian, pairs, tmp_path, kind):
    """Marian looks a run of unknown characters up as a whole: 'ü' may have an id, 'Zü' none."""
    bundle = import_hugging_face(make_marian(tmp_path / "model", kind=kind)).bundle
    original = transformers.MarianTokenizer.from_pretrained(tmp_path / "model")
    notes = export_hugging_face(bundle, tmp_path / "out")
    exported = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    target = bundle.target_tokenizer
    subwords = [target.subword(i).replace("\u2581", " ") for i in range(2, target.vocab_size - 2)]
    draw = random.Random(3)
    words = [*" ".join(text for pair in pairs for text in pair).split(), "\U00010330", "日本"]
    texts = [
        " ".join(draw.choice(words) + "".join(draw.choices(subwords, k=2)) for _ in range(4))
        for _ in range(200)
    ]
    texts = [text for text in texts if "the" not in text]  # the subword that the vocabulary lacks

    assert [exported(text).input_ids for text in texts] == [
        original(text).input_ids for text in texts
    ]
    assert any("source: 2 of" in note for note in notes)  # of that subword


def test_an_export_says_where_ids_differ(bundle_of, tmp_path):
    bundle = bundle_of()
    export_hugging_face(bundle, tmp_path / "out")
    path = tmp_path / "out" / "tokenizer.json"
    file = json.loads(path.read_text())
    file["model"]["merges"] = file["model"]["merges"][:-1]
    path.write_text(json.dumps(file))
    texts = check_texts(bundle.tokenizers)

    note = id_note(tmp_path / "out", bundle.source_tokenizer, texts, normaliser("text"))

    assert re.fullmatch(rf"\d+ of {len(texts)} texts have other ids, such as '.+'", note)


def test_a_fine_tuned_start_symbol_stays(marian, tmp_path):
    bundle = import_hugging_face(marian).bundle
    with torch.no_grad():
        bundle.model.target_embedding.weight[-1] += 0.01
    export_hugging_face(bundle, tmp_path / "out")
    tokenizer, model = loaded(tmp_path / "out")

    assert model.config.decoder_start_token_id == bundle.model.config.bos_id
    assert_same_translations(bundle, tokenizer, model, "A dog runs.")
    back = import_hugging_face(tmp_path / "out").bundle
    for ours, again in zip(bundle.model.parameters(), back.model.parameters(), strict=True):
        assert torch.equal(ours, again)


def test_half_precision(bundle_of, tmp_path):
    bundle = bundle_of()
    export_hugging_face(bundle, tmp_path / "out", quantization="float16")

    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "out", dtype="auto")
    assert model.dtype == torch.float16
    back = import_hugging_face(tmp_path / "out").bundle
    assert torch.equal(
        back.model.encoder.blocks[0].feed_forward.sublayer.inner.bias,
        bundle.model.encoder.blocks[0].feed_forward.sublayer.inner.bias.half().float(),
    )


def test_the_search_and_the_card(bundle_of, tmp_path):
    notes = export_hugging_face(bundle_of(), tmp_path / "out")

    settings = json.loads((tmp_path / "out" / "generation_config.json").read_text())
    assert settings["length_penalty"] == 1.2
    assert settings["bad_words_ids"] == [[0], [1], [2]]
    rights = {path.stat().st_mode for path in (tmp_path / "out").iterdir()}
    assert len(rights) == 1  # who can read one file can read all
    card = (tmp_path / "out" / "README.md").read_text()
    assert "language: [en, de]" in card
    assert "- validation: BLEU 12.3" in card
    assert notes[0] == "it is a MarianMT model"
    assert any("does not cut a text into sentences" in note for note in notes)
    assert any("length_penalty 1.2 stands for 1.5" in note for note in notes)


REFUSALS = [
    ({"norm": "pre", "tying": "target"}, "tying is 'target', but Pegasus has one vocabulary"),
    ({"norm_epsilon": 1e-6}, "norm_epsilon is 1e-06, but MarianMT has 1e-05"),
    ({"source_max_length": 64}, "source_max_length is 64 and max_length is 60"),
    ({"embedding_norm": True}, "no family of Hugging Face combines norm 'post'"),
    (
        {"positions": "learned", "position_offset": 2, "embedding_norm": True},  # BART's
        "no family of Hugging Face combines norm 'post'",
    ),
    (
        {"norm": "pre", "position_frequencies": "tensor2tensor", "position_offset": 2},
        "pad_id is 0 and position_offset is 2",
    ),
]


@pytest.mark.parametrize(("options", "message"), REFUSALS)
def test_what_no_family_holds_is_refused(bundle_of, tmp_path, options, message):
    with pytest.raises(UsageError, match=message) as caught:
        export_hugging_face(bundle_of(**options), tmp_path / "out")
    assert "to ctranslate2" in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_a_bias_that_the_family_lacks_is_refused(m2m100, tmp_path):
    languages = {"source_language": "en", "target_language": "de"}
    bundle = import_hugging_face(m2m100, **languages).bundle
    model = Transformer(bundle.model.config.model_copy(update={"output_bias": True}))
    model.load_state_dict({**bundle.model.state_dict(), "output_bias": model.output_bias + 0.5})
    bundle = replace(bundle, model=model)
    with pytest.raises(UsageError, match=r"a bias on the logits, .*, but M2M100"):
        export_hugging_face(bundle, tmp_path / "out")


def test_other_kinds_and_formats_are_refused(bundle_of, tmp_path):
    with pytest.raises(UsageError, match="quantization 'int8': expected float32, float16, bf"):
        export_hugging_face(bundle_of(), tmp_path / "out", quantization="int8")


def test_a_spoilt_export_is_said(bundle_of, tmp_path):
    export_hugging_face(bundle_of(), tmp_path / "out")
    path = tmp_path / "out" / "tokenizer_config.json"
    options = json.loads(path.read_text())
    options["glassformer"]["normalisation"] = "loud"
    path.write_text(json.dumps(options))
    with pytest.raises(
        InputError, match=r"config.json: glassformer.normalisation 'loud': expected"
    ):
        import_hugging_face(tmp_path / "out")
    options["glassformer"]["normalisation"] = "none"
    path.write_text(json.dumps(options))
    config = tmp_path / "out" / "config.json"
    settings = json.loads(config.read_text())
    config.write_text(json.dumps({**settings, "vocab_size": 400}))
    with pytest.raises(InputError, match="the source tokenizer has 350 tokens, but"):
        import_hugging_face(tmp_path / "out")
