// Figure 1 with clickable boxes, and the facts on the chosen box.

import { h, show } from "./dom.js";
import { drawFigure } from "./figure.js";
import { count, shape } from "./numbers.js";
import { factsOf } from "./parts.js";

const BOX_OF_PANEL = {
  player: "softmax",
  positions: "source_positions",
  beam: "softmax",
  lens: "output",
  erase: "source_embedding",
};
const BOX_OF_PART = {
  encoder: "encoder.self_attention",
  decoder: "decoder.self_attention",
  cross: "decoder.cross_attention",
};

// The box that the open panel is about, as long as nobody has chosen another.
function boxOf({ panel, part }) {
  const usual = panel === "masks" ? "decoder" : "cross";
  return BOX_OF_PANEL[panel] ?? BOX_OF_PART[part] ?? BOX_OF_PART[usual];
}

export function architecture(app) {
  const { store } = app;
  const drawing = h("div", {});
  const facts = h("div", { class: "facts", "aria-live": "polite" });
  const details = h(
    "details",
    { class: "card architecture" },
    h("summary", {}, h("h2", {}, "The model as the paper's Figure 1")),
    drawing,
    facts,
  );
  const wide = matchMedia("(min-width: 1060px)");
  details.open = wide.matches;
  wide.addEventListener("change", () => {
    details.open = wide.matches;
  });
  drawing.addEventListener("keydown", (event) => walk(event, drawing));
  const el = h("aside", { class: "left" }, details);

  const update = (state) => {
    const { view } = app;
    const { config } = view;
    const box = state.box || boxOf(state);
    // The lengths of the whole sentences, with the pieces that the trace leaves out.
    const { source_pieces: source, target_pieces: target } = view.trace.bounds;
    const d = config.d_model;
    show(
      drawing,
      drawFigure({
        pre: config.norm === "pre",
        layers: { encoder: config.num_encoder_layers, decoder: config.num_decoder_layers },
        shapes: {
          encoder: shape([source, d]),
          decoder: shape([target, d]),
          memory: `memory ${shape([source, d])}`,
          logits: shape([target, config.target_vocab_size]),
        },
        ownOf: view.ownOf,
        chosen: box,
        onChoose: (id) => store.set(opened(id, state)),
      }),
    );
    show(facts, card(factsOf(box, view, state), store));
  };
  return { el, update };
}

// A click on an attention box chooses that attention in the panels too.
function opened(id, state) {
  const part = Object.keys(BOX_OF_PART).find((name) => BOX_OF_PART[name] === id);
  return part && part !== state.part ? { box: id, part, row: 0, column: -1 } : { box: id };
}

function card(facts, store) {
  return [
    h("h3", {}, facts.name),
    h("p", {}, facts.text),
    facts.equation ? h("p", { class: "equation" }, facts.equation) : null,
    h(
      "dl",
      {},
      facts.shapes.map(([name, sizes]) => [h("dt", {}, name), h("dd", {}, sizes)]),
      [
        h("dt", {}, "parameters"),
        h(
          "dd",
          { "data-parameters": "" },
          facts.parameters === null ? "none" : count(facts.parameters),
        ),
      ],
      [h("dt", {}, "paper"), h("dd", {}, facts.section)],
    ),
    facts.panel
      ? h(
          "button",
          {
            type: "button",
            class: "push",
            "data-key": "facts:open",
            onclick: () => store.set({ panel: facts.panel }),
          },
          `See it in “${facts.panelName}”`,
        )
      : null,
  ];
}

// Arrow keys go from box to box: up and down a column, left and right between columns.
function walk(event, drawing) {
  const boxes = [...drawing.querySelectorAll("[data-box]")];
  const here = event.target.closest("[data-box]");
  if (!here) return;
  if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    here.dispatchEvent(new MouseEvent("click", { bubbles: true }));
    return;
  }
  const step = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] }[
    event.key
  ];
  if (!step) return;
  event.preventDefault();
  const middle = (element) => {
    const { left, top, width, height } = element.getBoundingClientRect();
    return [left + width / 2, top + height / 2];
  };
  const from = middle(here);
  const ahead = boxes
    .map((box) => ({ box, by: middle(box).map((value, axis) => value - from[axis]) }))
    .filter(({ by }) => by[0] * step[0] + by[1] * step[1] > 4)
    .map(({ box, by }) => ({
      box,
      far: Math.abs(by[0]) * (step[0] ? 1 : 6) + Math.abs(by[1]) * (step[1] ? 1 : 6),
    }))
    .sort((a, b) => a.far - b.far);
  ahead[0]?.box.focus();
}
