"""Faulty directories: one line each, which names the file, the fault and the remedy."""

import errno
import json
import os
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

from glassformer.support.errors import InputError, UsageError
from glassformer.tools.cli.main import main
from glassformer.tools.interchange import sources
from glassformer.tools.interchange.hugging_face.load import import_hugging_face

pytest.importorskip("transformers", reason="transformers is not installed")

WEIGHTS = "model.safetensors"


@pytest.fixture
def directory(marian, tmp_path):
    """A copy, to spoil; all options stand in one file."""
    copied = shutil.copytree(marian, tmp_path / "model")
    (copied / "generation_config.json").unlink()
    return copied


def change_json(path, **values):
    """Set these values; None removes the name."""
    content = json.loads(path.read_text()) | values
    path.write_text(json.dumps({name: value for name, value in content.items() if value != "-"}))


def change_weights(directory, change):
    weights = load_file(directory / WEIGHTS)
    change(weights)
    save_file(weights, directory / WEIGHTS)


def cut(path):
    path.write_bytes(path.read_bytes()[:-200])


def refusal(directory, error=InputError, **languages):
    with pytest.raises(error) as caught:
        import_hugging_face(directory, **languages)
    line = str(caught.value)
    assert "\n" not in line
    return line.replace(f"{directory}/", "").replace(f"{directory}", "DIRECTORY")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"model_type": "t5"},
            "model_type 't5': it has relative positions and RMS norms; import reads marian, "
            "m2m_100, mbart",
        ),
        (
            {"model_type": "bart"},
            "model_type 'bart': its tokenizer is byte-level BPE, not",
        ),
        ({"model_type": "plbart"}, "model_type 'plbart': import has no table of its weights yet: "),
        (
            {"model_type": "qwen2", "is_encoder_decoder": "-"},
            "model_type 'qwen2': a language model without an encoder: translate with it elsewhere,",
        ),
        (
            {"model_type": "IndicTrans", "auto_map": {"AutoConfig": "configuration.py"}},
            "model_type 'IndicTrans': its model and tokenizer are its own code, and import runs no",
        ),
        ({"relative_attention": 8}, "unknown option relative_attention 8, which could change the "),
        (
            {"quantization_config": {"bits": 4}},
            "unknown option quantization_config {'bits': 4}",
        ),
        (
            {"activation_function": "gelu_new"},
            "activation_function 'gelu_new': expected 'relu',",
        ),
        ({"decoder_ffn_dim": 21}, "encoder_ffn_dim 20 and decoder_ffn_dim 21 differ: this program"),
        ({"encoder_layers": "-"}, "encoder_layers: it is missing"),
        ({"decoder_start_token_id": 999}, "decoder_start_token_id 999: expected 0 to 10"),
        ({"length_penalty": "high"}, "length_penalty 'high': expected a number"),
        ({"vocab_size": "many"}, "vocab_size 'many': expected a whole number"),
        ({"d_model": 25}, "d_model must be even, as sine-cosine pairs"),
    ],
)
def test_options(directory, options, message):
    change_json(directory / "config.json", **options)

    assert refusal(directory).startswith(f"config.json: {message}")


def test_a_pegasus_of_others_is_refused(directory):
    """It sums up; but `export` writes pre-norm models as Pegasus, and reads them again."""
    change_json(directory / "config.json", model_type="pegasus")
    assert refusal(directory) == (
        "DIRECTORY: import reads a pegasus model, which summarises texts, only if `export` wrote"
        " it; import also reads marian, m2m_100, mbart"
    )


def test_an_option_that_is_off_changes_nothing(directory):
    change_json(directory / "config.json", relative_attention=False, rope_theta=None)

    assert import_hugging_face(directory).family == "MarianMT"


