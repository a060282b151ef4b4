"""The whole way, from files to a scored bundle, through the public call."""

import json
import re
from types import SimpleNamespace

import pytest
from sentencepiece import SentencePieceTrainer

from glassformer import Translator, train
from glassformer.bundle import load_bundle
from glassformer.data.subword_training import train_tokenizer
from glassformer.support.errors import InputError, UsageError
from glassformer.support.hashes import write_manifest
from glassformer.training import final_bundle
from glassformer.training import train as module
from glassformer.training.checkpoint import checkpoints
from glassformer.training.setup import machine
from glassformer.training.setup import start as setup


def test_a_run_is_a_bundle_with_its_records(config, write, recorder):
    test = write("test.src", ["a b c", "", "d e f"]), write("test.tgt", ["c b a", "", "f e d"])

    found = train(config(test=test, languages=("xx", "de")), recorder)

    assert {path.name for path in found.directory.iterdir()} == {
        *("config.json", "config.yaml", "model.safetensors", "tokenizer.model", "README.md"),
        *("metrics.jsonl", "checkpoints", "data"),
    }
    assert found.test.sentences == 3
    assert found.test.paper_ruler is not None
    assert found.validation["sentences"] == 6
    assert recorder.noted("test, beam 1:\nsentences")
    assert recorder.noted(f"bundle: {found.directory}")
    assert recorder.closed == 1
    records = map(json.loads, (found.directory / "metrics.jsonl").read_text().splitlines())
    scores = {record["name"]: record for record in records if record["kind"] == "score"}
    assert scores["test"]["bleu"] == found.test.bleu
    assert scores["validation"]["length_penalty"] == load_bundle(found.directory).length_penalty
    card = (found.directory / "README.md").read_text()
    for words in (
        "xx to de",
        "data: train.src and train.tgt",
        "pairs: 54",
        "updates: 12",
        f"test: BLEU {found.test.bleu:.2f} (nrefs:1|case:mixed",
        f"paper ruler {found.test.paper_ruler:.2f}",
    ):
        assert words in card
    translator = Translator.load(found.directory)
    assert len(translator.translate(["a b c", ""])) == 2


def test_a_bundle_holds_no_sentence_of_its_text(config, recorder):
    run = train(config(), recorder).directory

    sentences = {
        side
        for name in ("train.jsonl", "valid.jsonl")
        for line in (run / "data" / name).read_text().splitlines()
        for side in json.loads(line).values()
    }
    assert len(sentences) > 50
    for name in ("config.json", "README.md", "tokenizer.model", "model.safetensors"):
        content = (run / name).read_bytes()
        assert [text for text in sentences if len(text) > 4 and text.encode() in content] == []


def test_each_side_has_the_padding_of_its_own_tokenizer(config, recorder, tmp_path):
    """SentencePiece models without padding, of two sizes, as BPEmb has them."""
    files = tmp_path / "a.model", tmp_path / "b.model"
    for file, size in zip(files, (60, 70), strict=True):
        SentencePieceTrainer.train(
            sentence_iterator=iter(["a b c d e f", "ab cd ef fed"] * 9),
            model_prefix=str(file.with_suffix("")),
            vocab_size=size,
            hard_vocab_limit=False,
            model_type="bpe",
            pad_id=-1,
            minloglevel=2,
        )
    found = train(config(tokenizer=files, joint=False, tying="target"), recorder)
    translator = Translator.load(found.directory)
    sizes = [each.vocab_size for each in (translator.source_tokenizer, translator.target_tokenizer)]
    config_of_model = translator.model.config
    assert [config_of_model.pad_of_source, config_of_model.pad_id] == [size - 1 for size in sizes]
    together = [each.text for each in translator.translate(["a b c", "a"])]
    assert together == [translator.translate([text])[0].text for text in ("a b c", "a")]


@pytest.mark.parametrize("tying", ["target", "none"])
def test_separate_vocabularies_train_and_load(config, write, recorder, tying):
    pairs = write("a.src", ["a b c", "c a b"] * 9), write("a.tgt", ["x y z w", "w w y"] * 9)

    found = train(config(pairs=pairs, joint=False, tying=tying), recorder)

    bundle = load_bundle(found.directory)
    assert (found.directory / "source.model").exists()
    assert bundle.source_tokenizer.subwords("a b") == ["▁a", "▁b"]
    assert bundle.target_tokenizer.subwords("x y") == ["▁x", "▁y"]
    assert bundle.model.config.tying == tying


