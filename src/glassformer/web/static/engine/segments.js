// From a text as people have it to the segments that the model reads, and back.
// After glassformer/data/preprocessing.py and normaliser.py; the browser finds the sentences.

import { hasLetters, isSpace } from "./words.js";

export class Preprocessing {
  // `normalisation`: null, or patterns as Python has them: characters that no reader sees, and
  // those that Python's version of Unicode lacks. `sentences`: whether each is translated alone.
  constructor({ normalisation, sentences, numbers, languages }) {
    const [source, target] = languages ?? [];
    Object.assign(this, { sentences, numbers });
    this.invisible = normalisation && new RegExp(normalisation.invisible, "gu");
    this.unknown = normalisation && new RegExp(`([${normalisation.unknown}]+)`, "u");
    this.gap = /^(zh|ja|th|lo|km|my)\b/.test(target ?? "") ? "" : " ";
    this.segmenter = new Intl.Segmenter(validCode(source), { granularity: "sentence" });
  }

  normalised(text) {
    if (!this.invisible) return text;
    const clean = text
      .replace(this.invisible, "")
      .replace(/[\uff10-\uff19\uff21-\uff3a\uff41-\uff5a]/g, (wide) =>
        String.fromCharCode(wide.charCodeAt(0) - 0xfee0),
      );
    // A browser's Unicode is newer: characters that Python's lacks stay as they are.
    const parts = clean.split(this.unknown).map((part, place) => (place % 2 ? part : part.normalize("NFC")));
    return words(parts.join("")).join(" ");
  }

  // The segments of a text: what the model reads, and the span in the text as typed (in UTF-16).
  segments(text) {
    const result = [];
    for (const line of text.matchAll(/[^\r\n]+/g)) {
      const parts = this.sentences ? this.segmenter.segment(line[0]) : [{ segment: line[0], index: 0 }];
      for (const { segment, index } of parts) {
        const read = this.normalised(segment) && trimmed(this.normalised(segment));
        if (!read || !(this.numbers || hasLetters(read))) continue;
        const start = line.index + index + segment.length - trimmedStart(segment).length;
        result.push({ ...lowered(read, this.invisible), start, end: start + trimmed(segment).length });
      }
    }
    return result;
  }
}

function validCode(language) {
  try {
    return Intl.getCanonicalLocales(language ?? "en");
  } catch {
    return "en";
  }
}

// The parts between white space, as Python's split() has them.
function words(text) {
  const parts = [""];
  for (const character of text) {
    if (!isSpace(character)) parts[parts.length - 1] += character;
    else if (parts.at(-1)) parts.push("");
  }
  return parts.at(-1) ? parts : parts.slice(0, -1);
}

function trimmedStart(text) {
  let first = 0;
  while (first < text.length && isSpace(text[first])) first += 1;
  return text.slice(first);
}

function trimmed(text) {
  let last = text.length;
  while (last > 0 && isSpace(text[last - 1])) last -= 1;
  return trimmedStart(text.slice(0, last));
}

// A text of several words in capitals alone is read in lower case.
function lowered(text, normalises) {
  const capitals = text === text.toUpperCase() && text !== text.toLowerCase();
  const lower = text[0] + text.slice(1).toLowerCase();
  const many = (text.match(/\p{L}{2,}/gu) ?? []).length > 1;
  const reads = normalises && capitals && many && lower.length === text.length;
  return reads ? { text: lower, capitals: true } : { text, capitals: false };
}
