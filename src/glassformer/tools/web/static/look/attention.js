// Attention maps: one large, and all layers and heads small.

import { NEEDS_MODEL } from "./api.js";
import { bars } from "./chart.js";
import { choice, disable, h, rove, show } from "./dom.js";
import { matrix, scaleBar, thumbnail } from "./matrix.js";
import { fixed, signed } from "./numbers.js";
import { within } from "./state.js";

export const PART_CHOICE = [
  ["encoder", "Encoder"],
  ["decoder", "Decoder"],
  ["cross", "Target → source"],
];
export const AXES = {
  encoder: ["query: source piece", "key: source piece"],
  decoder: ["query: the decoder's input", "key: the decoder's input so far"],
  cross: ["query: the next target piece", "key: source piece"],
};
const WHY_OFFLINE = `Switching a head off ${NEEDS_MODEL}`;

export const attentionPanel = {
  id: "attention",
  tab: "Attention",
  title: "Which piece reads which",
  lead:
    "Each row is a piece, the query. Blue squares are the pieces that it reads, the keys: its " +
    "weights add up to 1. Each head reads the sentence in its own way.",
  source:
    "Section 3.2, equation 1: softmax(QKᵀ / √dₖ) V. The model computed these maps for this " +
    "sentence; a weight shows how much a query reads, not why.",
  build,
};

// The column of the state; as long as nobody has chosen one, that of the row's largest weight.
export function chosenColumn(map, row, column) {
  if (column >= 0) return within(column, map.columns.length);
  const weights = map.columns.map((_, c) => (map.allowed(row, c) ? map.weight(row, c) : -1));
  return weights.indexOf(Math.max(...weights));
}

// Part, layer and head of the state, within the bounds of this model. As long as nobody has chosen
// others, those that align words: their mean, if all heads of a layer do.
export function chosenMap(view, state, usual = "cross") {
  const part = AXES[state.part] ? state.part : usual;
  const [best] = part === "cross" ? view.aligned : [{ layer: 0, head: 0 }];
  const all = part === "cross" && view.aligned.length === view.heads;
  const layer = state.layer < 0 ? best.layer : state.layer;
  const head = state.head < -1 ? (all ? -1 : best.head) : state.head;
  return {
    part,
    layer: within(layer, view.layers(part === "encoder" ? "encoder" : "decoder")),
    head: head === -1 ? -1 : within(head, view.heads),
  };
}

// The same for a panel of a single head.
export function chosenHead(view, state, usual) {
  const place = chosenMap(view, state, usual);
  return { ...place, head: Math.max(0, place.head) };
}

// Opens the sum behind a square, or behind the row's largest weight. The mean of the heads is no sum
// of its own: it leads to the head with the largest weight there.
export function sumButton({ view, store }, { part, layer, head }, row, square = -1) {
  const column = chosenColumn(view.map({ part, layer, head }), row, square);
  const where = head < 0 ? "this square, in its strongest head" : "this square";
  const weight = (each) => view.map({ part, layer, head: each }).weight(row, column);
  const open = () => {
    const weights = [...Array(view.heads).keys()].map(weight);
    const chosen = head < 0 ? weights.indexOf(Math.max(...weights)) : head;
    store.set({ panel: "worked", box: "", part, layer, head: chosen, row, column });
    document.getElementById("tab-worked").focus(); // the keyboard goes there too
  };
  return h(
    "button",
    { type: "button", class: "push", "data-key": "sum", onclick: open },
    `The sum behind ${square < 0 ? "its largest weight" : where}`,
  );
}

const aligns = (view, { part, layer, head }) =>
  part === "cross" &&
  view.aligned.some((best) => best.layer === layer && (best.head === head || head === -1));

function build({ controls, stage, app }) {
  const { store } = app;
  const parts = choice("Attention of", PART_CHOICE, (part) =>
    store.set({ part, box: "", row: 0, column: -1 }),
  );
  const off = h(
    "button",
    { type: "button", class: "push", "data-key": "head:off", onclick: () => toggle() },
    "Switch this head off",
  );
  controls.append(parts.el, off);
  const reason = app.source.can.heads
    ? null
    : h("p", { class: "note reason" }, disable(off, WHY_OFFLINE));
  if (reason) controls.append(reason);
  const without = { key: "", answer: null, note: "" };
  const toggle = () => {
    const { part, layer, head } = chosenMap(app.view, store.get());
    const name = `${part}.${layer}.${head}`;
    const names = store.get().off.split(",").filter(Boolean);
    // A file has the answers for one head at a time.
    const kept = app.source.live ? names.filter((other) => other !== name) : [];
    store.set({ off: (names.includes(name) ? kept : [...kept, name]).join(",") });
  };
  const ask = async (state) => {
    const key = `${state.off} ${app.view.key}`;
    if (without.key === key || !app.source.can.heads) return;
    Object.assign(without, { key, answer: null, note: state.off ? "Asking the model …" : "" });
    if (!state.off) return;
    try {
      const answer = await app.source.withoutHeads(app.view, state.off.split(","));
      if (without.key === key) Object.assign(without, { answer, note: "" });
    } catch (error) {
      Object.assign(without, { note: error.message });
    }
    draw(store.get());
  };
  const draw = (state) => {
    const { view } = app;
    const place = chosenMap(view, state);
    const names = state.off.split(",").filter(Boolean);
    parts.set(place.part);
    off.textContent = names.includes(`${place.part}.${place.layer}.${place.head}`)
      ? "Switch this head on again"
      : "Switch this head off";
    if (app.source.can.heads) off.disabled = place.head < 0;
    ask(state);
    show(
      stage,
      h(
        "div",
        { class: "map-and-heads" }, // the heads stand below a map that leaves them no room
        large(app, place, state),
        grid(app, place, names),
      ),
      changes(view, names, without),
    );
  };
  return draw;
}

