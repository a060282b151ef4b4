// The page: Figure 1 on the left, the sentence on top, one panel at a time.

import { createSource } from "./api.js";
import { architecture } from "./architecture.js";
import { attentionPanel } from "./attention.js";
import { beamPanel } from "./beam.js";
import { display, sizeSwitch, themeSwitch } from "./display.js";
import { h, rove, show } from "./dom.js";
import { erasePanel } from "./erase.js";
import { lensPanel } from "./lens.js";
import { masksPanel } from "./masks.js";
import { count } from "./numbers.js";
import { playerPanel } from "./player.js";
import { positionsPanel } from "./positions.js";
import { sentence } from "./sentence.js";
import { served } from "./server.js";
import { createStore } from "./state.js";
import { tour } from "./tour.js";
import { welcome } from "./welcome.js";
import { workedPanel } from "./worked.js";

// The parts of the state that need another answer of the model.
const REQUEST = ["text", "from", "to", "beam", "penalty", "prefix", "reference"];
const PANELS = [
  playerPanel,
  attentionPanel,
  masksPanel,
  positionsPanel,
  beamPanel,
  lensPanel,
  workedPanel,
  erasePanel,
];

async function start() {
  const root = document.getElementById("app");
  const store = createStore();
  display(store.get());
  const source = createSource();
  show(root, h("p", { class: "waiting" }, "One moment …"));
  let app = null;
  try {
    const about = await source.about(store.get());
    if (source.live && !store.get().text) {
      if (!about.examples.length) return welcome(root, store, start);
      store.set({ text: about.examples[0] });
    }
    app = { store, source, about, view: await source.first(store.get()) };
  } catch (error) {
    return welcome(root, store, start, error);
  }
  root.removeAttribute("aria-busy");
  build(root, app);
}

function build(root, app) {
  const { store } = app;
  const about = h("p", { class: "about" });
  const translator = app.source.live && served ? h("a", { class: "link" }, "Translator") : null;
  const status = h("p", { class: "note", role: "status", "aria-live": "polite" });
  const strip = sentence(app);
  const left = architecture(app);
  const guide = tour(app);
  const right = h("div", {});
  const openTab = panels(right, app);
  show(
    root,
    h(
      "div",
      { class: store.get().only ? "app only" : "app" },
      h(
        "header",
        { class: "bar-top" },
        h("h1", {}, "Glassformer"),
        about,
        translator,
        h("button", { type: "button", "data-key": "tour", onclick: guide.begin }, "Tour"),
        sizeSwitch(store),
        themeSwitch(store, () => update(store.get())),
      ),
      strip.el,
      status,
      h("div", { class: "columns" }, left.el, h("main", {}, right)),
      guide.el,
    ),
  );

  const update = (state, before) => {
    about.textContent = described(app.view);
    if (translator) translator.href = `../#${new URLSearchParams(translated(app.view))}`;
    root.firstChild.classList.toggle("compact", Boolean(state.tour || state.large));
    strip.update(state);
    left.update(state);
    guide.update(state);
    openTab(state, before);
  };
  store.listen(async (state, before) => {
    display(state);
    const changed = (now, then) => REQUEST.some((name) => now[name] !== then?.[name]);
    if (changed(state, before)) {
      status.textContent = "Asking the model …";
      try {
        const view = await app.source.base(state);
        if (changed(store.get(), state)) return; // a newer request has overtaken this one
        app.view = view;
        status.textContent = "";
      } catch (error) {
        if (!changed(store.get(), state)) status.textContent = error.message;
        return;
      }
    }
    update(store.get(), before);
  });
  if (store.get().only && parent !== window) {
    // The page around this frame gives the frame the height of its panel.
    const report = () => parent.postMessage({ height: root.scrollHeight + 2 }, "*");
    new ResizeObserver(report).observe(root);
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => update(store.get()));
  update(store.get());
}

// The address of the sentence on the translator's page.
function translated({ trace, languages }) {
  const { text } = trace.asked;
  return languages ? { text, source: languages[0], target: languages[1] } : { text };
}

function described(view) {
  const { config } = view;
  const pair = view.languages ? `${view.languages.join(" → ")} · ` : "";
  const layers = `${config.num_encoder_layers}+${config.num_decoder_layers} layers`;
  const heads = `${config.num_heads} heads, d_model ${config.d_model}`;
  return `${pair}${layers}, ${heads} · ${count(view.parameters)} parameters`;
}

// The tabs and the open panel. A panel is built when a person first opens it.
function panels(container, app) {
  const { store } = app;
  const built = new Map();
  const tabs = PANELS.map((panel) =>
    h(
      "button",
      {
        type: "button",
        role: "tab",
        id: `tab-${panel.id}`,
        "aria-controls": "panel",
        onclick: () => store.set({ panel: panel.id, box: "" }),
      },
      panel.tab,
    ),
  );
  const list = h("div", { class: "tabs", role: "tablist", "aria-label": "Panels" }, tabs);
  rove(list, (place) => store.set({ panel: PANELS[place].id, box: "" }));
  const card = h("section", { class: "card panel", id: "panel", role: "tabpanel" });
  container.append(list, card);
  return (state, before) => {
    const panel = PANELS.find(({ id }) => id === state.panel) ?? PANELS[0];
    PANELS.forEach(({ id }, place) => {
      const open = id === panel.id;
      tabs[place].setAttribute("aria-selected", String(open));
      tabs[place].tabIndex = open ? 0 : -1;
    });
    card.setAttribute("aria-labelledby", `tab-${panel.id}`);
    card.dataset.panel = panel.id;
    if (!built.has(panel.id)) built.set(panel.id, create(panel, app));
    const { el, update } = built.get(panel.id);
    const moved = ["panel", "tour", "large"].some((name) => state[name] !== before?.[name]);
    if (card.firstChild !== el) {
      card.replaceChildren(el);
      const tab = tabs[PANELS.indexOf(panel)];
      list.scrollTo({
        left: tab.offsetLeft - list.offsetLeft - list.clientWidth / 2 + tab.clientWidth / 2,
      });
    }
    update(state);
    // Tour and projector: the picture, of which somebody speaks, is on the screen.
    if (moved && (state.tour || state.large)) card.scrollIntoView();
  };
}

function create(panel, app) {
  const controls = h("div", { class: "controls" });
  const stage = h("div", { class: "stage" });
  const update = panel.build({ controls, stage, app });
  const el = h(
    "div",
    {},
    h(
      "header",
      {},
      h("h2", {}, panel.title),
      h("p", { class: "lead" }, panel.lead),
    ),
    controls.childElementCount ? controls : null,
    stage,
    h("p", { class: "source-of" }, panel.source),
  );
  return { el, update };
}

start();
