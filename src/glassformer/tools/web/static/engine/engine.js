// A translator in the page: texts in, translations out.
// After glassformer/text_engine.py and translator.py.

import { Doubts } from "./doubts.js";
import { Preprocessing, size } from "./segments.js";
import { beamSearch, OutputRules } from "./search.js";
import { logSum } from "./tensor.js";
import { Tokenizer } from "./tokenizer.js";
import { Transformer } from "./transformer.js";
import { Weights } from "./weights.js";
import { links, words } from "./words.js";

const AT_ONCE = 12; // milliseconds of work, then the page may draw

export function bytesOf(base64) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(base64);
  const letters = atob(base64);
  const bytes = new Uint8Array(letters.length);
  for (let at = 0; at < bytes.length; at += 1) bytes[at] = letters.charCodeAt(at);
  return bytes;
}

// A function to await between steps: the page draws meanwhile, and `signal` may end the work.
export function pauses(signal) {
  let begun = performance.now();
  return async () => {
    if (performance.now() - begun > AT_ONCE) {
      await nextTask();
      begun = performance.now();
    }
    signal?.throwIfAborted();
  };
}

// A message to oneself: a timer would wait for 4 ms.
function nextTask() {
  const { port1, port2 } = new MessageChannel();
  return new Promise((resolve) => {
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(null);
  });
}

export class Engine {
  // `about`: the page's record of the translator; `bytes`: its weights.
  constructor(about, bytes, options) {
    const { config } = about;
    this.about = about;
    this.config = config;
    this.weights = Weights.read(bytes, options);
    this.path = this.weights.store.products.path;
    this.model = new Transformer(this.weights, config);
    const [source, target] = about.tokenizers;
    const tokenizerOf = ({ model, ...given }) => new Tokenizer(bytesOf(model), given);
    this.source = tokenizerOf(source);
    this.target = target ? tokenizerOf(target) : this.source;
    this.preprocessing = new Preprocessing(about.reading);
    const { longest, reading: { spans } } = about;
    this.doubts = new Doubts({ longest, spans, source: this.source, target: this.target });
    this.extra = Math.min(about.extra_length, Math.floor(config.max_length / 2));
  }

  // The model with changes: heads or positions off. It shares the weights.
  changed({ heads_off = [], positions_off = false }) {
    if (!heads_off.length && !positions_off) return this.model;
    const paths = { encoder: "encoder", decoder: "decoder", cross: "decoder" };
    const pathOf = ({ part, layer }) =>
      `${paths[part]}.blocks.${layer}.${part === "cross" ? "cross" : "self"}_attention`;
    return new Transformer(this.weights, this.config, {
      headsOff: (name) => heads_off.filter((head) => pathOf(head) === name).map(({ head }) => head),
      positionsOff: positions_off,
    });
  }

  // The segments of a text with their ids, the end symbol left out.
  segments(text) {
    return this.preprocessing.segments(text, this.source);
  }

  // The hypotheses for source ids, best first, and the tree of the search.
  async search(ids, { beam = 5, alpha, forced = [], most = 1, model = this.model, line, pause }) {
    const { target } = this;
    return beamSearch(
      (tokens, state) => model.step(tokens, state),
      model.start(model.encode([...ids, this.config.eos_id])),
      {
        rules: new OutputRules(this.config, target, forced),
        start: this.config.bos_id,
        longest: ids.length + this.extra + forced.length,
        alpha: alpha ?? this.about.length_penalty,
        beam,
        most,
        line,
        pause,
      },
    );
  }

  // log p of each target piece, given the pieces before it; both sides with their end symbols.
  logProbabilities(source, target, model = this.model) {
    const read = [this.config.bos_id, ...target.slice(0, -1)];
    const logits = model.project(model.decode(read, model.encode(source)));
    return target.map((id, step) => logits.row(step)[id] - logSum(logits.row(step)));
  }

