// Erase a word: the change of each target piece's log-probability without a source word.

import { bars } from "./chart.js";
import { beside, h, show } from "./dom.js";
import { matrix, scaleBar } from "./matrix.js";
import { count, signed } from "./numbers.js";
import { within } from "./state.js";

export const erasePanel = {
  id: "erase",
  tab: "Erase a word",
  title: "Which pieces need which word?",
  lead:
    "Each row removes one word from the source and scores the same translation again. A piece " +
    "that loses much needs that word: attention weights alone cannot show this.",
  source:
    "Not in the paper: erasure after Li et al. 2016. In nats: −0.69 halves a probability, " +
    "−2.30 divides it by ten.",
  build,
};

function build({ stage, app }) {
  const { store } = app;
  return async (state) => {
    const { view } = app;
    const wait = () => show(stage, h("p", { class: "note" }, "Each word is erased in turn …"));
    const waiting = setTimeout(wait, 100); // the engine of a file computes it now
    const erased = await Promise.resolve(view.trace.erased).catch(() => null);
    clearTimeout(waiting);
    if (!erased || view !== app.view) return; // a newer sentence has ended the work
    const columns = view.target.map((piece) => piece.label);
    const changes = erased.changes;
    const largest = Math.max(1, ...changes.flat().map(Math.abs));
    const row = within(state.row, erased.words.length);
    const side = Math.max(16, Math.min(34, Math.floor(460 / columns.length)));
    const drawn = matrix({
      key: "erase",
      title: "Change of log-probability",
      rows: erased.words,
      columns,
      row,
      column: within(state.column, columns.length),
      axes: ["removed word", "target piece"],
      largest,
      digits: 1,
      side,
      value: (r, c) => changes[r][c],
      shown: (r, c) =>
        `Without “${erased.words[r]}”, ${columns[c]} is ${times(changes[r][c])} ` +
        `(${signed(changes[r][c], 3)})`,
      onChoose: (r, c) => store.set({ row: r, column: c }),
    });
    show(
      stage,
      beside(
        stage,
        110 + columns.length * side,
        h(
          "div",
          {},
          h("h3", {}, "Change of each piece's log-probability"),
          drawn,
          scaleBar(largest, { signed: true, label: "change in nats", digits: 1 }),
        ),
        h("div", {}, h("h3", {}, "Whole translation"), totals(erased, row, store)),
      ),
    );
  };
}

function times(change) {
  const factor = Math.exp(Math.abs(change));
  if (factor < 1.005) return "as likely as before";
  const shown = factor < 100 ? factor.toPrecision(3) : count(factor);
  return `${shown} times ${change < 0 ? "less" : "more"} likely`;
}

function totals(erased, row, store) {
  return bars(
    "Change of the whole translation",
    erased.words.map((word, place) => ({
      label: word,
      value: erased.totals[place],
      text: signed(erased.totals[place], 2),
      chosen: place === row,
      key: `erase:${place}`,
      onclick: () => store.set({ row: place }),
    })),
    { largest: Math.max(...erased.totals.map(Math.abs), 1e-9) },
  );
}
