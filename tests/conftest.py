"""A bundle of a tiny random model with tiny tokenizers, and the option ``--fast``."""

from pathlib import Path
from types import SimpleNamespace

import jaxtyping
import numpy as np
import pytest
import torch
from hypothesis import settings

import tests.shapes  # before the package: it checks the shapes of what is loaded later

# isort: split
from glassformer.bundle import Bundle, save_bundle
from glassformer.config import ModelConfig
from glassformer.data.subword_training import train_tokenizer
from glassformer.model.transformer import Transformer
from tests.browser import chromium
from tests.fast import fast_part, is_slow
from tests.settings import draw_settings

SOURCES = ["A dog runs across the grass.", "Two men sit in the snow; one sings.", "An old hat."] * 3
TARGETS = ["Ein Hund läuft über das Gras.", "Zwei Männer sitzen im Schnee.", "Ein alter Hut."] * 3

settings.register_profile("quick", max_examples=25, deadline=None)
settings.register_profile("fast", max_examples=5, deadline=None)
# pytest --hypothesis-profile=nightly; its settings are in tests/settings.py
settings.register_profile("nightly", max_examples=500, deadline=None)
settings.load_profile("quick")


def pytest_addoption(parser):
    parser.addoption(
        "--fast", action="store_true", help="a part of every room, in about a minute of CPU"
    )
    parser.addoption(
        "--all-pairs", action="store_true", help="check every pair of mistakes, not a sample"
    )


def pytest_configure(config):
    if config.getoption("fast") and not config.getoption("--hypothesis-profile"):
        settings.load_profile("fast")
    worker = hasattr(config, "workerinput")  # it has the variables of the process that starts it
    if config.getoption("--hypothesis-profile") == "nightly" and not worker:
        draw_settings()


def pytest_runtest_setup():
    tests.shapes.calls.clear()


@pytest.fixture
def nightly(request):
    """A test that takes long, or looks where ``make test`` has looked: the nightly profile's."""
    if request.config.getoption("--hypothesis-profile") != "nightly":
        pytest.skip("only in the nightly profile")


def pytest_ignore_collect(collection_path, config):
    return (config.getoption("fast") and is_slow(collection_path)) or None


def pytest_collection_modifyitems(config, items):
    if config.getoption("fast"):
        items[:] = fast_part(items)


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory):
    """Conversions for CTranslate2 go into a cache of the tests' own, also those of subprocesses."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def bundle_directory(tmp_path_factory) -> Path:
    """The bundle's directory. Its two vocabularies differ, so that a mix-up of sides shows."""
    directory = tmp_path_factory.mktemp("bundle") / "en-de"
    source = train_tokenizer(SOURCES, vocab_size=310)
    target = train_tokenizer(TARGETS, vocab_size=330)
    torch.manual_seed(7)
    model = Transformer(
        ModelConfig(
            source_vocab_size=source.vocab_size,
            target_vocab_size=target.vocab_size,
            d_model=16,
            num_heads=2,
            d_ff=24,
            num_encoder_layers=1,
            num_decoder_layers=1,
            tying="none",
            output_bias=True,
        )
    )
    with torch.no_grad():
        for weight in model.parameters():  # bolder than at the start of a training, so that the
            weight.mul_(2.5)  # answers differ with the texts
        model.output_bias[target.eos_id] = 5.0
    save_bundle(Bundle(model.eval(), source, target, ("en", "de")), directory)
    return directory


@pytest.fixture(scope="module")  # its loop must have ended where another test wants one
def browser():
    """Chromium; where there is none, the test is skipped."""
    with chromium() as started:
        yield started


@pytest.fixture(scope="session")
def worked_sum():
    """Equation 1 for one query of a head, from a trace's own numbers: the oracle of the page."""

    def work(trace, part, layer, head, query):
        (attention,) = [one for one in trace.attention if (one.part, one.layer) == (part, layer)]
        queries, keys, values = (
            getattr(attention, name).array()[head].astype(np.float64)
            for name in ("query", "key", "value")
        )
        allowed = trace.masks.target[query] if part == "decoder" else trace.masks.source
        products = keys @ queries[query]
        scores = products / np.sqrt(keys.shape[1])
        exponentials = np.exp(np.where(allowed, scores, -np.inf))
        weights = exponentials / exponentials.sum()
        return SimpleNamespace(
            products=products,
            scores=scores,
            allowed=allowed,
            weights=weights,
            output=weights @ values,
        )

    return work


@pytest.fixture
def own_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the shape checker, as users run it: an error is the code's own."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


@pytest.fixture(scope="module")
def without_shape_types():
    """The same for all tests of a file: a learner's model is of other classes."""
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", before)
