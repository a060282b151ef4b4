"""Directories of CTranslate2 as bundles: what its own translator computes, ours computes."""

import json
import struct

import ctranslate2
import numpy as np
import pytest
import torch

from glassformer.bundle import load_bundle, save_bundle
from glassformer.support.errors import InputError
from glassformer.tools.inspection.trace.build import trace
from glassformer.tools.interchange.ctranslate2.export import export_ctranslate2
from glassformer.tools.interchange.ctranslate2.reading.load import import_ctranslate2_model
from glassformer.translator import Translator

TEXTS = ["A dog runs.", "two hats", "x ☃ A", "Two men, 17 dogs!"]
CONFIGS = [
    {"tying": "three-way"},
    {"norm": "pre", "output_bias": True, "norm_epsilon": 0.1},
    {"activation": "gelu", "tying": "target", "position_layout": "halves"},
    {"activation": "swish", "tying": "embeddings", "position_frequencies": "tensor2tensor"},
    {"positions": "learned", "source_max_length": 99},
    {"positions": "learned", "embedding_norm": True, "position_offset": 2},
    {"scale_embeddings": False, "position_offset": 3, "num_heads": 4},
]


@pytest.mark.parametrize("options", CONFIGS, ids=lambda o: "-".join(map(str, o.values())))
def test_what_is_exported_comes_back_bit_for_bit(bundle_of, tmp_path, options):
    bundle = load_bundle(bundle_of(**options))
    export_ctranslate2(bundle, tmp_path / "exported")

    imported = import_ctranslate2_model(
        tmp_path / "exported", source_language="en", target_language="de"
    )

    assert imported.notes == ()
    again = imported.bundle
    assert again.languages == ("en", "de")
    offset = bundle.model.config.position_offset
    for name, weight in bundle.model.state_dict().items():
        read = slice(offset, None) if name.endswith("table") else slice(None)
        assert torch.equal(again.model.state_dict()[name][read], weight[read]), name
    for mine, theirs in zip(again.tokenizers, bundle.tokenizers, strict=True):
        assert mine.encode_batch(TEXTS) == theirs.encode_batch(TEXTS)
    expected = bundle.model.config.model_dump(exclude={"dropout"})
    assert again.model.config.model_dump(exclude={"dropout"}) == expected


@pytest.mark.parametrize(
    "quantization", ["int8", "int8_float16", "int8_bfloat16", "int16", "float16", "bfloat16"]
)
def test_rounded_weights_are_exact_to_half_a_step(bundle_of, tmp_path, quantization):
    bundle = load_bundle(bundle_of(tying="three-way"))
    export_ctranslate2(bundle, tmp_path / "exported", quantization=quantization)

    imported = import_ctranslate2_model(tmp_path / "exported")

    again = dict(imported.bundle.model.named_parameters())
    matrices = [weight for weight in bundle.model.parameters() if weight.dim() == 2]
    largest = max(weight.abs().max() for weight in matrices)  # int16 has one step for a matrix
    for name, weight in bundle.model.named_parameters():
        if weight.dim() == 2 and quantization.startswith("int"):
            rows = weight.abs().amax(1, keepdim=True) / 127
            step = largest / 1024 if quantization == "int16" else rows
        else:
            bits = 8 if quantization.endswith("bfloat16") else 11
            step = weight.abs() * 2.0 ** (1 - bits) if "float" in quantization else 0.0 * weight
        assert ((again[name] - weight).abs() <= 0.501 * step + 1e-6).all(), name
    assert bool(imported.notes) == quantization.startswith("int")


def test_a_model_of_opennmt(make_opennmt, compared):
    """Sources without an end symbol, attention without biases, sinusoids in turn, an epsilon."""
    directory = make_opennmt()
    bundle = import_ctranslate2_model(directory).bundle

    config = bundle.model.config
    assert (config.norm, config.tying, config.norm_epsilon) == ("pre", "three-way", 1e-2)
    assert (config.position_layout, config.max_length) == ("interleaved", 600)
    assert config.source_pad_id == config.eos_id == 3
    both = compared(bundle, directory)
    for text in TEXTS:
        theirs, ours = both.scores(text, "Ein Hund über Gras")
        assert ours == pytest.approx(theirs, abs=1e-4)
    with_end = json.loads((directory / "config.json").read_text()) | {"add_source_eos": True}
    (directory / "config.json").write_text(json.dumps(with_end))
    theirs, _ = compared(bundle, directory).scores("A dog runs.", "Ein Hund")
    _, ours = both.scores("A dog runs.", "Ein Hund")
    assert ours != pytest.approx(theirs, abs=1e-2)  # the end symbol matters


