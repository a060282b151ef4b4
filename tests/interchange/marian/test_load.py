"""Models of Marian as bundles, beside CTranslate2's own converter and the one of transformers."""

import json
import shutil
import zipfile

import ctranslate2
import numpy as np
import pytest
import torch
from ctranslate2.converters import OpusMTConverter

from glassformer.bundle import load_bundle, save_bundle
from glassformer.cli.main import main
from glassformer.errors import InputError, UsageError
from glassformer.interchange.hugging_face.load import import_hugging_face
from glassformer.interchange.marian.load import import_marian
from glassformer.interchange.sources import import_translator
from glassformer.translator import Translator

TEXTS = ["A dog runs.", "two men ☃", "yes = 1.5", "no: one"]


@pytest.fixture
def kinds(make_opus, pre_norm):
    def make(kind):
        return make_opus(
            **{
                "post": {},
                "pre": {**pre_norm, "transformer-ffn-activation": "relu"},
                "two": {"sizes": 2},
                "normed": {"transformer-postprocess-emb": "nd"},
            }[kind]
        )

    return make


@pytest.mark.parametrize("kind", ["post", "pre", "two", "normed"])
def test_it_scores_and_translates_as_ctranslate2_s_converter(kinds, tmp_path, kind):
    directory = kinds(kind)
    bundle = import_marian(directory).bundle
    OpusMTConverter(str(directory)).convert(str(tmp_path / "converted"))
    theirs = ctranslate2.Translator(str(tmp_path / "converted"), compute_type="float32")
    source, writing = bundle.tokenizers
    assert bundle.length_penalty == 1.25  # theirs is 1, at 20 subwords

    compared = 0
    for text in TEXTS:
        ids, target = source.encode(text), writing.encode("Ein Mann sagt nein")
        [scored] = theirs.score_batch(
            [[source.subword(i) for i in ids]], [[writing.subword(i) for i in target]]
        )
        labels = torch.tensor([*target, writing.eos_id])
        with torch.inference_mode():
            logits = bundle.model(
                torch.tensor([[*ids, source.eos_id]]), torch.tensor([[writing.bos_id, *target]])
            )
        ours = logits[0].log_softmax(-1).gather(1, labels[:, None])[:, 0].tolist()
        assert ours == pytest.approx(scored.log_probs, abs=1e-4)
        [found] = theirs.translate_batch(
            [[source.subword(i) for i in ids]], beam_size=1, max_decoding_length=len(ids) + 50
        )
        written = found.hypotheses[0]
        if written and "<unk>" not in written:
            ids = [writing._model.piece_to_id(piece) for piece in written]
            [mine] = Translator(bundle).translate([text], beam=1)
            assert mine.text == writing.decode(ids)
            compared += 1
    assert compared


def fill(model, path):
    """Marian's arrays into transformers' model, name by name."""
    with np.load(path) as file:
        arrays = {name: torch.from_numpy(file[name]) for name in file.files}
    model.model.shared.weight[:-1] = arrays["Wemb"]
    model.model.shared.weight[-1] = 0.0
    model.final_logits_bias[0, :-1] = arrays["decoder_ff_logit_out_b"][0]
    for side in ("encoder", "decoder"):
        for number, layer in enumerate(getattr(model.model, side).layers, start=1):
            name = f"{side}_l{number}"
            linears = {"ffn_{}1": layer.fc1, "ffn_{}2": layer.fc2}
            norms = {"self_Wo": layer.self_attn_layer_norm, "ffn_ffn": layer.final_layer_norm}
            attentions = {"self": layer.self_attn}
            if side == "decoder":
                attentions["context"] = layer.encoder_attn
                norms["context_Wo"] = layer.encoder_attn_layer_norm
            for attention, module in attentions.items():
                for letter, part in zip("qkvo", ("q", "k", "v", "out"), strict=True):
                    linears[f"{attention}_{{}}{letter}"] = getattr(module, f"{part}_proj")
            for place, linear in linears.items():
                linear.weight.copy_(arrays[f"{name}_{place.format('W')}"].T)
                linear.bias.copy_(arrays[f"{name}_{place.format('b')}"][0])
            for place, norm in norms.items():
                norm.weight.copy_(arrays[f"{name}_{place}_ln_scale"][0])
                norm.bias.copy_(arrays[f"{name}_{place}_ln_bias"][0])


