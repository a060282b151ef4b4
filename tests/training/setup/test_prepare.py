"""From files to packed ids: what is held out, dropped, learnt, and used again."""

import json
import random
from pathlib import Path

import numpy as np
import pytest

from glassformer.data.corpus import read_pairs
from glassformer.data.subword_training import train_tokenizer
from glassformer.data.trigrams import profile_of
from glassformer.support.errors import InputError, counted
from glassformer.training.setup import kept_pairs, machine
from glassformer.training.setup import prepare as module
from glassformer.training.setup import start as start_module
from glassformer.training.setup.options import guess_languages
from glassformer.training.setup.prepare import prepare
from tests.tables import every

FILES = ("train.jsonl", "valid.jsonl")


def noted(notes, words):
    return [note for note in notes if words in note]


def trained_on(prepared):
    """The training pairs as text."""
    packed = prepared.packed
    source, target = prepared.tokenizers
    return [
        (source.decode(packed.source[i]), target.decode(packed.target[i]))
        for i in range(len(packed))
    ]


@every(
    ("count", "held_out"),
    [(9, 0), (10, 1), (1_000, 100), (5_000, 100), (6_000, 120), (10**6, 1_000)],
)
def test_so_many_pairs_are_held_out(count, held_out):
    sources = np.arange(1, count + 1, dtype=np.uint64)
    places = kept_pairs._held_out(sources)
    assert len(places) == held_out
    assert not kept_pairs._held_out(np.repeat(sources[:9], 100)).size
    twice = kept_pairs._held_out(np.concatenate([sources, sources]))
    assert (sorted(twice), twice.max(initial=0)) == (sorted(places), places.max(initial=0))


@pytest.mark.parametrize(("count", "held_out"), [(1, 0), (5, 0), (10, 1), (60, 6)])
def test_pairs_are_held_out_and_not_trained_on(notes, config, count, held_out):
    prepared = prepare(config(count), note=notes.append)

    trained = trained_on(prepared)
    if held_out:
        assert len(prepared.valid) == held_out
        assert not {tuple(pair) for pair in prepared.valid} & set(trained)
        assert noted(notes, f"validation: {counted(held_out, 'training pair')} held out (no others")
    else:
        assert [tuple(pair) for pair in prepared.valid] == trained
        assert noted(notes, "on training pairs, because there are too few to hold some out")
    assert len(trained) == count - held_out


def test_repeats_of_the_training_text_are_not_the_validation(notes, config, write):
    sources = [f"{a} {b}" for a in "abcdefghij" for b in "abcdefghij"] * 5
    sources[100:] = [source.upper() for source in sources[100:]]
    files = write("five.src", sources), write("five.tgt", [f"{s} x" for s in sources])

    prepared = prepare(config(60, pairs=files), note=notes.append)

    valid = {pair.source for pair in prepared.valid}
    assert len(valid) == len(prepared.valid) == 10
    assert not {source.lower() for source in valid} & {s.lower() for s, _ in trained_on(prepared)}
    assert len(trained_on(prepared)) == 500 - 5 * 10
    note = "10 training pairs held out (no others were given); 40 more have the same sources, and"
    assert noted(notes, note)
    notes.clear()
    prepare(config(60, pairs=files), note=notes.append)  # from the files of the run
    assert noted(notes, note)


def test_what_is_held_out_is_not_seen_by_the_tokenizer_either(config, monkeypatch):
    seen = []
    inner = start_module.train_tokenizer

    def watched(lines, **options):
        seen.extend(lines)
        return inner(seen, **options)

    monkeypatch.setattr(start_module, "train_tokenizer", watched)
    prepared = prepare(config(60))

    assert not {pair.source for pair in prepared.valid} & set(seen)
    assert len(seen) == 2 * 54


def test_the_text_is_normalised_before_anything_reads_it(notes, config, write):
    pairs = [("A  cafe\u0301\u200b.", "Ein\u00a0Cafe\u0301.")] * 4 + [("\u200b", "x")]
    files = tuple(
        write(f"unclean.{name}", [pair[side] for pair in pairs])
        for side, name in enumerate(("src", "tgt"))
    )

    prepared = prepare(config(60, pairs=files, valid=files), note=notes.append)

    assert trained_on(prepared) == [("A café.", "Ein Café.")] * 4
    assert len(prepared.packed_valid) == 4
    assert noted(notes, "4 of 5 pairs kept; 1 dropped: 1 empty")
    assert prepared.valid[0].source == pairs[0][0]  # scores read the files as they are
    assert prepared.preprocessing.normalisation == "text"
    lengths = prepared.preprocessing.lengths
    assert (lengths.median, lengths.several) == (7, 0.0)


def test_none_leaves_the_text_as_it_is(config, write):
    files = write("a.src", ["A  cafe\u0301."] * 3), write("a.tgt", ["Ein\u00a0Café."] * 3)
    prepared = prepare(config(60, pairs=files, valid=files, normalisation="none"))
    assert trained_on(prepared)[0] == ("A  cafe\u0301.", "Ein\u00a0Café.")
    assert prepared.preprocessing.normalisation == "none"


