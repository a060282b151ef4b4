import dataclasses
import json
import os
import shutil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.data import token_store as module
from glassformer.data.corpus import Pair
from glassformer.data.subword_training import train_tokenizer
from glassformer.data.token_store import Packed, pack
from glassformer.data.tokenizer import Tokenizer
from glassformer.support.errors import InputError

PAIRS = [
    Pair("the dog runs", "der Hund läuft"),
    Pair("a cat", "eine Katze"),
    Pair("the cat sleeps in the park", "die Katze schläft im Park"),
]
NAMES = ["meta.json", "source.ids", "source.offsets", "target.ids", "target.offsets"]


@pytest.fixture(scope="module")
def english() -> Tokenizer:
    return train_tokenizer([pair.source for pair in PAIRS] * 20, vocab_size=320)


@pytest.fixture(scope="module")
def german() -> Tokenizer:
    return train_tokenizer([pair.target for pair in PAIRS] * 20, vocab_size=340)


@pytest.fixture
def packed(english, german, tmp_path) -> Packed:
    return pack(PAIRS, english, german, tmp_path / "train", max_tokens=100)


def test_the_sentences_come_back(packed, english, german):
    assert len(packed) == len(packed.source) == len(packed.target) == 3
    for row, pair in enumerate(PAIRS):
        assert packed.source[row].tolist() == english.encode(pair.source)
        assert packed.target[row].tolist() == german.encode(pair.target)
        assert packed.source.lengths[row] == len(packed.source[row])
        assert packed.target.lengths[row] == len(packed.target[row])
    assert packed.source[-1].tolist() == packed.source[2].tolist()


@given(st.lists(st.tuples(st.text(min_size=1), st.text(min_size=1)), min_size=1, max_size=20))
def test_any_text_is_packed_in_chunks_of_any_size(english, tmp_path_factory, texts):
    pairs = [Pair("x" + source, "y" + target) for source, target in texts]
    directory = tmp_path_factory.mktemp("packed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_CHUNK", 3)
        packed = pack(iter(pairs), english, english, directory / "chunks", max_tokens=10_000)
    whole = pack(pairs, english, english, directory / "whole", max_tokens=10_000)
    assert [english.decode(ids) for ids in packed.source] == [pair.source for pair in pairs]
    assert [english.decode(ids) for ids in packed.target] == [pair.target for pair in pairs]
    assert packed.meta.content_hash == whole.meta.content_hash
    packed.verify()


def test_gather_is_the_sentences_one_after_the_other(packed):
    rows = np.array([2, 0, 2])
    ids, lengths = packed.source.gather(rows)
    assert ids.tolist() == [index for row in rows for index in packed.source[row].tolist()]
    assert lengths.tolist() == [len(packed.source[row]) for row in rows]


@pytest.mark.parametrize("row", [3, -4])
def test_a_row_that_is_not_there_is_an_error(packed, row):
    with pytest.raises(IndexError):
        packed.source[row]


def test_blank_and_long_pairs_are_left_out_and_counted(english, german, tmp_path):
    long = Pair("the dog " * 50, "der Hund")
    pairs = [Pair("", "leer"), long, PAIRS[0], Pair("blank", " \t"), Pair("the dog", long.source)]
    packed = pack(pairs, english, german, tmp_path / "train", max_tokens=60)
    assert packed.source[0].tolist() == english.encode(PAIRS[0].source)
    assert (len(packed), packed.meta.dropped_empty, packed.meta.dropped_long) == (1, 2, 2)


def test_a_pair_of_exactly_the_greatest_length_stays(english, tmp_path):
    length = len(english.encode(PAIRS[2].source))
    pair = [Pair(PAIRS[2].source, "a")]
    assert len(pack(pair, english, english, tmp_path / "a", max_tokens=length)) == 1
    with pytest.raises(InputError, match=f"1 are longer than {length - 1} subwords"):
        pack(pair, english, english, tmp_path / "b", max_tokens=length - 1)


def test_nothing_to_pack_is_an_error_and_leaves_nothing(english, tmp_path):
    with pytest.raises(InputError, match=r"no pair is left to pack: 1 have an empty side"):
        pack([Pair("", "")], english, english, tmp_path / "train", max_tokens=9)
    assert list(tmp_path.iterdir()) == []


