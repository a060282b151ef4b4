""" "Check this file" finds a wrong number; searches end, and run side by side."""

import base64

import numpy as np
import pytest
import safetensors.numpy

from glassformer.bundle import load_bundle
from glassformer.tools.web.living_page import about, rounded
from tests.node import node

pytestmark = pytest.mark.usefixtures("without_shape_types")

TEXTS = ["An old hat.", "Two men sit in the snow; one sings. " + "A dog runs. " * 12]
READ = """
import { Engine } from "./engine/engine.js";
const bytesOf = (text) => new Uint8Array(Buffer.from(text, "base64"));
const engineOf = ({ about, weights }, options) => new Engine(about, bytesOf(weights), options);
"""
CHECK = (
    READ
    + """
import { check } from "./engine/check.js";

export default async (pages) => {
  const answers = [];
  for (const page of pages)
    for (const wasm of [true, false])
      answers.push(await check(engineOf(page, { wasm }), page.about.checks, async () => {}));
  return answers;
};
"""
)
LIVES = (
    READ
    + """
import { traceOf } from "./engine/trace.js";

const plain = (_, value) => (ArrayBuffer.isView(value) ? [...value] : value);
const pause = () => new Promise((resume) => setImmediate(resume));

export default async (page) => {
  const engine = engineOf(page);
  const ids = engine.segments(page.texts[1])[0].ids;
  const tasks = [
    () => engine.search(ids, { beam: 3, most: 3, pause }),
    () => engine.search(ids.slice(2), { most: 5, pause }),
    () => engine.search(ids.slice(0, 7), { pause, model: engine.changed(page.changes) }),
    () => traceOf(engine, { text: page.texts[0], changes: page.changes }),
    () => engine.translate(page.texts[1], { alternatives: 2 }),
  ];
  const text = (answers) => JSON.stringify(answers, (name, value) =>
    ["parent", "node", "nodes"].includes(name) ? undefined : plain(name, value));
  const alone = [];
  for (const task of tasks) alone.push(await task());
  const ends = [];
  for (const steps of [0, 1]) {
    const controller = new AbortController();
    const { signal } = controller;
    const ending = async () => (await pause(), signal.throwIfAborted());
    const works = [
      traceOf(engine, { text: page.texts[1], beam: 100 }, signal), // no quick machine ends it
      engine.search(ids, { pause: ending }),
    ].map((work) => work.then(() => "found", ({ name }) => name));
    for (let step = 0; step < steps; step += 1) await pause();
    controller.abort();
    ends.push(...(await Promise.all(works)));
  }
  const together = await Promise.all(tasks.map((task) => task()));
  return { ends, alone: text(alone), together: text(together) };
};
"""
)


@pytest.fixture(scope="module")
def page(bundle_directory):
    """The record of a page and its weights."""
    bundle, weights = rounded(load_bundle(bundle_directory), "int8")
    return {"about": about(bundle, TEXTS), "weights": encoded(weights)}


def encoded(weights: bytes) -> str:
    return base64.b64encode(weights).decode()


def altered(page, name, change):
    """The page with another matrix or vector: ``change(values)``."""
    tensors = safetensors.numpy.load(base64.b64decode(page["weights"]))
    tensors[name] = np.ascontiguousarray(change(tensors[name].copy()), tensors[name].dtype)
    return page | {"weights": encoded(safetensors.numpy.save(tensors))}


def configured(page, **config):
    return page | {"about": page["about"] | {"config": page["about"]["config"] | config}}


def one_number(values):
    """The largest of a row has the other sign; in the output, the row is the end symbol's."""
    column = abs(values[3]).argmax()
    values[3, column] = -values[3, column]
    return values


def swapped(values):
    """The halves of each row change places: those of two heads."""
    return np.roll(values, values.shape[1] // 2, axis=1)


ATTENTION = "decoder.blocks.0.cross_attention.sublayer"
WRONG = {
    "a number": lambda page: altered(page, f"{ATTENTION}.key.weight", one_number),
    "a number of the output": lambda page: altered(page, "output.weight", one_number),
    "a bias": lambda page: altered(page, f"{ATTENTION}.value.bias", lambda bias: bias + 0.01),
    "a scale": lambda page: altered(page, f"{ATTENTION}.query.weight.scale", lambda s: s * 1.01),
    "epsilon": lambda page: configured(page, norm_epsilon=1e-3),
    "the order of heads": lambda page: altered(page, f"{ATTENTION}.output.weight", swapped),
    "the number of heads": lambda page: configured(page, num_heads=1),
    "the scale of embeddings": lambda page: configured(page, scale_embeddings=False),
    "positions": lambda page: configured(page, position_layout="halves"),
}


def test_a_right_page_is_right_by_both_paths(page):
    for path, answer in zip(("WebAssembly", "JavaScript"), node(CHECK, [page]), strict=True):
        assert answer["right"], answer
        assert path in answer["lines"][0]
        assert "pieces read and written are Python's" in answer["lines"][0]


def test_a_long_text_is_compared_as_far_as_the_trace_goes(page):
    [first, long, _] = page["about"]["checks"]
    assert len(long["source"]) > 64
    assert len(first["source"]) < 20


def test_a_wrong_page_says_so(page):
    answers = node(CHECK, [wrong(page) for wrong in WRONG.values()])
    found = {name: answers[2 * place : 2 * place + 2] for place, name in enumerate(WRONG)}
    passed = [name for name, both in found.items() if any(each["right"] for each in both)]
    assert passed == []


def test_the_order_of_a_vector_matters(page):
    """A last matrix with its rows in another order gives vectors of the same lengths."""
    name = "encoder.blocks.0.feed_forward.sublayer.outer"
    wrong = page
    for part in ("weight", "weight.scale", "bias"):
        wrong = altered(wrong, f"{name}.{part}", lambda values: values[::-1])
    assert not node(CHECK, [wrong])[0]["right"]


def test_a_search_that_ends_harms_no_other(page):
    changes = {"heads_off": [{"part": "cross", "layer": 0, "head": 1}]}
    answer = node(LIVES, page | {"texts": TEXTS, "changes": changes})
    assert answer["ends"] == ["AbortError"] * 4
    assert answer["together"] == answer["alone"]
    assert len(answer["alone"]) > 10_000
