// A trace in the form that the panels draw. Its fields: glassformer/tools/inspection/trace/schema.py.

import { scaledDotProductAttention } from "../engine/attention.js";

const SUBLAYERS = ["self_attention", "cross_attention", "feed_forward"]; // of a decoder layer
const TYPES = { u8: [Uint8Array, 1], u16: [Uint16Array, 2], f32: [Float32Array, 4] };

// A packed array of any rank: {shape, data}, row by row, `number = offset + scale * stored`. The
// engine's arrays are numbers already.
export function unpack(packed) {
  if (!packed.kind) return packed;
  const bytes = Uint8Array.from(atob(packed.data), (letter) => letter.charCodeAt(0));
  const [Type, width] = TYPES[packed.kind];
  const stored = new Type(bytes.buffer, 0, bytes.length / width);
  const data =
    packed.kind === "f32"
      ? stored
      : Float64Array.from(stored, (value) => packed.offset + packed.scale * value);
  return { shape: packed.shape, data };
}

// Row `index` of the first axis.
export function slice({ shape, data }, index) {
  const size = shape.slice(1).reduce((product, length) => product * length, 1);
  return { shape: shape.slice(1), data: data.subarray(index * size, (index + 1) * size) };
}

// A matrix as an array of rows.
export function rowsOf(matrix) {
  return Array.from({ length: matrix.shape[0] }, (_, row) => [...slice(matrix, row).data]);
}

// A piece with its label, the only place that makes one: `·` before a piece that continues a word.
export function labelled(piece) {
  const special = /^<.*>$/.test(piece.piece);
  const ascii = /^<0x([2-7][0-9A-F])>$/.exec(piece.piece); // a byte that is a whole character
  const text = ascii ? String.fromCharCode(parseInt(ascii[1], 16)) : piece.text;
  const begins = (special && !ascii) || piece.piece.startsWith("▁");
  return { ...piece, special, label: begins ? text || "▁" : `·${text}` };
}

// The text of pieces; joins the UTF-8 bytes of a character that has a piece for each byte.
export function written(pieces) {
  const bytes = pieces.flatMap(({ piece }) => {
    const byte = /^<0x([0-9A-F]{2})>$/.exec(piece);
    return byte ? [parseInt(byte[1], 16)] : [...new TextEncoder().encode(piece)];
  });
  return new TextDecoder().decode(Uint8Array.from(bytes)).replaceAll("▁", " ").trim();
}

export function createView(trace) {
  const [source, target, read] = [trace.source.pieces, trace.target.pieces, trace.target.read].map(
    (pieces) => pieces.map(labelled),
  );
  const attentions = new Map(trace.attention.map((map) => [`${map.part}.${map.layer}`, map]));
  const parts = new Map(trace.figure.map((part) => [part.name, part]));
  const config = configOf(trace, parts);
  const maps = new Map();
  const exact = new Map();
  const labelsOf = { encoder: [source, source], decoder: [read, read], cross: [target, source] };
  const allowedIn = {
    encoder: (_, c) => trace.masks.source[c],
    decoder: (r, c) => trace.masks.target[r][c],
    cross: (_, c) => trace.masks.source[c],
  };

  // If the trace leaves out source pieces, only the stored weights contain their share.
  const whole = (part) => part === "decoder" || trace.bounds.source_pieces === source.length;
  const weightsOf = (part, layer) => {
    const key = `${part}.${layer}`;
    if (!maps.has(key)) maps.set(key, unpack(attentions.get(key).weights));
    return maps.get(key);
  };
  // One head: exact from its queries and keys, or in 8 bits if the trace leaves them out.
  const head = (part, layer, number) => {
    const key = `${part}.${layer}.${number}`;
    if (!exact.has(key))
      exact.set(
        key,
        (whole(part) ? computed : kept)(
          attentions.get(`${part}.${layer}`),
          number,
          allowedIn[part],
        ),
      );
    return exact.get(key);
  };
  const map = ({ part, layer, head: number }) => {
    const [rows, columns] = labelsOf[part].map((pieces) => pieces.map((piece) => piece.label));
    const stored = weightsOf(part, layer);
    const heads = number < 0 ? [...Array(config.num_heads).keys()] : [number];
    const values = mean(heads.map((index) => rowsOf(slice(stored, index))));
    return {
      rows,
      columns,
      values,
      allowed: allowedIn[part],
      weight: (r, c) =>
        heads.reduce((sum, index) => sum + head(part, layer, index).weights[r][c], 0) /
        heads.length,
      score: (r, c) =>
        heads.reduce((sum, index) => sum + head(part, layer, index).scores[r][c], 0) / heads.length,
    };
  };
  const layers = (side) =>
    side === "encoder" ? config.num_encoder_layers : config.num_decoder_layers;
  const means = new Map();
  const meanRow = (part, row) => {
    if (!means.has(part))
      means.set(
        part,
        mean(
          [...Array(layers("decoder")).keys()].map(
            (layer) => map({ part, layer, head: -1 }).values,
          ),
        ),
      );
    return means.get(part)[row];
  };

  return {
    trace,
    key: JSON.stringify(trace.asked),
    languages: trace.languages,
    config,
    source,
    target,
    read,
    map,
    layers,
    sourceText: trace.source.text,
    translation: trace.answer.text,
    logProbability: trace.answer.log_probability,
    heads: config.num_heads,
    aligned: trace.aligned, // the heads that align words
    parameters: trace.figure.reduce((sum, part) => sum + part.parameters, 0),
    readOfSource: (step) => (step === null ? null : meanRow("cross", step)),
    readOfTarget: (step) => meanRow("decoder", step),
    steps: trace.steps.map((step) => ({
      written: step.written,
      forced: step.forced,
      candidates: step.candidates.map(labelled),
      // The engine computes these when a panel asks for them.
      get lens() {
        return step.lens.map((layer) => layer.map(labelled));
      },
      get lens_rank() {
        return step.lens_rank;
      },
      get moves() {
        return movesOf(step);
      },
    })),
    ownOf: (box) => parts.get(pathOf(box, 0))?.own ?? null,
    parametersOf: (box, layer) => parts.get(pathOf(box, layer))?.parameters ?? null,
    sublayer: (box, layer) =>
      trace.sublayers.find(({ name }) => name === pathOf(box, layer)) ?? null,
    worked: (part, layer, number, row) =>
      (whole(part) ? worked : () => null)(
        attentions.get(`${part}.${layer}`),
        number,
        row,
        allowedIn[part],
      ),
  };
}

