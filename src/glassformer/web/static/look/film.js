// Training film: translations of the same sentence by all weights that the run has kept.

import { h, show, slider } from "./dom.js";
import { matrix, scaleBar } from "./matrix.js";
import { count, fixed } from "./numbers.js";
import { within } from "./state.js";
import { labelled, rowsOf, unpack } from "./view.js";

const MOST = 20; // target pieces of a map; a model that has learnt nothing finds no end

export const filmPanel = {
  id: "film",
  tab: "Film",
  title: "How the model learnt this sentence",
  lead:
    "The model of each kept update translates the same sentence, from before the training to its " +
    "end. The map shows the attention from target to source, mean of all layers and heads.",
  source:
    "Section 5: training. A run keeps the weights of updates 0, 10, 100 and 1,000, and its best " +
    "or last checkpoints.",
  build,
};

function build({ controls, stage, app }) {
  const { store } = app;
  const place = slider("moment", { min: 0, max: 1, key: "film" }, (frame) =>
    store.set({ frame }),
  );
  controls.append(place.el);
  const film = { key: null, frames: [], note: "" };
  const ask = async (view) => {
    Object.assign(film, { key: view.key, frames: [], note: "The model of each kept update translates …" });
    try {
      film.frames = await app.source.film(view);
      film.note = film.frames.length ? "" : "The run of this translator is gone.";
    } catch (error) {
      film.note = error.message;
    }
    draw(store.get());
  };
  const draw = (state) => {
    const { view } = app;
    if (film.key !== view.key) ask(view);
    place.el.hidden = film.frames.length < 2;
    if (!film.frames.length)
      return show(stage, h("p", { class: "note reason", role: "status" }, film.note));
    const number = within(state.frame, film.frames.length);
    place.input.max = film.frames.length - 1;
    place.set(number, moment(film.frames[number]));
    return show(
      stage,
      translations(film.frames, number, store),
      picture(view, film.frames[number], store),
    );
  };
  return draw;
}

const moment = ({ update }) =>
  update ? `after ${count(update)} updates` : "before the first update";

function translations(frames, number, store) {
  const rows = frames.map((frame, place) =>
    h(
      "tr",
      {
        class: place === number ? "chosen" : null,
        "data-frame": place,
        onclick: () => store.set({ frame: place }),
      },
      h("td", { class: "n" }, count(frame.update)),
      h("td", { class: "wrap", title: frame.text }, h("div", { class: "two-lines" }, frame.text)),
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
  const title = `Attention ${moment(frame)}`;
  const rows = frame.pieces.slice(0, MOST).map((piece) => labelled(piece).label);
  const columns = view.source.map((piece) => piece.label);
  return h(
    "div",
    {},
    h("h3", {}, frame.pieces.length > rows.length ? `${title}, the first ${MOST} pieces` : title),
    matrix({
      key: "film",
      title,
      rows,
      columns,
      largest: 1,
      value: (r, c) => values[r][c],
      row: within(store.get().row, rows.length),
      column: within(store.get().column, columns.length),
      onChoose: (r, c) => store.set({ row: r, column: c }),
      axes: ["the next target piece", "source"],
      shown: (r, c) => `${rows[r]} takes ${fixed(values[r][c], 2)} from ${columns[c]}`,
    }),
    scaleBar(1, { label: "weight" }),
  );
}
