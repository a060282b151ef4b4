"""A quick form knows the package's own modules alone, and sees each change of a weight."""

import copy
from dataclasses import dataclass

import pytest
import torch
from torch import nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.nn import functional as F

from glassformer.model.attention import MultiHeadAttention, scaled_dot_product_attention
from glassformer.model.fast.decoder import PreparedTransformer
from glassformer.model.fast.dropout import ByteDropout
from glassformer.model.fast.stock import Stamp, check_stock
from glassformer.tools.inspection.capture import capture
from glassformer.training.optimiser import adam_of
from tests.own_parts import Rotary

SELF = "decoder.blocks.0.self_attention"


class LowRank(nn.Linear):
    """A stand-in for LoRA."""


@dataclass
class Slope:
    """An attention that is an object, and that has no hash."""

    slope: float = 2.0

    def __call__(self, query, key, value, mask):
        return scaled_dot_product_attention(self.slope * query, key, value, mask)


def low_rank(model):
    model.decoder.blocks[0].self_attention.sublayer.query = LowRank(14, 14).double()


def rotary(model):
    residual = model.decoder.blocks[0].self_attention
    own = Rotary(14, 2, attention=residual.sublayer.attention).double()
    own.load_state_dict(residual.sublayer.state_dict())
    residual.sublayer = own


def own_function(model):
    model.decoder.blocks[0].self_attention.sublayer.attention = Slope()


def own_activation(model):
    model.encoder.blocks[0].feed_forward.sublayer.activation = torch.tanh


def hook(model):
    model.decoder.blocks[0].feed_forward.register_forward_hook(lambda *run: 2 * run[-1])


def pre_hook(model):
    model.encoder.register_forward_pre_hook(lambda _, inputs: (2 * inputs[0], *inputs[1:]))


def shadowed(model):
    residual = model.decoder.blocks[0].self_attention
    residual.add = lambda x, output: residual.norm(x - 2 * output)


CHANGES = {
    low_rank: rf"{SELF}\.sublayer\.query is a .*test_stock\.LowRank",
    rotary: rf"{SELF}\.sublayer is a tests\.own_parts\.Rotary",
    own_function: rf"{SELF}\.sublayer has its own attention",
    own_activation: r"encoder\.blocks\.0\.feed_forward\.sublayer has its own activation",
    hook: r"decoder\.blocks\.0\.feed_forward has a hook",
    pre_hook: "encoder has a hook",
    shadowed: f"{SELF} is in a capture or has its own add",
}


def test_another_part_is_refused_in_one_line_that_names_it(build, subtests):
    """Also by a decoder that has read a source before."""
    for change, place in CHANGES.items():
        with subtests.test(change=change.__name__):
            model = build()
            fast, source = PreparedTransformer(model), torch.tensor([[5, 6]])
            check_stock(model, "a program")
            with torch.inference_mode():
                fast.encode(source)
            change(model)

            with pytest.raises(TypeError, match=f"^{place}, which a program does not know$"):
                check_stock(model, "a program")
            remedy = "which the fast decoder does not know: give parts with decoder=itself"
            with pytest.raises(TypeError, match=f"^{place}, {remedy}$"):
                fast.encode(source)


def test_the_plain_form_runs_another_part(build, sentences, subtests):
    source, token = sentences(5, 3), torch.tensor([2, 7])
    for change in CHANGES:
        with subtests.test(change=change.__name__), torch.inference_mode():
            model = build()
            before = two_steps(model, source, token)
            change(model)
            assert not two_steps(model, source, token).allclose(before, atol=1e-3)


def two_steps(form, source, token):
    """The logits of a second step: at the first, an attention has one key alone."""
    _, state = form.step(token, form.start(form.encode(source)))
    return form.step(token + 3, state)[0]


@pytest.mark.parametrize(
    "options", [{}, {"norm": "pre", "positions": "learned", "embedding_norm": True}], ids=str
)
def test_the_package_s_own_modules_are_stock(build, options):
    model = build(activation="gelu", **options)
    for part in model.modules():
        if isinstance(part, MultiHeadAttention):
            part.attention = scaled_dot_product_attention
    model.encoder.blocks[0].feed_forward.dropout = ByteDropout(0.1)

    check_stock(model, "a program")


