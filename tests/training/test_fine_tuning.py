"""A run that begins with a bundle: its weights, its subwords, its scores before and after."""

import json
import shutil
import weakref
from dataclasses import replace

import pytest
import torch

from glassformer import train
from glassformer.bundle import Bundle, load_bundle, save_bundle
from glassformer.config import ModelConfig
from glassformer.data.subword_training import train_tokenizer
from glassformer.model.transformer import Transformer
from glassformer.parts import FAST
from glassformer.support.errors import InputError, UsageError
from glassformer.training import loop
from glassformer.training.checkpoint import checkpoints
from glassformer.training.optimiser import adam_of
from glassformer.training.scorer import Scorer
from glassformer.training.setup.options import TrainConfig
from glassformer.training.setup.prepare import prepare
from glassformer.training.train import new_trainer
from glassformer.translator import Translator
from tests.tables import every

SIZES = {
    "preset": "tiny",
    "d_model": 16,
    "num_heads": 2,
    "d_ff": 16,
    "num_encoder_layers": 1,
    "num_decoder_layers": 1,
    "vocab_size": 300,
}
OPENED = dict.fromkeys([*SIZES, "dropout", "warmup", "rate_factor"])


@pytest.fixture(scope="module")
def parent(tmp_path_factory):
    """A bundle of the toy corpus."""
    folder = tmp_path_factory.mktemp("parent")
    lines = [f"{a} {b} {c}" for a in "abcdef" for b in "abc" for c in "def"]
    for name, texts in (("train.src", lines), ("train.tgt", [line[::-1] for line in lines])):
        (folder / name).write_text("\n".join(texts) + "\n", "utf-8")
    files = (folder / "train.src", folder / "train.tgt")
    rest = {"normalisation": "none", "norm": "pre", "updates": 12, "batch_tokens": 128, "beam": 1}
    config = TrainConfig(pairs=files, run=folder / "parent", precision="float32", **SIZES, **rest)
    return train(config).directory


@pytest.fixture
def child(config, parent):
    """Options of a run from the parent."""
    return lambda count=60, **changes: config(count, **{**OPENED, "parent": parent, **changes})


def test_a_child_begins_with_the_parents_weights_and_subwords(child, parent, recorder):
    prepared = prepare(child(languages=("xx", "yy")), note=recorder.note)
    trainer = new_trainer(prepared, recorder)
    before = load_bundle(parent)
    for name, weight in before.model.state_dict().items():
        torch.testing.assert_close(trainer.model.state_dict()[name], weight, rtol=0, atol=0)
    fingerprints = [tokenizer.fingerprint for tokenizer in prepared.tokenizers]
    assert fingerprints == [tokenizer.fingerprint for tokenizer in before.tokenizers]
    assert prepared.config.normalisation == before.normalisation == "none"
    assert (prepared.config.optimiser, prepared.config.decay) == ("adam", "constant")
    assert trainer.model.config.norm == "pre"
    assert not (prepared.config.run / "data" / "both.model").exists()
    assert recorder.noted(f"from {parent}: its model, subwords and normalisation")
    highest = max(trainer.pace.rate(update) for update in range(1, 13))
    assert highest <= 3e-4 * (128 / 16) ** 0.5
    trainer.metrics.close()


def test_the_rate_is_higher_if_the_parents_translations_are_learnt_too(child, write):
    replay = write("replay.txt", ["a f a"])
    with_replay, without = (prepare(child(replay=file)).config for file in (replay, None))
    assert with_replay.rate_factor / without.rate_factor == pytest.approx(1e-3 / 3e-4, rel=1e-3)


def test_a_child_is_scored_beside_its_parent(child, write, recorder):
    sources = ["a b c", "f e d", "a a f"]
    targets = [source[::-1] for source in sources]
    test = write("test.src", sources), write("test.tgt", targets)
    general = write("general.src", sources[:2]), write("general.tgt", targets[:2])
    run = train(child(test=test, general=general), recorder)
    for name in ("validation", "test", "general"):
        [note] = [text for text in recorder.notes if text.startswith(f"{name}: BLEU")]
        assert note.endswith(f"{load_bundle(run.directory).about[name].split()[1]} after")
    card = (run.directory / "README.md").read_text()
    assert "parent: parent" in card
    assert "general, parent and child: BLEU" in card