def test_two_tokenizers_train_and_load(config, tmp_path, recorder):
    paths = tmp_path / "one.model", tmp_path / "two.model"
    for path, text in zip(paths, ["a b c d e f", "f e d c b a a a"], strict=True):
        train_tokenizer([text], vocab_size=300).save(path)

    found = train(config(tokenizer=paths, joint=False, vocab_size=None), recorder)

    bundle = load_bundle(found.directory)
    assert bundle.source_tokenizer.serialized == paths[0].read_bytes()
    assert bundle.target_tokenizer.serialized == paths[1].read_bytes()


@pytest.mark.parametrize("count", [1, 5])
def test_a_handful_of_pairs(config, recorder, count):
    found = train(config(count, updates=3), recorder)

    assert found.validation["sentences"] == count
    assert recorder.noted("too few to hold some out")
    assert all(load_bundle(found.directory).trigrams)


def test_validation_lines_of_any_kind_are_counted_or_scored(config, write, recorder):
    lines = ["a b", "", " ".join("abcdef" * 2)]
    valid = write("valid.src", lines), write("valid.tgt", lines)

    found = train(config(valid=valid, test=valid, updates=2, max_tokens=9), recorder)

    assert found.validation["sentences"] == found.test.sentences == 3
    assert recorder.noted(
        "validation: 2 pairs left out of its loss: blank, or more than 9 subwords on a side"
    )


def test_pairs_of_thousands_of_tokens_can_be_learnt(config, write, recorder):
    lines = [" ".join("abcdef" * 180), "a b c"]
    pairs = write("long.src", lines), write("long.tgt", lines)

    found = train(config(pairs=pairs, updates=1, max_tokens=1_900), recorder)

    assert load_bundle(found.directory).model.config.max_length == 1_951


def test_a_run_that_is_called_again_trains_no_more(config, recorder, monkeypatch):
    first = train(config(), recorder)
    files = ("model.safetensors", "metrics.jsonl", "config.yaml", "config.json")
    before = {name: (first.directory / name).read_bytes() for name in files}

    def never(*_, **__):
        raise AssertionError("trained again")

    monkeypatch.setattr("glassformer.training.loop.Learner.update", never)
    second = train(config(), recorder)

    assert recorder.noted("continuing from update 12")
    assert second == first
    assert {name: (first.directory / name).read_bytes() for name in files} == before


def test_the_precision_is_measured_once(config, recorder, monkeypatch):
    monkeypatch.setattr(machine, "precision_for", lambda _: "bfloat16")
    options = {"precision": "auto", "updates": 1}
    train(config(**options), recorder)
    monkeypatch.setattr(machine, "precision_for", lambda _: "float32")

    train(config(**options), recorder)

    models = recorder.noted("model: ")
    assert len(models) == 2
    assert all("bfloat16 on cpu" in note for note in models)


def plan_of(run):
    """The plan in the last checkpoint."""
    return json.loads((checkpoints(run / "checkpoints")[-1] / "state.json").read_text())["plan"]


@pytest.fixture
def most(monkeypatch):
    """Sets the updates after which a run of minutes ends early: it then takes a moment."""
    return lambda count: monkeypatch.setattr(setup, "useful_updates", lambda *_: count)


def test_a_run_of_minutes_says_how_long_it_took_with_its_earlier_calls(config, recorder, most):
    most(3)
    run = train(config(updates=None, minutes=10.0), recorder).directory
    path = checkpoints(run / "checkpoints")[-1] / "state.json"
    state = json.loads(path.read_text())
    state["plan"]["seconds"] = 3600.0  # as if it had been slower
    path.write_text(json.dumps(state))
    (path.parent / "sha256.json").unlink()
    write_manifest(path.parent)
    train(config(updates=None, minutes=10.0), recorder)

    first, second = recorder.noted("minutes: ")
    assert first.endswith(" of 10:00 min, because more than 3 updates would not help")
    assert second.startswith("minutes: 1:00 h of 10:00 min")
    [model, _] = recorder.noted("model: ")
    assert "54 pairs, as many updates as 10 minutes allow, float32" in model


