// A SentencePiece model: its file, and its two ways to cut a text.
// After bpe_model.cc and unigram_model.cc of sentencepiece 0.2.3, number for number.

import { characterAt, finderOf, Normalizer, SPACE } from "./normalizer.js";

export const [NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE] = [1, 2, 3, 4, 5, 6];
const [UNIGRAM, BPE] = [1, 2];
const UNKNOWN_PENALTY = 10;
const LARGEST_SUM = 100_000; // of scores; beyond it the sums begin anew
const utf8 = new TextEncoder();
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

// The fields of a protobuf message: [number, value]. A value is a number or bytes.
function* fieldsOf(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  let at = 0;
  const varint = () => {
    let [value, factor] = [0, 1];
    for (;;) {
      const byte = bytes[at++];
      value += (byte & 127) * factor;
      if (byte < 128) return value;
      factor *= 128;
    }
  };
  while (at < bytes.length) {
    const key = varint();
    const kind = key & 7;
    let value;
    if (kind === 0) value = varint();
    else if (kind === 5) [value, at] = [view.getFloat32(at, true), at + 4];
    else if (kind === 1) [value, at] = [view.getFloat64(at, true), at + 8];
    else {
      const length = varint();
      [value, at] = [bytes.subarray(at, at + length), at + length];
    }
    yield [key >>> 3, value];
  }
}

// The message as an object; the fields that `names` does not have are left out.
function message(bytes = new Uint8Array(), names) {
  const known = [...fieldsOf(bytes)].filter(([number]) => names[number]);
  return Object.fromEntries(known.map(([number, value]) => [names[number], value]));
}

const PIECE = { 1: "text", 2: "score", 3: "type" };
const SYMBOLS = { 44: "unknown", 46: "bos", 47: "eos", 48: "pad" };
const TRAINER = { 3: "kind", 24: "suffix", 35: "hasBytes", ...SYMBOLS };
const NORMALIZER = { 2: "map", 3: "prefix", 4: "trim", 5: "escape" };

export class SentencePiece {
  constructor(bytes) {
    const fields = [...fieldsOf(bytes)];
    const { 2: trainer, 3: normalizer, 5: denormalizer } = Object.fromEntries(fields);
    this.pieces = fields.filter(([number]) => number === 1).map(([, value]) => {
      const { text, score = 0, type = NORMAL } = message(value, PIECE);
      return { text: decoder.decode(text), score, type };
    });
    this.trainer = { kind: UNIGRAM, ...message(trainer, TRAINER) };
    // The pieces that a text can hold, and all others, by their texts.
    this.ids = new Map();
    this.reserved = new Map();
    this.pieces.forEach(({ text, type }, id) =>
      ([UNKNOWN, CONTROL, BYTE].includes(type) ? this.reserved : this.ids).set(text, id),
    );
    const userDefined = this.pieces.filter(({ type }) => type === USER_DEFINED);
    this.userDefinedAt = finderOf(userDefined.map(({ text }) => text));
    const { userDefinedAt, trainer: { suffix } } = this;
    this.normalizer = new Normalizer(message(normalizer, NORMALIZER), { userDefinedAt, suffix });
    const back = message(denormalizer, NORMALIZER);
    this.denormalizer = back.map?.length ? new Normalizer(back) : null;
    this.unknown = this.pieces.findIndex(({ type }) => type === UNKNOWN);
    this.least = Infinity;
    for (const { score, type } of this.pieces)
      if (type === NORMAL) this.least = Math.min(this.least, score);
    this.longest = 0;
    for (const text of this.ids.keys()) this.longest = Math.max(this.longest, text.length);
  }

  idOf(text) {
    return this.reserved.get(text) ?? this.ids.get(text) ?? this.unknown;
  }

  // The id of the symbol bos, eos or pad; -1 if the model lacks it.
  symbol(name) {
    const preset = { bos: "<s>", eos: "</s>", pad: "<pad>" }[name];
    const id = this.idOf(decoder.decode(this.trainer[name]) || preset);
    return this.pieces[id]?.type === CONTROL ? id : -1;
  }

  // [piece, id] of each part of the text; bytes where it falls back to them.
  encode(text) {
    const normalised = this.normalizer.normalised(text);
    const cut = this.trainer.kind === BPE ? this.bpe(normalised) : this.unigram(normalised);
    const result = [];
    let unknown = false; // before this piece
    for (const [piece, id] of cut) {
      const now = id === this.unknown;
      if (now && this.trainer.hasBytes)
        for (const byte of utf8.encode(piece)) result.push(this.bytePiece(byte));
      else if (now && unknown) result.at(-1)[0] += piece;
      else result.push([piece, id]);
      unknown = now;
    }
    return result;
  }

  bytePiece(byte) {
    const text = `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`;
    return [text, this.idOf(text)];
  }