def test_pairs_and_subwords_are_the_same_with_any_seed(config, tmp_path):
    options = {"joined_pairs": 0.5}
    first, second = (
        prepare(config(60, seed=seed, run=tmp_path / str(seed), **options)) for seed in (1, 2)
    )

    assert first.valid == second.valid
    assert trained_on(first) == trained_on(second)
    assert [t.serialized for t in first.tokenizers] == [t.serialized for t in second.tokenizers]


def test_validation_pairs_brought_are_used_whole(notes, config, write):
    files = write("valid.src", ["a b c", "d e"]), write("valid.tgt", ["c b a", "e d"])

    prepared = prepare(config(60, valid=files), note=notes.append)

    assert [tuple(pair) for pair in prepared.valid] == [("a b c", "c b a"), ("d e", "e d")]
    assert len(trained_on(prepared)) == 60
    assert noted(notes, "validation: 2 pairs")


def test_many_validation_pairs_are_cut_and_it_is_said(notes, config, write, monkeypatch):
    monkeypatch.setattr(module, "_VALIDATION_PAIRS", 3)
    files = write("valid.src", ["a"] * 5), write("valid.tgt", ["b"] * 5)

    prepared = prepare(config(60, valid=files), note=notes.append)

    assert len(prepared.valid) == 3
    assert noted(notes, "the first 3 of 5 pairs")


def test_long_pairs_are_dropped_counted_and_said(notes, config, write):
    lines = ["a b c", "a b c d e f a b c d e f", "d e f"] * 4
    pairs = write("long.src", lines), write("long.tgt", lines)

    prepared = prepare(config(pairs=pairs, valid=pairs, max_tokens=8), note=notes.append)

    assert len(prepared.packed) == 8
    assert noted(notes, "4 pairs dropped: more than 8 subwords on a side (option max_tokens)")


def test_the_kept_pairs_are_a_file_that_a_person_can_read(config, write):
    lines = ["ä b", "", *(f"{name} ▁" for name in "cdefghijk")]
    pairs = write("some.src", lines), write("some.tgt", lines)

    prepared = prepare(config(pairs=pairs))

    data = prepared.config.run / "data"
    kept = [(data / name).read_text("utf-8").splitlines() for name in FILES]
    assert [len(lines) for lines in kept] == [9, 1]
    texts = {json.loads(line)["source"] for lines in kept for line in lines}
    assert texts == {line for line in lines if line}
    assert '{"source": "ä b", "target": "ä b"}' in kept[0] + kept[1]
    assert json.loads((data / "counts.json").read_text())["dropped"]["empty"] == 1


@pytest.mark.parametrize("changes", [{"max_chars": 9}, {"valid": True}])
def test_other_options_of_the_corpus_make_its_files_anew(config, write, changes):
    if "valid" in changes:
        changes = {"valid": (write("valid.src", ["a"]), write("valid.tgt", ["a"]))}
    files = [config(60).run / "data" / name for name in FILES]
    prepare(config(60))
    before = [path.read_text() for path in files]

    prepare(config(60, **changes))

    assert [path.read_text() for path in files] != before


def test_a_corpus_that_was_not_finished_is_read_again(config):
    options = config(60)
    prepare(options)
    data = options.run / "data"
    before = [(data / name).read_bytes() for name in FILES]
    (data / "counts.json").unlink()
    (data / "train.jsonl").write_text("half a line")

    prepare(options)

    assert [(data / name).read_bytes() for name in FILES] == before


def test_the_profiles_of_both_sides_are_made_once(config, write):
    sides = ["Ein Hund."] * 3, ["A dog."] * 3
    options = config(pairs=(write("some.src", sides[0]), write("some.tgt", sides[1])))

    made = prepare(options).trigrams

    assert made == tuple(map(profile_of, sides))
    assert prepare(options).trigrams == made


def test_filtered_pairs_are_counted_and_said(notes, config, write):
    pairs = write("some.src", ["a b", "", "c d"]), write("some.tgt", ["b a", "x", "d c"])

    prepare(config(pairs=pairs), note=notes.append)

    assert noted(notes, "2 of 3 pairs kept; 1 dropped: 1 empty")


@pytest.mark.parametrize(
    ("source", "target", "changes", "message"),
    [
        (
            ["", ""],
            ["a", "b"],
            {},
            "some.src and .*some.tgt: no pair is left to train on .*2 empty",
        ),
        ([], [], {}, "some.src: the file is empty"),
        (
            ["a b c d"],
            ["d c b a"],
            {"max_tokens": 1},
            "no pair is left to pack: .* longer than 1 subwords",
        ),
        (["a", "b"], ["a"], {}, "some.src has 2 lines and .*some.tgt has 1"),
    ],
)
def test_text_that_cannot_be_used(config, write, source, target, changes, message):
    pairs = write("some.src", source), write("some.tgt", target)

    with pytest.raises(InputError, match=message) as caught:
        prepare(config(pairs=pairs, **changes))

    assert "\n" not in str(caught.value)