def test_more_minutes_continue_a_finished_run(config, recorder, most):
    most(4)
    run = train(config(updates=None, minutes=10.0), recorder).directory
    assert not recorder.noted("a longer run than before")
    most(8)
    train(config(updates=None, minutes=20.0), recorder)

    assert recorder.noted("a longer run than before: the learning rate rises again")
    assert recorder.noted("continuing from update 4")
    state = json.loads((checkpoints(run / "checkpoints")[-1] / "state.json").read_text())
    assert (state["plan"]["minutes"], state["update"], state["plan"]["share"]) == (20.0, 8, 1.0)
    assert state["validations"][0]["update"] > 4


def newest_state(run):
    file = checkpoints(run / "checkpoints")[-1] / "state.json"
    return SimpleNamespace(**json.loads(file.read_text()))


@pytest.mark.parametrize("kind", ["updates", "epochs"])
def test_a_finished_run_goes_on_with_more_updates_or_epochs(config, recorder, kind):
    options = {"updates": None, "validations": 2, "patience": 1}
    run = train(config(**options | {kind: 2}), recorder).directory
    before = newest_state(run).update
    train(config(**options | {kind: 4}), recorder)

    assert recorder.noted("a longer run than before: the learning rate rises again")
    state = newest_state(run)
    assert state.update == state.updates == 2 * before
    assert state.validations[0]["update"] > before

    train(config(**options), recorder)  # the length is kept
    assert newest_state(run) == state
    with pytest.raises(InputError, match=f"the run has {2 * before} updates, and the options say"):
        train(config(**options | {kind: 2}), recorder)


@pytest.mark.parametrize(("warmup", "least_bleu"), [(10**6, 5.0), (1, 5.0), (10**6, -1.0)])
def test_a_translator_of_few_updates_and_no_score_is_called_worthless(
    config, recorder, monkeypatch, most, warmup, least_bleu
):
    most(3)
    monkeypatch.setattr(final_bundle, "_WORTHLESS", {"bleu": least_bleu, "chrf": least_bleu})
    train(config(updates=None, minutes=10.0, warmup=warmup), recorder)

    notes = recorder.noted("worthless")
    assert len(notes) == (warmup > 1 and least_bleu > 0)
    for note in notes:
        assert re.fullmatch(
            "this translator is worthless: 3 updates are too few to learn from;"
            " [0-9]+ minutes would be enough for 1,000,000 here",
            note,
        )


def test_bfloat16_learns_about_the_same(config, recorder, tmp_path):
    losses = []
    for precision in ("float32", "bfloat16"):
        options = {"precision": precision, "updates": 2, "validations": 1}
        train(config(run=tmp_path / precision, **options), recorder)
        losses.append(recorder.records[-1]["loss"])

    assert losses[1] == pytest.approx(losses[0], rel=0.05)
    assert losses[0] != losses[1]


def test_a_rate_that_is_huge_ends_in_one_line_and_nothing_is_lost(config, recorder):
    with pytest.raises(InputError, match=r"is not finite.*try a smaller rate_factor") as caught:
        train(config(rate_factor=1e38, warmup=1, updates=40, validations=40), recorder)

    assert "\n" not in str(caught.value)
    assert recorder.closed == 1
    assert not (config().run / "config.json").exists()


def test_an_error_closes_what_was_open(config, recorder, monkeypatch):
    monkeypatch.setattr(module.Trainer, "fit", lambda *_: 1 / 0)

    with pytest.raises(ZeroDivisionError):
        train(config(), recorder)

    assert recorder.closed == 1


def test_a_call_that_cannot_be_does_not_bind_the_run(config, recorder):
    for changes, message in (
        ({"device": "mps"}, "device 'mps': expected cpu, cuda, cuda:N or auto"),
        ({"device": "cuda:99"}, "device 'cuda:99': this machine has [0-9]+ CUDA devices"),
        ({"preset": None, "d_model": 30, "num_heads": None}, "d_model 30 is not divisible"),
        ({"vocab_size": 20}, "vocab_size 20: expected 300"),
    ):
        with pytest.raises(UsageError, match=message) as caught:
            train(config(**changes), recorder)
        assert "\n" not in str(caught.value)

    train(config(updates=1), recorder)
