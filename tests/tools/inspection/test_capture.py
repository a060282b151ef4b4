import subprocess
import sys
from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from torch import nn

from glassformer.config import ModelConfig
from glassformer.decoding.sampling import Sampling
from glassformer.model.attention import (
    MultiHeadAttention,
    fused_attention,
    scaled_dot_product_attention,
)
from glassformer.model.transformer import Transformer
from glassformer.parts import FAST, PLAIN
from glassformer.support.errors import UsageError
from glassformer.tools.inspection.capture import capture, twin
from tests.own_parts import Rotary, colder, kernel, rebuilt, rotary

SOURCE = torch.tensor([[5, 6, 7, 8, 3], [9, 4, 3, 0, 0]])
TARGET = torch.tensor([[2, 7, 11], [2, 5, 0]])


def build(**options):
    torch.manual_seed(5)
    sizes = {"d_model": 14, "num_heads": 2, "d_ff": 19, "dropout": 0.0}
    layers = {"num_encoder_layers": 2, "num_decoder_layers": 3}
    vocabulary = {"source_vocab_size": 23, "target_vocab_size": 23}
    return Transformer(ModelConfig(**(vocabulary | sizes | layers | options))).double().eval()


@pytest.fixture(params=["post", "pre"])
def model(request):
    return build(norm=request.param)


STOCK = (scaled_dot_product_attention, fused_attention)


def left_behind(model: nn.Module) -> list[str]:
    """The modules in which something of a capture is left."""
    return [
        name
        for name, module in model.named_modules()
        if "add" in vars(module)
        or module._forward_hooks
        or vars(module).get("attention", STOCK[0]) not in STOCK
    ]


def test_every_sublayer_is_named_by_its_path(model):
    with capture(model) as seen:
        model(SOURCE, TARGET)
    attentions = [f"encoder.blocks.{i}.self_attention" for i in range(2)]
    for i in range(3):
        attentions += [f"decoder.blocks.{i}.{kind}_attention" for kind in ("self", "cross")]
    assert [name for name, _ in seen.attention_maps()] == attentions
    assert set(seen) == {*attentions} | {
        f"{stack}.blocks.{i}.feed_forward"
        for stack, count in (("encoder", 2), ("decoder", 3))
        for i in range(count)
    }
    assert all(len(seen[name].calls) == 1 for name in seen)


def test_weights_are_those_of_with_weights(model):
    with capture(model) as seen:
        model(SOURCE, TARGET)
    real = (SOURCE != 0)[:, None, None, :]
    block = model.decoder.blocks[1].cross_attention
    query = seen["decoder.blocks.1.cross_attention"].input
    query = block.norm(query) if block.norm_first else query
    memory = model.encode(SOURCE).states
    expected = block.sublayer.with_weights(query, memory, memory, real)[1]
    weights = seen["decoder.blocks.1.cross_attention"].weights
    assert weights.shape == (2, 2, 3, 5)
    torch.testing.assert_close(weights, expected)
    assert weights[1, :, :, 3:].eq(0).all()
    assert seen["decoder.blocks.0.self_attention"].weights.triu(1).eq(0).all()


def test_streams_connect(model):
    with capture(model) as seen:
        model(SOURCE, TARGET)
    for stack, kinds in (
        ("encoder", ("self_attention", "feed_forward")),
        ("decoder", ("self_attention", "cross_attention", "feed_forward")),
    ):
        path = [seen[f"{stack}.blocks.{i}.{kind}"] for i in range(2) for kind in kinds]
        for before, after in pairwise(path):
            assert torch.equal(before.output, after.input)
    last = seen["decoder.blocks.2.feed_forward"].output
    torch.testing.assert_close(model.project(model.decoder.norm(last)), model(SOURCE, TARGET))


def test_outputs_are_equal_inside_and_identical_after(model):
    before = model(SOURCE, TARGET)
    with capture(model):
        inside = model(SOURCE, TARGET)
    torch.testing.assert_close(inside, before)
    assert torch.equal(model(SOURCE, TARGET), before)
    assert left_behind(model) == []


def test_nothing_is_left_after_an_error(model):
    with pytest.raises(ValueError, match="outside the vocabulary"), capture(model) as seen:
        model(SOURCE, TARGET + 20)
    assert left_behind(model) == []
    assert [name.split(".")[0] for name, _ in seen.attention_maps()] == ["encoder"] * 2


