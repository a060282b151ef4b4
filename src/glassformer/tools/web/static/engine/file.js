// The foot of a page that is one file: what it holds, what it leaves out, and "Check this file".

import { h, show } from "../look/dom.js";
import { check } from "./check.js";
import { pauses } from "./engine.js";
import { about, engine, load } from "./local.js";

const LEFT_OUT =
  "This file is the whole translator: it runs here, without a network. It translates plain text: " +
  "placeholders and markup inside a sentence are ordinary words, and it says if they get lost. It " +
  "takes no documents and no terms.";

function facts() {
  const texts = [...document.querySelectorAll("script, style")].map((each) => each.textContent);
  return {
    ...(about.languages ? { languages: about.languages.join(" → ") } : {}),
    parameters: about.parameters.toLocaleString(),
    size: `${(texts.join("").length / 1e6).toFixed(1)} MB`,
    ...about.facts,
  };
}

const result = h("div", { role: "status", "data-check": "" });
const button = h("button", { type: "button", class: "push" }, "Check this file");
button.onclick = run;

function report(lines, right) {
  result.classList.toggle("error", !right);
  show(result, h("p", {}, right ? "This file is right." : "The numbers of this page are WRONG."));
  result.append(...lines.map((line) => h("p", {}, line)));
}

// By WebAssembly, if the browser grants it, then in JavaScript.
async function run() {
  button.onclick = null;
  const lines = [];
  let right = true;
  try {
    const plain = load({ wasm: false });
    for (const tried of engine().path === plain.path ? [plain] : [engine(), plain]) {
      show(result, h("p", {}, `Comparing with Python's numbers, by ${tried.path} …`));
      const compared = await check(tried, about.checks, pauses());
      lines.push(...compared.lines);
      right &&= compared.right;
    }
    report(lines, right);
  } catch (error) {
    report([...lines, error.message], false);
  }
  button.onclick = run;
}

document.body.append(
  h(
    "footer",
    { class: "app page living" },
    h("p", {}, LEFT_OUT),
    h(
      "details",
      {},
      h("summary", {}, "About this translator"),
      h(
        "dl",
        {},
        Object.entries(facts()).map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]),
      ),
    ),
    button,
    result,
  ),
);

// After the first drawing: the engine is ready when a person types, and a damaged file says so.
setTimeout(() => {
  try {
    engine();
  } catch (error) {
    document.body.prepend(h("p", { class: "damaged", role: "alert" }, error.message));
  }
}, 50);
