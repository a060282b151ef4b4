"""Shifts by known amounts and at known lines, and none where none is."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.data.parallel_lines import Shift, features, shifts, slip, unrelated
from tests.tables import every


def pair_of_sides(lines: int, seed: int = 0) -> tuple[list[str], list[str]]:
    """Sources of all lengths, and targets that are about as long; a tenth are questions."""
    rng = random.Random(seed)
    sources, targets = [], []
    for _ in range(lines):
        length, mark = rng.randint(5, 120), "?" if rng.random() < 0.1 else "."
        sources.append("a" * length + mark)
        targets.append("b" * round(length * rng.uniform(0.9, 1.5)) + mark)
    return sources, targets


@every("offset", [-10, -2, -1, 1, 3, 10])
@every("start", [0, 333, 900])
def test_a_shift_is_found_with_its_offset_and_its_line(offset, start):
    sources, targets = pair_of_sides(1200)
    if offset > 0:  # extra targets
        targets[start:start] = [f"{'c' * (7 * n)}." for n in range(offset)]
    else:
        del targets[start : start - offset]

    found = shifts(features(sources), features(targets))

    assert [shift.offset for shift in found] == [offset]
    assert abs(found[0].first - (start + 1)) <= 10 + abs(offset)
    assert found[0].last == 1200


def test_each_stretch_has_its_own_offset():
    sources, targets = pair_of_sides(1500)
    del targets[1000]
    del targets[500]

    found = shifts(features(sources), features(targets))

    assert [shift.offset for shift in found] == [-1, -2]
    assert [abs(shift.first - line) < 10 for shift, line in zip(found, (501, 1001), strict=True)]
    assert found[0].last + 1 == found[1].first


@every("seed", range(8))
def test_sides_that_belong_together_are_not_shifted_nor_unrelated(seed):
    sources, targets = pair_of_sides(400, seed)

    assert shifts(features(sources), features(targets)) == []
    assert not unrelated(features(sources), features(targets))


@every("seed", range(8))
def test_a_shuffled_side_is_unrelated(seed):
    sources, targets = pair_of_sides(1000, seed)
    random.Random(seed).shuffle(targets)

    assert unrelated(features(sources), features(targets)) == "unrelated"


def test_the_lengths_of_a_dictionary_with_few_sentences_prove_nothing():
    rng = random.Random(0)
    lengths = [rng.randint(2, 14) for _ in range(2000)] + [rng.randint(16, 40) for _ in range(400)]
    sides = [["a" * rng.choice(lengths) for _ in range(2400)] for _ in range(2)]

    assert unrelated(*map(features, sides)) == "unrelated-words"


def test_a_list_of_words_is_not_unrelated():
    rng = random.Random(0)
    sides = [[rng.choice("ab") * rng.randint(2, 14) for _ in range(2000)] for _ in range(2)]

    assert not unrelated(*map(features, sides))


def test_marks_tell_what_lengths_cannot_in_sorted_text():
    rows = sorted(zip(*pair_of_sides(6000), strict=True), key=lambda row: len(row[1]))
    sources, targets = map(list, zip(*rows, strict=True))
    assert shifts(features(sources), features(targets)) == []

    (shift,) = shifts(features(sources), features(targets[1:]))

    assert shift == Shift(1, 6000, -1)


@pytest.mark.parametrize("lines", [0, 1, 49, 500])
def test_equally_long_lines_tell_nothing(lines):
    sides = features(["a" * 30] * lines), features(["b" * 40] * lines)

    assert shifts(*sides) == []
    assert not unrelated(*sides)


LINES = st.sampled_from(["", " ", "Ja!", "3 Hunde", "語", "a" * 9, "a" * 80 + "?", "a" * 20_000])


@given(st.lists(st.tuples(LINES, LINES), max_size=120))
def test_any_lines_are_taken(rows):
    sources, targets = ([row[side] for row in rows] for side in (0, 1))
    for shift in shifts(features(sources), features(targets)):
        assert 1 <= shift.first <= shift.last <= len(sources)
        assert shift.offset != 0
    assert not unrelated(features(sources), features(targets))  # too few to tell


def test_the_longest_line_keeps_its_mark():
    assert features(["a" * 20_000 + "?"]).tolist() == [4 * (2**14 - 1) + 1]
    assert features(["3 Hunde", "٣", "Halt！", "هل؟"]).tolist() == [4 * 7 + 3, 7, 22, 13]


def test_surplus_lines_are_found_by_their_lengths():
    sources, targets = pair_of_sides(300)
    longer = [*targets[:120], "x", *targets[120:]]

    assert abs(slip(features(longer), features(sources)) - 121) <= 2
    assert np.median(features(sources)) > 4