def test_nothing_is_recorded_after_the_context(model):
    with capture(model) as seen:
        model(SOURCE, TARGET)
    model(SOURCE, TARGET)
    assert {len(sublayer.calls) for sublayer in seen.values()} == {1}


def test_each_decoding_step_is_a_call(model):
    with capture(model) as whole:
        model(SOURCE, TARGET)
    with capture(model) as stepped:
        state = model.start(model.encode(SOURCE))
        for tokens in TARGET.T:
            _, state = model.step(tokens, state)
    assert len(stepped["encoder.blocks.1.feed_forward"].calls) == 1
    for kind in ("self", "cross"):
        name = f"decoder.blocks.2.{kind}_attention"
        calls = stepped[name].calls
        assert len(calls) == 3
        for step, call in enumerate(calls):
            # Row 0 only: row 1 ends before the last step.
            row = whole[name].weights[0, :, step : step + 1, : call.attended.weights.size(-1)]
            torch.testing.assert_close(call.attended.weights[0], row)
        assert stepped[name].weights is calls[-1].attended.weights


def test_gradients_reach_the_weights():
    model = build()
    with capture(model) as seen:
        logits = model(SOURCE, TARGET)
    weights = seen["encoder.blocks.0.self_attention"].weights
    (gradient,) = torch.autograd.grad(logits.square().sum(), weights)
    assert gradient.abs().sum() > 0


def test_dropout_of_the_weights_acts_inside_too():
    model = build(attention_dropout=0.9).train()
    attention = model.encoder.blocks[0].self_attention
    x = torch.randn(2, 5, 14, dtype=torch.float64)
    with capture(model) as seen:
        outputs = torch.stack([attention.add(x, attention.sublayer(x, x, x)) for _ in range(4)])
    assert outputs.std(dim=0).max() > 0.1
    weights = seen["encoder.blocks.0.self_attention"].weights
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(2, 2, 5, dtype=torch.float64))


def test_a_second_capture_is_refused_and_harms_nothing():
    model = build()
    with capture(model) as seen:
        with pytest.raises(RuntimeError, match="open already"), capture(model.encoder):
            pass
        model(SOURCE, TARGET)
    assert len(seen["encoder.blocks.0.self_attention"].calls) == 1
    assert left_behind(model) == []
    with capture(model.encoder) as again:
        model(SOURCE, TARGET)
    assert again["blocks.1.self_attention"].weights.shape == (2, 2, 5, 5)


def test_wrong_names_and_calls_are_clear():
    model = build()
    with capture(model) as seen:
        model.encode(SOURCE)
    with pytest.raises(KeyError, match=r"did you mean 'encoder\.blocks\.1\.self_attention'"):
        seen["encoder.block.1.self_attention"]
    with pytest.raises(ValueError, match=r"decoder\.blocks\.0\.feed_forward has not run"):
        _ = seen["decoder.blocks.0.feed_forward"].output
    with pytest.raises(ValueError, match=r"blocks\.0\.feed_forward has no attention weights"):
        _ = seen["encoder.blocks.0.feed_forward"].weights
    with pytest.raises(ValueError, match=r"MultiHeadAttention has no residual .*with_weights\(q"):
        capture(MultiHeadAttention(4, 2)).__enter__()


def test_scores_before_and_after_the_mask_lead_to_the_weights(model):
    with capture(model) as seen:
        model(SOURCE, TARGET)
    block = model.decoder.blocks[1].self_attention
    one = seen["decoder.blocks.1.self_attention"]
    stream = block.norm(one.input) if block.norm_first else one.input
    query, key = (
        part(stream).reshape(2, 3, 2, 7).transpose(1, 2)
        for part in (block.sublayer.query, block.sublayer.key)
    )
    expected = torch.einsum("bhqd,bhkd->bhqk", query, key) / 7**0.5
    torch.testing.assert_close(one.attended.scores, expected)
    seen_by_first = one.attended.mask[0]
    assert torch.equal(seen_by_first, torch.ones(1, 3, 3, dtype=torch.bool).tril())
    masked = one.attended.scores[0].masked_fill(~seen_by_first, -torch.inf)
    torch.testing.assert_close(masked.softmax(-1), one.weights[0])


def test_what_is_added_explains_what_comes_out(model):
    with capture(model) as seen:
        model(SOURCE, TARGET)
    residuals = dict(model.named_modules())
    for name, one in seen.items():
        summed = one.input + one.added
        expected = summed if residuals[name].norm_first else residuals[name].norm(summed)
        torch.testing.assert_close(one.output, expected)


