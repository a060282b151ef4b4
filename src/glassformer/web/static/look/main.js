// The page: Figure 1 on the left, the sentence on top, one panel at a time.

import { createSource, storeKey } from "./api.js";
import { architecture } from "./architecture.js";
import { attentionPanel } from "./attention.js";
import { beamPanel } from "./beam.js";
import { h, rove, show } from "./dom.js";
import { erasePanel } from "./erase.js";
import { filmPanel } from "./film.js";
import { lensPanel } from "./lens.js";
import { masksPanel } from "./masks.js";
import { count } from "./numbers.js";
import { playerPanel } from "./player.js";
import { positionsPanel } from "./positions.js";
import { sentence } from "./sentence.js";
import { createStore, readState, writeState } from "./state.js";
import { tour } from "./tour.js";
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
  filmPanel,
];

async function start() {
  const root = document.getElementById("app");
  const store = createStore();
  setTheme(store.get().theme);
  setSize(store.get().large);
  const source = createSource();
  let app = null;
  if (source.live && !store.get().text) return welcome(root, store);
  try {
    app = { store, source, view: await source.first(store.get()) };
  } catch (error) {
    return welcome(root, store, error);
  }
  root.removeAttribute("aria-busy");
  build(root, app);
}

// Without a sentence: a field to write one.
function welcome(root, store, error = null) {
  const field = h("input", {
    type: "text",
    "aria-label": "Sentence to translate",
    maxlength: 1000,
    value: store.get().text,
  });
  const form = h(
    "form",
    {
      class: "ask",
      onsubmit: (event) => {
        event.preventDefault();
        if (!field.value.trim()) return;
        history.replaceState(
          null,
          "",
          writeState({
            ...readState(""),
            theme: store.get().theme,
            from: store.get().from,
            to: store.get().to,
            text: field.value.trim(),
          }),
        );
        start();
      },
    },
    field,
    h("button", { type: "submit", class: "push strong" }, "Look inside"),
  );
  root.removeAttribute("aria-busy");
  show(
    root,
    h(
      "div",
      { class: "app" },
      h("header", { class: "bar-top" }, h("h1", {}, "Glassformer")),
      h(
        "section",
        { class: "card sentence" },
        h("p", { class: "lead" }, "Write a sentence, and see how this translator translates it."),
        form,
        h("p", { class: "error", role: "alert" }, error?.message ?? ""),
        /API key/.test(error?.message) ? keyForm() : null,
      ),
    ),
  );
  field.focus();
}

// A server with keys: the key stays in this tab, as that of the translator's page does.
function keyForm() {
  const field = h("input", { type: "password", "aria-label": "API key", autocomplete: "off" });
  return h(
    "form",
    {
      class: "ask",
      onsubmit: (event) => {
        event.preventDefault();
        storeKey(field.value.trim());
        start();
      },
    },
    field,
    h("button", { type: "submit", class: "push" }, "Use this key"),
  );
}

function build(root, app) {
  const { store } = app;
  const about = h("p", { class: "about" });
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
        h("button", { type: "button", "data-key": "tour", onclick: guide.begin }, "Tour"),
        sizeSwitch(store),
        themeSwitch(store),
      ),
      guide.el,
      strip.el,
      status,
      h("div", { class: "columns" }, left.el, h("main", {}, right)),
    ),
  );

  const update = (state, before) => {
    about.textContent = described(app.view);
    strip.update(state);
    left.update(state);
    guide.update(state);
    openTab(state, before);
  };
  store.listen(async (state, before) => {
    setTheme(state.theme);
    setSize(state.large);
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
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => update(store.get()));
  update(store.get());
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
        onclick: () => store.set({ panel: panel.id }),
      },
      panel.tab,
    ),
  );
  const list = h("div", { class: "tabs", role: "tablist", "aria-label": "Panels" }, tabs);
  rove(list, (place) => store.set({ panel: PANELS[place].id }));
  const card = h("section", { class: "card panel", id: "panel", role: "tabpanel" });
  container.append(list, card);
  return (state) => {
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
    if (card.firstChild !== el) {
      card.replaceChildren(el);
      const tab = tabs[PANELS.indexOf(panel)];
      list.scrollTo({
        left: tab.offsetLeft - list.offsetLeft - list.clientWidth / 2 + tab.clientWidth / 2,
      });
    }
    update(state);
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
      h("p", { class: "source-of" }, panel.source),
    ),
    controls.childElementCount ? controls : null,
    stage,
  );
  return { el, update };
}

function themeSwitch(store) {
  const order = ["", "light", "dark"];
  const names = { "": "Theme: system", light: "Theme: light", dark: "Theme: dark" };
  const button = h("button", {
    type: "button",
    onclick: () => store.set({ theme: order[(order.indexOf(store.get().theme) + 1) % 3] }),
  });
  const name = (state) => {
    button.textContent = names[state.theme] ?? names[""];
  };
  store.listen(name);
  name(store.get());
  return button;
}

// Everything a third larger, maps included: for a projector.
function sizeSwitch(store) {
  const button = h("button", {
    type: "button",
    "data-key": "large",
    onclick: () => store.set({ large: 1 - store.get().large }),
  });
  const name = ({ large }) => {
    button.textContent = large ? "Smaller" : "Larger";
  };
  store.listen(name);
  name(store.get());
  return button;
}

function setSize(large) {
  document.documentElement.style.zoom = large ? "1.35" : "";
}

function setTheme(theme) {
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
}

start();
