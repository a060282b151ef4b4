// Training film: the same sentence, seen by the run's checkpoints one after the other.

import { h, show, slider } from "./dom.js";
import { matrix, scaleBar } from "./matrix.js";
import { count, fixed } from "./numbers.js";
import { within } from "./state.js";
import { labelled, rowsOf, unpack } from "./view.js";

export const filmPanel = {
  id: "film",
  tab: "Training film",
  title: "How it learnt this sentence",
  lead: "The checkpoints that the training has kept, each asked to translate the same sentence; the map is the attention from target to source, the mean of all layers and heads.",
  source:
    "Section 5: training. Checkpoints: those that glassformer train has kept, which are its best or last.",
  build,
};

function build({ controls, stage, app }) {
  const { store } = app;
  const place = slider("checkpoint", { min: 0, max: 1, key: "film" }, (frame) =>
    store.set({ frame }),
  );
  controls.append(place.el);
  const seen = { key: null, frames: [], note: "" };
  const ask = async (view) => {
    Object.assign(seen, { key: view.key, frames: [], note: "Asking the checkpoints …" });
    try {
      seen.frames = (await app.source.film(view)) ?? [];
      seen.note = seen.frames.length
        ? ""
        : "There are no checkpoints beside this translator: a training that still has its checkpoints shows them here.";
    } catch (error) {
      seen.note = error.message;
    }
    draw(store.get());
  };
  const draw = (state) => {
    const { view } = app;
    if (seen.key !== view.key) ask(view);
    place.el.hidden = seen.frames.length < 2;
    if (!seen.frames.length)
      return show(stage, h("p", { class: "note reason", role: "status" }, seen.note));
    const number = within(state.frame, seen.frames.length);
    place.input.max = seen.frames.length - 1;
    place.set(number, `update ${count(seen.frames[number].update)}`);
    return show(stage, said(seen.frames, number, store), picture(view, seen.frames[number], store));
  };
  return draw;
}

function said(frames, number, store) {
  const rows = frames.map((frame, place) =>
    h(
      "tr",
      {
        class: place === number ? "chosen" : null,
        "data-frame": place,
        onclick: () => store.set({ frame: place }),
      },
      h("td", { class: "n" }, count(frame.update)),
      h("td", { class: "wrap" }, frame.text),
      h("td", { class: "n" }, fixed(frame.log_probability, 2)),
    ),
  );
  const heads = ["update", "translation", "log P"].map((name, place) =>
    h("th", { scope: "col", class: place === 1 ? null : "n" }, name),
  );
  return h(
    "div",
    { class: "scroll" },
    h("table", {}, h("thead", {}, h("tr", {}, heads)), h("tbody", {}, rows)),
  );
}

function picture(view, frame, store) {
  const values = rowsOf(unpack(frame.weights));
  const rows = frame.pieces.map((piece) => labelled(piece).label);
  const columns = view.source.map((piece) => piece.label);
  return h(
    "div",
    {},
    h("h3", {}, `After ${count(frame.update)} updates`),
    matrix({
      key: "film",
      title: "Attention to the source",
      rows,
      columns,
      largest: 1,
      value: (r, c) => values[r][c],
      row: within(store.get().row, rows.length),
      column: within(store.get().column, columns.length),
      onChoose: (r, c) => store.set({ row: r, column: c }),
      axes: ["the piece that is being written", "source"],
      shown: (r, c) => `${rows[r]} takes ${fixed(values[r][c], 2)} from ${columns[c]}`,
    }),
    scaleBar(1, { label: "weight" }),
  );
}
