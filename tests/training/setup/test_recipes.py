"""``--recipe paper``: the paper's own training by one word."""

from glassformer.training.setup.options import TrainConfig
from glassformer.training.setup.recipe import choose

PAPER = {
    "norm": "post",
    "optimiser": "adam",
    "decay": "inverse-root",
    "anneal": 0.0,
    "clip": 0.0,
    "average": "last",
    "average_count": 5,
    "both_ways": 0.0,
    "joined_pairs": 0.0,
    "label_smoothing": 0.1,
    "rate_factor": 1.0,
}


def options(**given):
    return TrainConfig(pairs=("a.en", "a.de"), run="run", **given)


def test_the_data_choose_nothing_that_the_paper_says():
    settled, _ = choose(options(recipe="paper"), pairs=29_000, tokens=950_000)
    assert {name: getattr(settled, name) for name in PAPER} == PAPER


def test_options_beside_it_count():
    settled, _ = choose(options(recipe="paper", norm="pre", clip=0.5), pairs=29_000, tokens=950_000)
    assert (settled.norm, settled.clip, settled.anneal) == ("pre", 0.5, 0.0)


def test_a_settled_run_keeps_what_it_recorded():
    settled = options(recipe="paper", average="best")
    assert TrainConfig(**settled.model_dump()).average == "best"
    assert options().anneal == 0.3
