"""The forms: each quick one gives the plain one's numbers, and one's own are named and kept."""

import re
from dataclasses import dataclass, fields, replace
from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from glassformer.config import ModelConfig
from glassformer.data.batches import Batch
from glassformer.decoding.batched import decode_sentences
from glassformer.model.attention import MultiHeadAttention, fused_attention
from glassformer.model.blocks import ACTIVATIONS, FeedForward, ResidualBlock
from glassformer.model.decoder import DecoderBlock
from glassformer.model.fast.decoder import PreparedTransformer
from glassformer.model.fast.dropout import ByteDropout
from glassformer.model.forms import PAPER
from glassformer.model.positions import PositionalEncoding
from glassformer.model.transformer import Transformer
from glassformer.parts import (
    FAST,
    PLAIN,
    Packing,
    Parts,
    check_own,
    in_bfloat16,
)
from glassformer.support.errors import InputError, UsageError
from tests.own_parts import OWN, Rotary, colder, rotary, warmer
from tests.tables import every

FIELDS = [field.name for field in fields(Parts)]
SIZES = {"d_model": 14, "num_heads": 2, "d_ff": 19, "num_encoder_layers": 2}
SIZES |= {"num_decoder_layers": 3, "source_vocab_size": 23, "target_vocab_size": 23}
SOURCE = torch.tensor([[5, 6, 7, 8, 3], [9, 4, 3, 0, 0]])
IDS = [[5, 6, 7], [9, 4], [8] * 9]
TARGET = torch.tensor([[2, 7, 11], [2, 5, 0]])
CLOSE = partial(torch.testing.assert_close, rtol=0, atol=1e-10)


def built(parts: Parts = PLAIN, **options: object) -> Transformer:
    """A float64 model in evaluation mode; no weight is left at its first value."""
    torch.manual_seed(7)
    config = ModelConfig(**SIZES, **({"dropout": 0.0} | options))
    model = parts.model(config, parts).double().eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight += 0.1 * torch.randn_like(weight)
    return model


def attention(plain, fast):
    torch.manual_seed(1)
    shapes = (2, 3, 5, 11), (2, 3, 7, 11), (2, 3, 7, 13)
    inputs = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]
    mask = torch.rand(2, 3, 5, 7) < 0.5
    mask[1, 2, 4] = False  # a query that may attend to nothing
    for seen in (None, mask, mask[:, :1, :1], mask[0, 0]):
        results = []
        for form in (plain, fast):
            output, _ = form(*inputs, seen)
            results.append([output, *torch.autograd.grad(output.square().sum(), inputs)])
        for first, second in zip(*results, strict=True):
            CLOSE(second, first)


def dropout(plain, fast):
    """In share, mean and gradient; tests/model/fast/test_dropout.py has the rest."""
    x = torch.full((1 << 20,), 2.0, requires_grad=True)
    for form in (plain, fast):
        torch.manual_seed(0)
        made = form(0.25)  # 64 of the 256 values of a byte
        out = made(x)
        (gradient,) = torch.autograd.grad(out.sum(), x)
        assert (out == 0).double().mean().item() == pytest.approx(0.25, abs=0.003)
        assert out.mean().item() == pytest.approx(2, abs=0.02)
        assert gradient.equal(out.detach() / 2)
        assert made.eval()(x).equal(x)


def decoder(plain, fast):
    model = built()
    for search in (FAST.greedy, partial(FAST.beam_search, beam=3, n_best=3)):
        with torch.inference_mode():
            alike(*(decode_sentences(form(model), IDS, search=search) for form in (plain, fast)))


def alike(ours, theirs):
    """The same hypotheses, with the same scores but for rounding."""
    for one, other in zip(ours, theirs, strict=True):
        assert [each.tokens for each in one] == [each.tokens for each in other]
        scores = [each.score for each in other]
        assert [each.score for each in one] == pytest.approx(scores, abs=1e-9)


def greedy(plain, fast):
    """tests/decoding/fast/test_searches.py has the rest."""
    results = [decode_sentences(built(), IDS, search=form) for form in (plain, fast)]
    alike(*results)


def beam_search(plain, fast):
    """tests/decoding/fast/test_searches.py has the rest."""
    searches = [partial(form, beam=3, n_best=3) for form in (plain, fast)]
    alike(*(decode_sentences(built(), IDS, search=search) for search in searches))


def parallel(plain, fast):
    """One core or several: tests/decoding/test_batched.py compares their translations."""
    assert (plain, fast) == (False, True)


