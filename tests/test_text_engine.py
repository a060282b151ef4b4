"""Texts through an engine: order, empty lines, alternatives; the engine is a stub."""

from dataclasses import dataclass, field

import pytest
import torch

from glassformer.data.subword_training import train_tokenizer
from glassformer.decoding.batched import DecodingSettings
from glassformer.decoding.engine import SearchOptions, TorchEngine
from glassformer.decoding.protocols import Hypothesis
from glassformer.decoding.vocabulary import Vocabulary
from glassformer.parts import PLAIN
from glassformer.text_engine import TextEngine, Translation
from tests.tables import every

LINES = ["A dog runs.", "", "x", "  ", "An old hat and a dog", "hat"]


@dataclass
class Echo:
    """Echoes each source."""

    at_once: int = 3
    threads: int = 1
    jobs: list = field(default_factory=list)

    def decode(self, job, options):
        self.jobs.append([len(source) for source in job.sources])
        return [
            [Hypothesis(tuple(source), -1.0 - n, -1.0, True) for n in range(options.n_best)]
            for source in job.sources
        ]


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(["A dog runs.", "An old hat."] * 3, vocab_size=300)


def through(tokenizer, engine, windows, *, longest=200, **options):
    """The translations of each window."""
    texts = TextEngine(engine, tokenizer, tokenizer, longest=longest, room=250)
    return [texts.translate(window, SearchOptions(**options)) for window in windows]


@every("at_once", [1, 2, 3, 100])
@every("threads", [1, 2, 50])
def test_each_window_comes_back_whole_and_in_its_order(tokenizer, at_once, threads):
    windows = [LINES, [], ["dog"], LINES[::-1], [""]]

    translated = through(tokenizer, Echo(at_once, threads), windows)

    assert [[translation.text for translation in window] for window in translated] == windows


def test_a_window_goes_in_jobs_of_like_lengths(tokenizer):
    engine = Echo(at_once=2)

    through(tokenizer, engine, [["a", "a dog and a hat", "a hat", "a dog and a hut", "an"]])

    sizes = [max(job) for job in engine.jobs]
    assert [len(job) for job in engine.jobs] == [2, 2, 1]
    assert sizes == sorted(sizes, reverse=True)


def test_a_text_in_pieces_is_one_translation_with_the_mean_score(tokenizer):
    text = "A dog runs. An old hat. A dog. A hat."

    [translated] = through(tokenizer, Echo(), [[text]], longest=12, n_best=2)

    assert translated == [Translation(text, -1.0)]


@dataclass
class Beam:
    """Answers each source with these targets, a worse score for each."""

    targets: list
    at_once: int = 9
    threads: int = 1

    def decode(self, job, options):
        answer = [
            Hypothesis(tuple(ids), -float(n), 0.0, True) for n, ids in enumerate(self.targets)
        ]
        return [answer[: options.n_best]] * len(job.sources)


def alternatives(tokenizer, targets):
    [[best]] = through(tokenizer, Beam(targets), [["hat"]], n_best=len(targets), beam=len(targets))
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
    engine = TorchEngine(model, PLAIN, ids, DecodingSettings(vocabulary=ids))
    texts = TextEngine(engine, tokenizer, tokenizer, longest=200, room=250)
    for translation in texts.translate(["Monday", "A", "7"], SearchOptions(beam=beam)):
        assert translation.text
        assert translation.text == translation.text.strip()
