"""A student is given its teacher's words; what was translated is kept; bad ones are refused."""

import json
from types import SimpleNamespace

import pytest

from glassformer.data.corpus import Pair
from glassformer.errors import InputError
from glassformer.training import distil as module
from glassformer.training.distil import distilled, lesson_of
from glassformer.training.setup.prepare import prepare
from glassformer.translator import Translator

PAIRS = [
    Pair("A dog runs.", "Ein Hund rennt schnell."),
    Pair("Two men sit in the snow.", "Zwei Männer sitzen da."),
    Pair("An old hat.", "Ein alter Hut."),
]


@pytest.fixture
def lesson(config, bundle_directory):
    def made(teacher=None, languages=("en", "de"), **changes):
        options = config(distil_from=teacher or bundle_directory, **changes)
        return lesson_of(options, fingerprint="teacher's", languages=languages)

    return made


@pytest.fixture
def teacher_says(monkeypatch, lesson):
    """A teacher who has these translations of each source, the best first; None: no end found."""

    def said(answers):
        tokenizer, asked = lesson().load().target_tokenizer, []

        def decode(_model, ids, **_options):
            first = len(asked)
            asked.extend(ids)
            return [
                [
                    SimpleNamespace(tokens=tokenizer.encode(text or "?"), finished=text is not None)
                    for text in answers[place]
                ]
                for place in range(first, first + len(ids))
            ]

        monkeypatch.setattr(module, "decode_sentences", decode)
        return asked

    return said


def targets(pairs, lesson):
    return [taught.target for _, taught in distilled(pairs, lesson)]


def test_no_teacher_no_lesson(config):
    assert lesson_of(config(), fingerprint="", languages=None) is None


def test_the_targets_are_what_the_teacher_translates_to(lesson, bundle_directory):
    teacher = Translator.load(bundle_directory, device="cpu")
    expected = [said.text for said in teacher.translate([p.source for p in PAIRS], beam=3)]

    found = list(distilled(PAIRS, lesson(distil_beam=3, distil_choice="best")))

    assert [own for own, _ in found] == PAIRS
    assert [taught.source for _, taught in found] == [pair.source for pair in PAIRS]
    kept = [taught.target == own.target for own, taught in found]
    assert sum(kept) < 3
    assert [taught.target for _, taught in found] == [
        own.target if keeps else said
        for (own, _), said, keeps in zip(found, expected, kept, strict=True)
    ]


def test_the_nearest_to_the_original_or_the_best(lesson, teacher_says):
    answers = [
        ["Ein Tier rennt.", "Ein Hund rennt.", "Hund"],
        ["Sie sitzen.", "Zwei Männer sitzen da.", None],
        ["Der Hut.", "Der Hut."],
    ]
    teacher_says(answers)
    assert targets(PAIRS, lesson()) == ["Ein Hund rennt.", "Zwei Männer sitzen da.", "Der Hut."]

    teacher_says(answers)
    best = lesson(distil_choice="best")
    assert targets(PAIRS, best) == ["Ein Tier rennt.", "Sie sitzen.", "Der Hut."]


def test_what_cannot_be_taught_keeps_its_translation(lesson, teacher_says):
    endless, blank, rambling = [None, None], [""], ["Hut " * 300]
    asked = teacher_says([endless, blank, rambling])
    long = Pair("a dog " * 700, "zu lang")

    found = targets([*PAIRS, long], lesson())

    assert found == [pair.target for pair in (*PAIRS, long)]
    assert len(asked) == 3


def test_a_killed_run_translates_only_what_it_had_not(lesson, teacher_says, monkeypatch):
    monkeypatch.setattr(module, "_SHARD", 2)
    said = [["Eins."], ["Zwei."], ["Drei."]]
    asked = teacher_says(said)
    reading = distilled(PAIRS, lesson())
    assert [next(reading)[1].target for _ in range(2)] == ["Eins.", "Zwei."]
    reading.close()
    assert len(asked) == 2

    loads = []
    inner = module.Lesson.load
    monkeypatch.setattr(module.Lesson, "load", lambda one: (loads.append(1), inner(one))[1])
    asked = teacher_says(said[2:])
    loads.clear()
    assert targets(PAIRS, lesson()) == ["Eins.", "Zwei.", "Drei."]
    assert (len(asked), loads) == (1, [1])
    assert targets(PAIRS, lesson()) == ["Eins.", "Zwei.", "Drei."]
    assert (len(asked), loads) == (1, [1])  # all is there: the teacher is not even loaded

    teacher_says([["Anders."]] * 3)
    assert targets(PAIRS, lesson(distil_beam=2)) == ["Anders."] * 3


@pytest.mark.parametrize("content", ["[", '["one"]', '{"a": 1}'])
def test_a_damaged_shard_is_named(lesson, content):
    path = lesson().shard(PAIRS)
    path.parent.mkdir(parents=True)
    path.write_text(content)

    with pytest.raises(InputError, match=rf"{path.name}: .*remove it"):
        targets(PAIRS, lesson())


def test_a_teacher_of_other_languages_or_none_is_refused(lesson, tmp_path):
    with pytest.raises(InputError, match="translates en to de, and these pairs are de to en: give"):
        lesson(languages=("de", "en")).load()
    with pytest.raises(InputError, match="nowhere"):
        lesson(teacher=tmp_path / "nowhere").load()


@pytest.mark.parametrize("originals", [False, True])
def test_what_is_packed_are_the_teachers_words(lesson, teacher_says, write, originals):
    files = [write(name, [pair[side] for pair in PAIRS]) for side, name in enumerate(("a", "b"))]
    teacher_says([["Eins."], ["Zwei."], [PAIRS[2].target]])
    options = lesson(pairs=tuple(files), format="lines", distil_originals=originals).config

    prepared = prepare(options)

    packed, tokenizer = prepared.packed(0), prepared.tokenizers[1]
    learnt = [tokenizer.decode(packed.target[row]) for row in range(len(packed))]
    own = [pair.target for pair in PAIRS]
    taught = ["Eins.", "Zwei.", own[2]]
    both = ["Eins.", own[0], "Zwei.", own[1], own[2]]
    assert learnt == (both if originals else taught)
    assert [pair.target for pair in prepared.valid] == own  # scored by people's words
    [note] = [note for note in prepared.notes if "distilled" in note]
    assert note.startswith("distilled: 3 sources from ")
    assert note.endswith("; 1 keep their translation")
    [shard] = (options.run / "data" / "distilled").iterdir()
    assert json.loads(shard.read_text()) == taught
