// The trace of one translation: what the model computed for it, under the names of
// glassformer/tools/inspection/trace/schema.py. The panels draw it as they draw a server's.

import { pauses } from "./engine.js";
import { idsOf, penalty } from "./search.js";
import { largest, logSum, Matrix } from "./tensor.js";
import { isSpace, words } from "./words.js";

const PIECES = 64; // the most pieces of a side in a trace
const SUBLAYERS = 3; // of a decoder block

const textOf = (piece) => piece.replace(/^▁+/, "") || piece;

export async function traceOf(engine, request, signal) {
  const { about, config, source: tokenizer } = engine;
  const { layer, heads } = about.alignment;
  const unchanged = { heads_off: [], source_order: null, positions_off: false, causal_off: false };
  const changes = { ...unchanged, ...request.changes };
  const model = engine.changed(changes);
  const segments = engine.segments(request.text);
  if (!segments.length)
    throw new Error("The text has no word that the model knows.");
  const [{ text, ids }] = segments;
  const asked = {
    text,
    length_penalty: request.length_penalty ?? about.length_penalty,
    forced_prefix: forcedIds(engine, request.forced_prefix ?? []),
    beam: request.beam ?? 5,
    top: request.top ?? 10,
    reference: request.reference ?? null,
    changes,
  };
  const pieces = piecesOf(tokenizer, [...ids, tokenizer.eosId], text);
  const source = [...reordered(pieces.slice(0, -1), changes.source_order), pieces.at(-1)];
  const sourceIds = source.map(({ id }) => id);
  const eos = config.eos_id;
  const reference = asked.reference === null ? [] : [...engine.target.encode(asked.reference), eos];
  if (reference.length > config.max_length)
    throw new Error(`The reference is longer than this model's ${config.max_length} positions.`);
  const pause = pauses(signal);
  const found = await engine.search(sourceIds.slice(0, -1), {
    beam: asked.beam,
    alpha: asked.length_penalty,
    forced: asked.forced_prefix,
    line: reference,
    model,
    pause,
  });
  const [best] = found.hypotheses;
  if (!best) throw new Error("No translation begins with the prefix.");
  const written = best.ends ? [...best.ids, eos] : best.ids;
  const answer = {
    text: engine.target.decode(best.ids),
    log_probability: best.node.logProbability,
    score: best.score,
    finished: best.ends,
  };

  // The model reads source and answer once more, as in training, and everything is recorded.
  const seen = new Map();
  const read = [config.bos_id, ...written.slice(0, -1)];
  const memory = model.encode(sourceIds, seen);
  model.decode(read, memory, { causal: !changes.causal_off, seen });
  await pause();
  const shown = [sourceIds, written].map((side) => Math.min(side.length, PIECES));
  const run = { engine, model, seen, asked, written, shown };
  const target = piecesOf(engine.target, written, answer.text).slice(0, shown[1]);
  const [start] = piecesOf(engine.target, [config.bos_id], "");
  const lazy = {};
  return {
    version: 1,
    languages: about.languages,
    asked,
    source: side(text, source.slice(0, shown[0]), null),
    target: side(answer.text, target, [start, ...target.slice(0, -1)]),
    answer,
    bounds: boundsOf(sourceIds.length, written.length, segments.length),
    figure: figureOf(about.figure, sourceIds.length, written.length),
    masks: masksOf(shown, changes.causal_off),
    positions: positionsOf(run),
    attention: attentionOf(run),
    sublayers: [...seen].map(([name, each]) => normsOf(run, name, each)),
    steps: stepsOf(run),
    beam: graphOf(engine, found.nodes, written, asked),
    // The panel of erased words alone asks for it: a promise, because it takes as long as the rest.
    get erased() {
      lazy.erased ??= erasedWords(run, source, text, pause);
      return lazy.erased;
    },
    reference: reference.length ? referenceOf(run, sourceIds, reference, answer, found) : null,
    terms: [],
    aligned: heads.map((head) => ({ part: "cross", layer, head })),
  };
}

const side = (text, pieces, read) => ({ text, pieces, read: read ?? pieces, words: words(text) });

// The ids that the target must begin with, as `Vocabulary.wrong_in_prefix` allows them.
function forcedIds({ target, config }, prefix) {
  const ids = typeof prefix === "string" ? target.encode(prefix) : prefix;
  const { pad_id, unk_id, bos_id, eos_id, target_vocab_size } = config;
  const ends = (id, place) => id === eos_id && place === ids.length - 1;
  const special = (id) => [pad_id, unk_id, bos_id, eos_id].includes(id);
  const fits = (id, place) => id >= 0 && id < target_vocab_size && (!special(id) || ends(id, place));
  if (!ids.every(fits))
    throw new Error("The prefix holds a piece that the target's vocabulary lacks.");
  return ids;
}