def test_weights(directory):
    name = "model.encoder.layers.1.fc1.bias"

    change_weights(directory, lambda weights: weights.update(gate=torch.zeros(3)))
    assert refusal(directory) == (
        f"{WEIGHTS}: the weight 'gate' is unknown (1 unknown): this program cannot run such a model"
    )
    change_weights(directory, lambda weights: [weights.pop(each) for each in ("gate", name)])
    assert refusal(directory) == f"DIRECTORY: the weights lack {name} (1 missing)"
    change_weights(directory, lambda weights: weights.update({name: torch.zeros(19)}))
    assert refusal(directory) == (
        f"{WEIGHTS}: {name} has the shape (19,), expected (20,): copy all files from one model"
    )
    change_weights(directory, lambda weights: weights.update({name: torch.zeros(20).char()}))
    assert f"{WEIGHTS}: {name} is of torch.int8, expected floating-point" in refusal(directory)


def test_two_different_weights_under_names_of_one(directory):
    def untie(weights):
        [name] = {"model.shared.weight", "lm_head.weight"} & weights.keys()
        weights["model.decoder.embed_tokens.weight"] = weights[name] + 1

    change_weights(directory, untie)
    assert refusal(directory).endswith("differ: import reads them as one weight")


def test_files(directory, tmp_path):
    assert (
        refusal(tmp_path / "no") == "DIRECTORY: not a directory of transformers (no such directory)"
    )
    (tmp_path / "empty").mkdir()
    assert refusal(tmp_path / "empty").endswith("(it holds no config.json)")
    cut(directory / WEIGHTS)
    assert refusal(directory).startswith(f"{WEIGHTS}: cannot be read as safetensors (")
    (directory / WEIGHTS).unlink()
    assert refusal(directory) == f"DIRECTORY holds no {WEIGHTS}: copy the whole directory anew"
    (directory / "pytorch_model.bin").touch()
    assert refusal(directory).startswith("pytorch_model.bin is a pickle, which can run code: write")
    cut(directory / "config.json")
    assert refusal(directory).startswith("config.json: not JSON, or cut short (")
    (directory / "config.json").write_text("[" * 100_000)
    assert refusal(directory).startswith("config.json: not JSON, or cut short (")
    (directory / "config.json").write_text("[1]")
    assert refusal(directory) == "config.json: expected an object"


def test_files_of_the_tokenizer(directory):
    vocabulary = json.loads((directory / "vocab.json").read_text())

    (directory / "vocab.json").write_text(json.dumps(vocabulary | {"new": 999}))
    assert refusal(directory).startswith("vocab.json: config.json has")
    (directory / "vocab.json").write_text(json.dumps(vocabulary | {"new": "x"}))
    assert refusal(directory) == "vocab.json: expected a table of pieces and ids"
    change_json(directory / "config.json", eos_token_id=5)
    (directory / "vocab.json").write_text(json.dumps(vocabulary))
    assert refusal(directory).startswith("vocab.json: config.json's eos_token_id 5 is the token ")
    change_json(directory / "config.json", eos_token_id=[0, 1])
    assert refusal(directory).startswith("config.json: eos_token_id [0, 1]: expected a whole n")
    change_json(directory / "config.json", eos_token_id=0)
    del vocabulary["<unk>"]
    (directory / "vocab.json").write_text(json.dumps(vocabulary))
    assert refusal(directory) == "vocab.json: the token '<unk>' is missing: copy the file anew"
    (directory / "vocab.json").unlink()
    assert refusal(directory) == ("vocab.json: cannot be read: No such file or directory")


def test_sentencepiece_models(directory):
    cut(directory / "source.spm")
    assert refusal(directory) == (
        "source.spm: not a SentencePiece model, or cut short: copy the file anew"
    )
    (directory / "source.spm").write_bytes(b"")
    assert refusal(directory).startswith("source.spm: not a SentencePiece model, or cut short")
    (directory / "source.spm").unlink()
    assert refusal(directory) == ("source.spm: cannot be read: No such file or directory")
    change_json(directory / "tokenizer_config.json", tokenizer_class="BartTokenizer")
    assert refusal(directory) == (
        "tokenizer_config.json: tokenizer_class 'BartTokenizer': another tokenizer: for a marian"
        " model, import reads MarianTokenizer"
    )


