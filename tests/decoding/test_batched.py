"""Sentences through a model: a real class with padding and a cache, and its own arithmetic."""

import threading
import time
from dataclasses import dataclass, replace
from functools import partial

import pytest
import torch
from torch import Tensor, nn

from glassformer.decoding.batched import DecodingSettings, decode_sentences
from glassformer.decoding.beam import beam_search
from glassformer.decoding.constraints import ForcedPrefix
from glassformer.decoding.greedy import greedy
from glassformer.decoding.protocols import Hypothesis
from tests.tables import every

EMPTY = [Hypothesis((), 0.0, 0.0, finished=True)]


@dataclass(frozen=True)
class CopyState:
    source: Tensor
    place: int = 0

    def select(self, rows: Tensor) -> "CopyState":
        return replace(self, source=self.source[rows])


class Copy:
    """A model that says its source again, with some noise so that no two tokens are equal.

    It writes down the batches that it meets.
    """

    def __init__(self, vocab: int = 31) -> None:
        self.vocab = vocab
        self.met: list[list[list[int]]] = []
        seeded = torch.Generator().manual_seed(3)
        self.noise = torch.randn(7, vocab, vocab, generator=seeded, dtype=torch.float64)

    def encode(self, source: Tensor) -> Tensor:
        assert torch.is_inference_mode_enabled()
        self.met.append(source.tolist())
        return source

    def start(self, memory: Tensor) -> CopyState:
        return CopyState(memory)

    def step(self, tokens: Tensor, state: CopyState) -> tuple[Tensor, CopyState]:
        assert len(tokens) == len(state.source)
        last = (state.source != 0).sum(dim=1) - 1  # the end symbol's place
        place = last.clamp(max=state.place).unsqueeze(1)
        following = state.source.gather(1, place).squeeze(1)
        logits = 9.0 * nn.functional.one_hot(following, self.vocab)
        logits = logits + self.noise[state.place % 7, tokens]
        return logits, replace(state, place=state.place + 1)


SOURCES = [[4, 5, 6], [], [7], [8, 9, 10, 11, 12], [13, 14, 15], [], [16, 17]]


@every("search", [greedy, beam_search, partial(beam_search, beam=1)])
@every("max_tokens", [1, 150, 10_000])
def test_every_source_gets_its_own_answer_in_its_place(search, max_tokens):
    found = decode_sentences(
        Copy(), SOURCES, search=search, settings=DecodingSettings(max_tokens=max_tokens)
    )
    assert [list(one[0].tokens) for one in found] == SOURCES
    assert all(one[0].finished for one in found)
    assert found[1] == found[5] == EMPTY


def test_batches_are_sorted_padded_ended_and_within_the_budget():
    model = Copy()
    decode_sentences(
        model, SOURCES, search=greedy, settings=DecodingSettings(max_tokens=40, extra_length=10)
    )
    assert model.met == [
        [[8, 9, 10, 11, 12, 3]],  # 6 + 15 = 21; with one more 42
        [[4, 5, 6, 3], [13, 14, 15, 3]],  # 2 * (4 + 13) = 34; with one more 51
        [[16, 17, 3], [7, 3, 0]],  # 2 * (3 + 12) = 30
    ]


def test_the_batch_that_a_source_is_in_changes_nothing():
    search = partial(beam_search, beam=3, n_best=3)
    together = decode_sentences(Copy(), SOURCES, search=search)
    alone = [decode_sentences(Copy(), [source], search=search)[0] for source in SOURCES]
    assert together == alone


def test_batches_go_side_by_side_with_one_thread_of_torch_each():
    class Meeting(Copy):
        """Says nothing before there is another batch to say it with."""

        def encode(self, source: Tensor) -> Tensor:
            both.wait(timeout=60)
            threads.append(torch.get_num_threads())
            return super().encode(source)

    both, threads = threading.Barrier(2), []
    sources = [[4 + i % 9] * (1 + i % 5) for i in range(64)]
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        found = decode_sentences(
            Meeting(), sources, search=greedy, settings=DecodingSettings(cores=2)
        )
        assert threads == [1, 1]
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
    assert found == decode_sentences(Copy(), sources, search=greedy)


