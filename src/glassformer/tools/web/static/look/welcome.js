// The page without a trace: a field to write a sentence, the reason, and a field for the key.

import { h, show } from "./dom.js";
import { asksForKey, storeKey } from "./server.js";
import { readState, writeState } from "./state.js";

// `start` begins anew, with the address that this leaves.
export function welcome(root, store, start, error = null) {
  const { theme, from, to, text } = store.get();
  const field = h("input", {
    type: "text",
    "aria-label": "Sentence to translate",
    maxlength: 1000,
    value: text,
  });
  const form = ask(field, "Look inside", () => {
    if (!field.value.trim()) return;
    const state = { ...readState(""), theme, from, to, text: field.value.trim() };
    history.replaceState(null, "", writeState(state));
    start();
  });
  root.removeAttribute("aria-busy");
  show(
    root,
    h(
      "div",
      { class: "app" },
      h("header", { class: "bar-top" }, h("h1", {}, "Glassformer")),
      h(
        "main",
        { class: "card sentence" },
        h("p", { class: "lead" }, "Write a sentence, and see how this translator translates it."),
        form,
        h("p", { class: "error", role: "alert" }, error?.message ?? ""),
        error && asksForKey(error) ? keyForm(start) : null,
      ),
    ),
  );
  field.focus();
}

// A server with keys: the key stays in this tab, as that of the translator's page does.
function keyForm(start) {
  const field = h("input", { type: "password", "aria-label": "API key", autocomplete: "off" });
  return ask(field, "Use this key", () => {
    storeKey(field.value.trim());
    start();
  });
}

function ask(field, name, act) {
  const onsubmit = (event) => {
    event.preventDefault();
    act();
  };
  const button = h("button", { type: "submit", class: "push strong" }, name);
  return h("form", { class: "ask", onsubmit }, field, button);
}