def test_languages(make_marian, tmp_path):
    directory = make_marian(tmp_path / "model", languages=("deu", "fra", "nld"))

    assert refusal(directory, UsageError) == (
        "target_language is missing: this model has 3 languages: de, fr, nl"
    )
    assert refusal(directory, UsageError, target_language="frx") == (
        "target_language 'frx': this model has no such language (did you mean 'fr'?)"
    )
    assert refusal(directory, UsageError, target_language="xyz").endswith(
        "this model has no such language: expected one of de, fr, nl"
    )


def test_weights_that_overflow_make_no_bundle(directory, tmp_path):
    name = "model.encoder.layers.1.final_layer_norm.weight"
    change_weights(directory, lambda weights: weights.update({name: weights[name] * 0 + 3e38}))
    with pytest.raises(InputError, match="its numbers overflow: the weights are damaged"):
        sources.import_bundle(directory, tmp_path / "bundle")
    assert not (tmp_path / "bundle").exists()


def test_an_import_loads_what_it_wrote(marian, tmp_path, monkeypatch, capsys):
    def refuse(place):
        raise InputError(f"{place}: it cannot be loaded")

    monkeypatch.setattr(sources, "load_bundle", refuse)

    assert main(["import", str(marian), str(tmp_path / "bundle")]) == 1
    assert capsys.readouterr().err == (
        f"glassformer: error: {marian}: the files make no bundle ({tmp_path / 'bundle'}: it"
        " cannot be loaded)\n"
    )
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("written", [0, 1, 3])
def test_a_full_disk_leaves_nothing_behind(marian, tmp_path, monkeypatch, capsys, written):
    """The disk takes so many files; each is flushed, and its directory after it."""
    flushed, flush = [], os.fsync

    def fsync(descriptor):
        if len(flushed) == 2 * written:
            raise OSError(errno.ENOSPC, "No space left on device")
        flushed.append(descriptor)
        flush(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)

    assert main(["import", str(marian), str(tmp_path / "bundle")]) == 1
    line = capsys.readouterr().err
    assert line.startswith(f"glassformer: error: {tmp_path / 'bundle'}/")
    assert line.endswith(": No space left on device\n")
    assert not list(tmp_path.iterdir())


def test_faults_of_others_that_once_gave_a_traceback(directory):
    """Or a bundle that is none, or no end."""
    whole = (directory / "config.json").read_text()
    for options, message in (
        ({"activation_function": ["relu"]}, "config.json: activation_function ['relu']: expected"),
        ({"pad_token_id": "106"}, "config.json: pad_token_id '106': expected a whole number"),
        ({"encoder_ffn_dim": 10**6, "decoder_ffn_dim": 10**6}, f"{WEIGHTS}: model.decoder.layers."),
    ):
        change_json(directory / "config.json", **options)
        assert refusal(directory).startswith(message)
        (directory / "config.json").write_text(whole)
    name = "model.encoder.layers.1.fc1.bias"
    change_weights(directory, lambda weights: weights.update({name: weights[name] * torch.nan}))
    assert refusal(directory).startswith(f"{WEIGHTS}: {name} holds NaN or infinity: the file is")
    (directory / WEIGHTS).unlink()
    for content in ("null", "[1]", '"text"', '{"a": 1}', '{"a": [1]}'):
        (directory / f"{WEIGHTS}.index.json").write_text(f'{{"weight_map": {content}}}')
        assert refusal(directory).startswith(f"{WEIGHTS}.index.json: weight_map")
    for file in ("source.spm", "vocab.json", "config.json"):
        (directory / file).unlink()
        os.mkfifo(directory / file)
        assert refusal(directory).startswith(f"{file} is a pipe, expected a regular file")
