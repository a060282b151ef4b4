// A SentencePiece model: its file, its normalisation, and its two ways to cut a text.
// After sentencepiece's normalizer.cc, bpe_model.cc and unigram_model.cc, with the same numbers.

export const SPACE = "▁";
export const [NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE] = [1, 2, 3, 4, 5, 6];
const [UNIGRAM, BPE] = [1, 2];
const UNKNOWN_PENALTY = 10;
const utf8 = new TextEncoder();

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
function message(bytes, names, preset = {}) {
  const known = [...fieldsOf(bytes)].filter(([number]) => names[number]);
  return { ...preset, ...Object.fromEntries(known.map(([number, v]) => [names[number], v])) };
}

const TRAINER = { 3: "kind", 24: "suffix", 35: "bytes", 40: "unk", 41: "bos", 42: "eos", 43: "pad" };
const NORMALIZER = { 2: "map", 3: "prefix", 4: "trim", 5: "escape" };

export class SentencePiece {
  constructor(bytes) {
    const decoder = new TextDecoder();
    this.pieces = [];
    let [trainer, normalizer, denormalizer] = [new Uint8Array(), new Uint8Array(), null];
    for (const [number, value] of fieldsOf(bytes)) {
      if (number === 1) {
        const { text, score, type } = message(value, { 1: "text", 2: "score", 3: "type" });
        this.pieces.push({ text: decoder.decode(text), score: score ?? 0, type: type ?? NORMAL });
      } else if (number === 2) trainer = value;
      else if (number === 3) normalizer = value;
      else if (number === 5) denormalizer = value;
    }
    this.trainer = message(trainer, TRAINER, { kind: UNIGRAM });
    this.rules = message(normalizer, NORMALIZER, { prefix: 1, trim: 1, escape: 1 });
    const after = message(denormalizer ?? new Uint8Array(), NORMALIZER);
    this.map = this.rules.map?.length ? new CharacterMap(this.rules.map) : null;
    this.mapBack = after.map?.length ? new CharacterMap(after.map) : null;
    // The pieces that a text can hold, and all others, by their texts.
    this.ids = new Map();
    this.reserved = new Map();
    this.userDefined = [];
    this.pieces.forEach(({ text, type }, id) => {
      (type === UNKNOWN || type === CONTROL || type === BYTE ? this.reserved : this.ids).set(text, id);
      if (type === USER_DEFINED) this.userDefined.push(text);
    });
    this.userDefined.sort((a, b) => b.length - a.length); // the longest first
    this.unknown = this.pieces.findIndex(({ type }) => type === UNKNOWN);
    const scores = this.pieces.filter(({ type }) => type === NORMAL).map(({ score }) => score);
    this.scores = [Infinity, -Infinity];
    for (const score of scores)
      this.scores = [Math.min(this.scores[0], score), Math.max(this.scores[1], score)];
    this.longest = Math.max(...[...this.ids.keys()].map((text) => text.length), 1);
  }

  idOf(text) {
    return this.reserved.get(text) ?? this.ids.get(text) ?? this.unknown;
  }

  // The user-defined piece at this place of the text, or "".
  userDefinedAt(text, place) {
    return this.userDefined.find((piece) => text.startsWith(piece, place)) ?? "";
  }

  // The text as the model cuts it: characters mapped, spaces as ▁.
  normalised(text) {
    const { prefix, trim, escape } = this.rules;
    const parts = [];
    for (let at = 0; at < text.length; ) {
      const own = this.userDefinedAt(text, at);
      const [written, read] = own
        ? [own, own.length]
        : (this.map?.longestAt(text, at) ?? [characterAt(text, at), characterAt(text, at).length]);
      parts.push(written);
      at += read;
    }
    let first = 0;
    if (trim) while (parts[first] === " ") first += 1;
    if (first === parts.length) return "";
    const space = escape ? SPACE : " ";
    let result = prefix && !this.trainer.suffix ? space : "";
    let after = Boolean(trim); // a space
    for (let part of parts.slice(first)) {
      if (after) part = part.replace(/^ +/, "");
      if (part) {
        result += part.replaceAll(" ", space);
        after = part.endsWith(" ");
      }
      if (!trim) after = false;
    }
    if (trim) while (result.endsWith(space)) result = result.slice(0, -space.length);
    return prefix && this.trainer.suffix ? result + space : result;
  }

  // [piece, id] of each part of the text; bytes where it falls back to them.
  encode(text) {
    const normalised = this.normalised(text);
    const { kind } = this.trainer;
    if (kind !== BPE && kind !== UNIGRAM)
      throw new Error("This tokenizer cuts words or characters: the page knows BPE and Unigram.");
    const cut = kind === BPE ? this.bpe(normalised) : this.unigram(normalised);
    const result = [];
    let unknown = false; // before this piece
    for (const [piece, id] of cut) {
      const now = this.pieces[id].type === UNKNOWN;
      if (now && this.trainer.bytes)
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
      const own = this.userDefinedAt(text, at);
      const piece = own || characterAt(text, at);
      const place = symbols.length;
      symbols.push({ piece, whole: Boolean(own), before: place - 1, after: place + 1 });
      at += piece.length;
    }
    if (symbols.length) symbols.at(-1).after = -1;
    const queue = new Queue((a, b) => b.score - a.score || a.left - b.left);
    const halves = new Map(); // of each unused piece: the two that were joined
    const offer = (left, right) => {
      if (left < 0 || right < 0 || symbols[left].whole || symbols[right].whole) return;
      const pair = [symbols[left].piece, symbols[right].piece];
      const id = this.ids.get(pair.join(""));
      if (id === undefined) return;
      const { score, type } = this.pieces[id];
      queue.push({ left, right, score, length: pair.join("").length });
      if (type === UNUSED) halves.set(pair.join(""), pair);
    };
    for (let place = 1; place < symbols.length; place += 1) offer(place - 1, place);
    for (let best = queue.pop(); best; best = queue.pop()) {
      const { left, right, length } = best;
      const [a, b] = [symbols[left], symbols[right]];
      if (!a.piece || !b.piece || a.piece.length + b.piece.length !== length) continue;
      a.piece += b.piece;
      a.after = b.after;
      if (b.after >= 0) symbols[b.after].before = left;
      b.piece = "";
      offer(a.before, left);
      offer(left, a.after);
    }
    const segments = (piece) => {
      const id = this.idOf(piece);
      const parts = this.pieces[id].type === UNUSED && halves.get(piece);
      return parts ? parts.flatMap(segments) : [[piece, id]];
    };
    return symbols.flatMap(({ piece }) => (piece ? segments(piece) : []));
  }

