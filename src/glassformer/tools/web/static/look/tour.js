// A tour of six steps over the panels: each step is a link to a view of the page, and says what the
// reader's own sentence shows there.

import { chosenColumn, chosenMap } from "./attention.js";
import { h, show } from "./dom.js";
import { fixed, percent } from "./numbers.js";
import { within } from "./state.js";

const STEPS = [
  {
    state: { panel: "player", step: 0 },
    see: "The model reads the whole sentence, then writes one piece after the other.",
    learn:
      "A translation is a chain of choices. Press Play: each piece is chosen from all pieces, " +
      "by a probability that depends on the source and on the pieces before it.",
    here: ({ target, steps }) =>
      `“${target[0].label}” is the first, with ${percent(steps[0].written.probability)}.`,
  },
  {
    state: { panel: "positions" },
    see: "Each position has a pattern of sines and cosines of its own.",
    learn:
      "Attention alone does not know the order of words. These patterns are added to the pieces, " +
      "so that “dog bites man” and “man bites dog” differ.",
    here: ({ source }) => `“${source.at(-1).label}” stands at position ${source.length}.`,
  },
  {
    state: {
      panel: "attention",
      box: "encoder.self_attention",
      part: "encoder",
      layer: 0,
      head: 0,
      row: 0,
      column: -1,
    },
    see: "In the encoder, every piece reads every other piece, in several heads at once.",
    learn:
      "A row is one piece's question; blue squares are the pieces whose answer it takes. " +
      "Choose other heads: some look at neighbours, some at related words.",
    here: mostRead,
  },
  {
    state: {
      panel: "masks",
      box: "decoder.self_attention",
      part: "decoder",
      layer: 0,
      head: 0,
      causal: 0,
    },
    see: "In the decoder, the squares above the diagonal are hidden.",
    learn:
      "A piece must not read pieces that are not written yet. Scores of later pieces become −∞, " +
      "and their weights 0: so the model learns all positions of a sentence at once.",
    here: ({ read }) => `“${read[0].label}” reads only itself, “${read.at(-1).label}” reads all.`,
  },
  {
    state: {
      panel: "attention",
      box: "decoder.cross_attention",
      part: "cross",
      layer: -1, // the head that aligns words
      head: -2,
      row: 0,
      column: -1,
    },
    see: "Each target piece reads the source pieces that it translates.",
    learn:
      "Nobody told the model which words belong together. It found them, because reading them " +
      "makes the right piece more probable.",
    here: mostRead,
  },
  {
    state: { panel: "beam" },
    see: "The search keeps several beginnings, and the best whole translation wins.",
    learn:
      "The best first piece may lead to a worse sentence. Beam search follows a few beginnings " +
      "side by side and compares them at the end.",
    here: ({ trace, logProbability }) =>
      `the best of up to ${trace.beam.beam} has log-probability ${fixed(logProbability, 2)}.`,
  },
];

function mostRead(view, state) {
  const map = view.map(chosenMap(view, state));
  const row = within(state.row, map.rows.length);
  return `“${map.rows[row]}” reads “${map.columns[chosenColumn(map, row, -1)]}” most.`;
}

// The bar of the tour; hidden until it begins.
export function tour(app) {
  const { store } = app;
  const el = h("aside", { class: "card tour gone", "aria-label": "Tour", "aria-live": "polite" });
  const go = (number) => {
    store.set({ tour: number, ...STEPS[number - 1]?.state });
    if (el.contains(document.activeElement)) return;
    const next = el.querySelector(".strong") ?? document.querySelector("[data-key=tour]");
    next.focus({ preventScroll: true }); // the keyboard stays with the tour, and with its button
  };
  const update = (state) => {
    const { tour: number } = state;
    const step = STEPS[number - 1];
    el.classList.toggle("gone", !step);
    if (!step) return show(el);
    show(
      el,
      h(
        "p",
        {},
        h("span", { class: "soft" }, `Step ${number} of ${STEPS.length} `),
        h("strong", {}, step.see),
        ` ${step.learn} `,
        h("em", { "data-here": "" }, `Here: ${step.here(app.view, state)}`),
      ),
      h(
        "div",
        { class: "controls" },
        number > 1 ? button("Back", () => go(number - 1)) : null,
        number < STEPS.length
          ? button("Next", () => go(number + 1), "push strong")
          : button("End the tour", () => go(0), "push strong"),
        number < STEPS.length ? button("Leave", () => go(0)) : null,
      ),
    );
  };
  return { el, update, begin: () => go(1) };
}

function button(text, onclick, kind = "push") {
  return h("button", { type: "button", class: kind, "data-key": `tour:${text}`, onclick }, text);
}
