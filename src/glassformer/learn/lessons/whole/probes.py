"""Probes of the parts put together: embeddings, masks, towers, projection."""

from typing import Any

import torch
from torch import Tensor

from glassformer import ModelConfig, Transformer
from glassformer.learn.check import Check, Results, Solution, filled, numbers, picks
from glassformer.model import masks
from glassformer.model.cache import Memory

__all__ = ["CHECK"]

PAD = 4
CONFIG = ModelConfig(
    source_vocab_size=19,
    target_vocab_size=17,
    d_model=6,
    num_heads=3,
    d_ff=11,
    num_encoder_layers=1,
    num_decoder_layers=1,
    pad_id=PAD,
    max_length=1024,
)


def one_source(solution: Solution) -> dict[str, Any]:
    """source [[5, 6, 3]], pad_id 4, random weights"""
    return _memory(_model(solution).encode(torch.tensor([[5, 6, 3]])))


def padded_sources(solution: Solution) -> dict[str, Any]:
    """source (2, 7); the second sentence ends with two tokens of padding, pad_id 4"""
    model, source = _model(solution), _source()
    states = model.encode(_padded(source)).states[:, :7]
    return {**_memory(model.encode(source)), "states with more padding": states}


def given_source_mask(solution: Solution) -> dict[str, Any]:
    """the same, with a source_mask that hides the first token of both sentences"""
    mask = (torch.arange(7) > 0).expand(2, 1, 1, 7)
    return _memory(_model(solution).encode(_source(), source_mask=mask))


def one_target(solution: Solution) -> dict[str, Any]:
    """target [[2, 7]], a memory of three words, random weights"""
    memory = Memory(numbers(1, 3, 6), torch.ones(1, 1, 1, 3, dtype=torch.bool))
    return {"states": _model(solution).decode(torch.tensor([[2, 7]]), memory)}


def equal_lengths(solution: Solution) -> dict[str, Any]:
    """target (2, 5) with padding in the second, a memory of five words with padding, pad_id 4"""
    return {"states": _model(solution).decode(_target(), _random_memory(5))}


def padded_targets(solution: Solution) -> dict[str, Any]:
    """the same, with a memory of seven words"""
    model, target, memory = _model(solution), _target(), _random_memory(7)
    return {
        "states": model.decode(target, memory),
        "states after a changed last token": model.decode(_changed(target), memory),
    }


def given_target_mask(solution: Solution) -> dict[str, Any]:
    """the same, with a target_mask that shows each word itself alone"""
    mask = torch.eye(5, dtype=torch.bool).expand(2, 1, 5, 5)
    return {"states": _model(solution).decode(_target(), _random_memory(7), target_mask=mask)}


def one_pair(solution: Solution) -> dict[str, Any]:
    """source [[5, 6, 3]], target [[2, 7, 8]], random weights"""
    model = _whole(solution)
    return {"logits": model(torch.tensor([[5, 6, 3]]), torch.tensor([[2, 7, 8]]))}


def batch(solution: Solution) -> dict[str, Any]:
    """source (2, 7) and target (2, 5); the second pair ends with padding, pad_id 4"""
    model, source, target = _whole(solution), _source(), _target()
    return {
        "logits": model(source, target),
        "logits after a changed last token": model(source, _changed(target)),
        "logits with more padding": model(_padded(source), target),
    }


def given_masks(solution: Solution) -> dict[str, Any]:
    """the same, with a source_mask that hides the first token, and a target_mask that is causal"""
    source_mask = (torch.arange(7) > 0).expand(2, 1, 1, 7)
    target_mask = masks.subsequent_mask(5).expand(2, 1, 5, 5)
    model = _whole(solution)
    logits = model(_source(), _target(), source_mask=source_mask, target_mask=target_mask)
    return {"logits": logits}


def _model(solution: Solution) -> Any:
    return filled(solution.Transformer(CONFIG))


def _whole(solution: Solution) -> Any:
    """A model with the solution's forward, and with the package's encode and decode."""
    own = {"encode": Transformer.encode, "decode": Transformer.decode}
    return filled(type("Whole", (solution.Transformer,), own)(CONFIG))


def _source() -> Tensor:
    """Words, one of them with id 0; the second source ends with padding."""
    source = 5 + picks(2, 7, below=11)
    source[0, 2], source[1, 5:] = 0, PAD
    return source


def _padded(source: Tensor) -> Tensor:
    return torch.cat((source, torch.full((2, 2), PAD)), dim=1)


def _changed(target: Tensor) -> Tensor:
    return torch.cat((target[:, :-1], target[:, -1:] + 1), dim=1)


def _target() -> Tensor:
    """The start symbol, then words, one with id 0; the second has padding, and a word after it."""
    target = 5 + picks(2, 5, below=11, seed=1)
    target[:, 0] = 2
    target[0, 2], target[1, 3] = 0, PAD
    return target


def _random_memory(length: int) -> Memory:
    visible = torch.tensor([length, length - 2])[:, None, None, None]
    return Memory(numbers(2, length, 6), torch.arange(length) < visible)


def _memory(memory: object) -> dict[str, Any]:
    """The two values of a memory; no mask is a mask that hides nothing."""
    if not isinstance(memory, Memory):
        raise TypeError(f"encode returns {type(memory).__name__}; expected Memory(states, mask)")
    mask = torch.ones(memory.states.shape[:2], dtype=torch.bool)[:, None, None]
    return {"states": memory.states, "mask": mask if memory.mask is None else memory.mask}


def future(results: Results) -> str | None:
    return _change(results, "after a changed last token", "A changed last token changes the others")


def padding(results: Results) -> str | None:
    return _change(results, "with more padding", "Two more words of padding change the result")


def _change(results: Results, what: str, sentence: str) -> str | None:
    """How much ``what`` changes the states or logits; the last position is left out."""
    for values in results.values():
        for name in ("states", "logits"):
            first, second = values.get(name), values.get(f"{name} {what}")
            if first is None or second is None or first.shape != second.shape or first.ndim < 3:
                continue
            change = abs(first - second)[:, :4].max()
            if not change < 1e-9:
                return f"{sentence} by {change:.3g}."
    return None


CHECK = Check(
    probes={
        "Transformer.encode": (one_source, padded_sources, given_source_mask),
        "Transformer.decode": (one_target, equal_lengths, padded_targets, given_target_mask),
        "Transformer.forward": (one_pair, batch, given_masks),
    },
    laws={
        "No position depends on a later token.": future,
        "Padding of the source changes nothing.": padding,
    },
)