@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize("parts", [PLAIN, replace(FAST, decoder=PLAIN.decoder)], ids="PF")
def test_a_translator_is_seen_text_by_text_while_it_decodes(beginner, parts, beam):
    """In the order of the texts, whatever their lengths; a line is a segment of its own."""
    translator = replace(beginner(), parts=parts)
    texts = ["A dog runs.", "Two men sit in the grass\nA dog", "", "x", "A dog runs."]
    alone = translator.translate(texts, beam=beam)
    with capture(translator.model) as seen:
        inside = translator.translate(texts, beam=beam)
    assert [one.text for one in inside] == [one.text for one in alone]
    segments = [segment for row in translator.segments(texts) for segment in row]
    assert seen.texts == [segment.text for segment in segments]
    read = seen["encoder.blocks.1.self_attention"].calls
    for call, segment in zip(read, segments, strict=True):
        assert call.text == segment.text
        assert call.attended.weights.shape[-1] == len(segment.ids) + 1
    written = seen["decoder.blocks.1.cross_attention"].calls
    assert list(dict.fromkeys(call.text for call in written)) == list(dict.fromkeys(seen.texts))
    assert {call.attended.weights.size(2) for call in written} == {1}
    assert max(call.input.size(0) for call in written) == beam
    assert left_behind(translator.model) == []
    assert translator.translate(texts, beam=beam) == alone
    assert [one.text for one in beginner().translate(texts, beam=beam)] == [t.text for t in alone]


def test_scores_and_links_are_seen_text_by_text(beginner):
    translator = replace(beginner(), parts=PLAIN)
    texts = ["A dog runs in the grass.", "x", "Two men"]
    expected = translator.score(texts, texts)
    with capture(translator.model) as seen:
        assert translator.score(texts, texts) == pytest.approx(expected, abs=1e-4)
    calls = seen["encoder.blocks.0.self_attention"].calls
    assert [call.text for call in calls] == seen.texts == texts
    lengths = [len(ids) + 1 for ids in translator.source_tokenizer.encode_batch(texts)]
    assert [call.attended.weights.shape[-1] for call in calls] == lengths
    with capture(translator.model) as seen:
        translator.model(SOURCE, TARGET)
    assert {call.text for call in seen["encoder.blocks.0.self_attention"].calls} == {None}


def test_draws_of_several_texts_are_refused_inside(beginner):
    """One after another, they would be other draws."""
    translator = replace(beginner(), parts=PLAIN)
    drawn = translator.translate(["A dog runs."], sampling=Sampling(seed=3))
    with capture(translator.model):
        assert translator.translate(["A dog runs."], sampling=Sampling(seed=3)) == drawn
        with pytest.raises(UsageError, match=r"^sampling: inside a capture, draw for one"):
            translator.translate(["A dog runs.", "x"], sampling=Sampling(seed=3))


def test_the_fast_forms_of_a_translator_are_refused_inside(beginner):
    translator = beginner()
    line = (
        r"^encoder\.blocks\.0\.self_attention is in a capture or has its own add, which the fast"
        " decoder does not know: give parts with decoder=itself$"
    )
    with capture(translator.model) as seen:
        translator.model.encode(SOURCE)
        with pytest.raises(TypeError, match=line):
            translator.translate(["A dog runs."])
    assert seen["encoder.blocks.1.feed_forward"].calls
    assert translator.translate(["A dog runs."])


def test_a_context_in_which_nothing_ran_ends_in_one_line():
    model = build()
    line = r"^capture saw no run of this model: if a translator .* parts=glassformer\.PLAIN\)$"
    with pytest.raises(RuntimeError, match=line), capture(model):
        build()(SOURCE, TARGET)
    assert left_behind(model) == []
    with pytest.raises(KeyError, match="my own"), capture(model):
        raise KeyError("my own")


OWN = {"plain": PLAIN, "fast": FAST, "colder": replace(PLAIN, attention=colder)}


