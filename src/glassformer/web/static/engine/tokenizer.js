// Text to subword ids and back. The twin of glassformer/data/tokenizer.py.

import { BYTE, CONTROL, SentencePiece, SPACE } from "./sentencepiece.js";
import { isSpace } from "./words.js";

const ESCAPE = "\ufdd0";
const escaped = (text) => text.replaceAll(ESCAPE, `${ESCAPE}=`).replaceAll(SPACE, `${ESCAPE}_`);
const unescaped = (text) => text.replaceAll(`${ESCAPE}_`, SPACE).replaceAll(`${ESCAPE}=`, ESCAPE);

export class Tokenizer {
  // `prefix`: subwords before every text; `known`: the size of a list of subwords, as Marian's.
  constructor(bytes, { prefix = [], known = null } = {}) {
    const model = new SentencePiece(bytes);
    const count = known ?? model.pieces.length;
    const { unk = 0, bos = 1, eos = 2, pad = -1 } = model.trainer;
    const signed = (id) => (id > 2 ** 31 ? -1 : id); // -1 in protobuf
    this.model = model;
    this.known = known;
    this.padId = signed(pad) < 0 ? count : pad;
    [this.unkId, this.bosId, this.eosId] = [unk, bos, eos];
    this.size = count + (signed(pad) < 0 ? 1 : 0);
    const pieces = model.pieces.slice(0, count);
    this.hasBytes = pieces.some(({ type }) => type === BYTE);
    this.symbols = new Set([this.padId, bos, eos]);
    pieces.forEach(({ type }, id) => type === CONTROL && this.symbols.add(id));
    this.prefix = prefix.map((piece) => model.idOf(piece));
    this.blank = new Set(pieces.flatMap(({ text }, id) => (isBlank(text) ? [id] : [])));
  }

  // The ids of the text with the prefix, and no start or end symbol.
  encode(text) {
    if (/\p{Surrogate}/u.test(text)) throw new Error("Half a surrogate pair is no Unicode text.");
    const pieces = this.model.encode(this.hasBytes ? escaped(text) : text);
    const ids = pieces.map(([piece, id]) => (this.known === null ? id : this.lookedUp(piece)));
    return ids.length ? [...this.prefix, ...ids] : [];
  }

  lookedUp(piece) {
    const id = this.model.idOf(piece);
    const none = [this.padId, this.bosId, this.eosId].includes(id) || id >= this.size;
    return none ? this.unkId : id;
  }

  // The text of these ids; control symbols are left out.
  decode(ids) {
    return unescaped(this.model.decode(ids.filter((id) => !this.symbols.has(id))));
  }

  subword(id) {
    return this.model.pieces[id]?.text ?? "<pad>";
  }

  // The characters of the text that each id covers, as spans; none for a control symbol.
  spans(ids, text) {
    const [decoded, spans] = this.covered(ids);
    const [from, to] = [[...decoded], [...text]];
    if (decoded === text) return spans;
    // A tokenizer that changes the text: the changed part covers the changed part.
    let start = 0;
    while (start < Math.min(from.length, to.length) && from[start] === to[start]) start += 1;
    let end = 0;
    const most = Math.min(from.length, to.length) - start;
    while (end < most && from.at(-1 - end) === to.at(-1 - end)) end += 1;
    const placed = (at) => {
      if (at <= start) return at;
      const behind = from.length - at;
      return behind <= end ? to.length - behind : Math.min(at, to.length - end);
    };
    return spans.map((span) => span.map(placed));
  }

  // The text of the ids without the space before the first word, and the span of each.
  covered(ids) {
    let letters = [];
    let pending = []; // bytes of a character whose other bytes are still to come
    const spans = ids.map((id) => {
      const piece = this.symbols.has(id) ? "" : this.subword(id);
      let start = letters.length;
      let added = id === this.unkId ? "\ufffd" : piece.replaceAll(SPACE, " ");
      const byte = /^<0x(..)>$/.exec(piece);
      if (byte) {
        pending.push(parseInt(byte[1], 16));
        added = new TextDecoder("utf-8", { ignoreBOM: true }).decode(Uint8Array.from(pending));
        if (added.includes("\ufffd")) added = "";
        else pending = [];
      }
      letters.push(...added);
      const pair = letters.slice(Math.max(0, start - 1), start + 1).join("");
      if ([`${ESCAPE}_`, `${ESCAPE}=`].includes(pair)) {
        letters.splice(start - 1, 2, unescaped(pair));
        start -= 1;
      }
      return [start, byte ? start + 1 : letters.length];
    });
    const lead = letters[0] === " " ? 1 : 0;
    letters = letters.slice(lead);
    const within = (at) => Math.max(0, Math.min(at - lead, letters.length));
    return [letters.join(""), spans.map((span) => span.map(within))];
  }
}

function isBlank(piece) {
  const byte = /^<0x([0-7].)>$/.exec(piece);
  const text = byte ? String.fromCharCode(parseInt(byte[1], 16)) : piece.replaceAll(SPACE, " ");
  return text !== "" && [...text].every(isSpace);
}
