// Reasons to doubt a translation. The twin of glassformer/alignment/doubts.py.

import { protectedSpans } from "./edges.js";
import { hasLetters, isSpaced, words } from "./words.js";

const NUMBER = /\p{Nd}{1,18}(?:[.,'’\u00a0\u202f]\p{Nd}{3}(?!\p{Nd})){0,5}/gu;
const LEAST = 25; // a translation may have a smaller number as a word
const VARIED = ["measure", "identifier"]; // kinds that a translation may write otherwise
const SHOWN = 6; // letters, numbers or other parts of a text

export class Doubts {
  // `longest`: the 99th percentile of the training's lengths, or null. `spans`: the pattern of
  // protected spans. The tokenizers are those of source and target.
  constructor({ longest, spans, source, target }) {
    Object.assign(this, { longest, source, target });
    this.spans = new RegExp(spans, "gu");
  }

  // One sentence for each reason. `source`: a segment as the model reads it, with `links` to the
  // words of `target`.
  of(source, target, links) {
    const reasons = [];
    if (this.longest !== null && [...source].length > this.longest)
      reasons.push("The text is longer than 99 of 100 texts of the training.");
    if (source !== target && knowsNoWord(this.source, source))
      reasons.push("The training had hardly any word of the text.");
    const letters = [[this.source, source], [this.target, target]].flatMap((side) =>
      unknownLetters(...side),
    );
    for (const [reason, items] of [
      ["The training had hardly any text with these letters", letters],
      ["The translation lacks these numbers of the text", lostNumbers(source, target)],
      ["The translation lacks these parts, which should stay", this.lostSpans(source, target)],
    ]) {
      const names = [...new Set(items)];
      if (!names.length) continue;
      const ending = names.length <= SHOWN ? "." : " …";
      reasons.push(`${reason}: ${names.slice(0, SHOWN).join(", ")}${ending}`);
    }
    const characters = [...source];
    const linked = ([start, end]) =>
      target.includes(characters.slice(start, end).join("")) ||
      links.some((link) => link.source[0] < end && start < link.source[1]);
    const all = words(source).filter(([start]) => /[\p{L}\p{N}]/u.test(characters[start]));
    if (all.filter(linked).length < all.length / 2)
      reasons.push("Fewer than half of the text's words are aligned with the translation.");
    return reasons;
  }

  // The protected spans that the target lacks.
  lostSpans(source, target) {
    const spansOf = (text) =>
      [...protectedSpans(text, this.spans)].flatMap(({ kind, span }) =>
        VARIED.includes(kind) ? [] : [span],
      );
    const [wanted, there] = [spansOf(source), spansOf(target)];
    const count = (all, span) => all.filter((each) => each === span).length;
    return wanted.filter((span) => count(wanted, span) > count(there, span));
  }
}

// Whether the text has words, and the tokenizer takes each of them apart.
export function knowsNoWord(tokenizer, text) {
  const letters = [...text];
  const found = words(text)
    .map((span) => letters.slice(...span))
    .filter((word) => word.some(hasLetters) && !/\p{Nd}/u.test(word.join("")))
    .filter((word) => word.length > 1 || !isSpaced(word[0]));
  const knows = (word) => {
    const ids = tokenizer.encode(word.join("")).slice(tokenizer.prefix.length);
    const size = [...word.join("").normalize("NFD")].length; // a Hangul syllable has several letters
    return ids.every((id) => tokenizer.knows(id)) && (word.length === 1 || size >= 2 * ids.length);
  };
  return found.length > 0 && !found.some(knows);
}

// The letters that have no subword.
function unknownLetters(tokenizer, text) {
  const letters = [...new Set(text)].filter(hasLetters);
  letters.sort((a, b) => a.codePointAt(0) - b.codePointAt(0));
  return letters.filter((letter) => !tokenizer.knows(tokenizer.encode(letter).at(-1)));
}

// The numbers from 25 on that the target lacks; a year may have two digits.
function lostNumbers(source, target) {
  const [wanted, there] = [source, target].map((text) =>
    (text.match(NUMBER) ?? []).map((number) => {
      const digits = number.match(/\p{Nd}/gu).map(valueOf).join("");
      return digits.replace(/^0+(?=\d)/, "");
    }),
  );
  const kept = (number) =>
    there.some((each) => each.endsWith(number) || number.endsWith(each.padStart(2, "0")));
  return wanted.filter((number) => Number(number) >= LEAST && !kept(number));
}

// The value of a digit of any script: each script has its ten digits in a row.
function valueOf(digit) {
  const code = digit.normalize("NFKC").codePointAt(0);
  const isDigit = (value) => /\p{Nd}/u.test(String.fromCodePoint(code - value - 1));
  let value = 0;
  while (value < 9 && isDigit(value)) value += 1;
  return value;
}
