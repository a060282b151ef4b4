"""Makes the learner of a run; options and parts decide its optimiser and precision."""

import inspect
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from glassformer.model.transformer import Transformer
from glassformer.parts import FAST, Parts
from glassformer.support.errors import UsageError
from glassformer.training.checkpoint import RunState, checkpoint_of, load_optimiser
from glassformer.training.optimiser import Learner
from glassformer.training.parallel.ranks import ALONE, Ranks
from glassformer.training.setup.options import LearningOptions, OptimiserKind

__all__ = ["new_learner", "new_optimiser"]


def new_learner(
    model: Transformer,
    parts: Parts,
    *,
    options: LearningOptions,
    state: RunState,
    checkpoints: Path,
    ranks: Ranks = ALONE,
) -> Learner:
    """The learner of a run at the place ``state``; each rank gets the weights of rank 0."""
    ranks.broadcast([weight.detach() for weight in model.parameters()])
    kind = options.optimiser or "adam"
    # Muon's momentum in float16 would lose small numbers, which no loss scale multiplies.
    products = torch.bfloat16 if state.precision == "bfloat16" else torch.float32
    rounded = state.precision in ("bfloat16", "float16")
    losses, copied = parts.losses, parts.mixed_precision if rounded else None
    if copied and state.precision == "float16":
        copied = partial(copied, dtype=torch.float16)
    if packing := parts.packed(state.packing):
        losses = packing.losses
    optimiser = new_optimiser(model, kind, parts, products=products, ranks=ranks)
    if state.update:
        load_optimiser(checkpoint_of(checkpoints, state.update), model, optimiser)
    with parts.blamed(f"the copy in {state.precision}", "mixed_precision"):
        learner = Learner(
            model.train(),
            optimiser,
            losses=partial(losses, smoothing=options.label_smoothing),
            mixed_precision=copied,
            clip=options.clip,
            ranks=ranks,
        )
    if packing and state.machine.get("graph"):
        learner.replayed = packing.replay(learner.backward, model.parameters())
    return learner


def new_optimiser(
    model: Transformer,
    kind: OptimiserKind,
    parts: Parts = FAST,
    *,
    products: torch.dtype = torch.float32,
    ranks: Ranks = ALONE,
) -> torch.optim.Optimizer:
    """The optimiser of ``parts``; with "muon", Muon updates the blocks' matrices.

    Raises UsageError for an own optimiser that the loop cannot call or save.
    """
    blocks = [*model.encoder.parameters(), *model.decoder.parameters()] if kind == "muon" else []
    matrices = [weight for weight in blocks if weight.dim() == 2]
    identities = set(map(id, matrices))
    others = [weight for weight in model.parameters() if id(weight) not in identities]
    with parts.blamed("the optimiser", "optimiser"):
        optimiser = parts.optimiser(others)
        _check("optimiser", optimiser, others)
    if kind == "muon":
        with parts.blamed("the optimiser", "muon"):
            both = parts.muon(matrices, optimiser, products=products, ranks=ranks)
            _check("muon", both, [*matrices, *others])
            return both
    return optimiser


def _check(field: str, optimiser: torch.optim.Optimizer, weights: Sequence[Tensor]) -> None:
    kind, base = type(optimiser), torch.optim.Optimizer
    name = f"{field} {kind.__name__}"
    if not isinstance(optimiser, base):
        raise UsageError(f"{name}: expected a torch.optim.Optimizer: subclass it")
    taken = {id(weight) for group in optimiser.param_groups for weight in group["params"]}
    if len(taken) < len(weights):
        raise UsageError(f"{name}: it has {len(taken)} of {len(weights)} weights: give it all")
    parameters = inspect.signature(optimiser.step).parameters.values()
    if any(each.default is each.empty and each.name == "closure" for each in parameters):
        raise UsageError(f"{name}: its step needs a closure, and an update has one gradient")
    if kind.state_dict is not base.state_dict:
        raise UsageError(
            f"{name}: it has a state_dict of its own, and a checkpoint holds the content of state"
            " and param_groups: keep all values there"
        )