const reordered = (pieces, order) => (order ? order.map((place) => pieces[place]) : pieces);

// The pieces of a text, with their characters and words.
function piecesOf(tokenizer, ids, text) {
  const letters = [...text];
  const starts = words(text).map(([start]) => start);
  return tokenizer.spans(ids, text).map(([start, end], place) => {
    let first = start; // the first visible place; a space alone belongs to the word behind it
    while (first < letters.length && isSpace(letters[first])) first += 1;
    const word = Math.max(starts.filter((at) => at <= first).length - 1, 0);
    const outside = tokenizer.symbols.has(ids[place]) || !starts.length;
    const piece = tokenizer.subword(ids[place]);
    const shown = { id: ids[place], piece, text: textOf(piece) };
    return { ...shown, start: first < end ? first : start, end, word: outside ? null : word };
  });
}

function boundsOf(source, target, segments) {
  const counts = Object.entries({ source, target }).filter(([, count]) => count > PIECES);
  const left_out = counts.map(
    ([name, count]) => `the ${name} has ${count} pieces; the first ${PIECES} are shown`,
  );
  const parts = `the text has ${segments} parts, which are translated one by one`;
  if (segments > 1) left_out.push(`${parts}; the first is shown`);
  return { source_pieces: source, target_pieces: target, left_out };
}

// The boxes of figure 1 as Python wrote them, -1 for the source's length and -2 for the target's.
function figureOf(boxes, source, target) {
  const lengths = { [-1]: source, [-2]: target };
  const sized = (shape) => shape?.map((size) => lengths[size] ?? size) ?? null;
  return boxes.map((box) => ({
    ...box,
    input_shape: sized(box.input_shape),
    output_shape: sized(box.output_shape),
    inner_shape: sized(box.inner_shape),
  }));
}

const masksOf = ([source, target], causalOff) => ({
  source: Array(source).fill(true),
  target: Array.from({ length: target }, (_, row) =>
    Array.from({ length: target }, (_, column) => causalOff || column <= row),
  ),
});

const packed = (shape, data) => ({ shape, data });

function positionsOf({ model, engine, shown }) {
  const { positions: kind, position_frequencies: frequencies, d_model } = engine.config;
  const table = (name, length) => {
    const rows = Array.from({ length }, (_, place) => model.positions[name].vector(place));
    return packed([length, d_model], Matrix.of(rows).data);
  };
  const tables = { source: table("source", shown[0]), target: table("target", shown[1]) };
  return { kind, frequencies, ...tables };
}

// Scores and weights of each attention, and its queries, keys and values.
function attentionOf({ seen, engine, shown: [source, target] }) {
  const { num_heads: heads, d_model } = engine.config;
  const width = d_model / heads;
  return [...seen].flatMap(([name, { attended }]) => {
    if (!attended.rows) return []; // a feed-forward network
    const [stack, , layer, kind] = name.split(".");
    const part = kind === "cross_attention" ? "cross" : stack;
    const queries = part === "encoder" ? source : target;
    const keys = part === "decoder" ? target : source;
    const map = (field) =>
      byHead([heads, queries, keys], (head, row) => attended.rows[row][head][field]);
    const split = (vectors, count) =>
      byHead([heads, count, width], (head, place) => vectors[place].subarray(head * width));
    return {
      name,
      part,
      layer: Number(layer),
      scores: map("scores"),
      weights: map("weights"),
      query: split(attended.query, queries),
      key: split(attended.keys, keys),
      value: split(attended.values, keys),
    };
  });
}

// `numbers(head, place)` begins with those of a head at a position.
function byHead([heads, places, width], numbers) {
  const data = new Float32Array(heads * places * width);
  for (let head = 0; head < heads; head += 1)
    for (let place = 0; place < places; place += 1)
      data.set(numbers(head, place).subarray(0, width), (head * places + place) * width);
  return packed([heads, places, width], data);
}

function normsOf({ shown }, name, { input, added, output }) {
  const count = name.startsWith("encoder") ? shown[0] : shown[1];
  const lengths = (x) => x.list.slice(0, count).map((row) => Math.hypot(...row));
  return { name, input: lengths(input), added: lengths(added), output: lengths(output) };
}

