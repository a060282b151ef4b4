// What the page shows, whole, as a record that is also the URL: a link shows another the same.

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
  part: "cross",
  layer: 0,
  head: 0,
  step: 0,
  row: 0,
  column: 0,
  word: -1,
  shuffle: 0,
  penaltyView: -1,
  frame: 0,
  theme: "",
  branch: "",
  change: "",
  pruned: 0,
  causal: 0,
  reference: "",
};

export function readState(hash) {
  const said = new URLSearchParams(hash.replace(/^#/, ""));
  const state = { ...DEFAULTS };
  for (const [name, usual] of Object.entries(DEFAULTS)) {
    if (!said.has(name)) continue;
    const value = typeof usual === "number" ? Number(said.get(name)) : said.get(name);
    if (value === value) state[name] = value; // not NaN
  }
  return state;
}

export function writeState(state) {
  const said = new URLSearchParams();
  for (const [name, usual] of Object.entries(DEFAULTS)) {
    if (state[name] !== usual) said.set(name, String(state[name]));
  }
  return `#${said}`;
}

// The one record, who listens to it, and the URL that follows it.
export function createStore(place = location) {
  let state = readState(place.hash);
  const listeners = new Set();
  const tell = (before) => listeners.forEach((listener) => listener(state, before));
  addEventListener("hashchange", () => {
    const before = state;
    state = readState(place.hash);
    tell(before);
  });
  return {
    get: () => state,
    set(change) {
      const before = state;
      state = { ...state, ...change };
      if (Object.keys(change).every((name) => before[name] === state[name])) return;
      history.replaceState(null, "", writeState(state));
      tell(before);
    },
    listen: (listener) => listeners.add(listener),
  };
}

// Keep a whole number within [0, count).
export function within(value, count) {
  return Math.max(0, Math.min(count - 1, Math.trunc(value) || 0));
}