  // Byte-pair encoding: the pair with the best score is joined first, of equal ones the leftmost.
  bpe(text) {
    const symbols = [];
    for (let at = 0; at < text.length; ) {
      const userDefined = this.userDefinedAt(text, at);
      const piece = userDefined || characterAt(text, at);
      const place = symbols.length;
      symbols.push({ piece, whole: userDefined !== "", before: place - 1, after: place + 1 });
      at += piece.length;
    }
    const queue = new Queue((a, b) => b.score - a.score || a.left - b.left);
    const halves = new Map(); // of each unused piece: the two that were joined
    const offer = (left, right) => {
      const [a, b] = [symbols[left], symbols[right]];
      if (!a || !b || a.whole || b.whole) return;
      const piece = a.piece + b.piece;
      const id = this.ids.get(piece);
      if (id === undefined) return;
      const { score, type } = this.pieces[id];
      queue.push({ left, right, score, length: piece.length });
      if (type === UNUSED) halves.set(piece, [a.piece, b.piece]);
    };
    for (let place = 1; place < symbols.length; place += 1) offer(place - 1, place);
    for (let best = queue.pop(); best; best = queue.pop()) {
      const { left, right, length } = best;
      const [a, b] = [symbols[left], symbols[right]];
      if (!a.piece || !b.piece || a.piece.length + b.piece.length !== length) continue;
      a.piece += b.piece;
      a.after = b.after;
      if (symbols[b.after]) symbols[b.after].before = left;
      b.piece = "";
      offer(a.before, left);
      offer(left, a.after);
    }
    const segments = (piece) => {
      const id = this.ids.get(piece) ?? this.unknown;
      if (this.pieces[id].type !== UNUSED) return [[piece, id]];
      return halves.get(piece)?.flatMap(segments) ?? [[piece, this.unknown]];
    };
    return symbols.flatMap(({ piece }) => (piece ? segments(piece) : []));
  }

  // Unigram: the most probable path (Viterbi). Sums are float32.
  unigram(text) {
    const ends = [{ sum: 0 }]; // by their places in the text
    const reach = (end, sum, from, id) => {
      if (!ends[end] || sum > ends[end].sum) ends[end] = { sum, from, id };
    };
    const rare = Math.fround(this.least - UNKNOWN_PENALTY);
    for (let at = 0; at < text.length; ) {
      const large = ends[at].sum;
      if (Math.abs(large) > LARGEST_SUM)
        for (const end of ends.slice(at)) if (end) end.sum = Math.fround(end.sum - large);
      const { sum } = ends[at];
      const single = at + characterAt(text, at).length;
      const last = Math.min(text.length, at + this.longest);
      for (let end = single; end <= last; end += 1) {
        const id = this.ids.get(text.slice(at, end));
        if (id === undefined || this.pieces[id].type === UNUSED) continue;
        const { text: piece, score, type } = this.pieces[id];
        const worth = type === USER_DEFINED ? 0.1 * (utf8.encode(piece).length - 1) : score;
        reach(end, Math.fround(Math.fround(worth) + sum), at, id);
      }
      reach(single, Math.fround(rare + sum), at, this.unknown); // below any known piece
      at = single;
    }
    const path = [];
    for (let end = text.length; end > 0; end = ends[end].from)
      path.push([text.slice(ends[end].from, end), ends[end].id]);
    return path.reverse();
  }

  // The text of these ids.
  decode(ids) {
    const { prefix, trim } = this.normalizer;
    let text = "";
    let bytes = [];
    let begun = false; // a space here belongs to the text
    const flush = () => {
      text += textOfBytes(bytes);
      bytes = [];
      begun ||= text !== "";
    };
    for (const id of ids) {
      const { text: piece, type } = this.pieces[id];
      if (type === BYTE) {
        bytes.push(parseInt(piece.slice(3, 5), 16));
        continue;
      }
      flush();
      if (type === CONTROL) continue;
      const lead = !begun && (prefix || trim) && piece.startsWith(SPACE);
      const { unknown } = this.trainer;
      if (type === UNKNOWN) text += unknown ? decoder.decode(unknown) : " ⁇ ";
      else text += piece.slice(lead ? 1 : 0).replaceAll(SPACE, " ");
      begun ||= lead && !trim;
    }
    flush();
    return this.denormalizer?.normalised(text) ?? text;
  }
}

// UTF-8 as text; `lost` stands for each byte that is no part of a character.
export function textOfBytes(bytes, lost = "\ufffd") {
  const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  let text = "";
  for (let at = 0; at < bytes.length; ) {
    const lead = bytes[at];
    const length = lead < 0x80 ? 1 : lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    try {
      text += strict.decode(Uint8Array.from(bytes.slice(at, at + length)));
      at += length;
    } catch {
      text += lost;
      at += 1;
    }
  }
  return text;
}

// A priority queue: `order` is below 0 if the first comes before the second.
class Queue {
  constructor(order) {
    this.items = [];
    this.order = order;
  }

  push(item) {
    const { items, order } = this;
    let at = items.push(item) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (order(items[at], items[parent]) >= 0) break;
      [items[at], items[parent]] = [items[parent], items[at]];
      at = parent;
    }
  }

  pop() {
    const { items, order } = this;
    if (items.length < 2) return items.pop();
    const best = items[0];
    items[0] = items.pop();
    for (let at = 0; ; ) {
      let first = at;
      for (const child of [2 * at + 1, 2 * at + 2])
        if (child < items.length && order(items[child], items[first]) < 0) first = child;
      if (first === at) return best;
      [items[at], items[first]] = [items[first], items[at]];
      at = first;
    }
  }
}