def best_tokens(plain, fast):
    """tests/decoding/fast/test_top_k.py has the rest."""
    logits = torch.randn(70, 2003, generator=torch.Generator().manual_seed(3)).double()
    for count, never in ((1, ()), (10, (0, 4)), (3000, (1,))):
        (values, ids), (found, its) = (form(logits, count, never) for form in (plain, fast))
        CLOSE(found, values)
        if count <= 10:  # the order of equal ones, such as the forbidden, is free
            assert its.equal(ids)


def losses(plain, fast):
    """tests/training/fast/test_loss.py has the rest."""
    labels = torch.tensor([[7, 11, 3], [5, 3, 0]])
    batch = Batch(SOURCE, TARGET, labels, 13, 5)
    for options in ({}, {"tying": "none", "output_bias": True}):
        model, results = built(**options), []
        for form in (plain, fast):
            loss, unsmoothed = form(model, batch, smoothing=0.1)
            assert not unsmoothed.requires_grad
            gradients = torch.autograd.grad(loss / 3, [*model.parameters()])
            results.append([loss, unsmoothed, *gradients])
        for first, second in zip(*results, strict=True):
            CLOSE(second, first)


def mixed_precision(_, fast):
    """Near: tests/training/fast/test_mixed_precision.py has the rest."""
    model = built(FAST).float().train()
    batch = Batch(SOURCE, TARGET, torch.tensor([[7, 11, 3], [5, 3, 0]]), 13, 5)
    gradients = []
    for computed_with in (model, fast(model)[0]):
        FAST.losses(computed_with, batch, smoothing=0.1)[0].backward()
        gradients.append(torch.cat([weight.grad.flatten() for weight in model.parameters()]))
        model.zero_grad()
    assert 0 < (gradients[1] - gradients[0]).norm() < 0.05 * gradients[0].norm()


def packing(plain, fast):
    """tests/training/fast/test_packed.py compares packed and padded updates."""
    assert (plain, fast) == (None, Packing)


def keep_memory(plain, fast):
    """The same numbers; tests/training/test_malloc.py counts the pages."""
    assert (plain, fast) == (False, True)


CASES = {
    "attention": attention,
    "dropout": dropout,
    "decoder": decoder,
    "parallel": parallel,
    "best_tokens": best_tokens,
    "greedy": greedy,
    "beam_search": beam_search,
    "losses": losses,
    "mixed_precision": mixed_precision,
    "packing": packing,
    "keep_memory": keep_memory,
}


@pytest.mark.parametrize("field", FIELDS)
def test_each_fast_form_equals_its_plain_form(field):
    plain, fast = getattr(PLAIN, field), getattr(FAST, field)
    if plain is fast:
        return
    assert field in CASES, f"{field}: FAST has another form; show here that it gives the same"
    CASES[field](plain, fast)


def test_the_fields_that_fast_exchanges():
    quick = {name for name in FIELDS if getattr(FAST, name) != getattr(PLAIN, name)}
    assert quick == CASES.keys()


@pytest.mark.parametrize("options", [{}, {"embedding_norm": True}], ids=str)
def test_a_model_has_the_forms_of_its_parts_and_the_same_weights(options):
    """Each dropout too, with the share of its place."""
    shares = {"dropout": 0.1, "activation_dropout": 0.2, "attention_dropout": 0.3}
    plain, fast = (built(parts, **shares, **options) for parts in (PLAIN, FAST))

    kinds = {type(module) for module in plain.modules()} ^ {type(one) for one in fast.modules()}
    assert kinds == {nn.Dropout, ByteDropout}
    pairs = list(zip(plain.modules(), fast.modules(), strict=True))
    dropouts = [pair for pair in pairs if isinstance(pair[0], nn.Dropout)]
    assert {(one.p, two.p) for one, two in dropouts} >= {(0.1, 0.1), (0.2, 0.2)}
    assert all(one.p == two.p for one, two in dropouts)
    for parts, model in ((PLAIN, plain), (FAST, fast)):
        attentions = [one for one in model.modules() if isinstance(one, MultiHeadAttention)]
        assert {one.attention for one in attentions} == {parts.attention}
        assert {one.dropout for one in attentions} == {0.3}
    assert plain.state_dict().keys() == fast.state_dict().keys()
    CLOSE(fast(SOURCE, TARGET), plain(SOURCE, TARGET))


