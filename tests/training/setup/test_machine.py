"""The precision of a training: by measuring the machine, and by what the parts can do."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from glassformer.parts import FAST, PLAIN
from glassformer.support.errors import UsageError
from glassformer.training.setup import machine
from glassformer.training.setup.machine import check_precision, chosen_precision, precision_for
from glassformer.training.setup.options import MachineOptions


def test_the_precision_of_a_cpu_is_measured():
    assert precision_for(torch.device("cpu")) in ("float32", "bfloat16")


@pytest.mark.parametrize(
    ("small", "large", "chosen"),
    [
        pytest.param(0.3, 0.2, "bfloat16", id="AMX"),
        pytest.param(2.8, 0.45, "bfloat16", id="AVX-512 with bf16, slower where products are tiny"),
        pytest.param(2.8, 0.9, "float32", id="no gain"),
        pytest.param(25.0, None, "float32", id="no units: the large product is not tried"),
    ],
)
def test_bf16_is_chosen_where_it_gains(monkeypatch, small, large, chosen):
    def times(size, dtype):
        if dtype == torch.float32:
            return [1.0, 9.0]
        assert size == 64 or large is not None
        return [9.0, small if size == 64 else large]

    monkeypatch.setattr("glassformer.training.setup.machine._times", times)
    assert precision_for(torch.device("cpu")) == chosen


@pytest.mark.parametrize(("in_hardware", "chosen"), [(True, "bfloat16"), (False, "float32")])
def test_a_gpu_that_emulates_bf16_trains_in_float32(monkeypatch, in_hardware, chosen):
    def supported(including_emulation=True):
        return including_emulation or in_hardware

    monkeypatch.setattr(torch.cuda, "is_bf16_supported", supported)
    gpu = torch.device("cuda")
    assert precision_for(gpu) == chosen
    _, line = chosen_precision(MachineOptions(), gpu, FAST)
    assert bool(line) != in_hardware
    assert in_hardware or line.endswith("(precision float16 tries its float16 units)")


def mine(query, key, value, mask):
    return PLAIN.attention(query, key, value, mask)


@pytest.mark.parametrize(
    ("parts", "measured", "reason"),
    [
        (FAST, True, ""),
        (PLAIN, False, ""),
        (replace(PLAIN, attention=mine), False, ""),
        (replace(FAST, dropout=nn.Dropout), True, ""),
        (replace(FAST, decoder=PLAIN.decoder, attention=PLAIN.attention), True, ""),
        (replace(FAST, optimiser=torch.optim.SGD, greedy=mine), True, ""),
        (replace(FAST, attention=mine), False, "attention mine may not bear bfloat16 (precision"),
        (replace(FAST, model=mine), False, "model mine may not bear"),
        (replace(FAST, dropout=nn.AlphaDropout), False, "dropout AlphaDropout may not bear"),
        (replace(FAST, losses=mine), False, "losses mine may not bear"),
        (replace(FAST, losses=PLAIN.losses), False, "the plain losses know no other"),
    ],
)
def test_the_parts_say_whether_the_precision_is_measured(monkeypatch, parts, measured, reason):
    monkeypatch.setattr(machine, "precision_for", lambda _: "bfloat16")
    cpu = torch.device("cpu")

    precision, line = chosen_precision(MachineOptions(), cpu, parts)

    assert precision == ("bfloat16" if measured else "float32")
    assert line.startswith(f"precision float32: {reason}" if reason else "")
    assert bool(line) == bool(reason)
    for given in ("float32", "bfloat16", "float16"):
        asked = MachineOptions(precision=given)
        assert chosen_precision(asked, cpu, parts) == (given, "")


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_fewer_bits_need_parts_that_have_them(precision):
    for parts in (FAST, replace(FAST, attention=mine)):
        check_precision(precision, parts)
    for parts in (PLAIN, replace(FAST, losses=PLAIN.losses), replace(FAST, mixed_precision=None)):
        for possible in ("auto", "float32"):
            check_precision(possible, parts)
        with pytest.raises(
            UsageError, match=rf"^precision {precision}: .* leave precision out, or .* FAST$"
        ):
            check_precision(precision, parts)


def test_an_own_mixed_precision_has_a_type_of_its_own():
    parts = replace(FAST, mixed_precision=mine)
    check_precision("bfloat16", parts)
    with pytest.raises(UsageError, match=r"^precision float16: your own mixed_precision makes"):
        check_precision("float16", parts)
