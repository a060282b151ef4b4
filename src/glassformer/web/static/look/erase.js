// Erase a word of the source: which written pieces become less likely?

import { bars } from "./chart.js";
import { h, show } from "./dom.js";
import { matrix, scaleBar } from "./matrix.js";
import { count, signed } from "./numbers.js";
import { within } from "./state.js";

export const erasePanel = {
  id: "erase",
  tab: "Erase a word",
  title: "What if a word were not there?",
  lead: "Each row takes one word out of the source and asks the model again for the same translation. A piece that loses much needed that word: a question that weights alone cannot answer.",
  source:
    "Not in the paper; erasure after Li et al. 2016. In nats: −0.69 halves a probability, −2.30 is a tenth of it.",
  build,
};

function build({ stage, app }) {
  const { store } = app;
  return (state) => {
    const { view } = app;
    const { erased } = view.trace;
    if (!erased)
      return show(
        stage,
        h("p", { class: "note reason" }, "This trace was made without erased words."),
      );
    const columns = view.target.map((piece) => piece.label);
    const changes = erased.changes;
    const largest = Math.max(1, ...changes.flat().map(Math.abs));
    const row = within(state.row, erased.words.length);
    const drawn = matrix({
      key: "erase",
      title: "Change of log-probability",
      rows: erased.words,
      columns,
      row,
      column: within(state.column, columns.length),
      axes: ["word that is gone", "piece that is written"],
      largest,
      digits: 1,
      side: Math.max(16, Math.min(34, Math.floor(460 / columns.length))),
      value: (r, c) => changes[r][c],
      shown: (r, c) =>
        `Without “${erased.words[r]}”, ${columns[c]} is ${times(changes[r][c])} (${signed(changes[r][c], 3)})`,
      onChoose: (r, c) => store.set({ row: r, column: c }),
    });
    return show(
      stage,
      h(
        "div",
        { class: columns.length > 28 ? "stage" : "pair" },
        h(
          "div",
          {},
          h("h3", {}, "Change of each piece's log-probability"),
          drawn,
          scaleBar(largest, { signed: true, label: "change in nats", digits: 1 }),
        ),
        h("div", {}, h("h3", {}, "In all"), totals(erased, row, store)),
      ),
    );
  };
}

function times(change) {
  const factor = Math.exp(Math.abs(change));
  if (factor < 1.005) return "as likely as before";
  return `${factor < 100 ? factor.toPrecision(3) : count(factor)} times ${change < 0 ? "less" : "more"} likely`;
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
