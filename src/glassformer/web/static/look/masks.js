// Masks: the raw scores, what is struck out of them, and what the softmax makes of the rest.

import { AXES, PART_CHOICE, chosenMap } from "./attention.js";
import { choice, h, show } from "./dom.js";
import { matrix, scaleBar } from "./matrix.js";
import { fixed } from "./numbers.js";
import { within } from "./state.js";

const WORDS = {
  encoder: "Nothing is hidden here: each source piece may read all others. In a batch, padding after shorter sentences would be.",
  decoder: "Causal mask: a piece may read itself and what stands before it. Above the diagonal lies what has not been written yet; its scores become −∞, its weights exactly 0.",
  cross: "Nothing is hidden here: each target piece may read the whole source, in both directions.",
};

export const masksPanel = {
  id: "masks", tab: "Masks",
  title: "What may be seen, and what not",
  lead: "Before the softmax every query has a score for every key, also for those that it must not see. The mask strikes these out, and the weights of the others are shared out anew.",
  source: "Section 3.2.3: “setting to −∞ all values in the input of the softmax which correspond to illegal connections”.",
  build,
};

function build({ controls, stage, app }) {
  const { store } = app;
  const parts = choice("Mask of", PART_CHOICE, (part) => store.set({ part, row: 0, column: 0 }));
  const heads = headChoice(app);
  controls.append(parts.el, ...heads.elements);
  return (state) => {
    const { view } = app;
    const place = chosenMap(view, { ...state, head: Math.max(0, state.head) });
    parts.set(place.part);
    heads.update(state);
    const map = view.map(place);
    const [row, column] = [within(state.row, map.rows.length), within(state.column, map.columns.length)];
    const side = Math.max(12, Math.min(26, Math.floor(300 / Math.max(map.rows.length, map.columns.length))));
    const largest = Math.max(...map.rows.flatMap((_, r) => map.columns.map((_, c) => Math.abs(map.score(r, c)))));
    const common = { rows: map.rows, columns: map.columns, row, column, side, axes: AXES[place.part], onChoose: (r, c) => store.set({ row: r, column: c }) };
    const named = (r, c) => `${map.rows[r]} → ${map.columns[c]}`;
    const allowed = (r, c) => map.allowed(r, c);
    show(stage, h("p", { class: "note" }, WORDS[place.part]), h("div", { class: "pair" },
      step("Scores: q · k / √dₖ", matrix({
        ...common, key: "scores", title: "Scores", largest, value: map.score, shown: (r, c) => `${named(r, c)}: score ${fixed(map.score(r, c), 3)}`,
      }), scaleBar(largest, { signed: true, label: "score" })),
      step("Mask: dashed is hidden", matrix({
        ...common, key: "mask", title: "Mask", largest: 1, value: () => 0.35, blocked: (r, c) => !allowed(r, c),
        shown: (r, c) => `${named(r, c)}: ${allowed(r, c) ? "may be seen" : "hidden, −∞"}`,
      })),
      step("Weights: softmax of what is left", matrix({
        ...common, key: "weights", title: "Weights", largest: 1, value: map.weight, blocked: (r, c) => !allowed(r, c),
        shown: (r, c) => `${named(r, c)}: weight ${fixed(map.weight(r, c), 3)}`,
      }), scaleBar(1, { label: "weight" }))));
  };
}

function step(title, ...children) {
  return h("div", {}, h("h3", {}, title), children);
}

// Two rows of buttons, layer and head, that go with the state.
export function headChoice(app) {
  const { store, view } = app;
  const side = (part) => (part === "encoder" ? "encoder" : "decoder");
  const most = Math.max(view.layers("encoder"), view.layers("decoder"));
  const layer = choice("Layer", [...Array(most).keys()].map((place) => [place, String(place + 1)]), (value) => store.set({ layer: value }));
  const head = choice("Head", [...Array(view.heads).keys()].map((place) => [place, String(place + 1)]), (value) => store.set({ head: value }));
  const update = (state) => {
    const place = chosenMap(app.view, { ...state, head: Math.max(0, state.head) });
    layer.set(place.layer);
    head.set(place.head);
    [...layer.el.children].forEach((button, number) => { button.hidden = number >= app.view.layers(side(place.part)); });
  };
  return { elements: [labelled("layer", layer.el), labelled("head", head.el)], update };
}

function labelled(name, el) {
  return h("span", { class: "labelled" }, name, el);
}