def test_a_model_of_no_parts_has_the_plain_forms():
    """One set of defaults: the leaves', the model's and PLAIN's."""
    model, leaf = Transformer(ModelConfig(**SIZES)), MultiHeadAttention(14, 2)

    assert leaf.attention is model.encoder.blocks[0].self_attention.sublayer.attention
    assert leaf.attention is PLAIN.attention
    assert type(model.encoder.blocks[0].feed_forward.dropout) is PLAIN.dropout
    assert all(getattr(PAPER, each.name) is getattr(PLAIN, each.name) for each in fields(PAPER))


# The names in a block, or in the model, where an own form of each field stands.
PLACES = {
    "norm": r".*norm",
    "positions": r"(source|target)_positions",
    "self_attention": r".*self_attention\.sublayer",
    "cross_attention": r".*cross_attention\.sublayer",
    "feed_forward": r".*feed_forward\.sublayer",
    "residual": r"(en|de)coder\.blocks\.\d\.\w+",
}


@given(st.sets(st.sampled_from([*OWN])), st.sampled_from(["post", "pre"]))
def test_own_layers_stand_in_all_their_places_and_in_no_other(names, norm):
    own = {name: OWN[name] for name in sorted(names)}
    parts = replace(PLAIN, **own)
    model = built(parts, norm=norm)

    for field, pattern in PLACES.items():
        where = {
            name
            for name, part in model.named_modules()
            if re.fullmatch(pattern, name) and type(part) is not nn.Identity
        }
        form = getattr(parts, field)
        assert where
        assert {type(model.get_submodule(name)) for name in where} == {form}
        if field in own and field != "self_attention" and field != "cross_attention":
            assert {name for name, part in model.named_modules() if type(part) is form} == where
    attentions = [each for each in model.modules() if isinstance(each, MultiHeadAttention)]
    assert {each.attention for each in attentions} == {parts.attention}
    assert parts.own_model.keys() == names
    assert model.state_dict().keys() == built(norm=norm).state_dict().keys()
    # One step gives a column of the whole pass; the quick decoder refuses each of them.
    logits, state = model(SOURCE, TARGET[:, :2]), model.start(model.encode(SOURCE))
    for place in range(2):
        step, state = model.step(TARGET[:, place], state)
        CLOSE(step, logits[:, place])
    # A block alone has them as well.
    block = DecoderBlock(14, 2, 19, norm=norm, parts=parts)
    kinds = {type(module) for module in model.decoder.blocks[0].modules()}
    assert {type(module) for module in block.modules()} == kinds
    assert block.self_attention.sublayer.attention is parts.attention
    if names:
        with pytest.raises(TypeError, match="which the fast decoder does not know: give parts"):
            FAST.decoder(model).encode(SOURCE)


def test_one_s_own_parts_are_named():
    class Mine(Transformer):
        pass

    @dataclass
    class Slope:
        slope: float = 2.0

        def __call__(self, query, key, value, mask):
            return colder(self.slope * query, key, value, mask)

    assert PLAIN.own == FAST.own == replace(FAST, attention=PLAIN.attention).own == {}
    assert replace(PLAIN, attention=colder).own == {"attention": "colder"}
    own = replace(FAST, model=Mine, losses=lambda *_: None, attention=Slope()).own
    assert {field: name.split("<locals>.")[1] for field, name in own.items()} == {
        "attention": "Slope",
        "model": "Mine",
        "losses": "<lambda>",
    }
    warm = partial(PLAIN.attention, dropout=0.5)
    assert replace(PLAIN, attention=warm).own == {
        "attention": "scaled_dot_product_attention with dropout=0.5"
    }


def test_a_trained_model_needs_its_attention_and_its_class():
    parts = replace(PLAIN, attention=colder, model=rotary, losses=lambda *_: None, dropout=nn.Tanh)

    assert parts.own.keys() == {"attention", "model", "losses", "dropout"}
    assert parts.own_model == {
        "attention": "colder",
        "model": "rotary",
    }


@every("parts", [PLAIN, FAST, PAPER])
def test_parts_show_themselves_by_names(parts):
    shown = repr(replace(parts, attention=colder, dropout=partial(nn.AlphaDropout, p=0.5)))
    assert " at 0x" not in shown
    assert shown.startswith(f"{type(parts).__name__}(")
    assert "attention=colder, dropout=AlphaDropout with p=0.5, norm=LayerNorm, " in shown
    assert all(f"{field.name}=" in shown for field in fields(parts))


