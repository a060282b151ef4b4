// The attention sum of one query, with every number from q · k to the head's output.

import { PART_CHOICE, chosenColumn, chosenHead } from "./attention.js";
import { choice, h, show, slider } from "./dom.js";
import { headChoice } from "./masks.js";
import { fixed } from "./numbers.js";
import { within } from "./state.js";

const DIGITS = 3;

export const workedPanel = {
  id: "worked",
  tab: "Worked sum",
  title: "The sum of one query",
  lead: "The model's numbers, step by step: multiply, scale, mask, softmax, and add up the values.",
  source: "Section 3.2.1, equation 1: Attention(Q, K, V) = softmax(QKᵀ / √dₖ) V, for one row of Q.",
  build,
};

function build({ controls, stage, app }) {
  const { store } = app;
  const parts = choice("Sum of", PART_CHOICE, (part) =>
    store.set({ part, box: "", row: 0, column: -1 }),
  );
  const heads = headChoice(app);
  const query = slider("query", { min: 0, max: 1, key: "worked" }, (row) => store.set({ row }));
  controls.append(parts.el, ...heads.elements, query.el);
  return (state) => {
    const { view } = app;
    const place = chosenHead(view, state);
    parts.set(place.part);
    heads.update(place);
    const map = view.map(place);
    const row = within(state.row, map.rows.length);
    const column = chosenColumn(map, row, state.column);
    query.input.max = map.rows.length - 1;
    query.set(row, map.rows[row]);
    const sum = view.worked(place.part, place.layer, place.head, row);
    if (!sum)
      return show(
        stage,
        h(
          "p",
          { class: "note reason" },
          "The sentence is long, so the trace leaves out some vectors of this sum.",
        ),
      );
    return show(
      stage,
      h(
        "div",
        { class: "steps" },
        vectors(sum, map, row, column),
        table(sum, map, column, store),
        weightedSum(sum, map, row, column),
      ),
    );
  };
}

function vectors(sum, map, row, column) {
  const products = sum.q.map((value, place) => value * sum.keys[column][place]);
  return h(
    "section",
    {},
    h(
      "h3",
      {},
      `Multiply the query of ${map.rows[row]} with the key of ${map.columns[column]}, number by number`,
    ),
    strip("q", sum.q),
    strip("k", sum.keys[column]),
    strip("q × k", products),
    h(
      "p",
      { class: "answer" },
      `Their sum, q · k = `,
      h("mark", { "data-product": "" }, fixed(sum.products[column], DIGITS)),
      `; divided by √${sum.q.length} = ${fixed(Math.sqrt(sum.q.length), DIGITS)} it is the score `,
      h("mark", { "data-score": "" }, fixed(sum.scores[column], DIGITS)),
      sum.visible[column] ? ". The mask lets it pass." : ". The mask makes it −∞.",
    ),
  );
}

function strip(name, numbers) {
  const largest = Math.max(...numbers.map(Math.abs), 1e-9);
  return h(
    "div",
    { class: "side" },
    h("span", {}, name),
    h(
      "div",
      { class: "strip", "data-strip": name },
      numbers.map((number) => {
        const cell = h("span", { class: number < 0 ? "below" : null }, fixed(number, 2));
        cell.style.setProperty("--share", (0.42 * Math.abs(number)) / largest);
        return cell;
      }),
    ),
  );
}

const power = (value) => (value < 1e6 ? fixed(value, DIGITS) : value.toExponential(2));

function table(sum, map, column, store) {
  const powers = sum.scores.map((score, place) => (sum.visible[place] ? Math.exp(score) : 0));
  const total = powers.reduce((all, each) => all + each, 0);
  const rows = map.columns.map((label, place) => {
    const visible = sum.visible[place];
    const choose = () => store.set({ column: place });
    const classes = [place === column && "chosen", !visible && "blocked"].filter(Boolean).join(" ");
    return h(
      "tr",
      {
        class: classes,
        tabindex: place === column ? 0 : -1,
        "data-key": `key:${place}`,
        "data-place": place,
        onclick: choose,
        onkeydown: (event) => {
          if (event.key === "Enter" || event.key === " ") {
            event.preventDefault();
            choose();
          }
        },
      },
      h("td", {}, label),
      [
        fixed(sum.products[place], DIGITS),
        fixed(sum.scores[place], DIGITS),
        visible ? "yes" : "no",
        power(powers[place]),
        fixed(sum.weights[place], DIGITS),
      ].map((text) => h("td", { class: "n" }, text)),
    );
  });
  const body = h("tbody", {}, rows);
  body.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const next = within(column + step, rows.length);
    rows[next].focus();
    store.set({ column: next });
  });
  const heads = ["key", "q · k", "score", "allowed", "exp(score)", "weight"].map((name, place) =>
    h("th", { class: place ? "n" : null, scope: "col" }, name),
  );
  return h(
    "section",
    {},
    h("h3", {}, "The score of every key; the softmax turns scores into weights"),
    h(
      "div",
      { class: "scroll" },
      h("table", { "data-worked": "" }, h("thead", {}, h("tr", {}, heads)), body),
    ),
    h(
      "p",
      { class: "answer", "data-softmax": "" },
      `The weight of ${map.columns[column]} is exp(score) over the sum of all: `,
      `${power(powers[column])} / ${power(total)} = `,
      h("mark", {}, fixed(sum.weights[column], DIGITS)),
      ". All weights add up to 1.",
    ),
  );
}

function weightedSum(sum, map, row, column) {
  const share = sum.values[column].map((value) => sum.weights[column] * value);
  return h(
    "section",
    {},
    h("h3", {}, `Multiply the value of ${map.columns[column]} by its weight, and add up those of all keys`),
    strip("v", sum.values[column]),
    strip("weight × v", share),
    h(
      "p",
      { class: "note" },
      `The weighted values of all keys add up to this head's output for ${map.rows[row]}. The ` +
        "outputs of all heads stand side by side and are multiplied by W_O (section 3.2.2).",
    ),
    strip("output", sum.output),
  );
}
