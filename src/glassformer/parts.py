"""The parts: the forms that a model is built from, searched and trained with.

:data:`PLAIN` is the record of the readable forms. :data:`FAST` computes equal sums quicker; a test
compares each field of ``PLAIN`` and ``FAST``. ``replace(PLAIN, attention=mine)`` puts in your own
form. ``Translator.load``, ``train`` and ``Transformer`` take such a record.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import partial

import torch

from glassformer.config import ModelConfig
from glassformer.data.batches import Shift, shift
from glassformer.decoding.fast.beam import beam_search as beam_search_of_batch
from glassformer.decoding.fast.greedy import greedy as greedy_of_batch
from glassformer.decoding.fast.top_k import likeliest
from glassformer.model.attention import fused_attention
from glassformer.model.fast.decoder import PreparedTransformer
from glassformer.model.fast.dropout import ByteDropout
from glassformer.model.forms import ModelParts
from glassformer.model.transformer import Transformer
from glassformer.support.displays import name_of
from glassformer.support.errors import InputError, UsageError
from glassformer.text_engine import DecodingParts, itself
from glassformer.training.fast.loss import projected_losses
from glassformer.training.fast.mixed_precision import working_copy
from glassformer.training.fast.muon import Muon
from glassformer.training.fast.packed import Packing
from glassformer.training.loss import Losses, batch_losses
from glassformer.training.optimiser import MixedPrecision, NewOptimiser, adam_of
from glassformer.training.schedule import NoamSchedule, noam_schedule

__all__ = ["FAST", "PLAIN", "Packing", "Parts", "check_own", "in_bfloat16", "itself"]


@dataclass(frozen=True, kw_only=True, repr=False)
class Parts(ModelParts, DecodingParts):
    """The functions and classes that build, run and train a model; the defaults are readable.

    ``model`` builds a Transformer from a configuration and these parts; the fields of
    :class:`ModelParts` make the layers. The fields of :class:`DecodingParts` decode with the model;
    all other fields train the model. If the options say so, ``muon`` updates the blocks' matrices,
    and ``optimiser`` all other weights. Without a ``mixed_precision``, training computes in
    float32. ``packing`` trains with packed batches. ``keep_memory`` keeps the memory that an update
    frees. ``tried=False`` leaves out the trial of own parts (:mod:`glassformer.trial`), for parts
    that are wrong on purpose.

    >>> from dataclasses import replace
    >>> replace(PLAIN, attention=fused_attention).own
    {}
    >>> replace(PLAIN, dropout=torch.nn.AlphaDropout).own
    {'dropout': 'AlphaDropout'}
    """

    model: "Callable[[ModelConfig, Parts], Transformer]" = Transformer
    shift: Shift = shift
    losses: Losses = batch_losses
    optimiser: NewOptimiser = adam_of
    muon: Callable[..., torch.optim.Optimizer] = Muon
    schedule: NoamSchedule = noam_schedule
    mixed_precision: MixedPrecision | None = None
    packing: type[Packing] | None = None
    keep_memory: bool = False
    tried: bool = True

    def __post_init__(self) -> None:
        for field in fields(self):
            part, default = getattr(self, field.name), field.default
            instance = isinstance(part, torch.nn.Module | torch.optim.Optimizer)
            form = callable(part) and (field.name == "losses" or not instance)
            flag = isinstance(default, bool)
            if not (isinstance(part, bool) if flag else form or part is default):
                wanted = "True or False" if flag else "a class or function, no instance"
                raise UsageError(f"{field.name} {type(part).__name__}: expected {wanted}")

    def build(self, config: ModelConfig) -> Transformer:
        """A new model of these forms."""
        with self.blamed("the model", *_LAYERS):
            return self.model(config, self)

    def packed(self, shape: Mapping[str, int]) -> Packing | None:
        """The packed batches of the shape that a run records; None for padded batches."""
        if shape and not self.packing:
            raise InputError("the run has packed batches, and these parts none: give its parts")
        return self.packing(**shape) if self.packing and shape else None

    @contextmanager
    def blamed(self, work: str, *names: str) -> Iterator[None]:
        """An error of own parts with these field names becomes an InputError of one line."""
        try:
            yield
        except InputError:
            raise
        except Exception as error:
            own = {field: name for field, name in self.own.items() if field in names}
            if not own:
                raise
            kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
            reason = " ".join(f"{work} fails with {_listed(own)}: {kind}{error}".split())
            if "argument" in reason:
                forms = [form for field in own if (form := getattr(PLAIN, field))]
                if ".forward()" in reason:
                    forms = [form.forward for form in forms if hasattr(form, "forward")]
                wanted = (", ".join(inspect.signature(form).parameters) for form in forms)
                reason += "".join(f": expected ({parameters})" for parameters in wanted)
            raise InputError(reason) from error

    @property
    def own(self) -> dict[str, str]:
        """The name of each part that comes from outside the package."""
        given = {field.name: name_of(getattr(self, field.name)) for field in fields(self)}
        return {
            field: name
            for field, (module, name) in given.items()
            if (module, name) not in (name_of(getattr(known, field)) for known in (PLAIN, FAST))
        }

    @property
    def own_model(self) -> dict[str, str]:
        """The names of the own parts that a trained model needs to run, so without dropout."""
        needed = {"model", *(field.name for field in fields(ModelParts))} - {"dropout"}
        return {field: name for field, name in self.own.items() if field in needed}


_LAYERS = (*(field.name for field in fields(ModelParts)), "model")
PLAIN = Parts()
FAST = replace(
    PLAIN,
    attention=fused_attention,
    dropout=ByteDropout,
    decoder=PreparedTransformer,
    parallel=True,
    best_tokens=likeliest,
    greedy=greedy_of_batch,
    beam_search=beam_search_of_batch,
    losses=projected_losses,
    mixed_precision=working_copy,
    packing=Packing,
    keep_memory=True,
)


def in_bfloat16(parts: Parts) -> Parts:
    """The parts with bfloat16 weights for decoding; UsageError for a decoder other than FAST's."""
    if parts.decoder is not PreparedTransformer:
        raise UsageError("quantization 'bfloat16': only the fast decoder has it: leave it out")
    return replace(parts, decoder=partial(PreparedTransformer, dtype=torch.bfloat16))


def check_own(recorded: Mapping[str, str], given: Mapping[str, str], subject: str) -> None:
    """Raise InputError unless the recorded names of own parts equal the given names."""
    if dict(recorded) == dict(given):
        return
    names, others = (_listed(own) or "the package's parts" for own in (recorded, given))
    raise InputError(f"{subject} {names}, now {others}: give parts of the same names")


def _listed(own: Mapping[str, str]) -> str:
    return ", ".join(f"{field} {name}" for field, name in own.items())
