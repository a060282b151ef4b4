"""A bundle of a tiny random model with tiny tokenizers, and the option ``--fast``."""

from pathlib import Path
from pkgutil import resolve_name
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from glassformer.bundle import Bundle, save_bundle
from glassformer.config import ModelConfig
from glassformer.data.tokenizer import train_tokenizer
from glassformer.model.transformer import Transformer

SOURCES = ["A dog runs across the grass.", "Two men sit in the snow; one sings.", "An old hat."] * 3
TARGETS = ["Ein Hund läuft über das Gras.", "Zwei Männer sitzen im Schnee.", "Ein alter Hut."] * 3

# With --fast, a test that calls one of these is skipped at the call.
SLOW = (
    ("subprocess:Popen", "__init__"),
    ("multiprocessing.process:BaseProcess", "start"),
    ("playwright.sync_api", "sync_playwright"),
    ("glassformer.training.loop:Trainer", "run"),
)


def pytest_addoption(parser):
    parser.addoption(
        "--fast", action="store_true", help="skip tests that start a process, browser or training"
    )


@pytest.fixture(scope="session", autouse=True)
def fast(request):
    if not request.config.getoption("fast"):
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        for owner, name in SLOW:
            reason = f"{owner}.{name} is not called with --fast"
            patch.setattr(
                resolve_name(owner), name, lambda *_, reason=reason, **__: pytest.skip(reason)
            )
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
