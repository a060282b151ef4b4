"""The model and the search of a page, beside Python's plain ones with the same rounded weights."""

import base64
import random
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from glassformer.bundle import Bundle
from glassformer.decoding.beam import beam_search, penalty
from glassformer.decoding.constraints import ForcedPrefix, OutputRules
from glassformer.decoding.greedy import greedy
from glassformer.decoding.protocols import Hypothesis
from glassformer.decoding.vocabulary import Vocabulary
from glassformer.tools.inspection.scoring import log_probabilities
from glassformer.tools.web.living_page import rounded
from tests.node import node
from tests.tables import every
from tests.tools.web.engine.models import MODELS, random_model

pytestmark = pytest.mark.usefixtures("without_shape_types")  # they take most of the time

CLOSE = 1e-4
SCRIPT = """
import { beamSearch, OutputRules } from "./engine/search.js";
import { Transformer } from "./engine/transformer.js";
import { Weights } from "./engine/weights.js";

async function run({ config, weights, sources, target, searches }, wasm) {
  const read = Weights.read(new Uint8Array(Buffer.from(weights, "base64")), { wasm });
  const model = new Transformer(read, config);
  const memories = sources.map((source) => model.encode([...source, config.eos_id]));
  const logits = memories.map((memory) => {
    const whole = model.project(model.decode(target, memory));
    let state = model.start(memory);
    const steps = target.map((token) => {
      const [next, following] = model.step([token], state);
      state = following;
      return [...next.data];
    });
    return { whole: whole.list.map((row) => [...row]), steps };
  });
  const found = [];
  for (const { prefix, blank, forced, beam, most, alpha, longest } of searches) {
    const rules = new OutputRules(config, { prefix, blank: new Set(blank) }, forced);
    const settings = { rules, start: config.bos_id, longest, alpha, beam, most };
    const step = (tokens, state) => model.step(tokens, state);
    for (const memory of memories) {
      const { hypotheses } = await beamSearch(step, model.start(memory), settings);
      found.push(hypotheses.map(({ ids, ends, score }) => ({ ids, ends, score })));
    }
  }
  return { path: read.store.products.path, logits, found };
}

export default async (models) => {
  const answers = [];
  for (const model of models) answers.push([await run(model, true), await run(model, false)]);
  return answers;
};
"""


def settings(*, beam: int = 5, alpha: float = 0.6, **others: Any) -> dict[str, Any]:
    plain = {"prefix": [], "blank": [], "forced": [], "longest": 11}
    return {"beam": beam, "most": beam, "alpha": alpha, **plain, **others}


SEARCHES = {
    "greedy": settings(beam=1),
    "beam": settings(),
    "the best alone": settings(most=1, alpha=1.5),
    "longer and better": settings(beam=2, most=1, alpha=3.0, longest=30),
    "no penalty": settings(beam=3, alpha=0.0),
    "wider than the vocabulary": settings(beam=15, most=4),
    "a prefix of all targets": settings(prefix=[9, 4]),
    "white space": settings(blank=[8, 10, 12, 13, 14, 15, 16, 17]),
    "a forced prefix": settings(forced=[10, 12, 10]),
    "a forced end": settings(beam=2, forced=[10, "end"]),
    "forced, after a prefix": settings(prefix=[6], forced=[6, 13], beam=1),
    "one step": settings(longest=1, beam=2),
}
ALL_SEARCHES = ("post", "pre", "start is end")  # the others have the first two
CASES = [
    *((name, "int8") for name in MODELS),
    *((name, "float16") for name in ("odd sizes", "learned positions")),
    *((name, "float32") for name in ("odd sizes", "learned positions")),
]
each_model = every("case", CASES)
TWO_STATES = ("a pair of numbers", "int8")  # of a LayerNorm of two numbers: all targets are ties


@each_model
def test_logits_are_pythons(case):
    given = compared()[case]
    eos = given.model.config.eos_id
    for place, source in enumerate(given.sources):
        expected = given.model(torch.tensor([[*source, eos]]), torch.tensor([given.target]))[0]
        for run in given.runs:
            for form in ("whole", "steps"):
                found = torch.tensor(run["logits"][place][form])
                assert (found - expected).abs().max() < CLOSE, (run["path"], form, source)


@each_model
def test_webassembly_and_javascript_give_equal_bits(case):
    wasm, plain = compared()[case].runs
    assert (wasm["path"], plain["path"]) == ("WebAssembly", "JavaScript")
    assert wasm | {"path": ""} == plain | {"path": ""}


