"""The precision, shares and batches of a training on this machine; the speed of its products."""

import os
from dataclasses import asdict, fields
from time import perf_counter

import torch

from glassformer.config import AnyPrecision, Precision
from glassformer.data.token_store import Packed
from glassformer.model.forms import ModelParts
from glassformer.model.transformer import Transformer
from glassformer.parts import FAST, PLAIN, Parts
from glassformer.support.cores import usable_cores
from glassformer.support.errors import UsageError
from glassformer.training.checkpoint import RunState
from glassformer.training.setup.options import MachineOptions, TrainConfig

__all__ = [
    "check_precision",
    "chosen_packing",
    "chosen_precision",
    "chosen_shares",
    "machine_speed",
    "precision_for",
    "product_speed",
    "record_machine",
]

_FEWEST_OPERATIONS = 4e9  # of an update, for more than one thread
_MOST_SHARES, _MOST_WEIGHTS = 4, 100_000_000  # for shares
# The parts that a gradient and a step run.
_SHARED = [field.name for field in fields(ModelParts)]
_SHARED += ["model", "losses", "optimiser", "muon", "mixed_precision"]
_READERS = ("shift", "losses", "mixed_precision")  # of the tensors of padded batches


def machine_speed(
    machine: MachineOptions, device: torch.device, parts: Parts = FAST
) -> float | None:
    """The operations a second of a CPU's matrix products; None for another device."""
    if device.type != "cpu":
        return None
    return product_speed(chosen_precision(machine, device, parts)[0])


def chosen_precision(
    machine: MachineOptions, device: torch.device, parts: Parts
) -> tuple[AnyPrecision, str]:
    """The precision of the option, and a line if "auto" does not measure the machine.

    "auto" measures the machine for parts that have a mixed precision. With own parts of model or
    loss, "auto" means float32, because such parts possibly fail in bfloat16.
    """
    if machine.precision != "auto" or parts.mixed_precision is None:
        return "float32" if machine.precision == "auto" else machine.precision, ""
    fields = {"dropout", "losses", *parts.own_model}
    names = [f"{field} {name}" for field, name in parts.own.items() if field in fields]
    if parts.losses is PLAIN.losses:
        return "float32", "precision float32: the plain losses know no other"
    if names:
        reason = f"{', '.join(names)} may not bear bfloat16"
        return "float32", f"precision float32: {reason} (precision bfloat16 tries it)"
    precision = precision_for(device)
    if device.type == "cuda" and precision == "float32":
        reason = "this GPU has no bfloat16 units (precision float16 tries its float16 units)"
        return precision, f"precision float32: {reason}"
    return precision, ""


def check_precision(precision: str, parts: Parts) -> None:
    """Raise UsageError if the parts cannot compute in a precision."""
    if precision in ("auto", "float32"):
        return
    if parts.mixed_precision is None or parts.losses is PLAIN.losses:
        raise UsageError(
            f"precision {precision}: the plain losses compute in float32, and so do parts without"
            " a mixed_precision: leave precision out, or take both parts from FAST"
        )
    if precision == "float16" and parts.mixed_precision is not FAST.mixed_precision:
        raise UsageError(
            "precision float16: your own mixed_precision makes the copy in its own type: leave"
            " precision out, or take mixed_precision from FAST"
        )