def test_a_hook_that_is_gone_is_forgotten(build):
    model = build()
    handle = model.decoder.blocks[0].register_forward_hook(lambda *_: None)
    handle.remove()
    with capture(model.encoder) as seen:
        model.encode(torch.tensor([[5, 6]]))

    assert seen
    check_stock(model, "a program")


def zeroed(model):
    with torch.no_grad():
        model.decoder.blocks[0].cross_attention.sublayer.value.weight.zero_()


def zeroed_in_inference_mode(model):
    with torch.inference_mode():
        model.encoder.blocks[0].feed_forward.sublayer.inner.bias.zero_()


def loaded(model):
    state = {name: 1.5 * weight for name, weight in model.state_dict().items()}
    model.load_state_dict(state)


def loaded_by_assignment(model):
    state = {name: 1.5 * weight for name, weight in model.state_dict().items()}
    model.load_state_dict(state, assign=True)


def replaced(model):
    norm = model.decoder.blocks[1].feed_forward.norm
    norm.weight = nn.Parameter(2 * norm.weight.detach())


def given_other_data(model):
    weight = model.decoder.blocks[0].self_attention.sublayer.value.weight
    weight.data = 3 * weight.data


def stepped(model, optimiser=None):
    optimiser = optimiser or adam_of(list(model.parameters()))
    optimiser.param_groups[0]["lr"] = 0.1
    model(torch.tensor([[5, 6]]), torch.tensor([[2, 7]])).square().sum().backward()
    optimiser.step()


def stepped_by_sgd(model):
    stepped(model, torch.optim.SGD(model.parameters()))


def exchanged(model):
    model.decoder.blocks = model.decoder.blocks[::2]


def another_activation(model):
    model.decoder.blocks[0].feed_forward.sublayer.activation = F.gelu


def another_order(model):
    model.encoder.blocks[0].feed_forward.norm_first = True


def another_epsilon(model):
    model.encoder.blocks[0].feed_forward.norm.eps = 1.0


WEIGHTS = (
    *(zeroed, zeroed_in_inference_mode, loaded, loaded_by_assignment, replaced),
    *(given_other_data, stepped, stepped_by_sgd, exchanged),
    *(another_activation, another_order, another_epsilon),
)


def test_the_decoder_follows_each_change(build, sentences, subtests):
    source, token = sentences(5, 3), torch.tensor([2, 7])
    for change in WEIGHTS:
        with subtests.test(change=change.__name__):
            model = build()
            fast = PreparedTransformer(model)
            with torch.inference_mode():
                before = two_steps(fast, source, token)
            change(model)
            with torch.inference_mode():
                expected, found = (two_steps(form, source, token) for form in (model, fast))
            torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)
            assert not expected.allclose(before)


def test_weights_are_arranged_once_for_each_state(build, sentences):
    model, source = build(), sentences(5, 3)
    fast, rough = PreparedTransformer(model), PreparedTransformer(model, dtype=torch.bfloat16)
    with torch.inference_mode():
        for form in (fast, rough):
            form.start(form.encode(source))
    arranged = fast._arranged, rough._arranged
    with torch.inference_mode():
        for form in (fast, rough):
            form.start(form.encode(source))

    assert (fast._arranged, rough._arranged) == arranged
    assert rough._arranged._model is not model
    assert fast._arranged._model is model
    zeroed(model)
    with torch.inference_mode():
        fast.encode(source)
    assert fast._arranged is not arranged[0]


@pytest.mark.parametrize("stamped", [False, True])
def test_no_weight_gets_the_address_of_a_stamped_one(stamped):
    """Else the next of its size may get it, and looks like a weight that never changed."""
    layer = nn.Linear(8, 8)
    memory = StorageWeakRef(layer.weight.untyped_storage())
    stamp = Stamp(layer) if stamped else None

    layer.weight.data = torch.randn(8, 8)

    assert memory.expired() == (stamp is None)


def test_a_stamp_holds_while_nothing_changes(build):
    model = build()
    stamp = Stamp(model)
    with torch.inference_mode():
        model(torch.tensor([[5, 6]]), torch.tensor([[2, 7]]))

    assert stamp.holds(model)
    assert not stamp.holds(copy.deepcopy(model))
