"""A bundle comes back to the bit, and each fault of one is a line that names it."""

import hashlib
import json
import os
import re
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file, save_file

from glassformer import bundle as module
from glassformer.bundle import Bundle, load_bundle, save_bundle
from glassformer.config import ModelConfig
from glassformer.data.edges import Edges
from glassformer.data.known import Known
from glassformer.data.preprocessing import Preprocessing, SourceLengths
from glassformer.data.subword_training import train_tokenizer
from glassformer.model.transformer import Transformer
from glassformer.parts import FAST, PLAIN
from glassformer.support.errors import ChecksumError, InputError
from glassformer.support.files import write_atomically
from glassformer.support.tensors import save_tensors, weights
from glassformer.translator import Translator
from tests.own_parts import colder, rebuilt, rotary, warmer


@pytest.fixture(scope="module")
def tokenizers():
    return (
        train_tokenizer(["a dog runs", "a cat sits", "the dog sits"], vocab_size=300),
        train_tokenizer(["ein Hund rennt", "eine Katze sitzt hier", "er"], vocab_size=310),
    )


def bundle_of(source, target, **changes):
    torch.manual_seed(0)
    config = {
        "source_vocab_size": source.vocab_size,
        "target_vocab_size": target.vocab_size,
        "d_model": 8,
        "num_heads": 2,
        "d_ff": 12,
        "num_encoder_layers": 1,
        "num_decoder_layers": 1,
        **changes,
    }
    model = Transformer(ModelConfig(**config)).eval()
    return Bundle(model, source, target, ("en", "de"), {"pairs": 3, "validation": "BLEU 1.00"})


@pytest.fixture
def saved(tokenizers, tmp_path):
    """The directory of a bundle with one vocabulary."""
    directory = tmp_path / "bundle"
    save_bundle(bundle_of(tokenizers[0], tokenizers[0]), directory)
    return directory


VARIANTS = [
    {"tying": "three-way"},
    {"tying": "embeddings"},
    {"tying": "target"},
    {"tying": "none"},
    {"tying": "target", "separate": True},
    {"tying": "none", "separate": True, "output_bias": True, "norm": "pre"},
    {"tying": "three-way", "positions": "learned", "max_length": 9, "embedding_norm": True},
]


@pytest.mark.parametrize("changes", VARIANTS, ids=str)
def test_round_trip_to_the_bit(changes, tokenizers, tmp_path):
    changes = dict(changes)
    sides = tokenizers if changes.pop("separate", False) else (tokenizers[0], tokenizers[0])
    before = bundle_of(*sides, **changes)

    save_bundle(before, tmp_path / "new" / "bundle")
    after = load_bundle(tmp_path / "new" / "bundle")

    source, target = torch.tensor([[5, 9, 3], [7, 3, 0]]), torch.tensor([[2, 8], [2, 6]])
    with torch.no_grad():
        assert torch.equal(before.model(source, target), after.model(source, target))
    assert after.model.config == before.model.config
    assert after.languages == ("en", "de")
    assert after.about == before.about
    for ours, theirs in zip((after.source_tokenizer, after.target_tokenizer), sides, strict=True):
        assert ours.serialized == theirs.serialized


def test_who_can_read_one_file_can_read_all(saved):
    assert len({path.stat().st_mode for path in saved.iterdir()}) == 1


def test_its_settings_come_back(tokenizers, tmp_path):
    lengths = SourceLengths(median=11, longest=40, several=0.25)
    known = Known(("ab", "äb"), Edges(("", "("), ("", "."), ""), {"measure h": (0, 7)})
    settings = {
        "examples": ("A dog runs.", "A cat sits."),
        "normalisation": "text",
        "source_lengths": lengths,
        "known": known,
        "trigrams": (" a  ab", "öß "),
        "length_penalty": 1.5,
    }
    save_bundle(replace(bundle_of(*tokenizers, tying="target"), **settings), tmp_path)

    found = load_bundle(tmp_path)

    assert {name: getattr(found, name) for name in settings} == settings
    assert found.preprocessing == Preprocessing("text", ("en", "de"), lengths, known)
    assert "dog runs" not in (tmp_path / "README.md").read_text()


