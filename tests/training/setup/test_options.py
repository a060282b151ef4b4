"""The options of a training: ranges, what excludes what, headings of the help."""

import pytest
from pydantic import ValidationError

from glassformer.training.setup.options import TrainConfig


def options(**changes):
    return TrainConfig(**{"pairs": ("a", "b"), "run": "run", **changes})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epochs": 1.0, "updates": 5}, "give epochs or updates, not both"),
        ({"tokenizer": ("a", "b")}, "two tokenizers are not joint: add joint false"),
        ({"tying": "three-way", "joint": False}, "three-way tying needs one vocabulary"),
        ({"both_ways": 0.3, "joint": False}, "both_ways needs one vocabulary"),
        ({"d_model": 31}, "d_model must be even, .* got 31"),
        ({"d_model": 30, "num_heads": 4}, "d_model 30 is not divisible by num_heads 4"),
        ({"d_model": 30, "preset": "tiny"}, "d_model 30 is not divisible by num_heads 4"),
        ({"num_heads": 3, "preset": "tiny"}, "d_model 128 is not divisible by num_heads 3"),
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


def test_every_option_is_documented():
    fields = TrainConfig.model_fields
    undocumented = [name for name, field in fields.items() if not field.description]

    assert not undocumented


def test_the_headings_of_the_help_begin_at_options_in_their_order():
    names, firsts = list(TrainConfig.model_fields), list(TrainConfig.groups)

    assert firsts == sorted(firsts, key=names.index)
    assert names[: names.index(firsts[1])] == [
        *("pairs", "run", "valid", "test", "languages", "minutes", "preset", "device", "recipe")
    ]
