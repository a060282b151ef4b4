"""The trace that a page makes, beside Python's, field for field."""

import base64
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from pydantic_core import to_jsonable_python

from glassformer.bundle import Bundle, load_bundle
from glassformer.config import ModelConfig
from glassformer.data.subword_training import train_tokenizer
from glassformer.data.tokenizer import Tokenizer
from glassformer.model.transformer import Transformer
from glassformer.support.errors import UsageError
from glassformer.tools.inspection.trace.array_codec import EncodedArray
from glassformer.tools.inspection.trace.build import trace
from glassformer.tools.inspection.trace.schema import Changes, Head, Query
from glassformer.tools.web.living_page import about, rounded
from tests.node import node
from tests.tables import every

pytestmark = pytest.mark.usefixtures("without_shape_types")

CLOSE = 1e-4
SCRIPT = """
import { Engine } from "./engine/engine.js";
import { traceOf } from "./engine/trace.js";

const plain = (_, value) => (ArrayBuffer.isView(value) ? [...value] : value);

export default async ({ about, weights, requests }) => {
  const engine = new Engine(about, new Uint8Array(Buffer.from(weights, "base64")));
  const traces = [];
  for (const request of requests) {
    const trace = await traceOf(engine, request);
    const whole = { ...trace, erased: await trace.erased };
    traces.push(JSON.parse(JSON.stringify(whole, plain)));
  }
  return traces;
};
"""
TEXT = "Two men sit in the snow; one sings."
LONG = "An old dog runs across the grass, and two old men sit in the snow of a hat; one sings"
HEADS = [Head("encoder", 0, 1), Head("decoder", 0, 0), Head("cross", 0, 1), Head("cross", 0, 1)]
CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "greedy": {"beam": 1, "top": 3},
    "wide": {"beam": 8, "length_penalty": 0.0, "top": 1},
    "long": {"text": f"{LONG}, {LONG}."},
    "two sentences": {"text": "A dog runs across the grass. Two men sit in the snow."},
    "blanks around": {"text": "  An old\u00a0 hat. \n"},
    "forced text": {"forced_prefix": "Ein Hund"},
    "forced ids": {"forced_prefix": [40, 50, 60], "beam": 2},
    "forced end": {"forced_prefix": [40, 50, "end"]},
    "the answer as reference": {"reference": "answer"},
    "another reference": {"reference": "Zwei Männer sitzen im Schnee."},
    "reference, greedy": {"reference": "Ein alter Hut.", "beam": 1},
    "reference, forced": {"reference": "Ein Hund läuft.", "forced_prefix": "Ein Hund"},
    "reference to its end": {"reference": "Ein Hund.", "forced_prefix": "reference"},
    "heads off": {"changes": Changes(heads_off=HEADS)},
    "positions off": {"changes": Changes(positions_off=True)},
    "causal off": {"changes": Changes(causal_off=True)},
    "order": {"text": "An old hat.", "changes": Changes(source_order="reversed")},
}


@pytest.fixture(scope="module", params=["post-norm", "pre-norm"])
def bundle(request, bundle_directory) -> Bundle:
    return load_bundle(bundle_directory) if request.param == "post-norm" else _pre_norm()


def _pre_norm() -> Bundle:
    """One vocabulary, learned positions, odd numbers of layers, a subword before every target."""
    lines = ["A dog runs across the grass.", "Ein Hund läuft über das Gras.", "Two men sing."] * 3
    source = train_tokenizer(lines, vocab_size=310)
    target = Tokenizer(source.serialized, prefix=[source.subword(300)])
    torch.manual_seed(5)
    config = ModelConfig(
        source_vocab_size=source.vocab_size,
        target_vocab_size=source.vocab_size,
        d_model=12,
        num_heads=3,
        d_ff=20,
        num_encoder_layers=3,
        num_decoder_layers=3,
        norm="pre",
        positions="learned",
        position_offset=2,
        embedding_norm=True,
        output_bias=True,
        max_length=200,
        source_max_length=150,
    )
    model = Transformer(config)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.2 * torch.randn_like(weight))
        model.output_bias[target.eos_id] = 4.0
    return Bundle(model.eval(), source, target, ("en", "de"), normalisation="text")


@pytest.fixture(scope="module")
def both(bundle):
    """Python's trace and the page's, of each case."""
    bundle, weights = rounded(bundle, "int8")
    answer = trace(bundle, TEXT).answer.text
    asked = {name: _filled(bundle, answer, case) for name, case in CASES.items()}
    given = {
        "about": about(bundle, [TEXT]),
        "weights": base64.b64encode(weights).decode(),
        "requests": to_jsonable_python(list(asked.values())),
    }
    ours = node(SCRIPT, given)
    theirs = [trace(bundle, Query(request["text"], **_rest(request))) for request in asked.values()]
    return dict(zip(CASES, zip(ours, theirs, strict=True), strict=True))