  // Unigram: the most probable path (Viterbi). A sum is rounded to float32 where it is kept.
  unigram(text) {
    const ends = new Map([[0, { score: 0, from: -1, id: -1 }]]);
    const reach = (end, score, from, id) => {
      if (score > (ends.get(end)?.score ?? -Infinity) || !ends.has(end))
        ends.set(end, { score: Math.fround(score), from, id });
    };
    const [least, most] = this.scores;
    const rare = Math.fround(least - UNKNOWN_PENALTY);
    for (let at = 0; at < text.length; ) {
      const here = ends.get(at).score;
      const single = at + characterAt(text, at).length;
      let known = false; // the character alone
      let bytes = 0;
      for (let end = at; end < text.length && end - at < this.longest; ) {
        const character = characterAt(text, end);
        end += character.length;
        bytes += utf8.encode(character).length;
        const id = this.ids.get(text.slice(at, end));
        if (id === undefined || this.pieces[id].type === UNUSED) continue;
        const { score, type } = this.pieces[id];
        reach(end, here + (type === USER_DEFINED ? bytes * most - 0.1 : score), at, id);
        known ||= end === single;
      }
      if (!known) reach(single, Math.fround(here + rare), at, this.unknown);
      at = single;
    }
    const path = [];
    for (let end = text.length; end > 0; ) {
      const { from, id } = ends.get(end);
      path.unshift([text.slice(from, end), id]);
      end = from;
    }
    return path;
  }

  // The text of these ids.
  decode(ids) {
    let text = "";
    let pending = []; // bytes
    let begun = false;
    const flush = () => {
      text += textOfBytes(pending);
      pending = [];
    };
    for (const id of ids) {
      const { text: piece, type } = this.pieces[id];
      if (type === BYTE) {
        pending.push(parseInt(piece.slice(3, 5), 16));
        continue;
      }
      flush();
      if (type === CONTROL) continue;
      if (type === UNKNOWN) {
        text += " ⁇ ";
        continue;
      }
      begun ||= text !== "";
      let rest = piece;
      if (!begun && (this.rules.prefix || this.rules.trim) && rest.startsWith(SPACE)) {
        rest = rest.slice(1);
        begun = !this.rules.trim;
      }
      text += rest.replaceAll(SPACE, " ");
    }
    flush();
    return this.mapBack ? mapped(this.mapBack, text) : text;
  }
}

const characterAt = (text, place) => String.fromCodePoint(text.codePointAt(place));

// UTF-8 as text; each byte that is no part of a character becomes U+FFFD.
function textOfBytes(bytes) {
  let text = "";
  for (let at = 0; at < bytes.length; ) {
    const lead = bytes[at];
    const length = lead < 0x80 ? 1 : lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    try {
      const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
      text += decoder.decode(Uint8Array.from(bytes.slice(at, at + length)));
      at += length;
    } catch {
      text += "\ufffd";
      at += 1;
    }
  }
  return text;
}

function mapped(map, text) {
  let result = "";
  for (let at = 0; at < text.length; ) {
    const character = characterAt(text, at);
    const [written, read] = map.longestAt(text, at) ?? [character, character.length];
    result += written;
    at += read;
  }
  return result;
}

// SentencePiece's precompiled characters map: a double-array trie of bytes (Darts-clone), and the
// texts that its values point to.
class CharacterMap {
  constructor(bytes) {
    const size = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
    this.units = new Uint32Array(bytes.slice(4, 4 + size).buffer);
    this.texts = bytes.subarray(4 + size);
  }

  // The text for the longest beginning that the map has, and the length of that; null: none.
  longestAt(text, place) {
    const offset = (unit) => (unit >>> 10) << ((unit & 512) >>> 6);
    let node = offset(this.units[0]);
    let [value, length, read] = [-1, 0, 0];
    for (const character of text.slice(place)) {
      read += character.length;
      for (const byte of utf8.encode(character)) {
        node ^= byte;
        const unit = this.units[node];
        if ((unit & 0x800000ff) >>> 0 !== byte) return this.at(value, length);
        node ^= offset(unit);
        if (unit & 256) [value, length] = [this.units[node] & 0x7fffffff, read];
      }
    }
    return this.at(value, length);
  }

  at(found, length) {
    if (found < 0) return null;
    const end = this.texts.indexOf(0, found);
    return [new TextDecoder().decode(this.texts.subarray(found, end)), length];
  }
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
