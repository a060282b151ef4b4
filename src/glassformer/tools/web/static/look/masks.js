// Masks: raw scores, mask, and the weights after the softmax.

import { NEEDS_MODEL } from "./api.js";
import { AXES, PART_CHOICE, chosenColumn, chosenHead, sumButton } from "./attention.js";
import { choice, disable, h, show } from "./dom.js";
import { matrix, scaleBar } from "./matrix.js";
import { fixed } from "./numbers.js";
import { within } from "./state.js";

const WHY_OFFLINE = `Switching the mask off ${NEEDS_MODEL}`;
const SMALLEST = 10; // pixels of a square
const NARROW = 640; // pixels that three headings need
const BESIDE_SQUARES = 205; // pixels of labels and gaps in one row of maps
const WORDS = {
  encoder:
    "Each source piece may attend to all source pieces. " +
    "In a batch, the mask also hides the padding after shorter sentences.",
  decoder:
    "Causal mask: a position may attend to itself and to earlier positions. " +
    "Above the diagonal lie later positions: their scores become −∞, their weights 0.",
  cross: "Each target piece may attend to the whole source.",
};

export const masksPanel = {
  id: "masks",
  tab: "Masks",
  title: "Which piece may read which",
  lead:
    "Each piece (the query) scores every piece that it could read (the keys). The mask makes some " +
    "scores −∞, less than any number: the softmax turns them into weights of 0.",
  source:
    "Section 3.2.3: “setting to −∞ all values in the input of the softmax which correspond to " +
    "illegal connections”.",
  build,
};

function build({ controls, stage, app }) {
  const { store } = app;
  const parts = choice("Mask of", PART_CHOICE, (part) =>
    store.set({ part, box: "", row: 0, column: -1 }),
  );
  const heads = headChoice(app);
  const causal = choice(
    "Causal mask",
    [
      [0, "On"],
      [1, "Off"],
    ],
    (value) => store.set({ causal: value }),
  );
  const switched = labelled("causal mask", causal.el);
  controls.append(parts.el, ...heads.elements, switched);
  const reason = app.source.live
    ? null
    : h("p", { class: "note reason" }, disable(causal.el, WHY_OFFLINE));
  if (reason) controls.append(reason);
  const asked = { key: "", view: null, note: "" };
  const ask = async (view) => {
    if (asked.key === view.key) return;
    Object.assign(asked, { key: view.key, view: null, note: "Asking the model …" });
    try {
      const answer = await app.source.changed(view, { causal_off: true });
      if (asked.key === view.key) Object.assign(asked, { view: answer, note: "" });
    } catch (error) {
      asked.note = error.message;
    }
    draw(store.get());
  };
  const draw = (state) => {
    const place = chosenHead(app.view, state, "decoder"); // its mask hides something
    const masked = place.part === "decoder";
    const off = masked && state.causal === 1 && app.source.live;
    if (off) ask(app.view);
    parts.set(place.part);
    heads.update(place);
    causal.set(off ? 1 : 0);
    for (const element of [switched, reason]) element?.classList.toggle("gone", !masked);
    const view = (off && asked.view) || app.view;
    show(
      stage,
      h("p", { class: "note" }, off ? unmasked(app.view, asked) : WORDS[place.part]),
      matrices(view, place, { state, app, width: stage.clientWidth }),
    );
  };
  return draw;
}

// The effect of attention to later positions on the log-probability.
function unmasked(view, asked) {
  if (!asked.view) return asked.note;
  const sum = (unmasked) =>
    fixed(
      unmasked.steps.reduce((total, step) => total + step.written.log_probability, 0),
      2,
    );
  return (
    "Each position now attends to later positions too, for which its training had no example. " +
    `The same translation has log-probability ${sum(asked.view)} instead of ${sum(view)}. ` +
    "A model trained without the mask only learns to copy the next piece."
  );
}

// The three with one cursor: in one row if the squares are not too small for it.
function matrices(view, place, { state, app, width }) {
  const map = view.map(place);
  const row = within(state.row, map.rows.length);
  const column = chosenColumn(map, row, state.column);
  const fit = Math.min(26, Math.floor((width - BESIDE_SQUARES) / (3 * map.columns.length)));
  const oneRow = width >= NARROW && fit >= SMALLEST;
  const side = oneRow
    ? fit
    : Math.max(12, Math.min(26, Math.floor((width - BESIDE_SQUARES) / map.columns.length)));
  const largest = Math.max(
    ...map.rows.flatMap((_, r) => map.columns.map((_, c) => Math.abs(map.score(r, c)))),
  );
  const sum = view === app.view ? sumButton(app, place, row, column) : null;
  const common = {
    rows: map.rows,
    columns: map.columns,
    row,
    column,
    side,
    axes: oneRow ? null : AXES[place.part],
    onChoose: (r, c) => app.store.set({ row: r, column: c }),
    onOpen: () => sum?.click(),
  };
  const named = (r, c) => `${map.rows[r]} → ${map.columns[c]}`;
  const blocked = (r, c) => !map.allowed(r, c);
  const [down, across] = AXES[place.part];
  const maps = h(
    "div",
    { class: oneRow ? "maps" : "stage" },
    step(
      "Scores: q · k / √dₖ",
      matrix({
        ...common,
        key: "scores",
        title: "Scores",
        largest,
        value: map.score,
        shown: (r, c) => `${named(r, c)}: score ${fixed(map.score(r, c), 3)}`,
      }),
      scaleBar(largest, { signed: true, label: "score" }),
    ),
    step(
      "Mask: dashed is hidden",
      matrix({
        ...common,
        bare: oneRow,
        key: "mask",
        title: "Mask",
        largest: 1,
        value: () => 0.35,
        blocked,
        shown: (r, c) => `${named(r, c)}: ${blocked(r, c) ? "hidden, −∞" : "allowed"}`,
      }),
    ),
    step(
      "Weights: after softmax",
      matrix({
        ...common,
        bare: oneRow,
        key: "weights",
        title: "Weights",
        largest: 1,
        value: map.weight,
        blocked,
        shown: (r, c) => `${named(r, c)}: weight ${fixed(map.weight(r, c), 3)}`,
      }),
      scaleBar(1, { label: "weight" }),
    ),
  );
  const axes = oneRow ? h("p", { class: "axes" }, `↓ ${down}   → ${across}`) : null;
  return h("div", {}, axes, maps, sum);
}

function step(title, ...children) {
  return h("div", {}, h("h3", {}, title), children);
}

// Two rows of buttons: layer and head.
export function headChoice(app) {
  const { store, view } = app;
  const side = (part) => (part === "encoder" ? "encoder" : "decoder");
  const layers = Math.max(view.layers("encoder"), view.layers("decoder"));
  const layer = choice(
    "Layer",
    [...Array(layers).keys()].map((place) => [place, String(place + 1)]),
    (value) => store.set({ layer: value }),
  );
  const head = choice(
    "Head",
    [...Array(view.heads).keys()].map((place) => [place, String(place + 1)]),
    (value) => store.set({ head: value }),
  );
  const update = (place) => {
    layer.set(place.layer);
    head.set(place.head);
    [...layer.el.children].forEach((button, number) => {
      button.hidden = number >= app.view.layers(side(place.part));
    });
  };
  return { elements: [labelled("layer", layer.el), labelled("head", head.el)], update };
}

function labelled(name, el) {
  return h("span", { class: "labelled" }, name, el);
}