// Each step of the answer with its candidates. The panel of the layers alone asks for the readings
// of the stream after each sublayer of the decoder; they take as long as the rest.
function stepsOf({ engine, model, seen, asked, written, shown }) {
  const { top, forced_prefix } = asked;
  const forced = Math.max(forced_prefix.length, engine.target.prefix.length);
  const candidate = (id, log) => {
    const piece = engine.target.subword(id);
    return { id, piece, text: textOf(piece), probability: Math.exp(log), log_probability: log };
  };
  const reading = (name) => {
    const states = Matrix.of(seen.get(name).output.list.slice(0, shown[1]));
    return model.project(model.decoder.norm(states)).list.map((row, step) => {
      const [sum, own] = [logSum(row), row[written[step]]];
      return {
        written: candidate(written[step], own - sum),
        rank: row.reduce((count, value) => count + (value > own), 0),
        candidates: largest(row, top).map((id) => candidate(id, row[id] - sum)),
      };
    });
  };
  const names = [...seen.keys()].filter((name) => name.startsWith("decoder"));
  const last = reading(names.at(-1));
  let all = null;
  const readings = () => {
    all ??= [...names.slice(0, -1).map(reading), last];
    return all;
  };
  const layers = (step) =>
    readings().flatMap((rows, place) => (place % SUBLAYERS === SUBLAYERS - 1 ? [rows[step]] : []));
  return last.map((read, step) => ({
    step,
    ...read,
    forced: step < forced,
    get lens() {
      return layers(step).map(({ candidates }) => candidates);
    },
    get lens_rank() {
      return layers(step).map(({ rank }) => rank);
    },
    get sublayers() {
      return readings().map((rows) => rows[step].written.log_probability);
    },
  }));
}

// The tree of the search; the path to the answer, end symbol included.
function graphOf(engine, all, written, { beam, length_penalty }) {
  const kept = all.filter(({ step }) => step < PIECES);
  const places = new Map(kept.map((node, place) => [node, place]));
  const nodes = kept.map((node, id) => {
    const piece = engine.target.subword(node.token);
    return {
      id,
      parent: node.parent ? places.get(node.parent) : null,
      step: node.step,
      token: node.token,
      piece,
      text: textOf(piece),
      step_log_probability: node.logProbability - (node.parent?.logProbability ?? 0),
      log_probability: node.logProbability,
      score: node.logProbability / penalty(Math.max(node.length, 1), length_penalty),
      rank: node.rank,
      status: node.status,
    };
  });
  const last = kept.findLast((node) => {
    const ids = idsOf(node);
    return ids.length <= written.length && ids.every((id, place) => id === written[place]);
  });
  const best = [];
  for (let node = last; node; node = node.parent) best.unshift(places.get(node));
  const finished = nodes.filter(({ status }) => status === "finished");
  finished.sort((a, b) => b.score - a.score);
  return { beam, length_penalty, nodes, best, finished: finished.map(({ id }) => id) };
}

// Erase each word of the source in turn, and measure the change of every target piece.
async function erasedWords({ engine, model, written, shown }, source, text, pause) {
  const target = written.slice(0, shown[1]);
  const of = source.slice(0, shown[0]).map(({ word }) => word);
  const erased = [...new Set(of)].filter((word) => word !== null).sort((a, b) => a - b);
  const logs = (pieces) => engine.logProbabilities(pieces.map(({ id }) => id), target, model);
  const whole = logs(source);
  const changes = [];
  for (const word of erased) {
    await pause();
    const without = logs(source.filter((piece) => piece.word !== word));
    changes.push(without.map((value, step) => value - whole[step]));
  }
  const [letters, spans] = [[...text], words(text)];
  return {
    words: erased.map((word) => letters.slice(...spans[word]).join("")),
    changes,
    totals: changes.map((row) => row.reduce((sum, value) => sum + value, 0)),
  };
}

// The reference's probability, and its way through this search.
function referenceOf({ engine, model, asked }, sourceIds, line, answer, { nodes, followed }) {
  const values = engine.logProbabilities(sourceIds, line, model);
  const total = values.slice(engine.target.prefix.length).reduce((sum, value) => sum + value, 0);
  const score = total / penalty(line.length, asked.length_penalty);
  const found = engine.target.decode(line) === answer.text; // perhaps in other pieces
  const last = followed.at(-1);
  const kept = nodes.filter(({ step, status }) => step === last?.step && status !== "pruned");
  const path = (node) => idsOf(node).every((id, place) => id === line[place]);
  const fell = last && !kept.some(path);
  const lowest = Math.min(...kept.map(({ logProbability }) => logProbability));
  return {
    log_probability: total,
    score,
    fell_off: fell ? last.step : null,
    fell_rank: fell ? last.rank : null,
    margin: fell && Number.isFinite(lowest) ? lowest - last.logProbability : null,
    verdict: found ? "found" : score > answer.score ? "search" : "model",
  };
}
