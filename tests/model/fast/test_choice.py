"""The choice between the plain decoder and its fast twin."""

import pytest

from glassformer.model.attention import use_explicit_attention
from glassformer.model.fast.choice import DecoderChoice
from glassformer.model.fast.decoder import PreparedTransformer


@pytest.mark.parametrize("kind", ["register_forward_hook", "register_forward_pre_hook"])
def test_a_model_with_hooks_decodes_plainly(build, kind):
    model = build()
    assert isinstance(DecoderChoice(model)(), PreparedTransformer)
    handle = getattr(model.decoder.blocks[0], kind)(lambda *_: None)
    assert DecoderChoice(model)() is model
    handle.remove()
    assert isinstance(DecoderChoice(model)(), PreparedTransformer)


def test_a_model_with_a_replaced_sum_decodes_plainly(build):
    model = build()
    block = model.decoder.blocks[0].self_attention
    block.add = lambda *streams: streams[0]
    assert DecoderChoice(model)() is model


def test_a_model_of_explicit_attention_decodes_plainly(build):
    model = build()
    use_explicit_attention(model)
    assert DecoderChoice(model)() is model


def test_the_twin_is_made_once_for_each_choice(build):
    model = build().float()
    choice, rough = DecoderChoice(model), DecoderChoice(model, "bfloat16")
    assert choice() is choice()
    assert rough() is rough()
    assert rough()._model is not model
    assert choice()._model is model