def test_the_parents_translations_of_other_text_are_learnt_too(child, write, parent):
    replay = write("replay.txt", ["a f a", "", "b e b", "c d c"])
    prepared = prepare(child(replay=replay))
    lines = (prepared.config.run / "data" / "replay.jsonl").read_text("utf-8").splitlines()
    pairs = [json.loads(line) for line in lines]
    assert sorted(pair["source"] for pair in pairs) == ["a f a", "b e b", "c d c"]
    translator = load_bundle(parent)
    assert len(prepared.packed) == 54 + 3
    decoded = translator.target_tokenizer.decode(prepared.packed.target[54])
    assert decoded == pairs[0]["target"]
    assert len(prepare(child(replay=replay)).packed) == 57


def test_pairs_longer_than_the_parents_positions_are_dropped(child, parent, recorder, tmp_path):
    whole = load_bundle(parent)
    model = Transformer(whole.model.config.model_copy(update={"max_length": 6})).eval()
    model.load_state_dict(whole.model.state_dict())
    save_bundle(replace(whole, model=model), tmp_path / "short")

    train(child(parent=tmp_path / "short", updates=2), recorder)

    [note] = recorder.noted("dropped: more than 5 subwords on a side (the parent's positions)")
    assert not note.startswith("0 ")


@pytest.fixture
def wordy(tmp_path):
    """A parent with random weights, whose subwords are more than the letters of the toy corpus."""

    def save(tying):
        tokenizer, other = (
            train_tokenizer([words] * 9, vocab_size=size)
            for words, size in (("a b c d e f dog cat", 330), ("f e d c b a Hund", 320))
        )
        target = tokenizer if tying == "three-way" else other
        torch.manual_seed(1)
        model = Transformer(
            ModelConfig(
                source_vocab_size=tokenizer.vocab_size,
                target_vocab_size=target.vocab_size,
                d_model=8,
                num_heads=2,
                d_ff=8,
                num_encoder_layers=1,
                num_decoder_layers=1,
                tying=tying,
                output_bias=True,
            )
        ).eval()
        torch.nn.init.normal_(model.output_bias)
        save_bundle(Bundle(model, tokenizer, target), tmp_path / "wordy")
        return tmp_path / "wordy"

    return save


@pytest.mark.parametrize("tying", ["three-way", "target", "none"])
def test_a_trimmed_parent_keeps_the_logits_of_the_subwords_that_stay(notes, child, wordy, tying):
    before = load_bundle(wordy(tying))
    prepared = prepare(child(parent=wordy(tying), trim_vocabulary=True), note=notes.append)
    trimmed = prepared.start.parent.model.config
    sizes = [tokenizer.vocab_size for tokenizer in prepared.tokenizers]
    assert sizes == [trimmed.source_vocab_size, trimmed.target_vocab_size]
    assert all(size < old.vocab_size for size, old in zip(sizes, before.tokenizers, strict=True))
    shown = " and ".join(map(str, dict.fromkeys(sizes)))
    assert any(f"vocabulary trimmed to {shown} subwords" in note for note in notes)

    def logits(model, tokenizers):
        source, target = (tokenizer.encode("a b c") for tokenizer in tokenizers)
        inputs = torch.tensor([[tokenizers[1].bos_id, *target]])
        return model(torch.tensor([source]), inputs)[..., target]

    torch.testing.assert_close(
        logits(prepared.start.parent.model, prepared.tokenizers),
        logits(before.model, before.tokenizers),
    )


def test_a_trimmed_child_translates_by_itself(child, wordy):
    options = child(parent=wordy("three-way"), trim_vocabulary=True, updates=2)
    directory = train(options).directory
    assert Translator.load(directory, device="cpu").translate(["a b c"])[0].text
    assert train(options).directory == directory


def test_a_child_goes_on_where_it_was(child, interrupted):
    options = child(updates=6)
    whole = train(options.model_copy(update={"run": options.run.with_name("whole")}))
    with interrupted():
        train(options)
    resumed = train(options)
    weights = [load_bundle(run.directory).model.state_dict() for run in (whole, resumed)]
    for name, weight in weights[0].items():
        assert torch.equal(weight, weights[1][name])


def test_another_parent_is_refused_once_the_run_has_begun(child, parent, tmp_path):
    options = child(updates=2)
    train(options)
    other = shutil.copytree(parent, tmp_path / "other")
    weights = (other / "model.safetensors").read_bytes()
    (other / "model.safetensors").write_bytes(weights[:-4] + bytes(4))
    with pytest.raises(InputError, match=r"option parent .* has changed since this run began"):
        train(options.model_copy(update={"parent": other}))


