"""The page's doubts, and the runs of a word that it cuts, against Python's."""

import base64
import random
from dataclasses import replace

from glassformer.alignment.doubts import doubts
from glassformer.bundle import load_bundle
from glassformer.data.preprocessing import SourceLengths
from glassformer.data.protected import SPANS
from glassformer.data.subword_training import train_tokenizer
from glassformer.data.words import Link, words
from glassformer.text_engine import RUNS, Translation, without_run
from glassformer.tools.web.js_patterns import js_pattern
from tests.node import node
from tests.tools.web.engine.texts import SENTENCES, laid_out_texts

SCRIPT = """
import { Doubts } from "./engine/doubts.js";
import { Engine } from "./engine/engine.js";
import { Tokenizer } from "./engine/tokenizer.js";

export default function ({ model, cases, longest, spans, runs }) {
  const tokenizer = new Tokenizer(new Uint8Array(Buffer.from(model, "base64")), {});
  const doubts = new Doubts({ longest, spans, source: tokenizer, target: tokenizer });
  const page = { about: { runs } };
  return cases.map(({ source, target, links }) => [
    doubts.of(source, target, links.map((span) => ({ source: span }))),
    Engine.prototype.withoutRun.call(page, source, target),
  ]);
}
"""
PARTS = ["hello", "World", "dog", "no", "{n}", "https://a.org/b.", "30", "5 km", "1,998", "٤٥"]
PARTS += ["мир", "a", "<b>", "👍", "日本", "Ärger", "x_y", "3rd", "don't", "한국어", "no no no"]


def test_doubts_and_runs_are_pythons(bundle_directory):
    draw, tokenizer = (
        random.Random(7),
        train_tokenizer([*SENTENCES, "日本 日本"] * 9, vocab_size=500),
    )
    lengths = SourceLengths(10, 60, several=1.0, letterless=1.0)
    bundle = replace(
        load_bundle(bundle_directory),
        source_tokenizer=tokenizer,
        target_tokenizer=tokenizer,
        source_lengths=lengths,
        normalisation="text",
    )
    drawn = [" ".join(draw.choices(PARTS, k=draw.randint(1, 9))) for _ in range(400)]
    rows = bundle.preprocessing.segments([*drawn, *laid_out_texts(100, 3)], tokenizer, limit=10_000)
    sources = [segment.text for row in rows for segment in row]
    targets = [_changed(source, draw) for source in sources]
    linked = [[span for span in words(source) if draw.random() < 0.6] for source in sources]
    cases = [
        {"source": source, "target": target, "links": links}
        for source, target, links in zip(sources, targets, linked, strict=True)
    ]
    given = {"longest": 60, "spans": js_pattern(SPANS), "runs": list(map(js_pattern, RUNS))}
    given |= {"model": base64.b64encode(tokenizer.serialized).decode(), "cases": cases}
    reasons = set()
    for case, found in zip(cases, node(SCRIPT, given), strict=True):
        links = tuple(Link(span, (0, 1)) for span in case["links"])
        translation = Translation(case["target"], 0.0, alignment=links)
        expected = doubts(bundle, case["source"], translation)
        assert found == [expected, without_run(case["source"], case["target"])], case
        reasons |= {reason.partition(":")[0] for reason in expected}
    assert len(reasons) == 6


def _changed(source: str, draw: random.Random) -> str:
    """The text with some parts gone, and with others added or repeated."""
    parts = [part for part in source.split() if draw.random() < 0.7]
    parts += draw.choices(PARTS, k=draw.choice([0, 0, 1])) * draw.choice([1, 3, 4, 5])
    return draw.choice([" ", ", "]).join(parts) + draw.choice(["", ".", " …"])
