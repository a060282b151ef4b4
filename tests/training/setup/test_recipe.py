"""What a run does where the person said nothing, and that what was said stays."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from glassformer.config import ModelConfig, presets
from glassformer.model.transformer import Transformer
from glassformer.support.errors import UsageError, counted
from glassformer.training.setup.options import SizeOptions, TrainConfig
from glassformer.training.setup.recipe import (
    _REACHED,
    choose,
    choose_in_time,
    estimated_seconds,
    model_config,
    size_in_time,
)
from tests.tables import every

SPECIAL = {"pad_id": 0, "unk_id": 1, "bos_id": 2, "eos_id": 3}
CHOSEN = [
    "preset",
    "dropout",
    "vocab_size",
    "batch_tokens",
    "epochs",
    "warmup",
    "rate_factor",
    "norm",
]


def options(**changes):
    return TrainConfig(pairs=("a", "b"), run="run", **changes)


def chosen(pairs, tokens=None, **changes):
    return choose(options(**changes), pairs=pairs, tokens=tokens or 30 * pairs)


SIZES = ["hurried", "tiny", "small", "base"]
VOCABULARIES = {29_000: 10_000, 160_000: 8_000, 4_500_000: 32_000}


def fitting(pairs, speed, minutes, **given):
    """The size for so many pairs in so many minutes."""
    operations = 60 * minutes * 0.4 * speed
    vocab_size = VOCABULARIES[pairs]
    return size_in_time(
        SizeOptions(**given), pairs=pairs, vocab_size=vocab_size, operations=operations
    )


def test_more_pairs_want_no_smaller_model():
    counts = (1, 29_000, 160_000, 4_500_000)
    found = [chosen(pairs) for pairs in counts]

    sizes = [SIZES.index(settled.preset) for settled, _ in found]
    assert sizes == sorted(sizes)
    assert (sizes[0], sizes[-1]) == (SIZES.index("tiny"), SIZES.index("base"))
    for (_, reasons), pairs in zip(found, counts, strict=True):
        [reason] = [line for line in reasons if line.startswith("preset")]
        assert f"{counted(pairs, 'pair')}, and " in reason


@pytest.mark.parametrize("pairs", [29_000, 160_000, 4_500_000])
def test_in_little_time_a_smaller_model_learns_more(pairs):
    unhurried, _ = chosen(pairs)
    sizes = []
    for minutes in (1, 60, 600, 10**6):
        config = options(minutes=minutes)
        sizes.append(fitting(pairs, 150e9, minutes))
        settled, reasons = choose(config, pairs=pairs, tokens=30 * pairs, size=sizes[-1])

        if pairs > 60_000:  # so many pairs are not learnt by heart, however long it takes
            assert settled.dropout == unhurried.dropout
        [reason] = [line for line in reasons if line.startswith("preset")]
        assert ("in the minutes given" in reason) == (settled.preset != unhurried.preset)
    ranks = [SIZES.index(size) for size in sizes]
    assert ranks == sorted(ranks)
    assert (sizes[0], sizes[-1]) == ("hurried", unhurried.preset)


def test_a_smaller_size_is_trained_as_such():
    small, _ = chosen(160_000)
    hurried, _ = choose(options(minutes=60), pairs=4_500_000, tokens=10**8, size="small")

    for name in ("batch_tokens", "warmup", "rate_factor", "norm", "optimiser"):
        assert getattr(hurried, name) == getattr(small, name)


def test_a_width_that_is_said_counts_for_the_time():
    usual, wide = (fitting(160_000, 150e9, 240, d_model=width) for width in (None, 1024))
    assert SIZES.index(wide) < SIZES.index(usual)


def test_few_pairs_in_little_time_are_read_in_smaller_batches_and_one_way():
    hurried, reasons = choose(options(minutes=10), pairs=29_000, tokens=870_000, size="hurried")
    unhurried, _ = chosen(29_000)

    assert hurried.preset == unhurried.preset
    assert hurried.batch_tokens < unhurried.batch_tokens
    assert hurried.dropout < unhurried.dropout
    assert (hurried.both_ways, unhurried.both_ways) == (None, 0.6)
    assert not [line for line in reasons if "in the minutes given" in line]


def test_with_minutes_no_number_of_updates_stands_beside_that_of_the_time():
    config = options(minutes=4)
    settled, reasons = choose_in_time(config, pairs=5_000, tokens=37_000, speed=40e9)

    numbers = [line for line in reasons if "updates" in line]
    assert numbers[0].startswith(f"warmup {settled.warmup}: at most; no more than a fifth of the")
    assert numbers[1].startswith("updates about ")
    assert len(numbers) == 2


@pytest.mark.parametrize("preset", ["tiny", "tiny-deep-shallow"])
def test_the_time_decides_how_a_said_size_is_trained(preset):
    sizes = [fitting(29_000, 400e9, minutes, preset=preset) for minutes in (1, 1_000)]
    assert sizes == ["hurried", "tiny"]


@pytest.mark.parametrize("pairs", [29_000, 160_000])
def test_a_shallow_decoder_is_trained_as_its_size_is(pairs):
    even, _ = chosen(pairs)
    shallow, _ = chosen(pairs, preset=f"{even.preset}-deep-shallow")
    assert shallow.model_copy(update={"preset": even.preset}) == even


def test_many_pairs_and_two_vocabularies_are_learnt_one_way():
    many, _ = choose(options(minutes=60), pairs=160_000, tokens=4_800_000, size="tiny")
    assert many.both_ways is chosen(29_000, joint=False)[0].both_ways is None


def test_a_size_that_is_said_stays_however_little_time_there_is():
    config = options(minutes=1, preset="small")
    found, _ = choose(config, pairs=160_000, tokens=5_000_000, size="tiny")
    assert found.preset == "small"


def test_everything_open_is_settled_with_a_reason():
    settled, reasons = chosen(29_000)

    assert [line.split(":")[0].rsplit(" ", 1)[0].replace(" ", "_") for line in reasons] == [
        *CHOSEN,
        "optimiser",
        "both_ways",
        "tying",
    ]
    for name in [*CHOSEN, "optimiser", "both_ways", "tying"]:
        assert getattr(settled, name) is not None
    assert all(line.split(": ")[1] for line in reasons)
    assert settled.tying == "three-way"


SAID = {
    "preset": "big",
    "dropout": 0.25,
    "vocab_size": 500,
    "batch_tokens": 99,
    "epochs": 3.0,
    "warmup": 7,
    "rate_factor": 0.5,
    "norm": "post",
    "tying": "none",
}


@every("name", SAID)
def test_what_is_said_stays_and_needs_no_reason(name):
    settled, reasons = chosen(29_000, **{name: SAID[name]})

    assert getattr(settled, name) == SAID[name]
    assert not [line for line in reasons if line.startswith(name.replace("_", " ") + " ")]


def test_updates_said_leave_the_epochs_open():
    settled, _ = chosen(29_000, updates=500)

    assert (settled.updates, settled.epochs) == (500, None)


def test_another_preset_keeps_its_own_dropout():
    settled, _ = chosen(29_000, preset="big")

    assert settled.dropout is None


@pytest.mark.parametrize(("factor", "share"), [({}, 1), ({"accumulate": 4}, 4)])
def test_epochs_come_to_as_many_updates(factor, share):
    settled, _ = chosen(29_000, **factor)

    batches = 29_000 * 30 / (0.95 * settled.batch_tokens)
    most = 200 * batches / share
    assert settled.epochs * batches / share == pytest.approx(min(24_000, most), rel=0.1)


def test_a_small_corpus_gets_few_subwords_and_no_endless_run():
    settled, _ = chosen(5, tokens=40)

    assert settled.vocab_size == 300
    assert settled.epochs == 200


def test_a_short_run_warms_up_in_time_and_no_hotter():
    usual, _ = chosen(29_000)
    short, reasons = chosen(29_000, updates=200)

    assert short.warmup == 40
    assert [line for line in reasons if "warmup 40: no more than a fifth" in line]

    def peak(settled):
        return settled.rate_factor * settled.warmup**-0.5

    assert peak(short) == pytest.approx(peak(usual), rel=1e-3)


@pytest.mark.parametrize(
    ("changes", "tying"),
    [({"joint": False}, "target"), ({"tokenizer": ("m",)}, "three-way")],
)
def test_tying_follows_from_the_vocabularies(changes, tying):
    assert chosen(29_000, **changes)[0].tying == tying


def test_a_tokenizer_brought_leaves_the_size_of_the_vocabulary_alone():
    settled, reasons = chosen(29_000, tokenizer=("m",))

    assert settled.vocab_size is None
    assert not [line for line in reasons if line.startswith("vocab")]


def model_of(**changes):
    settled, _ = chosen(29_000, **changes)
    return model_config(settled, {"source_vocab_size": 400, "target_vocab_size": 400, **SPECIAL})


def test_the_model_is_the_preset():
    model = model_of(preset="small")

    assert {name: getattr(model, name) for name in presets["small"]} == presets["small"]


@every(
    ("name", "value"),
    [
        ("d_model", 64),
        ("num_heads", 8),
        ("d_ff", 99),
        ("num_encoder_layers", 7),
        ("num_decoder_layers", 1),
        ("dropout", 0.0),
        ("activation", "gelu"),
        ("norm", "pre"),
        ("tying", "none"),
        ("positions", "learned"),
    ],
)
def test_a_setting_overrides_the_presets(name, value):
    assert getattr(model_of(**{name: value}), name) == value


def test_the_positions_hold_the_longest_pair():
    assert model_of(max_tokens=5_000).max_length > 5_000


def test_settings_that_do_not_fit_are_one_line():
    with pytest.raises(UsageError, match="d_model 30 is not divisible by num_heads 4") as caught:
        model_of(d_model=30)

    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("preset", ["tiny", "tiny-deep-shallow"])
def test_the_estimated_time_is_that_of_the_operations_that_torch_counts(preset):
    config, tokens = options(preset=preset, batch_tokens=160), torch.full((4, 20), 5)
    model = Transformer(
        ModelConfig(source_vocab_size=900, target_vocab_size=900, **presets[preset])
    )
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(tokens, tokens)

    seconds = estimated_seconds(config, vocab_size=900, speed=1 / _REACHED)
    assert seconds == pytest.approx(3 * counter.get_total_flops(), rel=0.1)  # forward and back
