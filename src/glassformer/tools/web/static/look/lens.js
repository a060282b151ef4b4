// Layer lens: the candidates of each decoder layer, as if it were the last.

import { sumButton } from "./attention.js";
import { bars } from "./chart.js";
import { beside, h, show } from "./dom.js";
import { fixed, percent, signed, tone } from "./numbers.js";
import { within } from "./state.js";

const NAMES = {
  self_attention: "self-attention",
  cross_attention: "cross-attention",
  feed_forward: "feed-forward network",
};

export const lensPanel = {
  id: "lens",
  tab: "Layer lens",
  title: "Which piece would each layer write?",
  lead:
    "Each row is a piece that the model wrote; from left to right stands the guess after each " +
    "layer. Early layers are often unsure, or repeat the piece that they read.",
  source:
    "Not in the paper: the “logit lens” (nostalgebraist 2020). The output matrix reads each " +
    "layer's state; the training used only the last one's.",
  build,
};

function build({ stage, app }) {
  const { store } = app;
  return (state) => {
    const { view } = app;
    const step = within(state.step, view.target.length);
    const count = view.layers("decoder");
    const layer = within(state.layer, count);
    const layers = [...Array(count).keys()];
    const head = h(
      "tr",
      {},
      h("th", { scope: "col" }, "piece"),
      layers.map((number) => h("th", { scope: "col" }, `after layer ${number + 1}`)),
    );
    const rows = view.steps.map((traced, place) =>
      h(
        "tr",
        {},
        h("th", { scope: "row" }, view.target[place].label),
        layers.map((number) =>
          h(
            "td",
            {},
            cell(view, { traced, place, number, open: place === step && number === layer }, store),
          ),
        ),
      ),
    );
    const table = h("table", { class: "lens" }, h("thead", {}, head), h("tbody", {}, rows));
    table.addEventListener("keydown", (event) => walk(event, { step, layer, view, store }));
    const drawn = h("div", { class: "scroll" }, table);
    show(stage, beside(stage, 130 * count, drawn, detail(app, step, layer, state)));
  };
}

function cell(view, { traced, place, number, open }, store) {
  const [best] = traced.lens[number];
  const agrees = best.id === view.target[place].id;
  const classes = ["cell", tone(best.probability), agrees && "agrees"].filter(Boolean).join(" ");
  const button = h(
    "button",
    {
      type: "button",
      class: classes,
      "data-key": `lens:${place}:${number}`,
      tabindex: open ? 0 : -1,
      "aria-pressed": String(open),
      "aria-label": `${best.label} ${percent(best.probability)}: step ${place + 1}, layer ${number + 1}`,
      onclick: () => store.set({ step: place, layer: number }),
    },
    best.label,
    " ",
    h("small", {}, percent(best.probability)),
  );
  button.style.setProperty("--share", best.probability);
  return button;
}

function walk(event, { step, layer, view, store }) {
  const move = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] }[
    event.key
  ];
  if (!move) return;
  event.preventDefault();
  const [to, up] = [
    within(step + move[0], view.target.length),
    within(layer + move[1], view.layers("decoder")),
  ];
  event.currentTarget.querySelector(`[data-key="lens:${to}:${up}"]`)?.focus();
  store.set({ step: to, layer: up });
}

function detail(app, step, layer, { box }) {
  const { view } = app;
  const traced = view.steps[step];
  const written = view.target[step];
  const items = traced.lens[layer].map((candidate) => ({
    label: candidate.label,
    value: candidate.probability,
    text: percent(candidate.probability),
    chosen: candidate.id === written.id,
    title: `log-probability ${fixed(candidate.log_probability, 3)}`,
  }));
  const rank = traced.lens_rank[layer] + 1;
  const layers = h(
    "div",
    { "data-lens": "" },
    h("h3", {}, `Step ${step + 1} after layer ${layer + 1}`),
    bars("Candidates of this layer", items),
    h(
      "p",
      { class: "note" },
      `The model wrote ${written.label}: number ${rank} of this layer's candidates.`,
    ),
  );
  const gain = ({ before, after }) => Math.abs(Math.exp(after) - Math.exp(before));
  const most = traced.moves.reduce((a, b) => (gain(b) > gain(a) ? b : a));
  const opened = (move) => move.layer === layer && box === `decoder.${move.kind}`;
  const chosen = traced.moves.find(opened) ?? most;
  return h(
    "div",
    { class: "stage" },
    layers,
    moved(app, step, { most, chosen }),
    around(app, step, chosen),
  );
}

const named = ({ kind, layer }) => `${NAMES[kind]} of layer ${layer + 1}`;

// The change of the written piece's probability by each sublayer.
function moved({ view, store }, step, { most, chosen }) {
  const { moves } = view.steps[step];
  const between = ({ before, after }) =>
    `from ${percent(Math.exp(before))} to ${percent(Math.exp(after))}`;
  const items = moves.map((move) => ({
    label: `${move.layer + 1} ${NAMES[move.kind].replace(" network", "")}`,
    value: move.after - move.before,
    text: move === moves[0] ? "start" : signed(move.after - move.before, 2),
    chosen: move === chosen,
    key: `move:${move.layer}:${move.kind}`,
    title: `${named(move)}: ${between(move)}`,
    onclick: () => store.set({ layer: move.layer, box: `decoder.${move.kind}` }),
  }));
  return h(
    "div",
    { "data-moves": "" },
    h("h3", {}, `What moved “${view.target[step].label}”?`),
    h(
      "p",
      { class: "note" },
      `At step ${step + 1}, the ${named(most)} moved it most: ${between(most)}. ` +
        "A bar is the change of its log-probability: blue up, orange down. They start after the " +
        "first self-attention. The training asks for a right guess only after the last layer.",
    ),
    bars("Change by each sublayer", items, {
      largest: Math.max(0.1, ...items.map(({ value }) => Math.abs(value))),
    }),
  );
}

// The lengths of the vectors around one sublayer, and the way to its sum.
function around(app, step, { kind, layer }) {
  const { input, added, output } = app.view.sublayer(`decoder.${kind}`, layer);
  const [enters, adds, leaves] = [input, added, output].map((lengths) => fixed(lengths[step], 1));
  const part = { self_attention: "decoder", cross_attention: "cross" }[kind];
  return h(
    "div",
    {},
    h(
      "p",
      { class: "note", "data-lengths": "" },
      `A vector of length ${enters} enters the ${named({ kind, layer })}. ` +
        `It adds a vector of length ${adds}, and the sum leaves with length ${leaves}.`,
    ),
    part ? sumButton(app, { part, layer, head: -1 }, step) : null,
  );
}
