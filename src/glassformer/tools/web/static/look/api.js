// The source of the traces: this page's server, or the answers stored in the file.

import { asked, post } from "./server.js";
import { createView, labelled } from "./view.js";

const TRACE = "../api/v1/trace";
const TRANSLATORS = "../api/v1/translators";
const CACHED = 24; // answers; a step back shows one at once

// How a reader of the file gets the answers that need the model.
export const NEEDS_MODEL =
  "needs the model. Install Glassformer (pip install 'glassformer[serve]'), then run " +
  "glassformer look BUNDLE.";

export function createSource() {
  const stored = document.getElementById("stored");
  return stored ? fromFile(JSON.parse(stored.textContent)) : fromServer();
}

// The offline file: one trace and precomputed answers.
function fromFile(page) {
  const view = createView(page.trace);
  const never = async () => {
    throw new Error(`This ${NEEDS_MODEL}`);
  };
  return {
    live: false,
    can: { heads: Boolean(page.without), changed: Boolean(page.changed) },
    about: async () => ({ examples: [] }),
    first: async () => view,
    base: async () => view,
    branch: never,
    changed: async (_, changes) => answered(page.changed[Object.keys(changes)[0]]),
    withoutHeads: async (_, [name, more]) =>
      more || !page.without[name] ? never() : { changes: page.without[name], translation: null },
  };
}

function answered({ source, text, log_probability }) {
  return { source: source.map(labelled), translation: text, logProbability: log_probability };
}

function fromServer() {
  const cache = new Map();
  let newest = new AbortController();
  const ask = async (request) => {
    const body = JSON.stringify(request);
    if (cache.has(body)) return cache.get(body);
    const { signal } = newest;
    try {
      const view = createView(await post(TRACE, request, { signal }));
      cache.set(body, view);
      if (cache.size > CACHED) cache.delete(cache.keys().next().value);
      return view;
    } catch (error) {
      if (signal.aborted) await new Promise(() => {}); // nobody waits for this answer
      throw error;
    }
  };
  // A newer sentence ends the work on the one before, and on all that was asked about it.
  const base = (state) => {
    newest.abort();
    newest = new AbortController();
    return ask(requestOf(state));
  };
  return {
    live: true,
    can: { heads: true, changed: true },
    about: async ({ from, to }) => {
      const infos = await asked(TRANSLATORS);
      return infos.find(({ source, target }) => source === from && target === to) ?? infos[0];
    },
    first: base,
    base,
    branch: (view, ids) => ask({ ...again(view), forced_prefix: ids }),
    changed: (view, changes) => ask({ ...again(view), changes }),
    withoutHeads: (view, heads) => withoutHeads(ask, view, heads),
  };
}

// The request of a state; the server has defaults for the rest.
function requestOf(state) {
  const request = { text: state.text };
  if (state.beam > 0) request.beam = state.beam;
  if (state.penalty >= 0) request.length_penalty = state.penalty;
  if (state.prefix) request.forced_prefix = state.prefix;
  if (state.reference) request.reference = state.reference;
  if (state.from) request.source = state.from;
  if (state.to) request.target = state.to;
  return request;
}

// The request that a view answers, without its changes.
function again({ trace }) {
  const { text, beam, length_penalty, forced_prefix } = trace.asked;
  const [source, target] = trace.languages ?? [];
  return { text, beam, length_penalty, forced_prefix, ...(source ? { source, target } : {}) };
}

// Two traces without the heads: of the same translation, and of a free search.
async function withoutHeads(ask, view, names) {
  const heads_off = names
    .map((name) => name.split("."))
    .map(([part, layer, head]) => ({ part, layer: Number(layer), head: Number(head) }));
  const request = { ...again(view), changes: { heads_off } };
  const [same, free] = await Promise.all([
    ask({ ...request, forced_prefix: view.target.map((piece) => piece.id) }),
    ask(request),
  ]);
  const changes = view.steps.map(
    (step, place) =>
      (same.steps[place]?.written.log_probability ?? NaN) - step.written.log_probability,
  );
  return { changes, translation: free.translation };
}