@every("case", CASES)
def test_every_field_is_pythons(both, case):
    ours, theirs = both[case]
    differences = list(differing(ours, to_jsonable_python(theirs), "trace"))
    assert differences == []


def test_the_cases_differ(both):
    """If a case had no effect, its test could not fail."""
    answers = {name: ours["answer"] for name, (ours, _) in both.items()}
    for name in ("greedy", "wide", "forced text", "forced ids", "heads off", "positions off"):
        assert answers[name] != answers["plain"], name
    assert answers["forced end"]["finished"]
    verdicts = {ours["reference"]["verdict"] for ours, _ in both.values() if ours["reference"]}
    falls = [ours["reference"]["fell_off"] for ours, _ in both.values() if ours["reference"]]
    assert {"found", "model"} <= verdicts
    assert None in falls
    assert any(falls)
    assert both["long"][0]["bounds"]["left_out"]
    statuses = {node["status"] for node in both["plain"][0]["beam"]["nodes"]}
    assert statuses == {"alive", "finished", "pruned", "open"}


def test_a_prefix_of_other_ids_than_pieces_is_refused_as_in_python(bundle):
    bundle, weights = rounded(bundle, "int8")
    tokenizer = bundle.target_tokenizer
    given = {"about": about(bundle, [TEXT]), "weights": base64.b64encode(weights).decode()}
    for wrong in (tokenizer.eos_id, tokenizer.bos_id, -1, tokenizer.vocab_size):
        prefix = [40, wrong, 50]
        with pytest.raises(AssertionError, match="The prefix holds a piece"):
            node(SCRIPT, {**given, "requests": [{"text": TEXT, "forced_prefix": prefix}]})
        with pytest.raises(UsageError, match=f"forced_prefix: the id {wrong} is no ordinary"):
            trace(bundle, Query(TEXT, forced_prefix=prefix))


def differing(ours: Any, theirs: Any, path: str) -> Iterator[str]:
    """The places where the two differ; numbers by more than 1e-4, or an array's own rounding."""
    if isinstance(theirs, dict) and "scale" in theirs:
        array = EncodedArray(**theirs).array()
        distance = abs(array - torch.tensor(ours["data"]).view(ours["shape"]).numpy()).max()
        rounding = 0.5 * theirs["scale"] * (theirs["kind"] != "f32")
        if not distance <= CLOSE * max(1, abs(array).max()) + rounding:
            yield f"{path}: numbers {distance} apart"
    elif isinstance(theirs, dict):
        if ours.keys() != theirs.keys():
            yield f"{path}: the fields {sorted(ours.keys() ^ theirs.keys())}"
        for name in ours.keys() & theirs.keys():
            yield from differing(ours[name], theirs[name], f"{path}.{name}")
    elif isinstance(theirs, list) and isinstance(ours, list):
        if len(ours) != len(theirs):
            yield f"{path}: {len(ours)} items, {len(theirs)} in Python"
        for place, pair in enumerate(zip(ours, theirs, strict=False)):
            yield from differing(*pair, f"{path}[{place}]")
    elif isinstance(theirs, float) and isinstance(ours, float | int):
        if ours != pytest.approx(theirs, abs=CLOSE, rel=CLOSE):
            yield f"{path}: {ours}, {theirs} in Python"
    elif ours != theirs:
        yield f"{path}: {ours!r}, {theirs!r} in Python"


def _filled(bundle: Bundle, answer: str, case: dict[str, Any]) -> dict[str, Any]:
    """The case as a request: its text, and what depends on the bundle."""
    asked = {"text": TEXT, "changes": Changes()} | case
    if asked.get("reference") == "answer":
        asked["reference"] = answer
    tokenizer = bundle.target_tokenizer
    forced = asked.get("forced_prefix")
    if forced == "reference":
        asked["forced_prefix"] = [*tokenizer.encode(asked["reference"]), tokenizer.eos_id]
    elif isinstance(forced, list):
        ids = [tokenizer.eos_id if i == "end" else i for i in forced]
        asked["forced_prefix"] = [*tokenizer.prefix_ids, *ids]
    if asked["changes"].source_order == "reversed":
        count = len(bundle.source_tokenizer.encode(asked["text"]))
        asked["changes"] = replace(asked["changes"], source_order=[*range(count)][::-1])
    return asked


def _rest(request: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in request.items() if name != "text"}
