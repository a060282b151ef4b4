"""The tables of a shortlist: IBM model 1 against its own formula, written out in plain loops."""

from collections import defaultdict

import numpy as np
import pytest

from glassformer.alignment import ibm_model1 as module
from glassformer.alignment.ibm_model1 import shortlist_tensors, translation_table
from glassformer.data.corpus import Pair
from glassformer.data.token_store import Sentences, pack
from glassformer.data.tokenizer import train_tokenizer

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


def test_the_shortlist_holds_translations_copies_and_frequent_words(tmp_path):
    words = {"dog": "Hund", "cat": "Katze", "runs": "läuft", "sleeps": "schläft", "the": "der"}
    texts = [f"the {a} {b}" for a in ("dog", "cat") for b in ("runs", "sleeps")] * 3
    pairs = [Pair(text, " ".join(words[w] for w in text.split())) for text in texts]
    source = train_tokenizer([pair.source for pair in pairs], vocab_size=310)
    target = train_tokenizer([pair.target for pair in pairs], vocab_size=330)
    packed = pack(pairs, source, target, tmp_path / "packed", max_tokens=50)

    found = shortlist_tensors(packed, (source, target), likely=3, frequent=4)

    assert found["likely"].shape == (source.vocab_size, 4)
    for english, german in words.items():
        likely = found["likely"][source.encode(english)[-1]].tolist()
        assert set(target.encode(german)) & set(likely[:2]), english
    [byte] = [i for i in range(310) if source.subword(i) == "<0xF0>"]
    assert target.subword(int(found["likely"][byte, 3])) == "<0xF0>"
    assert found["likely"][byte, :3].tolist() == [-1] * 3  # it stands in no pair
    counts = np.bincount(packed.target.ids)
    assert sorted(counts[found["frequent"].numpy()]) == sorted(counts)[-4:]