def test_a_loaded_bundle_is_ready_to_translate(saved):
    model = load_bundle(saved).model

    assert not model.training
    assert not any(weight.requires_grad for weight in model.parameters())


def names(directory):
    return {path.name for path in directory.iterdir()}


def test_its_files(saved, tokenizers, tmp_path):
    save_bundle(bundle_of(*tokenizers, tying="target"), tmp_path / "separate")

    common = {"config.json", "model.safetensors", "README.md"}
    assert names(saved) == common | {"tokenizer.model"}
    assert names(tmp_path / "separate") == common | {"source.model", "target.model"}


def test_tied_weights_are_stored_once(saved):
    stored = load_file(saved / "model.safetensors")
    model = load_bundle(saved).model

    assert [name for name in stored if "embedding" in name] == ["source_embedding.weight"]
    assert sum(weight.numel() for weight in stored.values()) == sum(
        weight.numel() for weight in model.parameters()
    )


def test_nothing_is_pickled(saved):
    for path in saved.iterdir():
        content = path.read_bytes()
        assert not content.startswith((b"\x80", b"PK")), path  # a pickle, or torch's zip of one


def test_the_card_says_what_it_is(saved):
    card = (saved / "README.md").read_text("utf-8")

    count = sum(weight.numel() for weight in load_bundle(saved).model.parameters())
    for words in ("en to de", f"{count:,} parameters", "pairs: 3", "validation: BLEU 1.00"):
        assert words in card


def change_config(directory, **changes):
    path = directory / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def change_model(directory, **changes):
    model = json.loads((directory / "config.json").read_text())["model"]
    change_config(directory, model={**model, **changes})


def without_a_setting(directory):
    model = json.loads((directory / "config.json").read_text())["model"]
    del model["num_heads"]
    change_config(directory, model=model)


def with_weights(change):
    def changed(directory):
        path = directory / "model.safetensors"
        save_file({name: change(weight) for name, weight in load_file(path).items()}, path)

    return changed


def as_pipe(name):
    def piped(directory):
        (directory / name).unlink()
        os.mkfifo(directory / name)

    return piped


def as_link(name, target):
    def linked(directory):
        (directory / name).unlink()
        (directory / name).symlink_to(target)

    return linked


def without_a_weight(directory):
    path = directory / "model.safetensors"
    stored = load_file(path)
    del stored["source_embedding.weight"]
    save_file(stored, path)


def with_a_foreign_weight(directory):
    path = directory / "model.safetensors"
    save_file(load_file(path) | {"extra": torch.zeros(2)}, path)


def with_another_shape(directory):
    path = directory / "model.safetensors"
    save_file(load_file(path) | {"source_embedding.weight": torch.zeros(3, 4)}, path)