def test_few_sentences_are_not_divided():
    model = Copy()
    decode_sentences(model, SOURCES, search=greedy, settings=DecodingSettings(cores=2))
    assert len(model.met) == 1


def test_after_a_fault_no_further_batch_begins():
    class Broken(Copy):
        def step(self, tokens: Tensor, state: CopyState) -> tuple[Tensor, CopyState]:
            time.sleep(0.02)
            raise RuntimeError(f"broken at {state.place} with {len(tokens)}")

    model = Broken()
    with pytest.raises(RuntimeError, match="broken at 0 with 1"):
        decode_sentences(
            model, [[4]] * 500, search=greedy, settings=DecodingSettings(cores=2, max_tokens=60)
        )
    assert len(model.met) < 100


def test_after_a_fault_a_batch_that_runs_ends_within_a_step():
    class HalfBroken(Copy):
        """Breaks in the batch of the long source, and never ends those of the others."""

        def step(self, tokens: Tensor, state: CopyState) -> tuple[Tensor, CopyState]:
            both.wait(timeout=60) if state.place == 0 else time.sleep(0.01)
            if state.source.shape[1] > 2:
                raise RuntimeError("broken")
            steps.append(state.place)
            logits = torch.eye(self.vocab)[torch.full_like(tokens, 4)]
            return logits, replace(state, place=state.place + 1)

    both, steps = threading.Barrier(2), []
    sources = [[5, 6]] * 32 + [[5]] * 32
    two_batches = DecodingSettings(cores=2, extra_length=10_000, max_tokens=1_000_000)
    with pytest.raises(RuntimeError, match="broken"):
        decode_sentences(HalfBroken(), sources, search=greedy, settings=two_batches)
    assert len(steps) < 1_000


def test_nothing_to_do_does_not_meet_the_model():
    model = Copy()
    assert decode_sentences(model, [], search=greedy) == []
    assert decode_sentences(model, [[], []], search=greedy) == [EMPTY, EMPTY]
    assert model.met == []


def test_the_longest_target_is_the_source_and_the_extra_length():
    class Chatter(Copy):
        def step(self, tokens: Tensor, state: CopyState) -> tuple[Tensor, CopyState]:
            return torch.eye(self.vocab)[torch.full_like(tokens, 4)], state

    eleven = DecodingSettings(extra_length=11)
    found = decode_sentences(Chatter(), [[5, 6, 7], [5]], search=greedy, settings=eleven)
    assert [len(one[0].tokens) for one in found] == [14, 12]
    forced = ForcedPrefix([[9, 9], []])
    found = decode_sentences(
        Chatter(), [[5, 6, 7], [5]], search=greedy, settings=eleven, constraints=[forced]
    )
    assert [len(one[0].tokens) for one in found] == [16, 12]
    found = decode_sentences(
        Chatter(),
        [[5] * 20, [5]],
        search=greedy,
        settings=DecodingSettings(max_length_ratio=1.5, extra_length=30),
    )
    assert [len(one[0].tokens) for one in found] == [40, 11]


@pytest.mark.parametrize("max_tokens", [1, 10_000])
def test_prefixes_go_with_their_sentences(max_tokens):
    prefixes = [[20], [21], [], [22, 23], [24, 25, 26], [], [16]]
    found = decode_sentences(
        Copy(),
        SOURCES,
        search=greedy,
        settings=DecodingSettings(max_tokens=max_tokens),
        constraints=[ForcedPrefix(prefixes)],
    )
    expected = [[*p, *s[len(p) :]] if s else [] for p, s in zip(prefixes, SOURCES, strict=True)]
    assert [list(one[0].tokens) for one in found] == expected


def test_a_module_in_training_mode_is_an_error():
    class Module(Copy, nn.Module):
        def __init__(self) -> None:
            nn.Module.__init__(self)
            Copy.__init__(self)

    with pytest.raises(ValueError, match=r"training mode: call model\.eval\(\)"):
        decode_sentences(Module(), SOURCES, search=greedy)
    assert len(decode_sentences(Module().eval(), SOURCES, search=greedy)) == len(SOURCES)
