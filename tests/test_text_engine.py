"""Texts through an engine: order, empty lines, and how far it reads ahead; the engine is a stub."""

from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest
import torch

from glassformer.data.tokenizer import train_tokenizer
from glassformer.decoding.engine import Future, SearchOptions, TorchEngine
from glassformer.decoding.protocols import Hypothesis, Vocabulary
from glassformer.parts import PLAIN
from glassformer.text_engine import TextEngine, Translation

LINES = ["A dog runs.", "", "x", "  ", "An old hat and a dog", "hat"]


@dataclass
class Echo:
    """Echoes each source; a job is done once `ahead` later jobs are submitted."""

    at_once: int = 3
    ahead: int = 0
    jobs: list = field(default_factory=list)
    answered: int = 0

    def submit(self, job, options):
        self.jobs.append([len(source) for source in job.sources])
        last = len(self.jobs) + self.ahead
        part = SimpleNamespace(done=lambda: len(self.jobs) >= last)
        return Future([part], lambda: self._hypotheses(job, options))

    def _hypotheses(self, job, options):
        self.answered += 1
        return [
            [Hypothesis(tuple(source), -1.0 - n, -1.0, True) for n in range(options.n_best)]
            for source in job.sources
        ]


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(["A dog runs.", "An old hat."] * 3, vocab_size=300)


def through(tokenizer, engine, windows, *, longest=200, **options):
    """Future after future of the windows' translations, each submitted when it is asked for."""
    texts = TextEngine(engine, tokenizer, tokenizer, longest=longest, room=250)
    return (texts.submit(window, SearchOptions(**options)) for window in windows)


@pytest.mark.parametrize("at_once", [1, 2, 3, 100])
@pytest.mark.parametrize("ahead", [0, 2, 50])
def test_each_window_comes_back_whole_and_in_its_order(tokenizer, at_once, ahead):
    windows = [LINES, [], ["dog"], LINES[::-1], [""]]

    futures = list(through(tokenizer, Echo(at_once, ahead), windows))

    assert [[translation.text for translation in future.result()] for future in futures] == [
        [text if text.strip() else "" for text in window] for window in windows
    ]


def test_a_window_goes_in_jobs_of_like_lengths(tokenizer):
    engine = Echo(at_once=2)

    list(through(tokenizer, engine, [["a", "a dog and a hat", "a hat", "a dog and a hut", "an"]]))

    sizes = [max(job) for job in engine.jobs]
    assert [len(job) for job in engine.jobs] == [2, 2, 1]
    assert sizes == sorted(sizes, reverse=True)


def test_a_result_is_there_before_anything_else_is_submitted(tokenizer):
    engine = Echo(ahead=50)
    future = next(through(tokenizer, engine, [["a", "hat"], ["dog"]]))

    assert not future.done()
    assert [translation.text for translation in future.result()] == ["a", "hat"]
    assert len(engine.jobs) == 1


def test_a_text_in_pieces_is_one_translation_with_the_mean_score(tokenizer):
    text = "A dog runs. An old hat. A dog. A hat."

    [future] = through(tokenizer, Echo(), [[text]], longest=12, n_best=2)

    assert future.result() == [Translation(text, -1.0)]


@dataclass
class Beam:
    """Answers each source with these targets, a worse score for each."""

    targets: list
    at_once: int = 9

    def submit(self, job, options):
        answer = [
            Hypothesis(tuple(ids), -float(n), 0.0, True) for n, ids in enumerate(self.targets)
        ]
        return Future([], lambda: [answer[: options.n_best]] * len(job.sources))


def alternatives(tokenizer, targets):
    [future] = through(tokenizer, Beam(targets), [["hat"]], n_best=len(targets), beam=len(targets))
    [best] = future.result()
    assert best.score == 0.0
    return best.text, [(other.text, other.score) for other in best.alternatives]


def test_alternatives_read_differently_and_are_not_blank(tokenizer):
    texts = ["A dog.", "A dog", "A  dog . ", " ", "", "A dog!", "a dog.", "A dog...", "a dog 。"]
    expected = [("A dog!", -5.0), ("a dog.", -6.0), ("A dog...", -7.0)]

    assert alternatives(tokenizer, tokenizer.encode_batch(texts)) == ("A dog.", expected)


def test_one_text_in_several_segmentations_is_one_alternative(tokenizer):
    hat = tokenizer.encode("hat")
    letters = [i for letter in "hat" for i in tokenizer.encode("\n" + letter)[2:]]
    letters = [tokenizer.encode("\n")[0], *letters]  # the space, then each letter by itself
    assert tokenizer.decode(letters) == "hat"
    assert letters != hat

    assert alternatives(tokenizer, [hat, letters, tokenizer.encode("dog")]) == (
        "hat",
        [("dog", -2.0)],
    )


def test_a_blank_best_is_kept(tokenizer):
    assert alternatives(tokenizer, tokenizer.encode_batch(["  ", "\n", "dog"])) == (
        "",
        [("dog", -2.0)],
    )


class Shy:
    """A model that would rather write white space and end than say its word."""

    def __init__(self, tokenizer, word):
        self.ranking = [
            *(index for index in sorted(tokenizer.blank_ids) if tokenizer.subword(index)[0] == "▁"),
            tokenizer.eos_id,
            *tokenizer.encode(word),
        ]
        self.vocab_size = tokenizer.vocab_size

    def encode(self, source):
        return source

    def start(self, _memory):
        return self

    def select(self, _rows):
        return self

    def step(self, tokens, state):
        logits = torch.full((len(tokens), self.vocab_size), -20.0)
        logits[:, self.ranking] = -torch.arange(float(len(self.ranking)))
        return logits, state


@pytest.mark.parametrize("beam", [1, 2, 5])
def test_no_translation_is_blank_or_begins_or_ends_with_a_space(beam):
    # Its subwords hold "▁" and "▁▁"; outer spaces are the source's to decide.
    tokenizer = train_tokenizer(["A  dog", "A  hat"] * 3, vocab_size=300)
    model = Shy(tokenizer, "hat")
    ids = Vocabulary.of(tokenizer)
    engine = TorchEngine(model, PLAIN, ids, ids, torch.device("cpu"))
    texts = TextEngine(engine, tokenizer, tokenizer, longest=200, room=250)
    for translation in texts.translate(["Monday", "A", "7"], SearchOptions(beam=beam)):
        assert translation.text
        assert translation.text == translation.text.strip()
