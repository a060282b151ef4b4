// Beam search as a tree of hypotheses: kept, pruned and finished.

import { NEEDS_MODEL } from "./api.js";
import { disable, h, s, show, slider } from "./dom.js";
import { fixed } from "./numbers.js";
import { labelled, written } from "./view.js";

const [WIDE, HIGH] = [92, 44]; // from node to node
const [BOX, TALL] = [84, 30];
const LEGEND =
  "Filled: the path to the answer. Tinted: kept. Round: finished. Dashed: pruned. Plain: " +
  "unfinished at the end. The number is the log-probability of all pieces so far.";
const WHY_OFFLINE =
  `Another beam size ${NEEDS_MODEL} ` +
  "The length penalty still ranks the finished hypotheses anew.";

export const beamPanel = {
  id: "beam",
  tab: "Beam tree",
  title: "The search as a tree",
  lead:
    "At each step the beam keeps the few most probable unfinished hypotheses. It sets finished " +
    "ones aside, and ranks them by log-probability over a length penalty.",
  source: "Section 6.1; Wu et al. 2016, equation 14: score = log P / ((5 + length) / 6)^α.",
  build,
};

function build({ controls, stage, app }) {
  const { store } = app;
  const { live } = app.source;
  const size = slider("beam size", { min: 1, max: 8 }, () => {});
  const penalty = slider("length penalty α", { min: 0, max: 2, step: 0.1 }, () => {});
  size.input.addEventListener("input", () => size.set(size.input.value));
  size.input.addEventListener("change", () =>
    store.set({ beam: Number(size.input.value), step: 0, branch: "" }),
  );
  penalty.input.addEventListener("input", () =>
    store.set({ penaltyView: Number(penalty.input.value) }),
  );
  penalty.input.addEventListener(
    "change",
    () => live && store.set({ penalty: Number(penalty.input.value), penaltyView: -1 }),
  );
  const pruned = h("input", {
    type: "checkbox",
    "data-key": "beam:pruned",
    onchange: () => store.set({ pruned: Number(pruned.checked) }),
  });
  controls.append(
    size.el,
    penalty.el,
    h("label", { class: "labelled" }, pruned, "show all candidates"),
  );
  if (!live) controls.append(h("p", { class: "note reason" }, disable(size.el, WHY_OFFLINE)));
  const field = h("input", {
    type: "text",
    "aria-label": "Expected translation",
    placeholder: "Expected translation",
    maxlength: 1000,
    "data-key": "beam:reference",
  });
  const expected = h(
    "form",
    {
      class: "ask expected",
      onsubmit: (event) => {
        event.preventDefault();
        store.set({ reference: field.value.trim() });
      },
    },
    field,
    h("button", { type: "submit", class: "push" }, "Compare"),
  );
  controls.append(expected);
  if (!live) disable(expected, WHY_OFFLINE);
  const draw = (state) => {
    const { view } = app;
    if (document.activeElement !== field) field.value = state.reference;
    const { beam } = view.trace;
    const alpha = state.penaltyView >= 0 ? state.penaltyView : beam.length_penalty;
    size.set(beam.beam);
    pruned.checked = state.pruned === 1;
    penalty.set(alpha, fixed(alpha, 1));
    show(
      stage,
      verdict(view.trace),
      finishedTable(beam, alpha),
      tree(beam, alpha, pruned.checked),
    );
  };
  return draw;
}

// log P over the penalty; steps count from 0, and the start symbol is not a piece.
function scoreOf(node, alpha) {
  return node.log_probability / ((5 + node.step + 1) / 6) ** alpha;
}

const text = (node) => labelled(node).label;

function wayTo(beam, node) {
  const way = [];
  for (let at = node; at && at.parent !== null; at = beam.nodes[at.parent]) way.unshift(at);
  return way;
}

// The step at which the beam lost the expected translation, and whose fault it is.
function verdict({ reference, answer }) {
  if (!reference) return null;
  const scores = `It scores ${fixed(reference.score, 3)}, the answer ${fixed(answer.score, 3)}.`;
  const lost =
    reference.fell_off === null
      ? ""
      : ` It left the beam at step ${reference.fell_off + 1}, as candidate ` +
        `${reference.fell_rank + 1}, ${fixed(reference.margin, 2)} below the last kept one.`;
  const whose = {
    found: "The model wrote the expected translation.",
    search: "Search error: the model gives the expected translation a better score.",
    model: "Model error: the model gives its own answer a better score.",
  }[reference.verdict];
  return h(
    "p",
    { class: "answer", "data-verdict": reference.verdict },
    whose,
    " ",
    h("span", { class: "note" }, scores + lost),
  );
}

