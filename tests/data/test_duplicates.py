"""What occurs again, told by hashes, against Python's own sets."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from glassformer.data.duplicates import Known, hashes, pair_hashes, repeats

TEXTS = st.lists(st.sampled_from(["", "a", "b", "c", "da", "ä"]), max_size=30)


@given(TEXTS)
def test_repeats_are_those_of_a_walk_with_a_set(texts):
    seen: set[str] = set()
    again = []
    for row, text in enumerate(texts):
        if text and text in seen:
            again.append(row)
        seen.add(text)

    assert np.flatnonzero(repeats(hashes(texts))).tolist() == again


def test_the_repeats_are_found_whatever_part_of_the_hashes_they_are_in():
    texts = [f"text {number}" for number in range(1000)] * 2

    assert np.flatnonzero(repeats(hashes(texts))).tolist() == list(range(1000, 2000))


@given(TEXTS, st.lists(TEXTS, max_size=3))
def test_what_is_known_is_seen_in_blocks(texts, blocks):
    known = Known(hashes(texts))
    for block in blocks:
        known.see(hashes(block))

    elsewhere = {text for block in blocks for text in block}
    assert known.seen(hashes(texts)).tolist() == [bool(t) and t in elsewhere for t in texts]


@given(st.lists(st.tuples(*[st.sampled_from(["", "a", "b", "ab"])] * 2), max_size=20))
def test_pairs_are_equal_where_both_sides_are(pairs):
    sources, targets = ([pair[side] for pair in pairs] for side in (0, 1))

    found = pair_hashes(hashes(sources), hashes(targets))

    for one, left in zip(pairs, found, strict=True):
        assert (left == 0) == ("" in one)
        for other, right in zip(pairs, found, strict=True):
            assert (left == right) == (one == other or ("" in one and "" in other))


def test_what_is_not_to_be_compared_never_counts():
    nothing = np.zeros(4, dtype=np.uint64)

    assert not repeats(nothing).any()
    assert not Known(nothing).seen(nothing).any()
