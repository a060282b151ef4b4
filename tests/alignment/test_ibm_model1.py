"""IBM model 1 against its own formula, written out in plain loops."""

from collections import defaultdict

import numpy as np
import pytest

from glassformer.alignment import ibm_model1 as module
from glassformer.alignment.ibm_model1 import translation_table
from glassformer.data.token_store import Sentences

PAIRS = [([1, 2], [5, 6]), ([1], [5]), ([2, 3, 3], [6, 7, 8]), ([4, 1], [9, 5, 9])]


def sentences(rows):
    offsets = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    return Sentences(np.concatenate([np.array(row) for row in rows]), offsets)


def table_of(pairs):
    sources, targets = (sentences([pair[side] for pair in pairs]) for side in (0, 1))
    e, f, t = translation_table(sources, targets, target_vocab_size=13)
    return dict(zip(zip(e.tolist(), f.tolist(), strict=True), t.tolist(), strict=True))


def model_one(pairs, rounds=5):
    t = defaultdict(lambda: 1.0)
    for _ in range(rounds):
        counts, totals = defaultdict(float), defaultdict(float)
        for source, target in pairs:
            for f in target:
                norm = sum(t[e, f] for e in source)
                for e in source:
                    counts[e, f] += t[e, f] / norm
                    totals[e] += t[e, f] / norm
        t = defaultdict(float, {(e, f): c / totals[e] for (e, f), c in counts.items()})
    return dict(t)


def test_it_is_model_1():
    assert table_of(PAIRS) == pytest.approx(model_one(PAIRS))


def test_of_very_many_pairs_every_nth_is_read(monkeypatch):
    monkeypatch.setattr(module, "_CELLS", 10)  # of 4 + 1 + 9 + 6

    assert table_of(PAIRS) == pytest.approx(model_one(PAIRS[::2]))
