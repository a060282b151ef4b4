"""Heads that are planted are found, by true links and by anchors; what is stored comes back."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from glassformer.alignment import heads as module
from glassformer.alignment.align import Heads, WordAttention
from glassformer.alignment.heads import anchors, error_rate, find_heads
from glassformer.bundle import load_bundle, save_bundle
from glassformer.data.words import TrueLinks, words
from glassformer.errors import InputError

# A language with the words turned round: "one two" is "owt eno".
NUMBERS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
GENERATOR = np.random.default_rng(2)
PAIRS = [
    (" ".join(chosen), " ".join(word[::-1] for word in chosen[::-1]))
    for chosen in (GENERATOR.choice(NUMBERS, size=4, replace=False) for _ in range(60))
]
PARTS = SimpleNamespace(
    model=SimpleNamespace(config=SimpleNamespace(num_decoder_layers=3)),
    source_tokenizer=None,
    target_tokenizer=None,
    preprocessing=None,
)


def true_links(source: str, target: str) -> TrueLinks:
    links = frozenset(zip(words(source), reversed(words(target)), strict=True))
    return TrueLinks(links, links)


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
@pytest.mark.parametrize("known", [True, False])
def test_planted_heads_are_found(known):
    truth = [true_links(*pair) for pair in PAIRS] if known else None
    found = find_heads(PARTS, PAIRS, truth)

    assert (found.heads.layer, found.heads.heads, found.heads.row) == (1, (1, 3), "input")
    assert found.heads.error == 0.0
    assert found.heads.judge.startswith("true links, 60" if known else "anchors of IBM model 1")
    assert len(found.table) == 2 * 3 * (4 + 1)
    best = min(found.table, key=lambda one: one.error)
    assert (best.row, best.layer) == ("input", 1)
    by_place = {one[:3]: one.error for one in found.table}
    # Of four words, three right and one wrong: 1 - (3 + 3) / (4 + 4).
    if known:
        assert by_place["input", 1, 1] == pytest.approx(0.25, abs=0.01)
        assert by_place["output", 1, 1] == pytest.approx(0.75, abs=0.01)


def test_without_pairs_there_is_nothing_to_judge_by():
    with pytest.raises(InputError, match="1 pairs: no anchors of IBM model 1 to choose heads by"):
        find_heads(PARTS, [("one one", "eno eno")])


def test_anchors_are_words_that_both_directions_find():
    found = anchors(PAIRS)

    drawn = sum(len(links.sure) for links in found)
    right = sum(
        len(links.sure & true_links(*pair).sure) for links, pair in zip(found, PAIRS, strict=True)
    )
    assert drawn > 0.8 * 4 * len(PAIRS)
    assert right > 0.95 * drawn


def test_anchors_leave_out_what_a_sentence_repeats():
    [*_, last] = anchors([*PAIRS, ("one two one", "eno owt eno"), ("", "eno"), ("one", "")][:61])

    assert {source for source, _ in last.sure} == {(4, 7)}
    assert anchors([("", "eno"), ("one", "")]) == [TrueLinks(frozenset(), frozenset())] * 2


def test_the_error_rate_of_och_and_ney():
    a, b, c, d = ((0, 1), (0, 1)), ((2, 3), (2, 3)), ((2, 3), (4, 5)), ((4, 5), (0, 1))
    truth = [
        TrueLinks(frozenset({a, b}), frozenset({a, b, c})),
        TrueLinks(frozenset(), frozenset()),
    ]

    assert error_rate([{a, b}, set()], truth) == 0.0
    assert error_rate([{a, b, c}, set()], truth) == 0.0  # what is possible does no harm
    assert error_rate([{a}, set()], truth) == pytest.approx(1 - 2 / 3)
    crossed = ((0, 1), (2, 3))
    assert error_rate([{a, crossed}, set()], truth) == pytest.approx(1 - 2 / 4)
    assert error_rate([{a, b, d}, {a, d}], truth) == 0.0  # words that nobody knows about
    assert error_rate([set(), set()], truth) == 1.0


def test_the_heads_of_a_bundle_are_stored_and_read(tmp_path, bundle_directory):
    bundle = load_bundle(bundle_directory)
    assert bundle.alignment is None
    save_bundle(bundle, tmp_path / "without")
    heads = Heads(0, (0, 1), "input", 0.125, "true links, 60 pairs")

    save_bundle(replace(bundle, alignment=heads.as_dict()), tmp_path / "with")
    loaded = load_bundle(tmp_path / "with")

    assert Heads.of(loaded.alignment, loaded.model.config) == heads
    stored = json.loads((tmp_path / "with" / "config.json").read_text("utf-8"))
    assert stored["alignment"] == heads.as_dict()
    assert load_bundle(tmp_path / "without").alignment is None
