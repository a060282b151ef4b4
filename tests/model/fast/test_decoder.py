"""The form for speed against the plain one: the same logits, whatever a search does to the rows."""

from functools import partial

import pytest
import torch

from glassformer.decoding.beam import beam_search
from glassformer.decoding.constraints import OutputRules
from glassformer.decoding.greedy import greedy
from glassformer.decoding.sampling import sample
from glassformer.model.cache import DecoderState
from glassformer.model.fast.decoder import PreparedTransformer, _attend
from tests.tables import every

VARIANTS = [
    {},
    {"norm": "pre", "tying": "none", "output_bias": True},
    {"positions": "learned", "position_offset": 2, "embedding_norm": True, "activation": "gelu"},
    {"position_layout": "halves", "scale_embeddings": False, "activation": "swish"},
    {"num_decoder_layers": 1, "tying": "target"},
]
LENGTHS = (11, 3, 7, 1, 5)
CLOSE = partial(torch.testing.assert_close, rtol=0, atol=1e-10)


@pytest.fixture(autouse=True)
def no_gradients():
    with torch.inference_mode():
        yield


@every("options", VARIANTS)
@every("lengths", [LENGTHS, (7, 7), (5, 0)])
def test_each_step_gives_the_logits_of_the_whole_pass(build, sentences, options, lengths):
    model = build(**options)
    source, target = sentences(*lengths), sentences(*[11] * len(lengths), seed=4)
    fast = PreparedTransformer(model)
    memory, plain = fast.encode(source), model.encode(source)
    state, logits = fast.start(memory), []
    for tokens in target.unbind(1):
        row, state = fast.step(tokens, state)
        logits.append(row)
    CLOSE(torch.stack(logits, 1), model(source, target))
    assert memory.mask.equal(plain.mask)
    real = plain.mask[:, 0, 0]
    CLOSE(memory.states[real], plain.states[real])
    assert state.length == 11


class Both:
    """A state of each form that a search treats alike; every step compares their logits."""

    def __init__(self, model, fast, states):
        self.model, self.fast, self.states = model, fast, states

    def select(self, rows):
        return Both(self.model, self.fast, [state.select(rows) for state in self.states])

    def select_beams(self, rows, **options):
        quick, plain = self.states
        quick = quick.select_beams(rows, **options)
        return Both(self.model, self.fast, [quick, plain.select(rows.flatten())])

    def step(self, tokens):
        logits, quick = self.fast.step(tokens, self.states[0])
        expected, plain = self.model.step(tokens, self.states[1])
        CLOSE(logits, expected)
        assert isinstance(plain, DecoderState)
        assert quick.length == plain.length
        return expected, Both(self.model, self.fast, [quick, plain])


def begun(model, source):
    fast = PreparedTransformer(model)
    states = [fast.start(fast.encode(source)), model.start(model.encode(source))]
    return Both(model, fast, states)


@every("seed", range(3))
@every("lengths", [LENGTHS, (7, 7, 7)])
def test_any_history_gives_the_same_logits(build, sentences, seed, lengths):
    """Beams change places and number, sentences leave and split, and old states are taken up."""
    model, draw = build(num_decoder_layers=1), torch.Generator().manual_seed(seed)

    def chance(below, *shape):
        return torch.randint(below, shape, generator=draw)

    both = begun(model, sentences(*lengths))
    known = [(both, len(lengths), 1)]  # with its sentences and width
    for _ in range(25):
        both, count, width = known[-1] if chance(4, 1) else known[chance(len(known), 1)]
        if chance(3, 1):
            owners = torch.arange(count)
            if not chance(4, 1):
                owners = chance(count, int(chance(2 * count, 1)) + 1)
            wider = width if chance(3, 1) else int(chance(5, 1)) + 1
            rows = owners[:, None] * width + chance(width, len(owners), wider)
            all_stay = owners.equal(torch.arange(count)) and bool(chance(4, 1))
            both = both.select_beams(rows, all_stay=all_stay)
            count, width = len(owners), wider
        _, both = both.step(4 + chance(19, count * width))
        known.append((both, count, width))


