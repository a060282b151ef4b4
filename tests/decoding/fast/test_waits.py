"""A step of a quick search waits for the device once, and a beam again for targets that end.

On a CPU nothing waits, so the test counts the calls that would wait for a GPU.
"""

import math
from functools import partial
from itertools import pairwise

import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from glassformer.config import ModelConfig
from glassformer.decoding.batched import DecodingSettings, decode_sentences
from glassformer.decoding.constraints import OutputRules
from glassformer.decoding.fast.beam import beam_search
from glassformer.decoding.fast.greedy import greedy
from glassformer.decoding.fast.top_k import likeliest
from glassformer.model.fast.decoder import PreparedTransformer
from glassformer.model.transformer import Transformer
from glassformer.support.errors import InputError

READS = {"item", "tolist", "numpy", "cpu", "__bool__", "__int__", "__float__", "__index__"}
SHAPED_BY_VALUES = {"nonzero", "equal", "is_nonzero", "masked_select", "_local_scalar_dense"}
SEARCHES = {"greedy": greedy, "beam 5": partial(beam_search, beam=5, n_best=2)}


class Waits(TorchDispatchMode):
    """The operations whose result the host needs."""

    def __init__(self):
        super().__init__()
        self.names, self._reads = [], Reads(self)

    def __enter__(self):
        self._reads.__enter__()
        return super().__enter__()

    def __exit__(self, *error):
        super().__exit__(*error)
        self._reads.__exit__(*error)

    def __torch_dispatch__(self, function, types, arguments=(), named=None):
        name = function.overloadpacket.__name__
        indices = arguments[1] if name in ("index", "index_put_") else ()
        by_mask = any(each is not None and each.dtype == torch.bool for each in indices)
        if by_mask or (name in SHAPED_BY_VALUES and not self._reads.inside):
            self.names.append(name)
        return function(*arguments, **(named or {}))


class Reads(TorchFunctionMode):
    """The methods that copy a tensor's numbers to the host; on a CPU no operation shows them."""

    def __init__(self, waits):
        super().__init__()
        self.waits, self.inside = waits, False

    def __torch_function__(self, function, types, arguments=(), named=None):
        reads = function.__name__ in READS
        if reads:
            self.waits.names.append(function.__name__)
        self.inside = reads
        try:
            return function(*arguments, **(named or {}))
        finally:
            self.inside = False


def waits_of(search, sources):
    """The waits of each step of the search, and the rows of each step."""
    torch.manual_seed(1)
    sizes = {"d_model": 16, "num_heads": 2, "d_ff": 16}
    layers = {"num_encoder_layers": 1, "num_decoder_layers": 2}
    config = ModelConfig(source_vocab_size=40, target_vocab_size=40, **sizes, **layers)
    model, waits = PreparedTransformer(Transformer(config).eval()), Waits()
    rows, begins = [], []

    def watched(step, state, rules):
        def counted(tokens, state):
            rows.append(len(tokens))
            begins.append(len(waits.names))
            return step(tokens, state)

        with waits:
            return search(counted, state, rules)

    rules = partial(OutputRules, best_tokens=likeliest)
    settings = DecodingSettings(extra_length=9)
    decode_sentences(model, sources, search=watched, rules=rules, settings=settings)
    assert not SHAPED_BY_VALUES & set(waits.names)
    return [waits.names[begin:end] for begin, end in pairwise(begins)], rows


@pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)
def test_a_step_waits_once(search):
    waits, rows = waits_of(search, [[5, 6, 7, 8] * (length % 3 + 1) for length in range(9)])
    assert len(set(rows)) > 2, "sentences leave at several steps"
    for names in waits:
        if search is greedy:
            assert names == ["tolist"]
        else:  # a beam reads targets that end, and cut targets of sentences that leave
            assert names[0] == "numpy"
            assert set(names[1:]) <= {"tolist"}
    assert sum(map(len, waits)) < 2 * len(waits)


class NoState:
    def select(self, _rows):
        return self


@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)
def test_logits_without_a_distribution_are_an_error_of_any_step(search, value):
    def step(tokens, state):
        logits = torch.zeros(len(tokens), 9)
        logits[tokens == 5, 7] = value
        logits[:, 5] += 1
        return logits, state

    rules = OutputRules(torch.tensor([9, 9]), best_tokens=likeliest)
    with pytest.raises(InputError, match=r"NaN or \+inf as logits in rows \[0"):
        search(step, NoState(), rules)
