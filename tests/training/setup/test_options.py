"""The options of a training: ranges, what excludes what, headings of the help."""

import ast
import inspect

import pytest
from pydantic import ValidationError

import glassformer.config as config_module
import glassformer.training.setup.options as options_module
from glassformer.support.errors import UsageError
from glassformer.training.setup.options import (
    LearningOptions,
    LengthOptions,
    MachineOptions,
    SizeOptions,
    StartOptions,
    TextOptions,
    TrainConfig,
)
from tests.tables import every

RECORDS = (
    StartOptions,
    TextOptions,
    SizeOptions,
    LengthOptions,
    LearningOptions,
    MachineOptions,
)


def options(**changes):
    return TrainConfig(**{"pairs": ("a", "b"), "run": "run", **changes})


@every(
    ("changes", "message"),
    [
        ({"epochs": 1.0, "updates": 5}, "give epochs or updates, not both"),
        ({"tokenizer": ("a", "b")}, "two tokenizers are not joint: set joint to false"),
        ({"tying": "three-way", "joint": False}, "three-way tying needs one vocabulary"),
        ({"both_ways": 0.3, "joint": False}, "both_ways needs one vocabulary"),
        ({"d_model": 31}, "d_model must be even, .* got 31"),
        ({"d_model": 30, "num_heads": 4}, "d_model 30 is not divisible by num_heads 4"),
        ({"d_model": 30, "preset": "tiny"}, "d_model 30 is not divisible by num_heads 4"),
        ({"num_heads": 3, "preset": "tiny"}, "d_model 128 is not divisible by num_heads 3"),
        ({"num_heads": 7}, "d_model 1024 is not divisible by num_heads 7"),  # of any preset
    ],
)
def test_what_excludes_each_other(changes, message):
    with pytest.raises(UsageError, match=f"^{message}"):
        options(**changes)


@every(
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
    with pytest.raises(UsageError, match=f"^{name} .*: expected .*$"):
        options(**{name: value})


@pytest.mark.parametrize("module", [options_module, config_module])
def test_type_checkers_see_which_settings_may_be_left_out(module):
    """They know a default by its keyword; mypy without pydantic's plugin saw 41 mistakes."""
    calls = (node for node in ast.walk(ast.parse(inspect.getsource(module))))
    fields = [
        node for node in calls if isinstance(node, ast.Call) and ast.unparse(node.func) == "Field"
    ]

    assert len(fields) > 15
    assert [ast.unparse(field) for field in fields if field.args] == []


def test_an_unknown_option_is_refused():
    with pytest.raises(UsageError, match=r"^dropuot is no option .did you mean 'dropout'"):
        options(dropuot=0.1)


def test_options_do_not_change():
    with pytest.raises(ValidationError, match="frozen"):
        options().seed = 3


def test_every_option_is_documented():
    fields = TrainConfig.model_fields
    undocumented = [name for name, field in fields.items() if not field.description]

    assert not undocumented


def test_each_heading_of_the_help_shows_options_of_one_record():
    headings, shown = {}, None
    for name in TrainConfig.model_fields.keys() - {"run", "recipe"}:
        assert sum(name in record.model_fields for record in RECORDS) == 1
    for name in TrainConfig.model_fields:
        shown = TrainConfig.groups.get(name, shown)
        if name not in TrainConfig.shown_first:
            [record] = [record for record in RECORDS if name in record.model_fields]
            headings.setdefault(shown, set()).add(record)
    assert len(headings) == len(RECORDS)
    assert all(len(records) == 1 for records in headings.values())


def test_the_headings_of_the_help_begin_at_options_in_their_order():
    names = list(dict.fromkeys([*TrainConfig.shown_first, *TrainConfig.model_fields]))
    firsts = list(TrainConfig.groups)

    assert firsts == sorted(firsts, key=names.index)
    assert names[: names.index(firsts[1])] == [
        *("pairs", "run", "valid", "test", "languages", "minutes", "preset", "device", "recipe")
    ]
