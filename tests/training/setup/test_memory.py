"""A batch on a GPU: no larger than the GPU's memory holds."""

from glassformer.training.setup import start
from glassformer.training.setup.memory import tokens_that_fit
from glassformer.training.setup.options import TrainConfig
from glassformer.training.setup.prepare import prepare

FILES = {"pairs": ("a", "b"), "run": "run"}


def test_more_memory_holds_more_tokens_of_a_batch():
    config = TrainConfig(**FILES, preset="base", vocab_size=8_000)
    fewer, more = (
        tokens_that_fit(config, 3_000_000_000 + 96 * 512 * 6 * tokens) for tokens in (0, 1000)
    )
    assert 5_000 < fewer == more - 1000
    assert tokens_that_fit(config, 1) == 16
    assert tokens_that_fit(config, 0) > 10**9  # no GPU: no limit


def test_a_small_gpu_gets_smaller_batches_and_says_so(config, notes, monkeypatch):
    options = {"preset": None, "batch_tokens": None}
    for free, smaller in ((0, False), (10**12, False), (3_000_000, True)):
        monkeypatch.setattr(start, "free_memory", lambda _, free=free: free)
        notes.clear()
        settled = prepare(config(run=config().run / str(free), **options), note=notes.append).config
        line = f"batch tokens {settled.batch_tokens:,}: the GPU's free memory holds no more"
        assert (settled.batch_tokens < 4096) == smaller
        assert (line in notes) == smaller
        assert sum(note.startswith("batch tokens") for note in notes) == 1
    given = config(run=config().run / "given", batch_tokens=4096)
    assert prepare(given).config.batch_tokens == 4096