def test_its_translations(make_opennmt, tmp_path):
    directory = make_opennmt()
    save_bundle(import_ctranslate2_model(directory).bundle, tmp_path / "bundle")
    bundle = load_bundle(tmp_path / "bundle")
    theirs = ctranslate2.Translator(str(directory), compute_type="float32")
    ours = Translator.load(tmp_path / "bundle", device="cpu")
    fast = Translator.load(tmp_path / "bundle", device="cpu", engine="ctranslate2")
    tokenizer = bundle.source_tokenizer

    compared = 0
    for text in TEXTS[:2]:
        pieces = tokenizer.subwords(text)
        [found] = theirs.translate_batch(
            [pieces], beam_size=1, max_decoding_length=len(pieces) + 50, return_end_token=True
        )
        [mine] = ours.translate([text], beam=1)
        assert fast.translate([text], beam=1)[0].text == mine.text
        if (
            not {"<unk>", "<s>", "<blank>"} & {*found.hypotheses[0]}
            and len(found.hypotheses[0]) > 1
        ):
            ids = [bundle.target_tokenizer._model.piece_to_id(p) for p in found.hypotheses[0]]
            assert mine.text == bundle.target_tokenizer.decode(ids)
            compared += 1
    assert compared
    assert trace(bundle, "A dog runs.").source.pieces


@pytest.mark.parametrize("version", [2, 3, 4, 5])
def test_old_files(make_old, compared, version):
    """CTranslate2 itself reads them; without config.json its epsilon is 1e-5."""
    directory = make_old(version)
    bundle = import_ctranslate2_model(directory).bundle

    assert bundle.model.config.norm_epsilon == 1e-5
    theirs, ours = compared(bundle, directory).scores("A dog runs.", "Ein Hund über")
    assert ours == pytest.approx(theirs, abs=1e-4)


@pytest.mark.parametrize("scaled", [False, True])
def test_the_first_name_of_the_scale(make_old, compared, scaled):
    directory = make_old(4, scaled=scaled)
    bundle = import_ctranslate2_model(directory).bundle

    assert bundle.model.config.scale_embeddings == scaled
    theirs, ours = compared(bundle, directory).scores("A dog runs.", "Ein Hund über")
    assert ours == pytest.approx(theirs, abs=1e-4)


def begins_with(token):
    return {"settings": {"decoder_start_token": token, "add_source_eos": True}}


def from_zero(spec):
    spec.decoder.start_from_zero_embedding = True


def factor(number):
    """A converter's floating-point factor, where others write a switch."""

    def change(spec):
        spec.encoder.scale_embeddings = spec.decoder.scale_embeddings = np.float32(number)

    return {"change": change, "settings": {"add_source_eos": True}}


def computed(spec):
    for stack in (spec.encoder, spec.decoder):
        stack.position_encodings.encodings = "__optional"


@pytest.mark.parametrize(
    "options",
    [
        begins_with("</s>"),
        begins_with("<blank>"),
        {"change": from_zero},
        {"change": computed},
        factor(1),
        factor(12**0.5),
    ],
    ids=["end", "padding", "zeros", "computed positions", "factor 1", "factor sqrt(d_model)"],
)
def test_other_starts_positions_and_scales(make_opennmt, compared, options):
    directory = make_opennmt(**options)
    bundle = import_ctranslate2_model(directory).bundle
    both = compared(bundle, directory)
    for text in TEXTS:
        theirs, ours = both.scores(text, "Ein Hund über Gras")
        assert ours == pytest.approx(theirs, abs=1e-4)
    config = bundle.model.config
    added = bundle.model.output_bias[config.bos_id] < -9000
    assert added == (config.bos_id == config.target_vocab_size - 1)
    assert config.bos_id != config.pad_id


