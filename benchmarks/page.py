"""A page that holds its translator, in Chromium: by WebAssembly, and by JavaScript alone.

Both faces of one bundle are written anew. Each row is the median of the rounds; the two ways run in
turn, in a tab of their own each time.
"""

import argparse
from pathlib import Path
from shutil import which
from typing import Any

from benchmarks.machine import facts
from benchmarks.pairs import spread
from benchmarks.prepared import read_corpus
from benchmarks.report import save, shown, table
from glassformer.bundle import load_bundle
from glassformer.tools.web.living_page import write_page

__all__ = ["main"]

_LETTERS = 20  # typed one after another

# Tokens and seconds of each text's search.
_TRANSLATE = """async ([texts, beam, wasm]) => {
  const engine = (await import("engine/local.js")).load({ wasm });
  const search = ({ ids }) => engine.search(ids, { beam });
  const run = async (text) => (await search(engine.segments(text)[0])).hypotheses;
  for (const text of texts.slice(0, 5)) await run(text);
  const begun = performance.now();
  let tokens = 0;
  for (const text of texts) tokens += (await run(text))[0].ids.length + 1;
  return [engine.path, tokens, (performance.now() - begun) / 1000];
}"""
# Milliseconds from each letter that is typed to the drawing of the panel.
_TYPE = """async (letters) => {
  const field = document.querySelector(".ask input");
  const times = [];
  for (const letter of letters) {
    const drawn = new Promise((resolve) => {
      const observer = new MutationObserver(() => requestAnimationFrame(resolve));
      observer.observe(document.getElementById("panel"), { childList: true, subtree: true });
    });
    const begun = performance.now();
    field.value += letter;
    field.dispatchEvent(new Event("input"));
    await drawn;
    times.push(performance.now() - begun);
    await new Promise((resolve) => setTimeout(resolve, 300));
  }
  return times;
}"""


def main(options: argparse.Namespace) -> None:
    from playwright.sync_api import sync_playwright

    corpus = read_corpus(options.data, options.languages)
    texts = corpus.sources[: options.sentences]
    out = options.work / "page.html"
    out.parent.mkdir(parents=True, exist_ok=True)
    bundle = load_bundle(options.bundle)
    write_page(bundle, out, face="look", quantization="int8", texts=texts[:1])
    speeds: dict[tuple[str, int], list[float]] = {}
    typed: list[float] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=which(options.browser), args=["--no-sandbox"]
        )
        for _ in range(options.rounds):
            for beam in options.beams:
                for wasm in (True, False):
                    way, tokens, seconds = _in_page(browser, out, _TRANSLATE, [texts, beam, wasm])
                    speeds.setdefault((way, beam), []).append(tokens / seconds)
            typed += _in_page(browser, out, _TYPE, "abcdefghijklmnopqrstuvwxyz"[:_LETTERS])
        version = browser.version
        browser.close()
    rows = [[way, str(beam), shown(spread(each))] for (way, beam), each in speeds.items()]
    print(f"\n{table('Translating in a page', ['way', 'beam', 'tokens/s'], rows)}\n")
    print(f"from a letter to the drawing: {shown(spread(typed))} ms; {out.stat().st_size:,} bytes")
    figures = {"facts": {**facts(threads=1, device="cpu"), "chromium": version}, "rows": rows}
    save(options.out / "page.json", {**figures, "typed": typed, "bytes": out.stat().st_size})


def _in_page(browser: Any, page: Path, script: str, argument: object) -> Any:
    """What the script returns in a new tab with the page."""
    tab = browser.new_page()
    tab.set_default_timeout(600_000)
    tab.goto(page.resolve().as_uri() + "#panel=attention")
    tab.wait_for_selector("#app:not([aria-busy]) .tabs")
    tab.wait_for_timeout(500)  # the engine loads after the first drawing
    result = tab.evaluate(script, argument)
    tab.close()
    return result
