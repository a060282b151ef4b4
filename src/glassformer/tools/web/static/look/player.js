// Decoding step by step: the input, the visible pieces, and the candidates of each step.

import { NEEDS_MODEL } from "./api.js";
import { bars } from "./chart.js";
import { disable, h, show, slider } from "./dom.js";
import { fixed, percent } from "./numbers.js";
import { chip, shade } from "./sentence.js";
import { within } from "./state.js";

const PACE = 1100; // milliseconds for each step
const WHY_OFFLINE = `Another candidate ${NEEDS_MODEL}`;

export const playerPanel = {
  id: "player",
  tab: "Step by step",
  title: "One piece after another",
  lead:
    "The decoder reads the translation so far and attends to the source. " +
    "It gives each piece of the vocabulary a probability, writes one piece, and starts again.",
  source:
    "Section 3.1: auto-regressive; section 3.4: softmax over the vocabulary; section 6.1: beam search.",
  build,
};

function build({ controls, stage, app }) {
  const { store } = app;
  const last = () => app.view.target.length - 1;
  const go = (step) => store.set({ step: Math.max(0, Math.min(last(), step)) });
  const push = (name, text, act, kind = "push") =>
    h(
      "button",
      {
        type: "button",
        class: kind,
        "aria-label": name,
        "data-key": `player:${name}`,
        onclick: act,
      },
      text,
    );
  const place = slider("step", { min: 0, max: 1 }, go);
  let timer = null;
  const stop = () => {
    clearInterval(timer);
    timer = null;
    play.textContent = "▶ Play";
  };
  const start = () => {
    if (timer) return stop();
    if (store.get().step >= last()) go(0);
    play.textContent = "❚❚ Pause";
    timer = setInterval(
      () =>
        store.get().step >= last() || store.get().panel !== "player"
          ? stop()
          : go(store.get().step + 1),
      PACE,
    );
  };
  const play = push("Play", "▶ Play", start, "push strong");
  controls.append(
    push("Step back", "◀", () => go(store.get().step - 1)),
    play,
    push("Step on", "▶", () => go(store.get().step + 1)),
    place.el,
  );

  const field = h("input", {
    type: "text",
    "aria-label": "Beginning of the translation",
    placeholder: "Begin with …",
    maxlength: 1000,
    "data-key": "player:prefix",
  });
  const prefix = h(
    "form",
    {
      class: "ask expected",
      onsubmit: (event) => {
        event.preventDefault();
        store.set({ prefix: field.value.trim(), branch: "", step: 0 });
      },
    },
    field,
    h("button", { type: "submit", class: "push" }, "Go on"),
  );
  if (!app.source.live) disable(prefix, WHY_OFFLINE);
  const branch = { key: "", view: null, note: "" };
  const branchOff = async (state) => {
    const { view } = app;
    const key = `${state.branch} ${view.key}`;
    if (branch.key === key) return;
    Object.assign(branch, { key, view: null, note: "The model goes on from there …" });
    const [step, id] = state.branch.split(":").map(Number);
    try {
      const answer = await app.source.branch(view, [
        ...view.target.slice(0, step).map((piece) => piece.id),
        id,
      ]);
      if (branch.key === key) Object.assign(branch, { view: answer, note: "" });
    } catch (error) {
      branch.note = error.message;
    }
    draw(store.get());
  };
  const draw = (state) => {
    const { view } = app;
    if (state.branch) branchOff(state);
    if (document.activeElement !== field) field.value = state.prefix;
    const step = within(state.step, view.target.length);
    place.input.max = last();
    place.set(step, `${step + 1} of ${view.target.length}`);
    show(
      stage,
      sentenceOf(view, step),
      h("div", { class: "pair" }, visiblePieces(view, step), candidates(app, step)),
      state.branch ? both(view, branch, state) : null,
      h("div", {}, h("h3", {}, "Another beginning"), prefix),
    );
  };
  return draw;
}

function sentenceOf(view, step) {
  const read = view.read[step];
  const written = view.target[step];
  return h(
    "p",
    { class: "answer" },
    "It reads ",
    h("mark", { "data-reads": "" }, read.label),
    view.steps[step].forced ? " and is forced to write " : " and writes ",
    h("mark", { "data-writes": "" }, written.label),
    ".",
    view.trace.terms
      .filter(({ pieces }) => pieces.includes(step))
      .map(({ term, forms }) => ` The glossary has a term for it: ${term} → ${forms.join(" or ")}.`),
  );
}

// The visible pieces: the whole source by cross-attention, the target up to this step.
function visiblePieces(view, step) {
  const weights = view.readOfSource(step);
  const targetWeights = view.readOfTarget(step);
  const row = (pieces, shares, key, later) =>
    h(
      "div",
      { class: "pieces" },
      pieces.map((piece, place) => {
        const element = chip(piece, place, {
          key: `${key}:${place}`,
          later: later && place > step,
        });
        element.disabled = true;
        shade(element, shares?.[place] ?? 0);
        return element;
      }),
    );
  return h(
    "div",
    {},
    h("h3", {}, "Visible pieces"),
    h(
      "p",
      { class: "note" },
      "The whole source, shaded by the weights of the attention from target to source " +
        "(mean of all layers and heads)",
    ),
    row(view.source, weights, "see-source", false),
    h("p", { class: "note" }, "The target up to this step; the mask hides later pieces"),
    row(view.read, targetWeights, "see-target", true),
  );
}

function candidates(app, step) {
  const { view, source, store } = app;
  const { candidates: likely } = view.steps[step];
  const written = view.target[step].id;
  const rows = likely.map((candidate) => ({
    label: candidate.label,
    value: candidate.probability,
    text: percent(candidate.probability),
    chosen: candidate.id === written,
    key: `candidate:${candidate.id}`,
    title: `${candidate.piece}, id ${candidate.id}: log-probability ${fixed(Math.log(candidate.probability), 3)}`,
    onclick:
      source.live && candidate.id !== written
        ? () => store.set({ branch: `${step}:${candidate.id}` })
        : null,
  }));
  const rest = Math.max(0, 1 - likely.reduce((sum, candidate) => sum + candidate.probability, 0));
  return h(
    "div",
    { "data-candidates": step },
    h("h3", {}, "Candidates for the next piece"),
    bars("Candidates", rows),
    h(
      "p",
      { class: "note" },
      `All other pieces together: ${percent(rest)}. `,
      source.live ? "Choose another candidate to go on from it." : WHY_OFFLINE,
    ),
  );
}

// The translation beside the one that goes on from another candidate.
function both(view, branch, state) {
  if (branch.note || !branch.view) return h("p", { class: "note", role: "status" }, branch.note);
  const column = (title, other) =>
    h(
      "div",
      {},
      h("h3", {}, title),
      h(
        "div",
        { class: "pieces" },
        other.target.map((piece, place) => {
          const element = chip(piece, place, {
            key: `branch:${title}:${place}`,
            chosen: place === Number(state.branch.split(":")[0]),
          });
          element.disabled = true;
          return element;
        }),
      ),
      h(
        "p",
        { class: "note" },
        `${other.translation} · log-probability ${fixed(other.logProbability, 3)}`,
      ),
    );
  return h(
    "div",
    { class: "pair", "data-branches": state.branch },
    column("As it was", view),
    column("From the other candidate", branch.view),
  );
}
