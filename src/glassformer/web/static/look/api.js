// Where traces come from: the server beside this page, or what was stored in the file.

import { createView, labelled } from "./view.js";

const TRACE = "../api/v1/trace";
const FILM = "../api/v1/film";
const KEPT = 24; // answers that are kept, so that going back is at once
const KEY = "glassformer-key"; // where the translator's page keeps the key of a server that asks for one

export function createSource() {
  const stored = document.getElementById("stored");
  return stored ? fromFile(JSON.parse(stored.textContent)) : fromServer();
}

// The offline file: one trace, and what was worked out beforehand.
function fromFile(page) {
  const view = createView(page.trace);
  const never = async () => {
    throw new Error("This needs the model: start it with glassformer look BUNDLE.");
  };
  return {
    live: false,
    can: { heads: Boolean(page.without), changed: Boolean(page.changed) },
    first: async () => view,
    base: async () => view,
    branch: never,
    film: async () => page.film,
    changed: async (_, changes) => answered(page.changed[Object.keys(changes)[0]]),
    withoutHeads: async (_, [name, more]) =>
      more || !page.without[name] ? never() : { changes: page.without[name], translation: null },
  };
}

function answered({ source, text, log_probability }) {
  return { source: source.map(labelled), translation: text, logProbability: log_probability };
}

function fromServer() {
  const kept = new Map();
  const ask = async (question) => {
    const body = JSON.stringify(question);
    if (!kept.has(body)) {
      const answer = post(TRACE, body).then(createView);
      answer.catch(() => kept.delete(body));
      kept.set(body, answer);
      if (kept.size > KEPT) kept.delete(kept.keys().next().value);
    }
    return kept.get(body);
  };
  const base = (state) => ask(question(state));
  return {
    live: true,
    can: { heads: true, changed: true },
    first: base,
    base,
    branch: (view, ids) => ask({ ...again(view), forced_prefix: ids }),
    changed: (view, changes) => ask({ ...again(view), changes }),
    withoutHeads: (view, heads) => withoutHeads(ask, view, heads),
    film: ({ trace }) =>
      post(
        FILM,
        JSON.stringify({
          text: trace.asked.text,
          beam: trace.asked.beam,
          length_penalty: trace.asked.length_penalty,
        }),
      ).catch((error) =>
        Promise.reject(
          error.status === 404 ? new Error("Only `glassformer look` shows the training.") : error,
        ),
      ),
  };
}

// What the address says; what it leaves open is the server's to choose.
function question(state) {
  const said = { text: state.text };
  if (state.beam > 0) said.beam = state.beam;
  if (state.penalty >= 0) said.length_penalty = state.penalty;
  if (state.prefix) said.forced_prefix = state.prefix;
  if (state.reference) said.reference = state.reference;
  if (state.from) said.source = state.from;
  if (state.to) said.target = state.to;
  return said;
}

// The question that a view answers, without what is a list or a change.
function again({ trace }) {
  const { text, beam, length_penalty, forced_prefix } = trace.asked;
  const [source, target] = trace.languages ?? [];
  return { text, beam, length_penalty, forced_prefix, ...(source ? { source, target } : {}) };
}

// Two questions: what the same translation loses, and what would now be written.
async function withoutHeads(ask, view, names) {
  const heads_off = names
    .map((name) => name.split("."))
    .map(([part, layer, head]) => ({ part, layer: Number(layer), head: Number(head) }));
  const said = { ...again(view), changes: { heads_off } };
  const [same, free] = await Promise.all([
    ask({ ...said, forced_prefix: view.target.map((piece) => piece.id) }),
    ask(said),
  ]);
  const changes = view.steps.map(
    (step, place) =>
      (same.steps[place]?.written.log_probability ?? NaN) - step.written.log_probability,
  );
  return { changes, translation: free.translation };
}

async function post(address, body) {
  const key = sessionStorage.getItem(KEY);
  const headers = {
    "Content-Type": "application/json",
    ...(key ? { Authorization: `Bearer ${key}` } : {}),
  };
  let answer;
  try {
    answer = await fetch(address, { method: "POST", headers, body });
  } catch {
    throw new Error("The server does not answer: is `glassformer look` still running?");
  }
  const said = await answer.json().catch(() => null);
  if (!answer.ok)
    throw Object.assign(new Error(said?.error ?? `The server answered ${answer.status}.`), {
      status: answer.status,
    });
  return said;
}