def test_a_factor_says_that_sources_end(make_opennmt):
    """transformers' and fairseq's tokenizers add the end symbol, so that no option asks for it."""
    switch = import_ctranslate2_model(make_opennmt()).bundle.model.config
    change = factor(1)["change"]
    config = import_ctranslate2_model(make_opennmt("factor", change=change)).bundle.model.config
    assert (switch.source_pad_id, switch.scale_embeddings) == (switch.eos_id, True)
    assert (config.source_pad_id, config.scale_embeddings) == (None, False)


def test_tokens_that_no_text_has_are_said(make_opennmt, vocabulary):
    """They may be languages by a name that import does not know."""
    [note] = import_ctranslate2_model(make_opennmt()).notes
    assert note.startswith("no text has 1 token of the vocabulary ('madeup'): if the model ne")
    tokens = [*vocabulary, *(f"<2{code}>" for code in ("de", "fr", "nl", "es", "it"))]
    [note] = import_ctranslate2_model(make_opennmt("multilingual", tokens=tokens)).notes
    assert "6 tokens of the vocabulary ('madeup', '<2de>', '<2fr>', '<2nl>', '<2es>', …)" in note


def test_sources_of_opennmt_without_special_tokens(make_opennmt, compared, vocabulary):
    """With two vocabularies, OpenNMT-py's sources have no start and no end."""
    tokens = [token for token in vocabulary if token not in ("<s>", "</s>")]

    def apart(spec):
        spec._vocabularies["source"] = [tokens]
        rows = np.delete(spec.decoder.embeddings.weight, (2, 3), axis=0)
        spec.encoder.embeddings[0].weight = 0.5 + rows

    directory = make_opennmt(change=apart)
    bundle = import_ctranslate2_model(directory).bundle
    assert bundle.source_tokenizer.eos_id == bundle.target_tokenizer.eos_id == 3
    both = compared(bundle, directory)
    for text in TEXTS:
        theirs, ours = both.scores(text, "Ein Hund über Gras")
        assert ours == pytest.approx(theirs, abs=1e-4)
    with_end = json.loads((directory / "config.json").read_text()) | {"add_source_eos": True}
    (directory / "config.json").write_text(json.dumps(with_end))
    with pytest.raises(InputError, match=r"source_vocabulary.json: the token '</s>' is missing"):
        import_ctranslate2_model(directory)


def test_no_padding_is_appended(make_opennmt, compared, vocabulary):
    directory = make_opennmt(tokens=[token for token in vocabulary if token != "<blank>"])
    bundle = import_ctranslate2_model(directory).bundle
    assert bundle.model.config.pad_id == len(vocabulary) - 1
    theirs, ours = compared(bundle, directory).scores("A dog runs.", "Ein Hund über Gras")
    assert ours == pytest.approx(theirs, abs=1e-4)


def relative(spec):
    attention = spec.encoder.layer[0].self_attention
    attention.__dict__["relative_position_keys"] = np.zeros((9, 4), "float32")


def gated(spec):
    spec.encoder.layer[1].ffn.__dict__["linear_0_noact_weight"] = np.ones((20, 12), "float32")


def alibi(spec):
    spec.decoder.alibi = True


def tanh(spec):
    for stack in (spec.encoder, spec.decoder):
        stack.activation = np.int8(1)


def scaled(spec):
    spec.encoder.scale_embeddings = np.float32(3.5)