def test_missing_files_are_named(config, tmp_path):
    with pytest.raises(InputError, match=r"nowhere.src: cannot be read: No such file"):
        prepare(config(pairs=(tmp_path / "nowhere.src", tmp_path / "nowhere.tgt")))
    with pytest.raises(InputError, match=r"nowhere.valid"):
        prepare(config(valid=(tmp_path / "nowhere.valid",)))


def test_an_empty_test_file_is_an_error_before_training(config, write):
    with pytest.raises(InputError, match=r"empty.src: the file is empty"):
        prepare(config(test=(write("empty.src", []), write("empty.tgt", []))))


def test_a_second_call_makes_nothing_anew(config, monkeypatch):
    first = prepare(config(60))

    def never(*_, **__):
        raise AssertionError("made again")

    def only_of_the_run(source, *rest, **options):
        assert source.parent == config(60).run / "data"
        return read_pairs(source, *rest, **options)

    monkeypatch.setattr(start_module, "train_tokenizer", never)
    monkeypatch.setattr(module, "pack", never)
    monkeypatch.setattr(module, "read_pairs", only_of_the_run)
    for name in ("kept_pairs", "run_directory", "augmentation"):
        monkeypatch.setattr(f"glassformer.training.setup.{name}.read_pairs", only_of_the_run)
    second = prepare(config(60))

    assert second.packed.meta.content_hash == first.packed.meta.content_hash
    assert second.valid == first.valid


def test_separate_vocabularies(config, write):
    pairs = write("a.src", ["a b c"] * 9), write("a.tgt", ["x y z"] * 9)

    prepared = prepare(config(pairs=pairs, joint=False))

    source, target = prepared.tokenizers
    assert source.fingerprint != target.fingerprint
    assert "▁x" not in source.subwords("x y")
    assert "▁x" in target.subwords("x y")
    assert prepared.config.tying == "target"


def test_tokenizers_brought_by_file(config, tmp_path):
    own = train_tokenizer(["a b c d e f"], vocab_size=300)
    own.save(tmp_path / "one.model")
    other = train_tokenizer(["f f f e e e"], vocab_size=300)
    other.save(tmp_path / "two.model")
    files = tmp_path / "one.model", tmp_path / "two.model"

    one = prepare(config(60, tokenizer=files[:1], run=tmp_path / "run1"))
    two = prepare(config(60, tokenizer=files, joint=False, run=tmp_path / "run2"))

    prints = [[t.fingerprint for t in prepared.tokenizers] for prepared in (one, two)]
    assert prints == [[own.fingerprint] * 2, [own.fingerprint, other.fingerprint]]
    assert not (tmp_path / "run1" / "data" / "both.model").exists()


def test_languages_are_guessed_from_the_names_or_said(config, write):
    pairs = write("train.en", ["a b"]), write("train.de", ["b a"])

    prepared = prepare(config(pairs=pairs))
    assert prepared.preprocessing.languages == ("en", "de")
    assert prepare(config(pairs=pairs, languages=("fr", "de"))).preprocessing.languages == (
        "fr",
        "de",
    )


@pytest.mark.parametrize("names", [("a.txt", "b.txt"), ("pairs.tsv",), ("a.en", "b"), ("en", "de")])
def test_names_that_say_no_language(names):
    assert guess_languages(tuple(map(Path, names))) is None


def test_the_size_in_minutes_is_chosen_in_the_precision_of_the_training(config, monkeypatch):
    measured = []
    monkeypatch.setattr(machine, "product_speed", lambda kind: measured.append(kind) or 1e12)
    monkeypatch.setattr(machine, "precision_for", lambda _: "bfloat16")
    length = {"minutes": 5.0, "updates": None, "precision": "auto"}

    prepare(config(60, **length))
    prepare(config(60, **length, plain=True))

    assert measured == ["bfloat16", "float32"]


def test_a_vocabulary_that_the_text_cannot_fill_is_noted(notes, config):
    prepared = prepare(config(60, vocab_size=1_000_000), note=notes.append)

    size = prepared.tokenizers[0].vocab_size
    assert size < 1_000
    assert (
        f"vocabulary: {size:,} subwords, because the text gives no more; 1,000,000 were wanted"
        " (option vocab_size)" in notes
    )


def test_a_vocabulary_as_large_as_wanted_needs_no_note(notes, config, write):
    draw = random.Random(1)
    words = ["".join(draw.choices("abcdefghijklmnop", k=6)) for _ in range(40)]
    lines = [" ".join(draw.choices(words, k=6)) for _ in range(90)]
    pairs = write("a.src", lines), write("a.tgt", lines)
    prepared = prepare(config(pairs=pairs, vocab_size=300), note=notes.append)

    assert prepared.tokenizers[0].vocab_size == 300
    assert not [note for note in notes if note.startswith("vocabulary")]


def test_errors_of_the_doctor_are_said_before_the_training(notes, config, write):
    lines = [f"number {number}" for number in range(40)]
    pairs = write("same.src", lines), write("same.tgt", lines)
    prepare(config(pairs=pairs), note=notes.append)
    assert notes[1].startswith("warning: most pairs have the same text on both sides: is one file")
    assert notes[1].endswith("('glassformer doctor' shows where)")
