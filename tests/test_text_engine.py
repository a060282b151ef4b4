"""Texts through an engine: order, empty lines, and how far it reads ahead; the engine is a stub."""

from dataclasses import dataclass, field

import pytest

from glassformer.data.tokenizer import train_tokenizer
from glassformer.decoding.engine import SearchOptions
from glassformer.decoding.protocols import Hypothesis
from glassformer.text_engine import TextEngine, Translation, windows_of

LINES = ["A dog runs.", "", "x", "  ", "An old hat and a dog", "hat"]


@dataclass
class Echo:
    """Says what it reads; holds `ahead` jobs back before it answers the first."""

    at_once: int = 3
    ahead: int = 0
    jobs: list = field(default_factory=list)

    def decode(self, jobs, options):
        waiting = []
        for job in jobs:
            self.jobs.append([len(source) for source in job.sources])
            waiting.append(job)
            while waiting and (len(waiting) > self.ahead or not job.sources):
                yield self._said(waiting.pop(0), options)
        while waiting:
            yield self._said(waiting.pop(0), options)

    @staticmethod
    def _said(job, options):
        return [
            [Hypothesis(tuple(source), -1.0 - n, -1.0, True) for n in range(options.n_best)]
            for source in job.sources
        ]


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(["A dog runs.", "An old hat."] * 3, vocab_size=300)


def through(tokenizer, engine, windows, *, longest=200, **options):
    texts = TextEngine(engine, tokenizer, tokenizer, longest=longest, room=250)
    return texts.answers(((window, None) for window in windows), SearchOptions(**options))


def said(windows):
    return [[one.text for one in window] for window in windows]


@pytest.mark.parametrize("at_once", [1, 2, 3, 100])
@pytest.mark.parametrize("ahead", [0, 2, 50])
def test_each_window_comes_back_whole_and_in_its_order(tokenizer, at_once, ahead):
    windows = [LINES, [], ["dog"], LINES[::-1], [""]]

    found = said(through(tokenizer, Echo(at_once, ahead), windows))

    assert found == [[text if text.strip() else "" for text in window] for window in windows]


def test_a_window_goes_in_jobs_of_like_lengths(tokenizer):
    engine = Echo(at_once=2)

    list(through(tokenizer, engine, [["a", "a dog and a hat", "a hat", "a dog and a hut", "an"]]))

    sizes = [max(job) for job in engine.jobs]
    assert [len(job) for job in engine.jobs] == [2, 2, 1]
    assert sizes == sorted(sizes, reverse=True)


def test_a_file_is_read_only_as_far_ahead_as_the_engine_asks(tokenizer):
    """Nothing else holds lines: so a file of any size goes through in bounded memory."""
    read = 0

    def lines():
        nonlocal read
        for number in range(40_000):
            read += 1
            yield f"dog {number}"

    window = len(next(windows_of(lines())))
    read, answered, furthest = 0, 0, 0
    for found in through(tokenizer, Echo(at_once=1000, ahead=2), windows_of(lines())):
        furthest = max(furthest, read - answered)
        answered += len(found)

    assert answered == read == 40_000
    assert furthest <= 3 * (window + 1000)


def test_an_empty_window_brings_all_answers_before_it(tokenizer):
    reached = []

    def windows():
        for window in (["a"], ["hat"], [], ["dog"]):
            reached.append(window)
            yield window

    found = through(tokenizer, Echo(ahead=50), windows())

    assert [next(found)[0].text, next(found)[0].text] == ["a", "hat"]
    assert reached == [["a"], ["hat"], []]
    assert next(found) == []
    assert said(found) == [["dog"]]


def test_a_text_in_pieces_is_one_translation_with_the_mean_score(tokenizer):
    text = "A dog runs. An old hat. A dog. A hat."

    [[found]] = through(tokenizer, Echo(), [[text]], longest=12, n_best=2)

    assert found == Translation(text, -1.0)


def test_alternatives_are_those_after_the_best(tokenizer):
    [[found]] = through(tokenizer, Echo(), [["hat"]], n_best=3)

    assert [one.score for one in (found, *found.alternatives)] == [-1.0, -2.0, -3.0]


def test_windows_hold_about_64_ki_characters_and_all_lines():
    lines = ["", "x" * 70_000, *["y" * 999] * 131, "", ""]

    windows = list(windows_of(iter(lines)))

    assert [line for window in windows for line in window] == lines
    assert [len(window) for window in windows] == [2, 66, 65 + 2]
    assert list(windows_of([])) == []