def test_the_hash_is_of_the_content(packed, english, german, tmp_path):
    again = pack(iter(PAIRS), english, german, tmp_path / "again", max_tokens=50)
    assert again.meta.content_hash == packed.meta.content_hash
    for name, pairs in {
        "order": PAIRS[::-1],
        "fewer": PAIRS[:2],
        # The same ids in one row, with another place between the two sentences.
        "cut": [Pair("the dog", "der"), Pair("runs a cat", "Hund"), *PAIRS[2:]],
    }.items():
        other = pack(pairs, english, german, tmp_path / name, max_tokens=50)
        assert other.meta.content_hash != packed.meta.content_hash


def test_ids_take_two_bytes_where_the_vocabulary_allows(packed, english, tmp_path, monkeypatch):
    assert packed.source.ids.dtype == np.uint16
    monkeypatch.setattr(english, "vocab_size", 2**16 + 1)
    wide = pack(PAIRS, english, english, tmp_path / "wide", max_tokens=99)
    assert wide.source.ids.dtype == np.uint32
    assert wide.source[0].tolist() == packed.source[0].tolist()


def test_meta_says_whose_ids_these_are(packed, english, german):
    meta = json.loads((packed.directory / "meta.json").read_text())
    assert meta["tokenizers"] == {"source": english.fingerprint, "target": german.fingerprint}
    assert meta["symbols"]["target"] == {"pad": 0, "bos": 2, "eos": 3}
    assert meta == dataclasses.asdict(Packed.open(str(packed.directory)).meta)


def test_packing_again_replaces_the_directory_and_leaves_nothing_beside_it(packed, english, german):
    directory = packed.directory
    again = pack(PAIRS[:1], english, german, directory, max_tokens=99)
    assert len(again) == len(Packed.open(directory)) == 1
    assert len(packed) == 3  # what was open still reads its own files
    assert packed.source[2].tolist() == english.encode(PAIRS[2].source)
    assert [entry.name for entry in directory.parent.iterdir()] == ["train"]
    assert sorted(entry.name for entry in directory.iterdir()) == NAMES


def test_an_interrupted_packing_leaves_what_was_there(packed, english, german):
    def interrupted():
        yield PAIRS[0]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pack(interrupted(), english, german, packed.directory, max_tokens=99)
    assert len(Packed.open(packed.directory)) == 3
    assert [entry.name for entry in packed.directory.parent.iterdir()] == ["train"]


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_file_is_named(packed, name):
    (packed.directory / name).unlink()
    with pytest.raises(InputError, match=f"train.*{name}.*again"):
        Packed.open(packed.directory)


def test_a_missing_directory_is_named(tmp_path):
    with pytest.raises(InputError, match=r"absent/meta.json is missing, or is no description"):
        Packed.open(tmp_path / "absent")


@pytest.mark.parametrize("name", NAMES[1:])
def test_a_cut_off_file_is_named(packed, name):
    path = packed.directory / name
    os.truncate(path, path.stat().st_size - 2)
    with pytest.raises(InputError, match=f"{name} is missing or cut off .*: delete the directory"):
        Packed.open(packed.directory)


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"format_version": 1, "pairs": 3}'])
def test_a_damaged_description_is_named(packed, content):
    (packed.directory / "meta.json").write_text(content)
    with pytest.raises(InputError, match=r"meta.json is missing, or is no description"):
        Packed.open(packed.directory)


def test_another_format_is_named(packed):
    path = packed.directory / "meta.json"
    path.write_text(path.read_text().replace('"format_version": 1', '"format_version": 2'))
    with pytest.raises(InputError, match=r"meta.json is missing, or is no description"):
        Packed.open(packed.directory)


@pytest.mark.parametrize("name", NAMES[1:])
def test_verify_finds_one_changed_byte(packed, name, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(packed.directory, copy)
    Packed.open(copy).verify()
    content = bytearray((copy / name).read_bytes())
    content[8] ^= 1
    (copy / name).write_bytes(content)
    with pytest.raises(InputError, match="copy: the packed data differ from their content hash"):
        Packed.open(copy).verify()


def test_symbols_of_a_brought_tokenizer_reach_the_batches(english, tmp_path, monkeypatch):
    for name, value in {"pad_id": 320, "bos_id": 1, "eos_id": 2}.items():
        monkeypatch.setattr(english, name, value)
    packed = pack(PAIRS, english, english, tmp_path / "train", max_tokens=99)
    assert packed.meta.symbols["source"] == {"pad": 320, "bos": 1, "eos": 2}
