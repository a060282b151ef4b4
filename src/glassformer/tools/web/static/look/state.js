// The state of the page, one record that is also the URL: a link opens the same view.

const DEFAULTS = {
  text: "",
  from: "",
  to: "",
  prefix: "",
  beam: 0,
  penalty: -1,
  off: "",
  panel: "player",
  box: "",
  part: "",
  layer: -1, // not chosen
  head: -2, // not chosen; -1: the mean of the heads
  step: 0,
  row: 0,
  column: -1, // not chosen
  word: -1,
  penaltyView: -1,
  theme: "",
  branch: "",
  change: "",
  pruned: 0,
  causal: 0,
  reference: "",
  large: 0, // 1: for a projector
  tour: 0, // the open step, from 1
  only: 0, // 1: the open panel alone, as a figure of another page
};

export function readState(hash) {
  const parameters = new URLSearchParams(hash.replace(/^#/, ""));
  const state = { ...DEFAULTS };
  for (const [name, preset] of Object.entries(DEFAULTS)) {
    if (!parameters.has(name)) continue;
    const value = typeof preset === "number" ? Number(parameters.get(name)) : parameters.get(name);
    if (value === value) state[name] = value; // not NaN
  }
  return state;
}

export function writeState(state) {
  const parameters = new URLSearchParams();
  for (const [name, preset] of Object.entries(DEFAULTS)) {
    if (state[name] !== preset) parameters.set(name, String(state[name]));
  }
  return `#${parameters}`;
}

// The record, its listeners, and the URL that follows it.
export function createStore(place = location) {
  let state = readState(place.hash);
  const listeners = new Set();
  const notify = (before) => listeners.forEach((listener) => listener(state, before));
  addEventListener("hashchange", () => {
    const before = state;
    state = readState(place.hash);
    notify(before);
  });
  return {
    get: () => state,
    // `typing`: the address follows, and "Back" does not go through each letter.
    set(change, { typing = false } = {}) {
      const before = state;
      state = { ...state, ...change };
      if (Object.keys(change).every((name) => before[name] === state[name])) return;
      // "Back" goes to the panel, sentence or step of the tour before.
      const opens = ["text", "panel", "tour"].some((name) => before[name] !== state[name]);
      history[opens && !typing ? "pushState" : "replaceState"](null, "", writeState(state));
      notify(before);
    },
    listen: (listener) => listeners.add(listener),
  };
}

// Keep a whole number within [0, count).
export function within(value, count) {
  return Math.max(0, Math.min(count - 1, Math.trunc(value) || 0));
}
