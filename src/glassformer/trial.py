"""Tries own parts on two random sentences, before they train or translate.

Training reads a whole target at once, and a search reads the target token by token. If the two
forms of an own part differ, training and translation are of two models, and no error says so.
"""

from dataclasses import fields
from functools import partial
from typing import Any

import torch
from torch import Tensor

from glassformer.data.batches import Batch, pad_rows
from glassformer.decoding.batched import DecodingSettings, Search, decode_sentences
from glassformer.decoding.constraints import ForcedPrefix, OutputRules, best_tokens
from glassformer.decoding.vocabulary import Vocabulary
from glassformer.model.forms import ModelParts
from glassformer.model.transformer import Transformer
from glassformer.parts import PLAIN, Parts

__all__ = ["try_parts"]

_MODEL = ("model", "decoder", *(field.name for field in fields(ModelParts)))
_TOLERANCE = 1e-3  # of the greatest number
_ROUNDINGS = 8  # by which a decoder in bfloat16 may differ, in place of the tolerance


def try_parts(model: Transformer, parts: Parts, *, training: bool = False) -> None:
    """Raise InputError, which names the parts, if own parts fail or if their forms differ.

    With ``training``, the function tries the losses too. The model ends in evaluation mode.
    """
    if not (parts.tried and parts.own):
        return
    batch = _batch(model, parts)
    with torch.no_grad():
        _try_steps(model.eval(), parts, batch)
        _try_searches(model, parts, batch.source[:, :1].repeat(1, 2))
    if training:
        _try_losses(model, parts, batch)


def _try_steps(model: Transformer, parts: Parts, batch: Batch) -> None:
    """A whole pass gives the logits of steps, in any order of the rows, and without padding."""
    source, target = batch.source, batch.target
    with parts.blamed("the translator", *_MODEL):
        whole, decoder, columns = model(source, target), parts.decoder(model), []
        state, rows = decoder.start(decoder.encode(source)), torch.arange(2, device=source.device)
        for tokens in target.T:  # after each step the rows change places, as in a beam
            logits, state = decoder.step(tokens[rows], state)
            columns.append(logits[rows])
            rows, state = rows.flip(0), state.select(rows.new_tensor([1, 0]))
        reason = "forward and step give other logits: write start, step and the state's select for"
        reason += " all that forward computes, and let no token read a later token"
        _require_near(torch.stack(columns, 1), whole, reason)
        alone = model(source[[1, 1], :2], target[[1, 1]])[0]
        _require_near(alone, whole[1], "padding beside a sentence changes its logits: use the mask")


def _try_searches(model: Transformer, parts: Parts, tokens: Tensor) -> None:
    """Each own search keeps the rules of its output, such as a forced prefix."""
    with parts.blamed("the search", "best_tokens"):
        logits = torch.eye(2, 7, device=tokens.device)
        values, expected = (form(logits, 3, (0,))[0] for form in (parts.best_tokens, best_tokens))
        _require_near(values, expected, "expected the greatest log-probabilities, best first")
    config: Any = model.config
    ids, prefixes = Vocabulary.of(config), tokens.tolist()
    settings = DecodingSettings(extra_length=1, device=tokens.device, vocabulary=ids)
    rules = partial(OutputRules, vocabulary=ids, best_tokens=parts.best_tokens)
    beam_search = partial(parts.beam_search, beam=2, n_best=1, length_penalty=0.6)
    searches: dict[str, Search] = {"greedy": parts.greedy, "beam_search": beam_search}
    for name in searches.keys() & parts.own.keys():
        with parts.blamed("the search", name):
            answers = decode_sentences(
                parts.decoder(model),
                prefixes,  # as sources too
                search=searches[name],
                rules=rules,
                constraints=[ForcedPrefix(prefixes, ids)],
                settings=settings,
            )
            begun = [[*getattr(beam[0], "tokens", ())[:2]] for beam in answers]
            reason = "expected a list of Hypothesis for each sentence, with each token chosen by"
            _require(begun == prefixes, f"{reason} rules.best, or a setting would change nothing")


def _try_losses(model: Transformer, parts: Parts, batch: Batch) -> None:
    """The losses are two sums; the package's losses are those of the own model's logits."""
    buffers = [(buffer, buffer.clone()) for buffer in model.buffers()]
    with parts.blamed("the training", "model"):
        kinds = ", ".join(sorted({str(weight.dtype)[6:] for weight in model.parameters()}))
        _require(kinds == "float32", f"its weights are {kinds}: training needs float32 weights")
    with parts.blamed("the training", "losses", *_MODEL):
        loss, unsmoothed = parts.losses(model.train(), batch, smoothing=0.1)
        scalars = loss.shape == unsmoothed.shape == () and loss.requires_grad
        _require(scalars, "expected two sums over the target tokens, the first with a gradient")
        for buffer, before in buffers:  # such as the moving mean of a norm
            buffer.copy_(before)
        source, target, labels = (
            x.repeat(2, 1) for x in (batch.source, batch.target, batch.labels)
        )
        twice = Batch(source, target, labels, 2 * batch.tokens, 2 * batch.target_tokens)
        with torch.no_grad():
            once, both = (parts.losses(model.eval(), x, smoothing=0.0)[1] for x in (batch, twice))
            _require_near(both, 2 * once, "twice the sentences must have twice the losses: add up")
            if "losses" not in parts.own:
                plain = PLAIN.losses(model, batch, smoothing=0.0)[1]
                _require_near(once, plain, "the loss is not that of the logits: give PLAIN.losses")


def _batch(model: Transformer, parts: Parts) -> Batch:
    """Two pairs of tokens, the second with padding."""
    with parts.blamed("the batch", "shift", "model"):
        config = model.config
        ids = {config.pad_id, config.unk_id, config.bos_id, config.eos_id, config.pad_of_source}
        size = min(config.source_vocab_size, config.target_vocab_size)
        a, b, *_ = (token for token in range(min(size, 99)) if token not in ids)
        source = pad_rows([[a, b, a, config.eos_id], [b, config.eos_id]], config.pad_of_source)
        labels = pad_rows([[b, a, config.eos_id], [b, config.eos_id]], config.pad_id)
        target = parts.shift(labels, config.bos_id)
        begun = target.shape == labels.shape and bool((target[:, 0] == config.bos_id).all())
        _require(begun, "expected the labels one place later, after the start symbol")
    return Batch(source, target, labels, tokens=11, target_tokens=5).to(model.output_weight.device)


def _require_near(found: Tensor, expected: Tensor, reason: str) -> None:
    tolerance = max(_TOLERANCE, _ROUNDINGS * torch.finfo(found.dtype).eps)
    margin = tolerance * max(1.0, float(expected.abs().max()))
    _require(torch.allclose(found.to(expected), expected, rtol=tolerance, atol=margin), reason)


def _require(holds: bool, reason: str) -> None:
    if not holds:
        raise ValueError(reason)