@pytest.mark.parametrize("parts", OWN.values(), ids=OWN)
def test_one_s_own_attention_is_recorded_with_its_weights(parts):
    """A subclass, and a function: neither is exchanged for the package's."""
    model = rebuilt(build(), replace(parts, model=rotary))
    block = model.encoder.blocks[0].self_attention
    before = model(SOURCE, TARGET)

    with capture(model) as seen:
        inside = model(SOURCE, TARGET)

    torch.testing.assert_close(inside, before, rtol=0, atol=1e-12)
    assert inside.equal(before) or parts is FAST  # whose kernel the plain form stands for
    assert not inside.allclose(rebuilt(model, PLAIN)(SOURCE, TARGET))
    one = seen["encoder.blocks.0.self_attention"]
    heads = block.sublayer.split(block.sublayer.value(one.input))
    read = block.sublayer.output(block.sublayer.merge(one.weights @ heads))
    torch.testing.assert_close(read, one.added)
    if parts.attention is not colder:  # queries and keys are the turned ones
        masked = one.attended.scores.masked_fill(~one.attended.mask, -torch.inf)
        torch.testing.assert_close(masked.softmax(-1), one.weights)
    mask = one.attended.mask
    output, weights = block.sublayer.with_weights(one.input, mask=mask)
    torch.testing.assert_close(weights, one.weights)
    torch.testing.assert_close(output, one.added)
    assert type(block.sublayer) is Rotary
    assert block.sublayer.attention is parts.attention


def test_an_attention_without_weights_is_one_line_and_its_model_stays():
    model = rebuilt(build(), replace(PLAIN, attention=kernel))
    with pytest.raises(ValueError, match="kernel returns None for the weights"), capture(model):
        model(SOURCE, TARGET)
    assert model.encoder.blocks[0].self_attention.sublayer.attention is kernel
    assert "add" not in vars(model.encoder.blocks[0].self_attention)


def test_an_attention_that_calls_no_function_has_no_weights_to_see():
    class Itself(MultiHeadAttention):
        def attend(self, _query, _keys, values, _mask=None):
            return self.output(self.merge(values))

    model = build()
    model.encoder.blocks[1].self_attention.sublayer = Itself(14, 2).double()
    with capture(model) as seen:
        model.encode(SOURCE)
    assert seen["encoder.blocks.1.self_attention"].added.shape == (2, 5, 14)
    assert [name for name, _ in seen.attention_maps()] == ["encoder.blocks.0.self_attention"]
    with pytest.raises(ValueError, match=r"blocks\.1\.self_attention has no attention weights"):
        _ = seen["encoder.blocks.1.self_attention"].weights


def test_a_training_step_is_seen_and_is_the_same_afterwards():
    model = build(dropout=0.3).train()

    def gradients() -> list[torch.Tensor]:
        torch.manual_seed(11)
        model.zero_grad()
        model(SOURCE, TARGET).square().sum().backward()
        return [weight.grad.clone() for weight in model.parameters()]

    before = gradients()
    with capture(model) as seen:
        inside = gradients()
    assert all(len(one.calls) == 1 for one in seen.values())
    for first, second, third in zip(before, inside, gradients(), strict=True):
        torch.testing.assert_close(first, second)
        assert torch.equal(first, third)


def test_importing_the_module_changes_no_bit():
    program = """
import sys
import torch
from glassformer.config import ModelConfig
from glassformer.model.transformer import Transformer
def run():
    torch.manual_seed(3)
    model = Transformer(ModelConfig(source_vocab_size=23, target_vocab_size=23, d_model=16,
        num_heads=2, d_ff=24, num_encoder_layers=1, num_decoder_layers=1, attention_dropout=0.2))
    logits = model(torch.tensor([[5, 6, 3]]), torch.tensor([[2, 7]]))
    logits.sum().backward()
    return [logits, *(weight.grad for weight in model.parameters())]
before = run()
assert not any(name.startswith("glassformer.tools.inspection") for name in sys.modules)
import glassformer.tools.inspection.trace.build
print(all(map(torch.equal, before, run())))
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (run.returncode, run.stdout) == (0, "True\n"), run.stderr


def test_a_twin_shares_the_weights_and_nothing_else(model):
    other = twin(model)
    with (
        pytest.raises(RuntimeError, match="capture saw no run of this model"),
        capture(other) as seen,
    ):
        expected = model(SOURCE, TARGET)
    assert not any(one.calls for one in seen.values())
    assert left_behind(model) == []
    assert torch.equal(other(SOURCE, TARGET), expected)
    shared = dict(model.named_parameters())
    assert all(weight is shared[name] for name, weight in other.named_parameters())
    assert other.output_weight is other.source_embedding.weight
