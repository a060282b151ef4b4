// A SentencePiece model's normalisation: from a text to the characters that the model cuts.
// After normalizer.cc of sentencepiece 0.2.3.

export const SPACE = "▁";
const utf8 = new TextEncoder();
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

export const characterAt = (text, place) => String.fromCodePoint(text.codePointAt(place));

// A function that gives the longest of these pieces at a place of a text, or "".
export function finderOf(pieces) {
  if (!pieces.length) return () => "";
  const escaped = (letter) => `\\u{${letter.codePointAt(0).toString(16)}}`;
  const longestFirst = pieces.sort((a, b) => b.length - a.length);
  const choices = longestFirst.map((piece) => [...piece].map(escaped).join(""));
  const pattern = new RegExp(choices.join("|"), "uy");
  return (text, place) => {
    pattern.lastIndex = place;
    return pattern.exec(text)?.[0] ?? "";
  };
}

export class Normalizer {
  // `map`: of characters; `prefix`: a space before the text, with `suffix` behind it; `trim`: no
  // space but between words; `escape`: spaces as ▁. User-defined pieces stay as they are.
  constructor(
    { map, prefix = 1, trim = 1, escape = 1 },
    { userDefinedAt = finderOf([]), suffix = 0 } = {},
  ) {
    this.map = map?.length ? new CharacterMap(map) : null;
    Object.assign(this, { prefix, suffix, trim, escape, userDefinedAt });
  }

  // [what stands for the beginning of the rest of the text, the length of that beginning].
  partAt(text, place) {
    const whole = this.userDefinedAt(text, place);
    if (whole) return [whole, whole.length];
    const character = characterAt(text, place);
    return this.map?.longestAt(text, place) ?? [character, character.length];
  }

  normalised(text) {
    const { prefix, trim, escape, suffix } = this;
    const parts = [];
    for (let at = 0; at < text.length; ) {
      const [written, read] = this.partAt(text, at);
      parts.push(written);
      at += read;
    }
    let first = 0;
    if (trim) while (parts[first] === " ") first += 1;
    if (first === parts.length) return "";
    const space = escape ? SPACE : " ";
    let result = prefix && !suffix ? space : "";
    let after = Boolean(trim); // a space
    for (let part of parts.slice(first)) {
      if (after) part = part.replace(/^ +/, "");
      result += part.replaceAll(" ", space);
      if (part) after = Boolean(trim) && part.endsWith(" ");
    }
    if (trim) while (result.endsWith(space)) result = result.slice(0, -1);
    return prefix && suffix ? result + space : result;
  }
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
    return [decoder.decode(this.texts.subarray(found, end)), length];
  }
}
