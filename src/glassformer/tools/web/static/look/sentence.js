// The subword pieces of source and target. A target piece shades the source by its attention; a
// chosen source piece shades the target pieces by their attention to it.

import { NEEDS_MODEL } from "./api.js";
import { disable, h, rove, show } from "./dom.js";
import { tone } from "./numbers.js";
import { served } from "./server.js";
import { within } from "./state.js";

const WHY_OFFLINE = `Another sentence ${NEEDS_MODEL}`;

export function sentence(app) {
  const { store } = app;
  const field = h("input", {
    type: "text",
    "aria-label": "Sentence to translate",
    "data-key": "text",
    maxlength: 1000,
    spellcheck: false,
    // In a file the engine is near: everything follows the typing.
    oninput: () => !served && translate(field.value.trim(), { typing: true }),
  });
  const fresh = { prefix: "", step: 0, row: 0, column: -1, word: -1, branch: "", reference: "" };
  const translate = (text, how) => store.set({ text, ...fresh }, how);
  const send = h("button", { type: "submit", class: "push strong" }, "Translate");
  const ask = h(
    "form",
    {
      class: "ask",
      onsubmit: (event) => {
        event.preventDefault();
        if (field.value.trim()) translate(field.value.trim());
      },
    },
    field,
    send,
    examples(app.about.examples, translate),
  );
  const reason = app.source.live
    ? null
    : h("p", { class: "note reason" }, disable(ask, WHY_OFFLINE));
  const terms = h("p", { class: "note", "data-terms": "" });
  const bounds = h("p", { class: "note", "data-bounds": "" });
  const [source, target] = [h("div", { class: "pieces" }), h("div", { class: "pieces" })];
  const [from, to] = app.view.languages ?? ["source", "target"];
  const legend = h("p", { class: "legend" });
  const el = h(
    "section",
    { class: "card sentence", "aria-label": "The sentence and its pieces" },
    ask,
    reason,
    h("div", { class: "side" }, h("span", {}, `reads (${from})`), source),
    h("div", { class: "side" }, h("span", {}, `writes (${to})`), target),
    legend,
    terms,
    bounds,
  );
  rove(source, (place) => store.set({ word: place }));
  rove(target, (place) => store.set({ step: place }));

  let view = null;
  const light = (step) => {
    const weights = view.readOfSource(step);
    [...source.children].forEach((piece, place) => shade(piece, weights?.[place] ?? 0));
  };
  const update = (state) => {
    if (view !== app.view) {
      view = app.view;
      terms.textContent = glossaryOf(view.trace);
      legend.textContent = legendOf([...view.source, ...view.target]);
      bounds.textContent = view.trace.bounds.left_out.join(" · ");
      if (document.activeElement !== field) field.value = view.sourceText;
    }
    const step = within(state.step, view.target.length);
    const shaded = state.panel === "player"; // the other panels have maps of their own
    show(
      source,
      view.source.map((piece, place) =>
        chip(piece, place, {
          key: `source:${place}`,
          onclick: () => store.set({ word: state.word === place ? -1 : place }),
          chosen: state.word === place,
          reachable: place === Math.max(0, state.word),
          onpointerenter: () => light(null),
          onpointerleave: () => light(shaded ? step : null),
        }),
      ),
    );
    show(
      target,
      view.target.map((piece, place) =>
        chip(piece, place, {
          key: `target:${place}`,
          onclick: () => store.set({ step: place }),
          chosen: place === step,
          reachable: place === step,
          later: state.panel === "player" && place > step,
          term: view.trace.terms.some(({ pieces }) => pieces.includes(place)),
          onpointerenter: () => light(place),
          onpointerleave: () => light(shaded ? step : null),
        }),
      ),
    );
    light(shaded ? step : null);
    if (state.word >= 0)
      [...target.children].forEach((piece, place) =>
        shade(piece, view.readOfSource(place)[state.word] ?? 0),
      );
  };
  return { el, update };
}

// The signs that stand in these pieces.
function legendOf(pieces) {
  const has = (sign) => pieces.some(({ label }) => sign.test(label));
  return [
    "One box is one piece of a word; </s> ends the text.",
    has(/^·./) ? "A dot before a piece: it continues the word before it." : "",
    has(/^▁/) ? "▁ is a space." : "",
    has(/^<0x/) ? "<0x…> is one byte of a rare character." : "",
  ].join(" ");
}

// Sentences that fit this translator. The page begins with the first one: alone, it needs no button.
function examples(texts, translate) {
  if (texts.length < 2) return null;
  return h(
    "div",
    { class: "examples", role: "group", "aria-label": "Examples" },
    texts.map((text, place) =>
      h(
        "button",
        {
          type: "button",
          class: "push",
          title: text,
          "data-key": `example:${place}`,
          onclick: () => translate(text),
        },
        text,
      ),
    ),
  );
}

// The glossary's terms in the text, whose pieces in the answer are underlined.
function glossaryOf({ terms }) {
  if (terms.length === 0) return "";
  const each = terms.map(
    ({ term, forms, pieces }) =>
      `${term} → ${forms.join(" or ")}${pieces.length ? "" : " (no place)"}`,
  );
  return `The glossary has terms for the underlined pieces: ${each.join("; ")}.`;
}

// A button for one piece; its label starts with `·` if the piece continues a word.
export function chip(
  piece,
  place,
  { key, onclick, chosen, later, term, reachable, onpointerenter, onpointerleave },
) {
  const states = { special: piece.special, chosen, later, term };
  const name = `${piece.label}${place + 1}: piece ${piece.piece}, id ${piece.id}`;
  const classes = ["piece", ...Object.keys(states).filter((name) => states[name])].join(" ");
  return h(
    "button",
    {
      type: "button",
      class: classes,
      "data-key": key,
      tabindex: reachable ? 0 : -1,
      "aria-pressed": chosen === undefined ? null : String(chosen),
      title: name,
      "aria-label": name,
      onclick,
      onpointerenter,
      onpointerleave,
    },
    piece.label,
    h("sup", {}, String(place + 1)),
  );
}

// Shade a piece: 0 none, 1 the full hue.
export function shade(piece, share) {
  piece.style.setProperty("--share", share);
  piece.classList.remove("half", "mid", "dark");
  if (tone(share)) piece.classList.add(tone(share));
}
