"""The options: ranges, what excludes what, and presets that are models."""

import pytest
from pydantic import ValidationError

from glassformer.config import ModelConfig, TrainConfig, presets


def options(**changes):
    return TrainConfig(**{"pairs": ("a", "b"), "run": "run", **changes})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epochs": 1.0, "updates": 5}, "give epochs or updates, not both"),
        ({"tokenizer": ("a", "b")}, "two tokenizers are not joint: add joint false"),
        ({"tying": "three-way", "joint": False}, "three-way tying needs one vocabulary"),
        ({"both_ways": 0.3, "joint": False}, "both_ways needs one vocabulary"),
    ],
)
def test_what_excludes_each_other(changes, message):
    with pytest.raises(ValidationError, match=message):
        options(**changes)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("pairs", ()),
        ("pairs", ("a", "b", "c")),
        ("valid", ("a", "b", "c")),
        ("format", "xml"),
        ("subwords", "words"),
        ("vocab_size", 0),
        ("max_tokens", 0),
        ("preset", "huge"),
        ("dropout", -0.1),
        ("epochs", 0.0),
        ("epochs", float("inf")),
        ("updates", 0),
        ("batch_tokens", 15),
        ("accumulate", 0),
        ("warmup", 0),
        ("rate_factor", 0.0),
        ("anneal", 1.1),
        ("label_smoothing", 1.0),
        ("clip", -1.0),
        ("precision", "fp8"),
        ("threads", -1),
        ("seed", -1),
        ("seed", 2**32),  # the seed of an update is 64 bits: the run's above, the update's below
        ("validations", 0),
        ("patience", -1),
        ("average_count", 0),
        ("checkpoint_minutes", 0.0),
        ("beam", 0),
    ],
)
def test_a_value_out_of_range_is_refused_by_name(name, value):
    with pytest.raises(ValidationError) as caught:
        options(**{name: value})

    assert caught.value.errors()[0]["loc"][0] == name


def test_an_unknown_option_is_refused():
    with pytest.raises(ValidationError, match="dropuot"):
        options(dropuot=0.1)


def test_options_do_not_change():
    with pytest.raises(ValidationError, match="frozen"):
        options().seed = 3


@pytest.mark.parametrize("preset", presets)
def test_presets_are_models(preset):
    config = ModelConfig(source_vocab_size=100, target_vocab_size=100, **presets[preset])

    assert config.tying == "three-way"


def test_the_defaults_are_the_papers_base_model():
    plain = ModelConfig(source_vocab_size=100, target_vocab_size=100)

    assert plain == ModelConfig(source_vocab_size=100, target_vocab_size=100, **presets["base"])
    assert (plain.norm, plain.activation, plain.positions) == ("post", "relu", "sinusoidal")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"d_model": 511, "num_heads": 7}, "d_model must be even.* got 511"),
        ({"num_heads": 7}, r"d_model 512 is not divisible by num_heads 7 \(remainder 1\)"),
        (
            {"target_vocab_size": 90, "tying": "three-way"},
            "three-way tying .* 100 source and 90 target",
        ),
        ({"eos_id": 100}, "eos_id 100 is outside the vocabulary of 100"),
        ({"dropout": 1.0}, "dropout"),
        ({"norm_epsilon": 0.0}, "norm_epsilon"),
    ],
)
def test_a_model_that_cannot_be(changes, message):
    sizes = {"source_vocab_size": 100, "target_vocab_size": 100}
    with pytest.raises(ValidationError, match=message):
        ModelConfig(**{**sizes, **changes})


@pytest.mark.parametrize("kind", [ModelConfig, TrainConfig])
def test_every_option_says_what_it_is(kind):
    undocumented = [name for name, field in kind.model_fields.items() if not field.description]

    assert not undocumented


@pytest.mark.parametrize(("target", "tying"), [(100, "three-way"), (90, "target")])
def test_tying_fits_the_vocabularies_by_default(target, tying):
    config = ModelConfig(source_vocab_size=100, target_vocab_size=target)

    assert config.tying == tying
    assert config.model_dump()["tying"] == tying  # a bundle stores the settled value