@every("case", [case for case in CASES if case != TWO_STATES])
def test_searches_find_pythons_targets(case):
    given = compared()[case]
    pairs = [(search, source) for search in given.searches for source in given.sources]
    expected = [each for search in given.searches for each in python_search(given, search)]
    ties = []  # of equal probability, but for the last bits
    for (search, source), ours, theirs in zip(pairs, given.runs[0]["found"], expected, strict=True):
        assert len(ours) == len(theirs)
        for found, wanted in zip(ours, theirs, strict=True):
            assert found["score"] == pytest.approx(wanted.score, abs=CLOSE)
            if (tuple(found["ids"]), found["ends"]) != (wanted.tokens, wanted.finished):
                assert score(given, source, found, search) == pytest.approx(wanted.score, abs=CLOSE)
                ties.append((search, source, found, wanted))
    assert len(ties) <= 3, ties


def test_the_models_write_targets_of_many_kinds():
    """If all targets were alike, the tests could not fail."""
    found = [each for given in compared().values() for each in given.runs[0]["found"]]
    targets = [target for hypotheses in found for target in hypotheses]
    assert {1, 2, 3, 5, 8, 11} <= {len(target["ids"]) for target in targets}
    assert 0.2 < sum(target["ends"] for target in targets) / len(targets) < 0.9
    assert len({tuple(target["ids"]) for target in targets}) > len(targets) / 3


@cache
def compared() -> dict[tuple[str, str], SimpleNamespace]:
    """For each case Python's rounded model, what it reads, and the engine's run by both paths."""
    cases = {case: _given(*case) for case in CASES}
    asked = [
        {
            "config": given.model.config.model_dump(mode="json"),
            "weights": base64.b64encode(given.weights).decode(),
            "sources": given.sources,
            "target": given.target,
            "searches": given.searches,
        }
        for given in cases.values()
    ]
    for given, runs in zip(cases.values(), node(SCRIPT, asked), strict=True):
        given.runs = runs
    return cases


def _given(name: str, precision: Any) -> SimpleNamespace:
    tokenizers: Any = (None, None)  # the model needs none
    bundle, weights = rounded(Bundle(random_model(name), *tokenizers), precision)
    config = bundle.model.config
    draw = random.Random(name)
    special = {config.pad_of_source, config.pad_id, config.unk_id, config.bos_id, config.eos_id}
    ordinary = sorted({*range(min(config.source_vocab_size, config.target_vocab_size))} - special)
    searches = list(SEARCHES.values())[: None if name in ALL_SEARCHES else 2]
    searches = [
        search | {"forced": [config.eos_id if i == "end" else i for i in search["forced"]]}
        for search in searches
    ]
    return SimpleNamespace(
        model=bundle.model,
        weights=weights,
        sources=[draw.choices(ordinary, k=count) for count in (1, 6, 14)],
        target=[config.bos_id, *draw.choices(ordinary, k=12)],
        searches=searches,
    )


def python_search(given: SimpleNamespace, search: dict[str, Any]) -> Iterator[list[Hypothesis]]:
    """The hypotheses of each source."""
    model, config = given.model, given.model.config
    ids = (config.pad_id, config.unk_id, config.bos_id, config.eos_id)
    own = {"prefix_ids": tuple(search["prefix"]), "blank_ids": frozenset(search["blank"])}
    vocabulary = Vocabulary(*ids, **own)
    rules = OutputRules(
        torch.tensor([search["longest"]]),
        vocabulary,
        [ForcedPrefix([search["forced"]], vocabulary)],
    )
    beam: Any = {"beam": search["beam"], "n_best": search["most"]}
    for source in given.sources:
        state = model.start(model.encode(torch.tensor([[*source, config.eos_id]])))
        if search["beam"] > 1:
            [found] = beam_search(model.step, state, rules, length_penalty=search["alpha"], **beam)
            yield found
        else:
            [[best]] = greedy(model.step, state, rules)
            length = len(best.tokens) + best.finished
            yield [replace(best, score=best.log_probability / penalty(length, search["alpha"]))]


def score(
    given: SimpleNamespace, source: list[int], found: dict[str, Any], search: dict[str, Any]
) -> float:
    """Python's own score of a target that the engine wrote."""
    eos = given.model.config.eos_id
    target = [*found["ids"], *[eos] * found["ends"]]
    [values] = log_probabilities(given.model, [[*source, eos]], target).tolist()
    return float(sum(values[len(search["prefix"]) :]) / penalty(len(target), search["alpha"]))
