"""Heads that are planted are found, by true links and by anchors; what is stored comes back."""

import json
from dataclasses import replace
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest

from glassformer.alignment import heads as module
from glassformer.alignment.align import Heads, WordAttention
from glassformer.alignment.heads import anchors, find_heads
from glassformer.bundle import Bundle, load_bundle, save_bundle
from glassformer.data.words import words
from glassformer.support.errors import InputError

# A language with the words turned round: "one two" is "owt eno".
NUMBERS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
GENERATOR = np.random.default_rng(2)
PAIRS = [
    (" ".join(chosen), " ".join(word[::-1] for word in chosen[::-1]))
    for chosen in (GENERATOR.choice(NUMBERS, size=4, replace=False) for _ in range(60))
]
BUNDLE = Mock(spec=Bundle)
BUNDLE.model = SimpleNamespace(config=SimpleNamespace(num_decoder_layers=3))


def true_links(source: str, target: str) -> frozenset:
    return frozenset(zip(words(source), reversed(words(target)), strict=True))


@pytest.fixture
def planted(monkeypatch):
    """Four heads in three layers; of the input row of layer 1, two know half of the words each."""

    def attention(_, sources, targets, *, layers, rows):
        found = []
        for source, target in zip(sources, targets, strict=True):
            weights = np.full((len(rows), len(layers), 4, 4, 4), 0.1, dtype=np.float32)
            weights[:, :, :, :, 1] = 0.3  # what knows nothing reads the second word
            right = np.eye(4)[::-1]
            weights[1, 1, 1, :3] = right[:3]
            weights[1, 1, 3, 1:] = right[1:]
            found.append(WordAttention(words(source), words(target), weights))
        return found

    monkeypatch.setattr(module, "word_attention", attention)


@pytest.mark.usefixtures("planted")
def test_planted_heads_are_found():
    heads = find_heads(BUNDLE, PAIRS)

    assert (heads.layer, heads.heads, heads.row) == (1, (1, 3), "input")
    assert heads.error == 0.0
    assert heads.judge.startswith("anchors of IBM model 1")


def test_without_pairs_there_is_nothing_to_judge_by():
    with pytest.raises(
        InputError, match="no anchors of IBM model 1 to judge heads in 1 pair: give"
    ):
        find_heads(BUNDLE, [("one one", "eno eno")])


def test_anchors_are_words_that_both_directions_find():
    found = anchors(PAIRS)

    drawn = sum(map(len, found))
    right = sum(len(links & true_links(*pair)) for links, pair in zip(found, PAIRS, strict=True))
    assert drawn > 0.8 * 4 * len(PAIRS)
    assert right > 0.95 * drawn


def test_anchors_leave_out_what_a_sentence_repeats():
    [*_, last] = anchors([*PAIRS, ("one two one", "eno owt eno"), ("", "eno"), ("one", "")][:61])

    assert {source for source, _ in last} == {(4, 7)}
    assert anchors([("", "eno"), ("one", "")]) == [frozenset()] * 2


def test_the_heads_of_a_bundle_are_stored_and_read(tmp_path, bundle_directory):
    bundle = load_bundle(bundle_directory)
    assert bundle.alignment is None
    save_bundle(bundle, tmp_path / "without")
    heads = Heads(0, (0, 1), "input", 0.125, "true links, 60 pairs")

    save_bundle(replace(bundle, alignment=heads.as_dict()), tmp_path / "with")
    loaded = load_bundle(tmp_path / "with")

    assert Heads.of(loaded.alignment, loaded.model.config) == heads
    before, after = (
        json.loads((tmp_path / name / "config.json").read_text("utf-8"))
        for name in ("without", "with")
    )
    assert (before.pop("alignment"), after.pop("alignment")) == (None, heads.as_dict())
    for config in (before, after):
        config["sha256"].pop("config.json")
    assert after == before