def test_it_is_the_import_of_transformers(make_opus, tmp_path):
    """The same weights, written as transformers has them, become the same bundle."""
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    ours = import_marian(make_opus()).bundle
    size = ours.model.config.source_vocab_size - 2
    config = transformers.MarianConfig(
        vocab_size=size + 1,
        d_model=12,
        encoder_layers=2,
        decoder_layers=3,
        encoder_attention_heads=3,
        decoder_attention_heads=3,
        encoder_ffn_dim=20,
        decoder_ffn_dim=20,
        pad_token_id=size,
        eos_token_id=0,
        decoder_start_token_id=size,
        scale_embedding=True,
        activation_function="swish",
    )
    model = transformers.MarianMTModel(config)
    with torch.no_grad():
        fill(model, tmp_path / "opus" / "opus.npz")
    saved = tmp_path / "transformers"
    model.save_pretrained(saved)
    for name in ("source.spm", "target.spm"):
        shutil.copy(tmp_path / "opus" / name, saved)
    table = {ours.source_tokenizer.subword(index): index for index in range(size + 1)}
    (saved / "vocab.json").write_text(json.dumps(table))
    (saved / "tokenizer_config.json").write_text('{"tokenizer_class": "MarianTokenizer"}')

    theirs = import_hugging_face(saved).bundle

    for mine, other in zip(ours.tokenizers, theirs.tokenizers, strict=True):
        assert mine.encode_batch(TEXTS) == other.encode_batch(TEXTS)
    names = dict(theirs.model.named_parameters())
    for name, weight in ours.model.named_parameters():
        known = slice(size) if name == "output_bias" else slice(None)  # of padding, 0 in theirs
        assert torch.equal(weight[known], names[name][known]), name
    answers = [Translator(b).translate(TEXTS, beam=4, length_penalty=1.0) for b in (ours, theirs)]
    assert [a.text for a in answers[0]] == [a.text for a in answers[1]]


def test_a_zip_file_its_directory_and_its_model_give_one_bundle(make_opus, tmp_path, capsys):
    directory = make_opus()
    path = tmp_path / "opus-2020.zip"
    with zipfile.ZipFile(path, "w") as file:
        for each in directory.iterdir():
            file.write(each, each.name)
    bundles = [import_translator(p).bundle for p in (path, directory, directory / "opus.npz")]
    for bundle in bundles[1:]:
        for mine, other in zip(
            bundles[0].model.parameters(), bundle.model.parameters(), strict=True
        ):
            assert torch.equal(mine, other)

    words = ["--source-language", "en", "--target-language", "de"]
    assert main(["import", str(path), str(tmp_path / "bundle"), *words]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("parameters, en to de")
    assert "Moses's punctuation" in lines[-1]
    assert load_bundle(tmp_path / "bundle").languages == ("en", "de")


def test_one_of_several_targets(make_opus, tmp_path):
    directory = make_opus(languages=("deu", "fra"))
    bundle = import_marian(directory, source_language="eng", target_language="fra").bundle
    save_bundle(bundle, tmp_path / "bundle")
    loaded = load_bundle(tmp_path / "bundle")
    assert loaded.languages == ("en", "fr")
    assert loaded.source_tokenizer.subwords("A dog")[0] == ">>fra<<"
    assert ">>deu<<" not in loaded.source_tokenizer.subwords("A >>deu<< dog")
    with pytest.raises(UsageError, match="target_language is missing: this model has 2 of them"):
        import_marian(directory)


def test_pieces_that_yaml_would_read_otherwise(make_opus):
    directory = make_opus()
    path = directory / "opus.vocab.yml"
    texts = list(json.loads("{" + ",".join(path.read_text("utf-8").splitlines()) + "}"))
    before = import_marian(directory).bundle.source_tokenizer

    def plain(text, index):
        if text.startswith("▁") or text in ("no", "=", "1", "y"):
            return f"{text}: {index}\n"
        if "'" not in text and not index % 3:
            return f"'{text}': {index}\n"
        return f"? {json.dumps(text)}\n: {index}\n"

    lines = [plain(text, index) for index, text in enumerate(texts)]
    path.write_text("---\n" + "".join(reversed(lines)), "utf-8")
    assert import_marian(directory).bundle.source_tokenizer.encode_batch(TEXTS) == (
        before.encode_batch(TEXTS)
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"type": "s2s"}, "type 's2s': an architecture of its own; this program has 'transformer'"),
        ({"transformer-decoder-autoreg": "rnn"}, "autoreg 'rnn': a recurrent decoder"),
        ({"transformer-no-projection": True}, "attention without an output matrix"),
        ({"transformer-tied-layers": [1, 1]}, "blocks that are one"),
        ({"right-left": True}, "targets from right to left"),
        ({"transformer-ffn-activation": "gelu"}, "activation 'gelu': expected 'relu' or 'swish'"),
        ({"transformer-postprocess": "da"}, r"-postprocess-top \('', 'da', ''\): expected"),
        ({"transformer-postprocess-emb": "x"}, "postprocess-emb 'x': expected '' or 'd'"),
        ({"transformer-heads": 5}, "d_model 12 is not divisible by num_heads 5"),
        ({"transformer-heads": None}, "the option transformer-heads is missing"),
        (
            {"transformer-dim-ffn": 21},
            r"encoder_l1_ffn_W1 is torch.float32 of shape \(20, 12\), ex",
        ),
        ({"change": lambda w: w.update(Wpos=w["Wemb"])}, "unknown weight Wpos: it has learned pos"),
        (
            {"change": lambda w: w.update(encoder_l1_x=w["Wemb"])},
            "unknown weight encoder_l1_x: no place; it is not imported",
        ),
        (
            {"change": lambda w: w.pop("encoder_l2_self_bk")},
            "it lacks the weight encoder_l2_self_bk",
        ),
        (
            {"change": lambda w: w.pop("encoder_l2_ffn_W1")},
            "enc-depth 2, and 1 blocks have weights",
        ),
        ({"change": lambda w: w.pop("Wemb")}, "it lacks the weight encoder_Wemb"),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else "",
)
def test_what_has_no_place_is_refused_by_name(make_opus, options, message):
    with pytest.raises(InputError, match=message) as caught:
        import_marian(make_opus(**options))
    assert "\n" not in str(caught.value)


