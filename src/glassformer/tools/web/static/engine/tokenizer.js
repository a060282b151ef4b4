// Text to subword ids and back. The twin of glassformer/data/tokenizer.py.

import { SPACE } from "./normalizer.js";
import { BYTE, CONTROL, SentencePiece, textOfBytes } from "./sentencepiece.js";
import { isSpace } from "./words.js";

const ESCAPE = "\ufdd0";
const escaped = (text) => text.replaceAll(ESCAPE, `${ESCAPE}=`).replaceAll(SPACE, `${ESCAPE}_`);
const unescaped = (text) => text.replaceAll(`${ESCAPE}_`, SPACE).replaceAll(`${ESCAPE}=`, ESCAPE);

export class Tokenizer {
  // `prefix`: subwords before every text; `known`: the size of a list of subwords, as Marian's.
  constructor(bytes, { prefix = [], known = null } = {}) {
    const model = new SentencePiece(bytes);
    const count = known ?? model.pieces.length;
    const pad = model.symbol("pad");
    this.model = model;
    this.known = known;
    this.padId = pad < 0 ? count : pad; // missing padding gets an id after the last subword
    this.unkId = model.unknown;
    [this.bosId, this.eosId] = [model.symbol("bos"), model.symbol("eos")];
    this.size = pad < 0 ? count + 1 : count;
    const pieces = model.pieces.slice(0, count);
    this.hasBytes = pieces.some(({ type }) => type === BYTE);
    this.symbols = new Set([this.padId, this.bosId, this.eosId]);
    pieces.forEach(({ type }, id) => type === CONTROL && this.symbols.add(id));
    this.prefix = prefix.map((piece) => model.idOf(piece));
    const ids = Array.from({ length: this.size }, (_, id) => id);
    this.blank = new Set(ids.filter((id) => isBlank(this.subword(id))));
    const letters = ids.filter((id) => !this.knows(id) || isLetter(this.subword(id)));
    this.letters = new Set(letters);
  }

  // The ids of the text with the prefix, and no start or end symbol.
  encode(text) {
    if (/\p{Surrogate}/u.test(text)) throw new Error("Half a surrogate pair is no Unicode text.");
    const pieces = this.model.encode(this.hasBytes ? escaped(text) : text);
    const ids = pieces.map(([piece, id]) => (this.known === null ? id : this.lookedUp(piece)));
    return ids.length ? [...this.prefix, ...ids] : [];
  }

  // The piece's id in the list, if a text can hold it.
  lookedUp(piece) {
    const id = this.model.idOf(piece);
    const none = [this.padId, this.bosId, this.eosId].includes(id) || id >= this.size;
    return none ? this.unkId : id;
  }

  // The text of these ids; control symbols are left out.
  decode(ids) {
    return unescaped(this.model.decode(ids.filter((id) => !this.symbols.has(id))));
  }

  // Whether an id stands for more than an unknown character or a byte of one.
  knows(id) {
    return id !== this.unkId && this.model.pieces[id]?.type !== BYTE;
  }

  // Whether the tokenizer has only letters for a word, or no subword that begins the word. If no
  // word `begins`, another subword may stand first.
  tears(word, begins) {
    const idsOf = (text) => this.encode(text).slice(this.prefix.length);
    const inLetters = (ids) => ids.every((id) => this.letters.has(id));
    const typed = idsOf(word);
    const asTyped = inLetters(typed) || !this.letters.has(typed[0]);
    const ids = asTyped ? typed : idsOf(word.toLowerCase());
    return inLetters(ids) || (begins && this.subword(ids[0]) === SPACE);
  }

  subword(id) {
    return this.model.pieces[id]?.text ?? "<pad>";
  }

  // The characters of the text that each id covers, as spans; none for a control symbol.
  spans(ids, text) {
    const [decoded, spans] = this.covered(ids);
    if (decoded === text) return spans;
    const [from, to] = [[...decoded], [...text]];
    // A tokenizer that changes the text: what stands between two common parts covers the same.
    const places = [0];
    let [start, first] = [0, 0];
    for (const [end, last, size] of [...commonParts(from, to), [from.length, to.length, 0]]) {
      for (let step = 0; start + step < end; step += 1)
        places[start + step] = Math.min(first + step, last);
      for (let step = 0; step <= size; step += 1) places[end + step] = last + step;
      [start, first] = [end + size, last + size];
    }
    return spans.map((span) => span.map((at) => places[at]));
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
        added = textOfBytes(pending, "");
        if (added) pending = [];
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

// The common parts of two lists, in order, as [place, place, size]: the longest one, and those
// before and after it. As Python's difflib.SequenceMatcher finds them.
function commonParts(from, to, [start, first] = [0, 0], [end, last] = [from.length, to.length]) {
  let longest = [0, 0, 0];
  const sizes = new Int32Array(last + 1); // of the common part that ends before each place of `to`
  for (let place = start; place < end; place += 1) {
    let before = 0; // the size for the places before these two
    for (let other = first; other < last; other += 1) {
      const size = from[place] === to[other] ? before + 1 : 0;
      before = sizes[other + 1];
      sizes[other + 1] = size;
      if (size > longest[2]) longest = [place + 1 - size, other + 1 - size, size];
    }
  }
  const [place, other, size] = longest;
  if (!size) return [];
  return [
    ...commonParts(from, to, [start, first], [place, other]),
    longest,
    ...commonParts(from, to, [place + size, other + size], [end, last]),
  ];
}

// Whether a subword is one letter, but no syllable, or a space.
function isLetter(piece) {
  const letter = piece.replace(/^\u2581/u, "");
  return letter === "" || (/^\p{L}$/u.test(letter) && letter < "가");
}

function isBlank(piece) {
  const byte = /^<0x([0-7].)>$/.exec(piece);
  const text = byte ? String.fromCharCode(parseInt(byte[1], 16)) : piece.replaceAll(SPACE, " ");
  return text !== "" && [...text].every(isSpace);
}