function large(app, place, state) {
  const { view, store } = app;
  const map = view.map(place);
  const title =
    place.head < 0
      ? `Layer ${place.layer + 1}, mean of the heads`
      : `Layer ${place.layer + 1}, head ${place.head + 1}`;
  const row = within(state.row, map.rows.length);
  const column = chosenColumn(map, row, state.column);
  const sum = sumButton(app, place, row, column);
  const drawn = matrix({
    key: "attention",
    title,
    rows: map.rows,
    columns: map.columns,
    row,
    column,
    axes: AXES[place.part],
    largest: 1,
    value: map.weight,
    blocked: (r, c) => !map.allowed(r, c),
    shown: (r, c) =>
      map.allowed(r, c)
        ? `${map.rows[r]} takes ${fixed(map.weight(r, c), 2)} from ${map.columns[c]}`
        : `${map.rows[r]} may not attend to ${map.columns[c]}`,
    onChoose: (r, c) => store.set({ row: r, column: c }),
    onOpen: () => sum.click(),
  });
  const heading = h("h3", {}, aligns(view, place) ? `${title}: it aligns the words` : title);
  return h("div", {}, heading, drawn, scaleBar(1, { label: "weight" }), sum);
}

const headName = (head) => (head < 0 ? "mean of the heads" : `head ${head + 1}`);

// A small map for each layer and head, each a button.
function grid(app, place, names) {
  const { view, store } = app;
  const count = view.layers(place.part === "encoder" ? "encoder" : "decoder");
  const heads = [...Array(view.heads).keys(), -1];
  const rows = [...Array(count).keys()].map((layer) =>
    h(
      "div",
      { class: "row" },
      h("span", {}, `layer ${layer + 1}`),
      heads.map((head) => {
        const on = layer === place.layer && head === place.head;
        const best = aligns(view, { ...place, layer, head }) && head >= 0;
        const dark = names.includes(`${place.part}.${layer}.${head}`);
        return h(
          "button",
          {
            type: "button",
            class: ["head", dark && "off", best && "aligns"].filter(Boolean).join(" "),
            "aria-pressed": String(on),
            tabindex: on ? 0 : -1,
            "data-key": `head:${layer}:${head}`,
            "aria-label": `layer ${layer + 1}, ${headName(head)}${best ? ", aligns words" : ""}${dark ? ", off" : ""}`,
            onclick: () => store.set({ layer, head }),
          },
          thumbnail(view.map({ part: place.part, layer, head }).values),
        );
      }),
    ),
  );
  const headings = h(
    "div",
    { class: "row", "aria-hidden": "true" },
    h("span", {}, ""),
    heads.map((head) => h("small", { class: "head-name" }, head < 0 ? "mean" : `head ${head + 1}`)),
  );
  const el = h(
    "div",
    { class: "heads", role: "group", "aria-label": "Layers and heads" },
    headings,
    rows,
  );
  rove(el, (index) =>
    store.set({ layer: Math.floor(index / heads.length), head: heads[index % heads.length] }),
  );
  const dots = place.part === "cross" ? ": those with a dot align words" : "";
  return h("div", {}, h("h3", {}, `All layers and heads${dots}`), el);
}

// The change of each piece's log-probability without the heads that are off.
function changes(view, names, { answer, note }) {
  if (!names.length) return null;
  const partNames = Object.fromEntries(PART_CHOICE);
  const heads = names
    .map((name) => name.split("."))
    .map(
      ([part, layer, head]) =>
        `${partNames[part]}, layer ${Number(layer) + 1}, head ${Number(head) + 1}`,
    )
    .join("; ");
  if (note || !answer)
    return h("p", { class: "note", role: "status" }, note || "Asking the model …");
  const total = answer.changes.reduce((sum, change) => sum + change, 0);
  return h(
    "div",
    { "data-without": "" },
    h("h3", {}, `Without ${heads}`),
    h(
      "p",
      { class: "note" },
      "Change of each target piece's log-probability after the same pieces before it. Total: ",
      h("strong", { "data-total": "" }, signed(total, 3)),
      answer.translation === null ? "." : `. A free search now writes: ${answer.translation}`,
    ),
    bars(
      "Change of each piece",
      answer.changes.map((change, place) => ({
        label: view.target[place].label,
        value: change,
        text: signed(change, 3),
      })),
      { largest: Math.max(1, ...answer.changes.map(Math.abs)) },
    ),
  );
}