@every("option", ["preset", "d_model", "norm", "vocab_size", "tokenizer", "activation", "subwords"])
def test_what_the_parent_decides_cannot_be_given(child, option, parent):
    value = {
        "preset": "tiny",
        "d_model": 16,
        "norm": "pre",
        "vocab_size": 300,
        "activation": "gelu",
        "subwords": "unigram",
    }.get(option, (parent / "tokenizer.model",))
    with pytest.raises(UsageError, match=f"{option} comes from the parent bundle"):
        prepare(child(**{option: value}))


def test_two_vocabularies_cannot_be_learnt_both_ways(child, bundle_directory):
    with pytest.raises(UsageError, match="both_ways needs one vocabulary"):
        prepare(child(parent=bundle_directory, both_ways=0.5))


def test_another_normalisation_is_refused(child):
    with pytest.raises(UsageError, match="the parent bundle has none: leave it out"):
        prepare(child(normalisation="text"))


@pytest.mark.parametrize("option", ["general", "replay", "trim_vocabulary"])
def test_options_of_fine_tuning_need_a_parent(config, write, option):
    values = {"general": ("a", "b"), "replay": write("a.txt", ["a"]), "trim_vocabulary": True}
    with pytest.raises(UsageError, match=f"{option} belongs to fine-tuning: give a parent bundle"):
        config(**{option: values[option]})


def test_a_missing_parent_is_named(child, tmp_path):
    with pytest.raises(InputError, match=r"none: not a bundle .no such directory"):
        prepare(child(parent=tmp_path / "none"))


def test_the_end_of_a_fine_tuning_holds_less_than_its_middle(child, monkeypatch):
    optimisers, met = [], []

    def watched(holder, name):
        inner = getattr(holder, name)

        def call(*arguments, **options):
            model = next(each for each in arguments if isinstance(each, Transformer))
            gradients = sum(weight.grad is not None for weight in model.parameters())
            living = sum(optimiser() is not None for optimiser in optimisers)
            met.append((name, gradients, living))
            return inner(*arguments, **options)

        monkeypatch.setattr(holder, name, call)

    def adam(weights):
        optimiser = adam_of(weights)
        optimisers.append(weakref.ref(optimiser))
        return optimiser

    for holder, name in ((loop, "validate"), (loop, "load_average"), (Scorer, "scores")):
        watched(holder, name)
    parts = replace(FAST, optimiser=adam)
    run = train(child(updates=4, validations=4, average="last"), parts=parts).directory

    middle, end = met[:4], met[4:]
    assert middle == [("validate", 0, 1)] * 4
    assert {*end} == {(name, 0, 0) for name in ("validate", "load_average", "scores")}
    kept = checkpoints(run / "checkpoints")
    assert len(kept) == 3
    assert [(path / "optimiser.safetensors").exists() for path in kept] == [False, True, True]


def test_the_child_takes_the_memory_of_its_parent(child, recorder):
    prepared = prepare(child())
    trainer = new_trainer(prepared, recorder)
    trainer.metrics.close()
    parent, anew = prepared.start.parent.model, prepared.start.parent_anew().model
    for ours, theirs, again in zip(
        trainer.model.parameters(), parent.parameters(), anew.parameters(), strict=True
    ):
        assert ours.data_ptr() == theirs.data_ptr() != again.data_ptr()
        assert torch.equal(ours, again)
    assert recorder.noted("memory: about 0.4 GB; less with")


def test_a_run_whose_newest_checkpoint_is_damaged_ends_with_the_same_weights(child):
    whole, broken = (child(updates=6, validations=6) for _ in range(2))
    whole = train(whole.model_copy(update={"run": whole.run.with_name("whole")})).directory
    directory = train(broken).directory
    (checkpoints(directory / "checkpoints")[-1] / "model.safetensors").write_bytes(b"")
    train(broken)
    expected, weights = (load_bundle(run).model.state_dict() for run in (whole, directory))
    assert all(torch.equal(weight, expected[name]) for name, weight in weights.items())


def test_a_parent_without_the_letters_is_named(child, write, notes):
    lines = ["žluťoučký kůň", "příliš žluťoučký", "úpěl ďábelské ódy"] * 9
    czech = write("a.en", ["a b c"] * 27), write("a.cs", lines)
    prepare(child(pairs=czech), note=notes.append)
    [warning] = [note for note in notes if "because the parent lacks" in note]
    assert "of the target's subwords are bytes or unknown" in warning
    assert "ž ť" in warning.partition("lacks")[2]
    assert "train without a parent, or from a parent of these languages" in warning
