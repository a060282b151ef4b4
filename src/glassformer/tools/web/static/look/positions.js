// Position vectors, their dot products, and translations without them.

import { NEEDS_MODEL } from "./api.js";
import { lines } from "./chart.js";
import { beside, choice, disable, h, s, show, slider } from "./dom.js";
import { scaleBar } from "./matrix.js";
import { fixed, signed } from "./numbers.js";
import { within } from "./state.js";
import { dot, rowsOf, unpack } from "./view.js";

const FAR = 40; // the largest distance in the plot of the paper's positions
const WHY_OFFLINE = `Shuffling ${NEEDS_MODEL}`;

export const positionsPanel = {
  id: "positions",
  tab: "Positions",
  title: "The position of a piece",
  lead:
    "Without positions “dog bites man” and “man bites dog” are the same bag of pieces. So each " +
    "position adds a pattern of its own: waves, fast in the first columns, slow in the last.",
  source:
    "Section 3.5: PE(pos, 2i) = sin(pos / 10000^(2i/d_model)), PE(pos, 2i+1) = cos of the same.",
  build,
};

function build({ controls, stage, app }) {
  const { store } = app;
  const place = slider("position", { min: 0, max: 1, key: "positions" }, (row) =>
    store.set({ row }),
  );
  const what = choice(
    "Without",
    [
      ["", "Unchanged"],
      ["shuffle", "Source shuffled"],
      ["off", "Without positions"],
    ],
    (kind) => store.set({ change: kind }),
  );
  what.el.setAttribute("aria-label", "Change");
  controls.append(place.el, what.el);
  if (!app.source.can.changed)
    controls.append(h("p", { class: "note reason" }, disable(what.el, WHY_OFFLINE)));
  const asked = { key: "", answer: null, note: "" };
  const ask = async (kind) => {
    const { view } = app;
    const key = `${kind} ${view.key}`;
    if (asked.key === key) return;
    Object.assign(asked, { key, answer: null, note: "Asking the model …" });
    try {
      const changes =
        kind === "off"
          ? { positions_off: true }
          : { source_order: shuffledOrder(view.trace.bounds.source_pieces - 1) };
      const answer = await app.source.changed(view, changes);
      if (asked.key === key) Object.assign(asked, { answer, note: "" });
    } catch (error) {
      asked.note = error.message;
    }
    draw(store.get());
  };
  const draw = (state) => {
    const { view } = app;
    const kind =
      ["shuffle", "off"].includes(state.change) && app.source.can.changed ? state.change : "";
    if (kind) ask(kind);
    const table = rowsOf(unpack(view.trace.positions.source));
    const row = within(state.row, table.length);
    place.input.max = table.length - 1;
    place.set(row, `${row}: ${view.source[row].label}`);
    what.set(kind);
    show(
      stage,
      kind ? outcome(view, kind, asked) : null,
      beside(stage, 460, heatMap(view, table, row), distances(view, table, row)),
    );
  };
  return draw;
}

// The same order for the same length, so that the page repeats its answer.
function shuffledOrder(length) {
  const order = [...Array(length).keys()];
  let seed = 7 + length;
  for (let last = length - 1; last > 0; last -= 1) {
    seed = (seed * 1103515245 + 12345) % 2147483648;
    const other = seed % (last + 1);
    [order[last], order[other]] = [order[other], order[last]];
  }
  return order;
}

function outcome(view, kind, { answer, note }) {
  if (note || !answer) return h("p", { class: "note", role: "status" }, note);
  const title =
    kind === "off"
      ? "Without positions the model reads a bag of pieces"
      : "The source's pieces in another order";
  return h(
    "div",
    { "data-changed": kind },
    h("h3", {}, title),
    h("p", { class: "note" }, `reads: ${answer.source.map((piece) => piece.label).join(" ")}`),
    h("p", { class: "answer" }, "It now writes: ", h("mark", {}, answer.translation)),
    h(
      "p",
      { class: "note" },
      `Log-probability ${fixed(answer.logProbability, 2)}, ` +
        `before ${fixed(view.logProbability, 2)}. Translation before: ${view.translation}`,
    ),
  );
}

// A row for each position of the sentence, a column for each number of its vector.
function heatMap(view, table, row) {
  const [high, left, top] = [Math.max(12, Math.min(26, 340 / table.length)), 96, 4];
  const width = Math.min(560, innerWidth - 60);
  const wide = (width - left) / table[0].length;
  const largest = Math.max(...table.flat().map(Math.abs));
  const cells = table.flatMap((numbers, r) =>
    numbers.map((value, c) =>
      s("rect", {
        x: (left + c * wide).toFixed(2),
        y: top + r * high,
        width: (wide + 0.3).toFixed(2),
        height: high - 1,
        class: value < 0 ? "below" : "above",
        "fill-opacity": (Math.abs(value) / largest).toFixed(2),
      }),
    ),
  );
  const names = view.source.map((piece, r) =>
    s(
      "text",
      {
        x: left - 8,
        y: top + (r + 0.5) * high,
        "text-anchor": "end",
        class: r === row ? "lit" : null,
      },
      `${piece.label.slice(0, 10)}  ${r}`,
    ),
  );
  const here = s("rect", {
    x: left,
    y: top + row * high - 0.5,
    width: width - left,
    height: high,
    class: "here",
  });
  return h(
    "div",
    {},
    h("h3", {}, `Positions of the source: ${table.length} × ${table[0].length}`),
    s(
      "svg",
      {
        class: "matrix wide",
        viewBox: `0 0 ${width} ${top + table.length * high + 4}`,
        role: "img",
        "aria-label": "Position vectors as a heat map",
      },
      cells,
      s("g", { class: "labels" }, names),
      s("g", { class: "glow" }, here),
    ),
    scaleBar(largest, { signed: true, label: "number in the vector" }),
  );
}

// Dot products of the chosen position with others; the paper's depend on the distance alone.
function distances(view, table, row) {
  const { kind, frequencies } = view.trace.positions;
  const products = table.map((other, place) => [place - row, dot(table[row], other)]);
  const waves = kind === "sinusoidal" ? ratesOf(table[0].length, frequencies) : null;
  const points = waves
    ? Array.from({ length: 2 * FAR + 1 }, (_, at) => [
        at - FAR,
        waves.reduce((sum, rate) => sum + Math.cos(rate * (at - FAR)), 0),
      ])
    : products;
  const series = [
    { points },
    ...(waves ? [{ points: products, dots: true }] : []),
  ];
  return h(
    "div",
    {},
    h("h3", {}, "Dot product with its neighbours"),
    lines("Dot product by distance", series, { x: "distance in pieces", mark: 0 }),
    h(
      "p",
      { class: "note" },
      waves
        ? "The dots are this sentence's positions. The product depends on the distance alone, the " +
            "same on both sides, and falls with it: near positions have similar vectors."
        : "This model has learnt its positions: the product may depend on more than the distance.",
    ),
    h(
      "p",
      { class: "readout", "data-dots": "" },
      products
        .filter(([distance]) => Math.abs(distance) <= 2)
        .map(
          ([distance, value]) =>
            `${distance === 0 ? "0" : signed(distance, 0)}: ${fixed(value, 2)}`,
        )
        .join(" · "),
    ),
  );
}

// The frequency of each pair of sine and cosine.
function ratesOf(width, frequencies) {
  const half = width / 2;
  const exponent = frequencies === "paper" ? (i) => i / half : (i) => i / Math.max(1, half - 1);
  return Array.from({ length: half }, (_, i) => 10000 ** -exponent(i));
}