def test_a_partial_is_named_alike_in_each_process():
    """An address in memory would be another one there."""

    class Scale:
        """Its text has an address."""

    made = partial(FeedForward, new_dropout=lambda share: nn.Dropout(share))
    assert replace(PLAIN, feed_forward=made).own["feed_forward"].endswith("<lambda>")
    for value in (Scale(), nn.Tanh(), torch.nn.functional.gelu, MultiHeadAttention, 2.5):
        name = replace(PLAIN, losses=partial(print, sep=value)).own["losses"]
        assert " at 0x" not in name
        assert name == f"print with sep={value if value == 2.5 else name.partition('=')[2]}"


@given(
    st.sampled_from(["gelu", "swish"]),
    st.sampled_from(["pre", "post"]),
    st.floats(0.25, 0.75),
)
def test_the_settings_of_a_partial_are_kept(activation, norm, share):
    """The configuration, and the record of the parts, set only what a partial leaves open."""
    parts = replace(
        PLAIN,
        self_attention=partial(MultiHeadAttention, attention=colder, dropout=share),
        norm=partial(nn.LayerNorm, eps=share),
        feed_forward=partial(FeedForward, activation=activation, dropout=share),
        residual=partial(ResidualBlock, norm=norm, dropout=share),
        positions=partial(PositionalEncoding, kind="learned"),
    )
    model = built(parts)
    for block in (model.decoder.blocks[1], DecoderBlock(14, 2, 19, parts=parts)):
        network, attention = block.feed_forward.sublayer, block.self_attention.sublayer
        assert network.activation is ACTIVATIONS[activation]
        assert (network.dropout.p, attention.dropout) == (share, share)
        assert attention.attention is colder
        assert block.cross_attention.sublayer.attention is PLAIN.attention
        assert block.feed_forward.norm.eps == share
        assert block.feed_forward.norm_first == (norm == "pre")
        assert block.feed_forward.dropout.p == share
    assert "source_positions.table" in model.state_dict()


@pytest.mark.parametrize("batch", [1, 2, 3])
@pytest.mark.parametrize(
    "attention",
    [
        lambda _query, _key, value, _mask=None: value,
        lambda _query, _key, value, _mask=None: (value, None, None),
        lambda *_: None,
    ],
    ids=["output", "three", "none"],
)
def test_an_attention_without_its_weights_is_refused(attention, batch):
    own = MultiHeadAttention(14, 2, attention=attention)
    for call in (own, own.with_weights):
        with pytest.raises(TypeError, match=r"attention <lambda> returned a .*: expected its out"):
            call(torch.randn(batch, 3, 14))


def test_other_names_than_the_recorded_are_refused_in_one_line():
    mine = {"attention": "colder"}
    check_own({}, {}, "it has")
    check_own(mine, dict(mine), "it has")
    for recorded, offered, line in (
        (mine, {}, "it has attention colder, now the package's parts: give parts"),
        ({}, mine, "it has the package's parts, now attention colder: give parts"),
        (mine, {"model": "a.B"}, "it has attention colder, now model a.B: give"),
    ):
        with pytest.raises(InputError) as raised:
            check_own(recorded, offered, "it has")
        assert str(raised.value).startswith(line)
        assert str(raised.value).endswith("of the same names")


def test_only_the_fast_decoder_rounds():
    model = built().float()
    rough = in_bfloat16(FAST).decoder(model)
    with torch.inference_mode():
        logits, _ = rough.step(TARGET[:, 0], rough.start(rough.encode(SOURCE)))
    assert isinstance(rough, PreparedTransformer)
    assert logits.dtype == torch.bfloat16
    assert replace(in_bfloat16(FAST), decoder=FAST.decoder) == FAST
    for parts in (PLAIN, replace(FAST, decoder=PLAIN.decoder)):
        with pytest.raises(UsageError, match="'bfloat16': only the fast decoder has it: leave"):
            in_bfloat16(parts)


def test_a_new_model_is_made_by_the_parts_alone():
    config = ModelConfig(**SIZES)
    parts = replace(PLAIN, model=rotary, attention=warmer)

    model = parts.model(config, parts)

    block = model.decoder.blocks[2]
    assert type(block.self_attention.sublayer) is Rotary
    assert type(block.cross_attention.sublayer) is MultiHeadAttention
    assert block.self_attention.sublayer.attention is warmer
    assert block.cross_attention.sublayer.attention is warmer
    assert model.config is config
    assert type(FAST.model(config, FAST)) is Transformer


def test_parts_are_a_value():
    assert replace(PLAIN, attention=FAST.attention) != PLAIN
    assert replace(PLAIN, attention=PLAIN.attention) == PLAIN
    with pytest.raises(TypeError, match="positional"):
        Parts(fused_attention)