def test_missing_and_faulty_files(make_opus):
    directory = make_opus()

    def refused(name, content, message):
        path = directory / name
        kept = path.read_bytes()
        if content is None:
            path.unlink()
        else:
            path.write_bytes(content)
        with pytest.raises(InputError, match=message) as caught:
            import_marian(directory)
        assert "\n" not in str(caught.value)
        path.write_bytes(kept)

    refused("source.spm", None, r"source\.spm: cannot be read")
    (directory / "source.bpe").write_text("x")
    refused("source.spm", None, r"source\.bpe: Moses with subword-nmt, not SentencePiece")
    refused("decoder.yml", b"[", r"decoder\.yml: not YAML")
    refused("decoder.yml", b"[1]", r"decoder\.yml: expected names and values")
    refused("decoder.yml", b"vocabs: 3", r"decoder\.yml: vocabs 3: expected a list of files")
    refused("decoder.yml", b"normalize: x", r"normalize 'x': expected a number")
    refused("decoder.yml", b"models: [a, b]", r"expected one model, \*\.npz, found a, b")
    name = "opus.vocab.yml"
    lines = (directory / name).read_text("utf-8").splitlines(keepends=True)
    refused(name, None, r"opus\.vocab\.yml: cannot be read")
    refused(name, b"\xff", r"opus\.vocab\.yml: not UTF-8 text")
    refused(name, b"a: 0\nb\n", r"opus\.vocab\.yml:2: 'b': expected a piece, a colon and its id")
    refused(name, b'"a: 0\n', r"opus\.vocab\.yml:1: \"a: not a text in quotes")
    refused(name, b"a: 1\n", r"opus\.vocab\.yml: no piece has the id 0")
    refused(name, b"a: 0\n", r"opus\.vocab\.yml: it lacks the token <unk>")
    short = "".join(lines[:-1]).encode()
    refused(name, short, r"npz: \w+ is torch.float32 of shape .*, expected")


def npz(path, members):
    with zipfile.ZipFile(path, "w") as file:
        for name, content in members.items():
            file.writestr(name, content)


def header(shape, *, kind="<f4", fortran=False):
    text = repr({"descr": kind, "fortran_order": fortran, "shape": shape}).encode()
    return b"\x93NUMPY\x01\x00" + (len(text) + 1).to_bytes(2, "little") + text + b"\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"text", r"Wemb\.npy is damaged \(.*magic"),
        (header((2**40, 2**20)), r"float32 of shape \(1099511627776, 1048576\) in \d+ bytes"),
        (header((1,), kind="|O") + b"\x80\x04." * 3, r"Wemb\.npy is damaged \(object of shape"),
        (header((1, 1), fortran=True) + b"1234", r"float32 of shape \(1, 1\)"),
        (header((2,)) + b"1234", r"float32 of shape \(2,\)"),
    ],
    ids=["no array", "huge", "pickle", "columns first", "short"],
)
def test_hostile_arrays(make_opus, content, message):
    directory = make_opus()
    npz(directory / "opus.npz", {"Wemb.npy": content})
    with pytest.raises(InputError, match=message) as caught:
        import_marian(directory)
    assert "\n" not in str(caught.value)


def test_other_npz_files(make_opus):
    directory = make_opus()
    path = directory / "opus.npz"

    def refused(message):
        with pytest.raises(InputError, match=message):
            import_marian(directory)

    np.savez(path, a=np.zeros(3, "float32"))
    refused(r"opus\.npz: it holds no special:model\.yml: not a model of Marian")
    for text, message in ((b"[\0", "is not YAML"), (b"3\0", "expected names and values")):
        np.savez(path, **{"special:model.yml": np.frombuffer(text, "uint8")})
        refused(rf"special:model\.yml:? {message}")
    path.write_bytes(b"text")
    refused(r"opus\.npz: not a zip file, or cut short")
