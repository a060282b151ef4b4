"""The settings of a model, and presets that are models."""

import pytest

from glassformer.config import ModelConfig, presets
from glassformer.decoding.vocabulary import Vocabulary
from glassformer.support.errors import UsageError
from tests.tables import every


def test_the_defaults_are_the_papers_base_model():
    plain = ModelConfig(source_vocab_size=100, target_vocab_size=100)

    assert plain == ModelConfig(source_vocab_size=100, target_vocab_size=100, **presets["base"])
    assert (plain.norm, plain.activation, plain.positions) == ("post", "relu", "sinusoidal")


@every(
    ("changes", "message"),
    [
        ({"d_model": 511, "num_heads": 7}, "d_model must be even.* got 511"),
        ({"num_heads": 7}, r"d_model 512 is not divisible by num_heads 7 \(remainder 1\)"),
        (
            {"target_vocab_size": 90, "tying": "three-way"},
            "three-way tying .* 100 source and 90 target",
        ),
        ({"eos_id": 100}, "eos_id 100 is outside the vocabulary of 100"),
        ({"eos_id": 1}, "unk_id and eos_id are both 1: give each symbol"),
        ({"bos_id": 0}, "pad_id and bos_id are both 0: give each symbol an id of its own"),
        ({"pad_id": 3}, "pad_id and eos_id are both 3"),
        ({"source_pad_id": 1}, "source_pad_id and unk_id are both 1"),
        ({"dropout": 1.0}, "dropout"),
        ({"norm_epsilon": 0.0}, "norm_epsilon"),
        ({"norm": "both"}, "norm 'both': expected 'post' or 'pre'"),
        ({"dropuot": 0.1}, "dropuot is no option .did you mean 'dropout'"),
    ],
)
def test_a_model_that_cannot_be(changes, message):
    sizes = {"source_vocab_size": 100, "target_vocab_size": 100}
    with pytest.raises(UsageError, match=f"^{message}"):
        ModelConfig(**{**sizes, **changes})


def test_the_end_may_be_the_start():
    config = ModelConfig(source_vocab_size=9, target_vocab_size=9, bos_id=3, eos_id=3)
    assert Vocabulary.of(config).never_produced == (0, 1)  # the end is produced


def test_every_setting_is_documented():
    fields = ModelConfig.model_fields
    undocumented = [name for name, field in fields.items() if not field.description]

    assert not undocumented


@pytest.mark.parametrize(("target", "tying"), [(100, "three-way"), (90, "target")])
def test_tying_fits_the_vocabularies_by_default(target, tying):
    config = ModelConfig(source_vocab_size=100, target_vocab_size=target)

    assert config.tying == tying
    assert config.model_dump()["tying"] == tying  # a bundle stores the settled value