  // The links between the words of a text and of its translation, as spans of characters.
  align(source, target) {
    const { layer, heads, row } = this.about.alignment;
    const ids = [this.source.encode(source), this.target.encode(target)];
    const seen = new Map();
    const memory = this.model.encode([...ids[0], this.config.eos_id]);
    this.model.decode([this.config.bos_id, ...ids[1]], memory, { seen });
    const rows = seen.get(`decoder.blocks.${layer}.cross_attention`).attended.rows;
    const first = row === "output" ? 0 : 1; // the step that writes a piece, or that reads it
    const weights = ids[1].map((_, step) =>
      ids[0].map((_, piece) => {
        const read = heads.map((head) => rows[step + first][head].weights[piece]);
        return read.reduce((sum, weight) => sum + weight, 0) / heads.length;
      }),
    );
    const sides = [
      { words: words(source), pieces: this.source.spans(ids[0], source) },
      { words: words(target), pieces: this.target.spans(ids[1], target) },
    ];
    return links(weights, ...sides).map(([word, place, weight]) => ({
      source: sides[0].words[place],
      target: sides[1].words[word],
      weight,
    }));
  }

  // The target with one word in the place of a run of it at the end, unless the source has a run.
  withoutRun(source, target) {
    const [run, runAtEnd] = this.about.runs.map((each) => new RegExp(each, "u"));
    return run.test(source) ? target : target.replace(runAtEnd, "$1");
  }

  // The translations of one segment, best first, each once and without blank ones.
  async hypotheses(segment, { most, pause }) {
    const beam = Math.max(5, most);
    const found = (await this.search(segment.ids, { beam, most, pause })).hypotheses;
    const byText = new Map();
    for (const { ids, node } of found) {
      const text = this.withoutRun(segment.text, this.target.decode(ids).trim());
      const reading = text.split(/\s+/).join(" ").replace(/(?<!\.) ?[.。．｡।۔።]$/, "");
      if ((reading || !byText.size) && !byText.has(reading))
        byText.set(reading, { text, logProbability: node.logProbability });
    }
    const all = [...byText.values()];
    const [{ logProbability: best }] = all;
    const powers = all.map(({ logProbability }) => Math.exp(logProbability - best));
    const sum = powers.reduce((total, power) => total + power, 0);
    return all.map((each, place) => ({ ...each, share: powers[place] / sum }));
  }

  // A text with its segments, as /api/v1/translate answers; its spans count characters. After each
  // segment `progress` gets the answer so far and the number of all segments.
  async translate(text, { alternatives = 0, signal, progress } = {}) {
    const pause = pauses(signal);
    const count = (end) => size(text.slice(0, end));
    const segments = [];
    let [whole, end] = ["", 0];
    const all = this.segments(text);
    for (const segment of all) {
      const units = (place) => [...segment.text].slice(0, place).join("").length;
      const typed = (place) => size(text.slice(segment.start, segment.places[units(place)]));
      const hypotheses = await this.hypotheses(segment, { most: alternatives + 1, pause });
      for (const each of hypotheses) {
        await pause();
        const found = this.align(segment.text, each.text);
        each.alignment = found.map((link) => ({ ...link, source: link.source.map(typed) }));
        each.doubts = this.doubts.of(segment.text, each.text, found);
        each.text = withoutAddedStop(segment.text, each.text, text[segment.end]);
        if (each === hypotheses[0]) each.text ||= text.slice(segment.start, segment.end);
        const inside = ({ target }) => target[1] <= size(each.text);
        each.alignment = each.alignment.filter(inside);
        if (segment.capitals) each.text = each.text.toUpperCase();
      }
      const between = text.slice(end, segment.start);
      whole += segments.length && ["", " "].includes(between) ? this.preprocessing.gap : between;
      const start = size(whole);
      whole += hypotheses[0].text;
      end = segment.end;
      const source = [count(segment.start), count(end)];
      segments.push({ source, target: [start, size(whole)], hypotheses });
      progress?.({ text: whole, segments: [...segments] }, all.length);
    }
    const doubts = all.length ? [] : this.doubts.ofUnread(text);
    return { text: whole + text.slice(end), segments, doubts };
  }
}

// The translation without a final stop that the segment lacks, if another mark follows it.
function withoutAddedStop(source, target, following) {
  const isAdded = /[\p{L}\p{N}]$/u.test(source) && /^[.,:;!?…。，：；！？]/u.test(following ?? "");
  return isAdded ? target.replace(/(?<!\.) ?[.。．｡।۔።]$/u, "") : target;
}
