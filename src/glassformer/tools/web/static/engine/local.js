// In a file, this stands in the place of look/server.js: the engine answers what a server would.

import { bytesOf, Engine } from "./engine.js";
import { traceOf } from "./trace.js";

export const served = false;
export const hasKey = () => false;
export const storeKey = () => {};
export const asksForKey = () => false;

const LETTERS = 20000; // of a text; the page stays quick
const record = document.getElementById("about").textContent;
export const about = JSON.parse(record);

let loaded = null;

// The page's engine.
export function engine() {
  loaded ??= load();
  return loaded;
}

// A new engine; an Error if the file is damaged. `options.wasm`: whether to try WebAssembly.
export const load = (options) => new Engine(about, weights(), options);

function weights() {
  const { dataset, textContent } = document.getElementById("weights");
  try {
    const bytes = bytesOf(textContent);
    const sum = crc32(bytes, crc32(new TextEncoder().encode(record)));
    if (sum === Number(dataset.crc)) return bytes;
  } catch {
    // It is no base64.
  }
  const why = "its numbers are not those that Python wrote";
  throw new Error(`This file is damaged: ${why}. Get it anew.`);
}

// The checksum of zip and PNG; `before`: that of the bytes before these.
function crc32(bytes, before = 0) {
  const table = Uint32Array.from({ length: 256 }, (_, byte) => {
    let value = byte;
    for (let bit = 0; bit < 8; bit += 1) value = (value >>> 1) ^ (value & 1 ? 0xedb88320 : 0);
    return value;
  });
  let sum = ~before;
  for (let at = 0; at < bytes.length; at += 1) sum = table[(sum ^ bytes[at]) & 255] ^ (sum >>> 8);
  return ~sum >>> 0;
}

const [source, target] = about.languages ?? ["source", "target"];
const { data, pairs } = about.facts;
const learnt = pairs ? `${data} (${Number(pairs).toLocaleString()} pairs)` : data;

const ANSWERS = {
  languages: () => [
    { code: source, name: source, targets: [target] },
    { code: target, name: target, targets: [] },
  ],
  "frontend/settings": () => ({
    charLimit: LETTERS,
    keyRequired: false,
    supportedFilesFormat: [],
    fileMegabytes: 0,
    fileCharLimit: 0,
  }),
  "api/v1/translators": () => [
    {
      source,
      target,
      parameters: about.parameters,
      learnt_from: data ? learnt : null,
      through: null,
      examples: about.examples,
    },
  ],
  "api/v1/trace": async (request, signal) =>
    isFirst(request) ? about.first : traceOf(engine(), request, signal),
  "api/v1/translate": async ({ q, alternatives }, signal, progress) => ({
    documents: [await engine().translate(q, { alternatives, signal, progress })],
  }),
};

// The file holds the answer of the first question, so that the page shows at once.
function isFirst({ text, source: from, target: to, ...more }) {
  return Boolean(about.first) && about.first.asked.text === text && !Object.keys(more).length;
}

export async function asked(address, { content, signal, progress } = {}) {
  return ANSWERS[address.replace(/^(\.\.\/)*/, "")](content, signal, progress);
}

export const post = (address, content, more) => asked(address, { content, ...more });