// The log-probability of the written piece before and after each sublayer of the decoder. The first
// is the start.
function movesOf({ sublayers }) {
  return sublayers.map((after, place) => ({
    layer: Math.floor(place / SUBLAYERS.length),
    kind: SUBLAYERS[place % SUBLAYERS.length],
    before: sublayers[Math.max(0, place - 1)],
    after,
  }));
}

// The stored scores and weights of one head, in 16 and 8 bits.
function kept(attention, number) {
  return {
    scores: rowsOf(slice(unpack(attention.scores), number)),
    weights: rowsOf(slice(unpack(attention.weights), number)),
  };
}

// The queries, keys and values of one head; null if the trace leaves out the vectors.
function vectorsOf({ query, key, value }, number) {
  if (!query || !key || !value) return null;
  return [query, key, value].map((packed) => rowsOf(slice(unpack(packed), number)));
}

// The exact scores and weights of one head.
function computed(attention, number, allowed) {
  const vectors = vectorsOf(attention, number);
  if (!vectors) return kept(attention, number);
  const [queries, keys, values] = vectors;
  const rows = queries.map((query, r) => attend(query, keys, values, (c) => allowed(r, c)));
  return { scores: rows.map(({ scores }) => scores), weights: rows.map(({ weights }) => weights) };
}

// All numbers of one query's sum; null if the trace leaves out the vectors.
function worked(attention, number, row, allowed) {
  const vectors = vectorsOf(attention, number);
  if (!vectors) return null;
  const [{ [row]: q }, keys, values] = vectors;
  const visible = keys.map((_, place) => allowed(row, place));
  const products = keys.map((key) => dot(q, key));
  return { q, keys, values, products, visible, ...attend(q, keys, values, (c) => visible[c]) };
}

const attend = (query, keys, values, allowed) =>
  scaledDotProductAttention(query, keys, values, [0, query.length], allowed);

export function dot(a, b) {
  return a.reduce((sum, value, place) => sum + value * b[place], 0);
}

function mean(matrices) {
  if (matrices.length === 1) return matrices[0];
  return matrices[0].map((row, r) =>
    row.map((_, c) => matrices.reduce((sum, matrix) => sum + matrix[r][c], 0) / matrices.length),
  );
}

// The model's settings, from the figure's parts and the attention maps.
function configOf(trace, parts) {
  const count = (part) => trace.attention.filter((map) => map.part === part).length;
  const size = (name, place) => parts.get(name)?.[place]?.at(-1) ?? 0;
  const output = trace.figure.find((part) => part.name === "output") ?? trace.figure.at(-1);
  const source = parts.get("source_embedding");
  return {
    d_model: source.output_shape.at(-1),
    num_heads: trace.attention[0].weights.shape[0],
    d_ff: size("encoder.blocks.0.feed_forward", "inner_shape"),
    num_encoder_layers: count("encoder"),
    num_decoder_layers: count("cross"),
    norm: parts.has("encoder.norm") ? "pre" : "post",
    source_vocab_size: source.shared_with
      ? output.output_shape.at(-1)
      : source.parameters / source.output_shape.at(-1),
    target_vocab_size: output.output_shape.at(-1),
    tying: output.shared_with ? "target" : "none",
  };
}

// A box of the figure as its path in the model: `encoder.self_attention` of a layer.
function pathOf(box, layer) {
  return box.replace(
    /^(encoder|decoder)\.(self_attention|cross_attention|feed_forward)/,
    `$1.blocks.${layer}.$2`,
  );
}