def chosen_shares(model: Transformer, parts: Parts, *, tokens: int) -> int:
    """The number of shares of each batch on a CPU (docs/measurements.md); an update has ``tokens``.

    - 1 on one core, and if the update is small, because a second thread takes as long to wake as it
      would save
    - 0, which leaves the cores to OpenMP, for a large model, because each share has a gradient of 4
      bytes a weight; and for other parts than FAST's: such parts possibly keep values, draw random
      numbers, or replace weights, and threads would mix these up
    - else the number that uses most cores, up to which Python's lock does not hold the threads up
    """
    weights, cores = sum(weight.numel() for weight in model.parameters()), usable_cores()
    if cores == 1 or 3 * tokens * weights < _FEWEST_OPERATIONS:
        return 1
    if (
        weights > _MOST_WEIGHTS
        or model.config.attention_dropout
        or any(getattr(parts, name) is not getattr(FAST, name) for name in _SHARED)
    ):
        return 0
    return max(range(2, _MOST_SHARES + 1), key=lambda count: (cores // count * count, count))


def chosen_packing(
    config: TrainConfig, model: Transformer, parts: Parts, packed: Packed
) -> tuple[dict[str, int], str]:
    """The shape of packed batches, empty for padded batches, and a line about it."""
    if config.batches == "padded":
        return {}, ""
    padded = "padded batches" + " without a graph" * config.graph
    stock = (getattr(parts, name) in (None, getattr(FAST, name)) for name in _READERS)
    if not (parts.packing and all(stock)):
        return {}, f"{padded}: packed ones need shift, losses and mixed_precision of FAST"
    if reason := parts.packing.refusal(model):
        return {}, f"{padded}: {reason}"
    tokens = config.batch_tokens or 0
    shape = parts.packing.of(packed, tokens)
    line = f"packed batches: {shape.rows:,} rows of {shape.width:,} tokens a side"
    slow = "; a GPU gains by their one shape, a CPU by the shorter rows of padded batches"
    return asdict(shape), line + slow * (model.output_weight.device.type == "cpu")


def record_machine(
    state: RunState, device: torch.device, shares: int, *, graph: bool = False
) -> str:
    """Record what decides the last bits of the sums; return a line if the run began with another.

    A run keeps the ``shares`` of its beginning; torchrun's ranks and packed batches have no shares,
    and padded batches have no ``graph``. The line is empty for a new run, and for a run that goes
    on as it began.
    """
    ranks = int(os.environ.get("WORLD_SIZE", 1))  # which torchrun sets
    machine = {"device": device.type, "ranks": ranks}
    if device.type == "cuda":
        machine["graph"] = graph and bool(state.packing)
    if device.type == "cpu":
        shares = 0 if state.packing else shares
        kept = state.machine.get("shares", 0) if state.update else shares
        machine |= {"threads": torch.get_num_threads(), "shares": kept}
    before, state.machine = state.machine, machine
    changed = [name for name, value in machine.items() if before.get(name, value) != value]
    if not changed:
        return ""
    changes = ", ".join(f"{name} {before[name]} before, {machine[name]} now" for name in changed)
    return f"{changes}: the run goes on, and its last bits may differ"


def precision_for(device: torch.device) -> Precision:
    """The precision in which this machine multiplies faster, by a measurement.

    A GPU says whether it has bf16 units; a T4 has none, and emulates bf16 slowly.
    A CPU without bf16 units takes tens of times longer in bf16 than in float32. A tiny product
    detects such a CPU in a moment. Other CPUs are sometimes slower in a tiny product too, because
    bf16 copies operands. So for the tiny product, an eighth of the float32 speed is enough.
    """
    if device.type == "cuda":
        return "bfloat16" if torch.cuda.is_bf16_supported(including_emulation=False) else "float32"
    for size, gain in ((64, 0.125), (512, 1.5)):
        rounded, exact = (min(_times(size, dtype)) for dtype in (torch.bfloat16, torch.float32))
        if rounded * gain > exact:
            return "float32"
    return "bfloat16"


def product_speed(precision: AnyPrecision) -> float:
    """The operations a second of this CPU's matrix products, beside what else the CPU does now.

    >>> product_speed("float32") > 1e8
    True
    """
    times = _times(512, getattr(torch, precision), least=0.5)
    return 2 * 512**3 * len(times) / sum(times)


def _times(size: int, dtype: torch.dtype, least: float = 0.0) -> list[float]:
    """The seconds of each of at least five equal matrix products, which take ``least`` seconds."""
    matrix, times = torch.ones(size, size, dtype=dtype), list[float]()
    while len(times) < 5 or sum(times) < least:
        begin = perf_counter()
        matrix @ matrix
        times.append(perf_counter() - begin)
    return times