def deeper(spec):
    spec.encoder.num_heads = np.int16(4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"change": relative}, r"relative_position_keys: it has relative positions, and this"),
        ({"change": gated}, r"linear_0_noact_weight: its feed-forward networks are gated"),
        ({"change": alibi}, r"decoder/alibi: it has ALiBi positions"),
        ({"change": tanh}, r"unknown activation GELU by tanh: expected relu, swish, gelu"),
        ({"change": scaled}, r"scale_embeddings 3\.5: expected 1 or 3\.4641"),
        ({"change": deeper}, r"num_heads 4 of the encoder and 3 of the decoder differ"),
        ({"settings": {"add_source_bos": True}}, r"add_source_bos is true"),
        ({"settings": {"decoder_start_token": None}}, r"decoder_start_token null: write the tok"),
        ({"settings": {"decoder_start_token": "<x>"}}, r"json: the token '<x>' is missing: copy"),
        (
            {"settings": {"layer_norm_epsilon": -1.0}},
            r"layer_norm_epsilon -1\.0: expected more th",
        ),
        ({"settings": {"softcap": 3}}, r"config\.json: unknown option softcap 3: this program"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_has_no_place_is_refused_by_name(make_opennmt, options, message):
    with pytest.raises(InputError, match=message):
        import_ctranslate2_model(make_opennmt(**options))


def test_missing_and_faulty_files(make_opennmt):
    directory = make_opennmt()

    def refused(name, content, message):
        path = directory / name
        kept = path.read_bytes()
        if content is None:
            path.unlink()
        else:
            path.write_bytes(content)
        with pytest.raises(InputError, match=message) as caught:
            import_ctranslate2_model(directory)
        assert "\n" not in str(caught.value)
        path.write_bytes(kept)

    refused("sentencepiece.model", None, " holds no SentencePiece model: put the original's")
    refused("sentencepiece.model", b"x", r"sentencepiece\.model: not a SentencePiece model")
    tokens = json.loads((directory / "shared_vocabulary.json").read_text())
    name = "shared_vocabulary.json"
    refused(name, None, "neither shared_vocabulary.json nor target_vocabulary.json")
    refused(name, b"[", "not JSON, or cut short")
    refused(name, b"{}", "expected a list")
    refused(name, json.dumps(tokens[1:]).encode(), "the token '<unk>' is missing: copy")
    refused(name, json.dumps([*tokens, "</s>"]).encode(), " has the token '</s>' twice")
    rows = rf"\({len(tokens)}, 12\), expected \({len(tokens) - 1}, 12\)"
    short = f"encoder/embeddings_0/weight has the shape {rows}: copy it and the vocabularies from"
    refused(name, json.dumps(tokens[:-1]).encode(), short)
    content = (directory / "model.bin").read_bytes()
    refused("model.bin", None, r"model\.bin: cannot be read: No such file")
    refused("model.bin", struct.pack("<I", 9) + content[4:], r"version 9 of the format: expected 2")
    other = content.replace(b"TransformerSpec", b"TransformerSpek")
    refused("model.bin", other, "'TransformerSpek': expected TransformerSpec")
    without = content.replace(
        b"encoder/layer_0/ffn/linear_1/weight", b"encoder/layer_0/ffn/linear_1/Weight"
    )
    refused("model.bin", without, "the weight encoder/layer_0/ffn/linear_1/weight is missing: copy")


def test_two_vocabularies_have_one_end(bundle_of, tmp_path):
    export_ctranslate2(load_bundle(bundle_of()), tmp_path / "model")
    path = tmp_path / "model" / "source_vocabulary.json"
    tokens = json.loads(path.read_text())
    path.write_text(json.dumps([*tokens[:3], tokens[4], tokens[3], *tokens[5:]]))
    with pytest.raises(InputError, match="</s> is token 4 of the source and 3 of the target"):
        import_ctranslate2_model(tmp_path / "model")


def test_no_file_takes_more_memory_than_it_is_long(make_opennmt):
    """Cut anywhere, or with sizes of gigabytes: one line, at once."""
    directory = make_opennmt(quantization="int8")
    path = directory / "model.bin"
    content = path.read_bytes()
    for end in (0, 3, 9, 30, 60, len(content) // 2, len(content) - 3):
        path.write_bytes(content[:end])
        with pytest.raises(InputError, match=r"model\.bin: not a model of CTranslate2, or cut sh"):
            import_ctranslate2_model(directory)
    name = b"decoder/embeddings/weight\0"
    place = content.index(name) + len(name) + 1
    for columns, size in ((2**31, 0xFFFFFFFF), (0, 0), (2**31, 2**31)):
        hostile = bytearray(content)
        hostile[place : place + 13] = struct.pack("<IIBI", 1, columns, 1, size)
        path.write_bytes(hostile)
        with pytest.raises(InputError, match=r"cut short \(.*bytes"):
            import_ctranslate2_model(directory)
    path.write_bytes(
        content.replace(b"layer_0/ffn/linear_0/weight_scale", b"layer_0/ffn/linear_0/weight_scalf")
    )
    with pytest.raises(InputError, match=r"weight is quantized, but .*weight_scale is missing or"):
        import_ctranslate2_model(directory)