def cut(name):
    def cut_off(directory):
        content = (directory / name).read_bytes()
        (directory / name).write_bytes(content[: len(content) // 2])

    return cut_off


def replace_bytes(path, old, new):
    path.write_bytes(path.read_bytes().replace(old, new))


def larger_vocabulary(directory):
    stored = json.loads((directory / "config.json").read_text())["model"]
    sizes = dict.fromkeys(("source_vocab_size", "target_vocab_size"), 500)
    torch.manual_seed(0)
    config = ModelConfig(**{**stored, **sizes})
    save_file(weights(Transformer(config)), directory / "model.safetensors")
    change_config(directory, model=config.model_dump())


FAULTS = {
    "no config": (lambda d: (d / "config.json").unlink(), "not a bundle .it holds no config.json"),
    "cut config": (cut("config.json"), "config.json: not JSON, or cut short"),
    "config of another kind": (
        lambda d: (d / "config.json").write_text("[1]"),
        "config.json: expected an object",
    ),
    "not UTF-8": (
        lambda d: (d / "config.json").write_bytes(b'{"a": "\xff"}'),
        "config.json: not JSON, or cut short",
    ),
    "no version": (
        lambda d: (d / "config.json").write_text("{}"),
        "config.json: format_version: it is missing",
    ),
    "another version": (
        lambda d: change_config(d, format_version=4, later=1),
        "config.json: format_version: 4, but this glassformer reads 3: update glassformer",
    ),
    "a version of a preview": (
        lambda d: change_config(d, format_version=2),
        "config.json: format_version: 2, but this glassformer reads 3: train or import it anew",
    ),
    "an unknown setting": (lambda d: change_config(d, colour="red"), "json: colour: no such name"),
    "an unknown setting of the model": (
        lambda d: change_model(d, colour="red"),
        "config.json: model: colour is no option",
    ),
    "many examples": (
        lambda d: change_config(d, examples=["a"] * 4),
        "config.json: examples .*: expected at most 3 values",
    ),
    **{
        f"{name} {wrong!r}": (
            lambda d, name=name, wrong=wrong: change_config(d, **{name: wrong}),
            rf"config\.json: {name}",
        )
        for name, wrong in [
            *(("trigrams", wrong) for wrong in (["abc"], ["abc", "x" * 1501], [7, "abc"], "abc")),
            *(("length_penalty", wrong) for wrong in (-1, float("nan"), 1e9, "much", None)),
        ]
    },
    "settings that do not fit": (
        lambda d: change_model(d, num_heads=3),
        "d_model 8 is not divisible by num_heads 3",
    ),
    "no weights": (lambda d: (d / "model.safetensors").unlink(), "model.safetensors: cannot be"),
    "cut weights": (cut("model.safetensors"), "model.safetensors: cannot be read as safetensors"),
    "a weight less": (without_a_weight, "the weights lack source_embedding.weight .1 missing"),
    "a weight more": (with_a_foreign_weight, "the weight 'extra' is unknown .1 unknown"),
    "another shape": (
        with_another_shape,
        r"source_embedding.weight has the shape \(3, 4\)",
    ),
    "no tokenizer": (lambda d: (d / "tokenizer.model").unlink(), "tokenizer.model: cannot be"),
    "cut tokenizer": (cut("tokenizer.model"), "tokenizer.model: not a SentencePiece model"),
    "subwords that are no UTF-8": (
        lambda d: replace_bytes(d / "tokenizer.model", "▁".encode(), b"\xff\xff\xff"),
        "tokenizer.model: not a SentencePiece model",
    ),
    "no positions": (lambda d: change_model(d, max_length=2), "max_length 2: expected at least"),
    "another vocabulary": (
        larger_vocabulary,
        "source_vocab_size is 500 in the model and [0-9]+ in its tokenizer",
    ),
    "other symbols": (lambda d: change_model(d, pad_id=9), "pad_id is 9 in the model and 0 in its"),
    "a setting less": (without_a_setting, "config.json: model.num_heads is missing, and a default"),
    "a setting as text": (
        lambda d: change_model(d, num_heads="2"),
        "model.num_heads '2': expected a whole number",
    ),
    "a truth as a version": (lambda d: change_config(d, format_version=True), "version True: expe"),
    "a number as languages": (lambda d: change_config(d, languages=7), "config.json: languages 7"),
    "too many blocks": (lambda d: change_model(d, num_encoder_layers=10**9), "at most 1000"),
    "too wide": (lambda d: change_model(d, d_ff=10**18), "model.d_ff 10+: expected at most"),
    "too many positions": (
        lambda d: change_model(d, max_length=10**6, d_model=64),
        "1000000 positions of 64 numbers: expected at most 33,554,432",
    ),
    "more blocks than weights": (
        lambda d: change_model(d, num_encoder_layers=3),
        r"the weights lack encoder.blocks.1.* .32 missing",
    ),
    "deep nesting": (
        lambda d: (d / "config.json").write_text('{"about": ' + "[" * 100_000),
        "config.json: not JSON, or cut short",
    ),
    "a long number": (
        lambda d: (d / "config.json").write_text('{"format_version": ' + "1" * 5_000 + "}"),
        "config.json: ",
    ),
    "a large config": (
        lambda d: (d / "config.json").write_text(" " * (17 << 20)),
        "config.json: the file has 17,825,792 bytes, expected at most 16,777,216",
    ),
    "a subword list without end": (
        lambda d: change_config(d, source_known=10**18),
        "tokenizer.model: a list of 1000000000000000000 subwords, expected 1 to",
    ),
    "a pipe as config": (as_pipe("config.json"), "config.json is a pipe, expected a regular file"),
    "a pipe as weights": (as_pipe("model.safetensors"), "model.safetensors is a pipe, expected"),
    "a pipe as tokenizer": (as_pipe("tokenizer.model"), "tokenizer.model is a pipe, expected"),
    "a device": (
        as_link("tokenizer.model", "/dev/zero"),
        "tokenizer.model is a device, expected",
    ),
    "a directory": (as_link("config.json", "."), "config.json is a directory, .*name a file in it"),
    "NaN": (with_weights(lambda weight: weight / 0.0), "holds NaN or infinity: the file is damag"),
    "whole numbers": (with_weights(lambda weight: weight.long()), "int64, expected floating-point"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_one_line_that_names_it(fault, saved):
    damage, message = FAULTS[fault]
    damage(saved)

    with pytest.raises(InputError, match=message) as caught:
        load_bundle(saved, verify=False)

    assert str(saved) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_tokenizer_of_gigabytes_is_refused_before_its_hash_is_taken(saved, monkeypatch):
    os.truncate(saved / "tokenizer.model", 257 << 20)
    monkeypatch.setattr("glassformer.bundle.check_hashes", None)

    with pytest.raises(InputError, match=r"tokenizer\.model: the file has 269,484,032 bytes"):
        load_bundle(saved)


def flip_a_bit(path, place=-1):
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("name", ["source.model", "target.model", "model.safetensors"])
def test_a_changed_file_is_found_by_its_hash(tokenizers, tmp_path, name):
    save_bundle(bundle_of(*tokenizers, tying="target"), tmp_path)
    flip_a_bit(tmp_path / name, place=-2)

    with pytest.raises(ChecksumError, match=f"{name}: checksum mismatch: .*damaged"):
        load_bundle(tmp_path)


def test_a_flipped_bit_in_each_byte_of_the_config_is_found(saved):
    path = saved / "config.json"
    content = path.read_bytes()
    for place in range(len(content)):
        flipped = bytearray(content)
        flipped[place] ^= 1 << place % 8
        path.write_bytes(flipped)
        with pytest.raises(InputError, match=re.escape(f"{path}: ")):
            module._read_config(saved, verify=True)


@pytest.mark.parametrize(
    "change",
    [
        lambda directory: change_model(directory, position_offset=2),
        lambda directory: change_config(directory, about={}),
    ],
    ids=["of the model", "about"],
)
def test_a_changed_setting_is_found_by_the_checksum(saved, change):
    change(saved)

    with pytest.raises(ChecksumError, match=r"config.json: checksum mismatch: .*: copy the bundle"):
        load_bundle(saved)
    assert load_bundle(saved, verify=False).languages == ("en", "de")


def test_the_checksum_is_of_the_settings_not_of_their_white_space(saved):
    settings = json.loads((saved / "config.json").read_text())
    (saved / "config.json").write_bytes(json.dumps(settings, indent=7).encode() + b"\r\n")
    assert load_bundle(saved).languages == ("en", "de")

    noted = settings["sha256"].pop("config.json")
    canonical = json.dumps(settings, sort_keys=True, separators=(",", ":"))
    assert noted == hashlib.sha256(canonical.encode()).hexdigest()


def test_a_config_without_its_checksum_is_refused(saved):
    hashes = json.loads((saved / "config.json").read_text())["sha256"]
    del hashes["config.json"]
    change_config(saved, sha256=hashes)

    with pytest.raises(ChecksumError, match=r"config.json: checksum mismatch"):
        load_bundle(saved)


def test_unverified_it_is_taken_as_it_is(saved):
    save_tensors(
        weights(load_bundle(saved).model), saved / "model.safetensors", metadata={"a": "b"}
    )
    with pytest.raises(ChecksumError, match=r"model.safetensors: checksum mismatch"):
        load_bundle(saved)

    assert load_bundle(saved, verify=False).languages == ("en", "de")


def test_a_person_may_change_the_readme(saved):
    flip_a_bit(saved / "README.md")

    assert load_bundle(saved).languages == ("en", "de")


@pytest.mark.parametrize("beam", [1, 3])
def test_weights_that_are_finite_but_far_too_large_are_a_line(saved, beam):
    with_weights(lambda weight: torch.full_like(weight, 1e20))(saved)
    translator = Translator(load_bundle(saved, verify=False))

    with pytest.raises(InputError, match=r"NaN or \+inf as logits .*check the weights"):
        translator.translate(["a dog"], beam=beam)


def test_a_link_to_a_file_is_followed(saved, tmp_path):
    kept = tmp_path / "blob"
    (saved / "model.safetensors").rename(kept)
    (saved / "model.safetensors").symlink_to(kept)

    assert load_bundle(saved).languages == ("en", "de")


def test_a_directory_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match=r"nowhere: not a bundle .no such directory"):
        load_bundle(tmp_path / "nowhere")


def loaded(directory, parts):
    return load_bundle(directory, build=parts.build, own=parts.own)


def test_own_parts_are_asked_for_by_their_names(tokenizers, tmp_path):
    """None is silently another: they may have no weights of their own, as rotary positions."""
    parts = replace(PLAIN, attention=colder, model=rotary)
    stock = bundle_of(*tokenizers, tying="none")
    own = replace(stock, model=rebuilt(stock.model, parts), parts=parts.own_model)
    save_bundle(own, tmp_path / "own")
    save_bundle(stock, tmp_path / "stock")
    pair = torch.tensor([[5, 6, 7]]), torch.tensor([[2, 8]])

    found = loaded(tmp_path / "own", replace(FAST, attention=colder, model=rotary))

    assert found.parts == {
        "attention": "colder",
        "model": "rotary",
    }
    assert found.model(*pair).equal(own.model(*pair))
    assert not found.model(*pair).allclose(stock.model(*pair))
    assert "parts" in json.loads((tmp_path / "own" / "config.json").read_text())
    assert loaded(tmp_path / "stock", parts).model(*pair).equal(own.model(*pair))
    assert load_bundle(tmp_path / "stock").parts == {}
    for wrong, part in (
        (PLAIN, "attention colder"),
        (replace(parts, attention=warmer), "attention colder"),
        (replace(PLAIN, attention=colder), "model rotary"),
    ):
        with pytest.raises(InputError) as raised:
            loaded(tmp_path / "own", wrong)
        assert str(raised.value) == (
            f"{tmp_path / 'own'} was trained with '{part}': give parts with that name (in Python),"
            " or train anew with the package's parts"
        )
    for load in (Translator.load, load_bundle):  # without parts
        with pytest.raises(InputError, match="trained with 'attention"):
            load(tmp_path / "own")


def test_a_stranger_s_name_of_a_part_stays_one_line(tokenizers, tmp_path):
    bundle = replace(bundle_of(*tokenizers), parts={"attention": "a\n\x1b[2J"})
    save_bundle(bundle, tmp_path / "own")

    with pytest.raises(InputError, match=r"trained with 'attention a\\n\\x1b\[2J': give parts"):
        load_bundle(tmp_path / "own")


def test_a_file_is_no_bundle(saved):
    with pytest.raises(InputError, match=r"config.json: not a bundle .a file: give its directory"):
        load_bundle(saved / "config.json")


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_atomically(path, b"old")

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(path, b"new")

    assert path.read_bytes() == b"old"


def test_the_config_is_written_last(tokenizers, tmp_path, monkeypatch):
    written = []
    inner = module.write_atomically
    monkeypatch.setattr(
        module, "write_atomically", lambda path, c: (written.append(path.name), inner(path, c))
    )

    save_bundle(bundle_of(tokenizers[0], tokenizers[0]), tmp_path / "bundle")

    assert written[-1] == "config.json"