@pytest.mark.parametrize(
    "search",
    [
        greedy,
        partial(beam_search, beam=5, n_best=5),
        partial(sample, n_best=3, generator=torch.Generator()),
    ],
)
def test_the_searches_meet_the_same_logits(build, sentences, search):
    """The maximum lengths end some sentences before others."""
    both = begun(build(num_decoder_layers=1), sentences(*LENGTHS))
    found = search(
        lambda tokens, state: state.step(tokens),
        both,
        OutputRules(torch.tensor([27, 5, 17, 18, 2])),
    )
    assert max(len(one.tokens) for answer in found for one in answer) > 8


def test_float32_is_equal_to_five_digits(build, sentences):
    model, source = build().float(), sentences(*LENGTHS)
    fast = PreparedTransformer(model)
    quick, plain = fast.start(fast.encode(source)), model.start(model.encode(source))
    for tokens in sentences(*[19] * 5, seed=4).unbind(1):
        logits, quick = fast.step(tokens, quick)
        expected, plain = model.step(tokens, plain)
        torch.testing.assert_close(logits, expected, rtol=1e-5, atol=1e-5)


def test_bf16_rounds_and_leaves_the_model_as_it_was(build, sentences):
    model, source = build().float(), sentences(*LENGTHS)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    fast = PreparedTransformer(model, dtype=torch.bfloat16)
    tokens = torch.full((5,), 2)
    logits, _ = fast.step(tokens, fast.start(fast.encode(source)))
    expected, _ = model.step(tokens, model.start(model.encode(source)))
    assert logits.dtype == torch.bfloat16
    error = (logits.float() - expected).abs().max() / expected.abs().max()
    assert 0 < error < 0.05
    for name, value in model.state_dict().items():
        assert value.dtype == torch.float32
        assert value.equal(before[name])


@pytest.mark.parametrize("masked", [False, True])
def test_attention_of_one_sentence_is_the_same_as_among_others(masked):
    query, key, value = torch.randn(3, 5, 7, 24).double().unbind()
    mask = torch.randn(5, 1, 3, 7).double() if masked else None
    together = _attend(query[:, :3], key, value, mask, heads=3)
    for row in range(5):
        one = slice(row, row + 1)
        own = None if mask is None else mask[one]
        alone = _attend(query[one, :3], key[one], value[one], own, heads=3)
        torch.testing.assert_close(alone, together[one])


def test_many_sentences_in_bf16_are_read_as_few_are(build, sentences):
    """They are attended to in another way: the difference is rounding."""
    fast = PreparedTransformer(build().float(), dtype=torch.bfloat16)
    source, tokens = sentences(*[9] * 40), sentences(*[6] * 40, seed=4)
    parts = [slice(first, first + 10) for first in range(0, 40, 10)]
    many, few = fast.start(fast.encode(source)), [fast.start(fast.encode(source[p])) for p in parts]
    for column in tokens.unbind(1):
        logits, many = fast.step(column, many)
        steps = [fast.step(column[p], state) for p, state in zip(parts, few, strict=True)]
        few = [state for _, state in steps]
        apart = (logits - torch.cat([part for part, _ in steps])).abs().max()
        assert apart < 0.05 * logits.abs().max()


def test_no_rows_and_no_more_positions(build, sentences):
    fast = PreparedTransformer(build(max_length=5))
    state = fast.start(fast.encode(sentences(3, 5)))
    none = torch.tensor([], dtype=torch.long)
    assert fast.step(none, state.select(none))[0].shape == (0, 23)
    for tokens in sentences(5, 5, seed=4).unbind(1):
        _, state = fast.step(tokens, state)
    with pytest.raises(ValueError, match="6 tokens is longer than the 5 positions by 1"):
        fast.step(torch.tensor([7, 7]), state)


def test_a_model_in_training_mode_is_refused(build, sentences):
    fast = PreparedTransformer(build().train())
    with pytest.raises(ValueError, match=r"training mode: call model\.eval\(\) before"):
        fast.encode(sentences(3))