function finishedTable(beam, alpha) {
  const finished = beam.finished
    .map((id) => beam.nodes[id])
    .map((node) => ({ node, score: scoreOf(node, alpha) }))
    .sort((a, b) => b.score - a.score);
  const rows = finished.map(({ node, score }, place) =>
    h(
      "tr",
      { class: place === 0 ? "chosen" : null, "data-node": node.id },
      h("td", { class: "n" }, String(place + 1)),
      h("td", { class: "wrap" }, written(wayTo(beam, node).slice(0, -1))),
      [String(node.step + 1), fixed(node.log_probability, 3), fixed(score, 3)].map((number) =>
        h("td", { class: "n" }, number),
      ),
    ),
  );
  const heads = ["rank", "finished translation", "pieces", "log P", "score"].map((name, place) =>
    h("th", { scope: "col", class: place === 1 ? null : "n" }, name),
  );
  return h(
    "div",
    { class: "finished" },
    h("h3", {}, "Finished hypotheses, best first"),
    h(
      "div",
      { class: "scroll", tabindex: 0, role: "region", "aria-label": "Finished hypotheses" },
      h("table", { "data-finished": "" }, h("thead", {}, h("tr", {}, heads)), h("tbody", {}, rows)),
    ),
  );
}

// A row for each step; candidates by rank, so that few links cross.
function tree(beam, alpha, withPruned) {
  const best = new Set(beam.best);
  const shown = beam.nodes.filter(
    ({ status, id }) => withPruned || /alive|finished/.test(status) || best.has(id),
  );
  const rows = new Map();
  for (const node of shown) rows.set(node.step, [...(rows.get(node.step) ?? []), node]);
  const places = new Map();
  for (const [step, nodes] of rows) {
    nodes
      .sort((a, b) => a.rank - b.rank)
      .forEach((node, column) => places.set(node.id, [column * WIDE + 2, (step + 1) * HIGH + 2]));
  }
  const columns = Math.max(...[...rows.values()].map((nodes) => nodes.length));
  const [width, height] = [columns * WIDE, rows.size * HIGH];
  const links = shown
    .filter((node) => places.has(node.parent))
    .sort((a, b) => best.has(a.id) - best.has(b.id))
    .map((node) => {
      const [x, y] = places.get(node.id);
      const [fromX, fromY] = places.get(node.parent);
      const [from, to, bend] = [fromX + BOX / 2, x + BOX / 2, y - (HIGH - TALL) / 2];
      return s("path", {
        class: best.has(node.id) ? "link best" : "link",
        d: `M${from} ${fromY + TALL}C${from} ${bend} ${to} ${bend} ${to} ${y}`,
      });
    });
  const boxes = shown.map((node) => box(node, places.get(node.id), best.has(node.id), alpha));
  return h(
    "div",
    {},
    h("h3", {}, `Tree of a beam of ${beam.beam}`),
    h("p", { class: "note" }, LEGEND),
    h(
      "div",
      { class: "scroll", tabindex: 0, role: "region", "aria-label": "Beam tree, scrolls sideways" },
      s(
        "svg",
        {
          class: "tree",
          width,
          height,
          viewBox: `0 0 ${width} ${height}`,
          role: "img",
          "aria-label": `The search as a tree of ${shown.length} nodes`,
        },
        links,
        boxes,
      ),
    ),
  );
}

function box(node, [x, y], best, alpha) {
  const word = text(node);
  return s(
    "g",
    { class: `node ${node.status}${best ? " best" : ""}`, "data-node": node.id },
    s("rect", { x, y, width: BOX, height: TALL, rx: node.status === "finished" ? 15 : 5 }),
    s(
      "text",
      { class: "word", x: x + BOX / 2, y: y + 10 },
      word.length > 11 ? `${word.slice(0, 10)}…` : word,
    ),
    s(
      "text",
      { class: "score", x: x + BOX / 2, y: y + 22 },
      node.parent === null ? "" : fixed(node.log_probability, 2),
    ),
    s(
      "title",
      {},
      `${word}: ${node.status}; this piece ${fixed(node.step_log_probability, 3)}, ` +
        `all pieces ${fixed(node.log_probability, 3)}, score ${fixed(scoreOf(node, alpha), 3)}`,
    ),
  );
}
