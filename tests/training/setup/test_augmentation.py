"""Further pairs: their texts belong together, and they are a part of the run's data."""

import json
from collections import Counter

import pytest

from glassformer.data.corpus import Pair, read_pairs
from glassformer.training.setup.augmentation import joined_pairs
from glassformer.training.setup.prepare import prepare

SIDES = [("dog", "Hund"), ("cat", "Katze"), ("bird", "Vogel"), ("child", "Kind")]
PAIRS = [
    Pair(f"The {one} {verb} {number}.", f"Das {other} {rest} {number}.")
    for number in range(400)
    for one, other in SIDES
    for verb, rest in [("runs", "rennt")]
]


def test_units_are_joined_pairs_of_both_sides():
    units = list(joined_pairs(PAIRS, 0.3, seed=1))
    sizes = Counter(unit.source.count(".") for unit in units)
    assert set(sizes) == {2, 3, 4, 5}
    assert 0.25 < sum(size * count for size, count in sizes.items()) / len(PAIRS) < 0.35
    targets = dict(PAIRS)
    for unit in units:
        sources = [f"{text}." for text in unit.source.removesuffix(".").split(". ")]
        assert unit.target == " ".join(targets[source] for source in sources)


def test_no_unit_is_made_of_too_few_pairs_or_without_a_share():
    assert list(joined_pairs(PAIRS[:1], 1.0, seed=1)) == []
    assert list(joined_pairs(PAIRS, 0.0, seed=1)) == []


def test_a_run_keeps_its_further_pairs_in_a_file_and_learns_from_them(config):
    options = config(60, joined_pairs=0.5)
    prepared = prepare(options)
    file = prepared.config.run / "data" / "augmented.jsonl"
    further = list(read_pairs(file))
    assert len(further) > 3
    packed, (tokenizer, _) = prepared.packed, prepared.tokenizers
    texts = [tokenizer.decode(packed.source[row]) for row in range(len(packed))]
    assert texts[-len(further) :] == [pair.source for pair in further]
    held_out = {pair.source for pair in prepared.valid}
    assert not [pair for pair in further if held_out & set(pair.source.split(". "))]

    before = file.read_bytes()
    assert prepare(options).packed.meta == packed.meta
    assert file.read_bytes() == before

    prepare(config(60, joined_pairs=0))
    assert not file.exists()


def test_the_file_is_one_of_json_lines(config):
    run = prepare(config(60, joined_pairs=1.0)).config.run
    lines = (run / "data" / "augmented.jsonl").read_text("utf-8").splitlines()
    assert {tuple(json.loads(line)) for line in lines} == {("source", "target")}


@pytest.mark.parametrize(("weight", "least", "most"), [(1.0, 40, 40), (2.0, 80, 80), (0.5, 8, 32)])
def test_further_pairs_come_as_often_as_their_weight_says(
    notes, config, write, weight, least, most
):
    lines = [f"{'abcdef'[n % 6]} {'abcdef'[n // 6 % 6]} x\ty" for n in range(40)]
    also = write("also.tsv", [*lines, "\tz", "  \t "])
    prepared = prepare(
        config(60, also=(also,), also_weight=weight, also_tag="<BT>"), note=notes.append
    )
    further = list(read_pairs(prepared.config.run / "data" / "augmented.jsonl"))
    assert least <= len(further) <= most
    assert all(pair.source.startswith("<BT> ") and pair.target == "y" for pair in further)
    assert len(prepared.packed) == 54 + len(further)
    assert any(note.startswith(f"further pairs: {len(further)}, in ") for note in notes)
    assert f"{also}: 40 of 42 pairs kept; 2 dropped: 2 empty" in notes
