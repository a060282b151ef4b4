// The page's colours and size. Both pages keep the theme in the browser under one name; a theme in
// the address comes before it.

import { h } from "./dom.js";

const KEY = "theme";
const NAMES = { "": "Theme: system", light: "Theme: light", dark: "Theme: dark" };
let here = ""; // for a browser that keeps nothing for a file

function kept() {
  try {
    return localStorage.getItem(KEY) ?? "";
  } catch {
    return here;
  }
}

function keep(theme) {
  here = theme;
  try {
    if (theme) localStorage.setItem(KEY, theme);
    else localStorage.removeItem(KEY);
  } catch {
    // `here` has it
  }
}

const themeOf = (state) => [state.theme, kept()].find((one) => /^(light|dark)$/.test(one)) ?? "";

export function display(state) {
  const { dataset, style } = document.documentElement;
  const theme = themeOf(state);
  if (theme) dataset.theme = theme;
  else delete dataset.theme;
  style.zoom = state.large ? "1.35" : "";
}

export function themeSwitch(store, redraw) {
  const order = Object.keys(NAMES);
  const button = h("button", {
    type: "button",
    "data-key": "theme",
    onclick: () => {
      keep(order[(order.indexOf(themeOf(store.get())) + 1) % 3]);
      store.set({ theme: "" });
      name(store.get());
      redraw();
    },
  });
  const name = (state) => {
    display(state);
    button.textContent = NAMES[themeOf(state)];
  };
  store.listen(name);
  name(store.get());
  return button;
}

// Everything a third larger, maps included: for a projector.
export function sizeSwitch(store) {
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
