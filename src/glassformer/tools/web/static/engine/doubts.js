// Reasons to doubt a translation. The twin of glassformer/alignment/doubts.py.

import { protectedSpans } from "./edges.js";
import { hasLetters, knowsNoWord, words } from "./words.js";

const NUMBER = /\p{Nd}{1,18}(?:[.,'’\u00a0\u202f]\p{Nd}{3}(?!\p{Nd})){0,5}/gu;
const SPACED = /(?<!\p{Nd})\p{Nd}{1,3}(?: \p{Nd}{3})+(?!\p{Nd})/gu; // 47 000
const LEAST = 25; // a translation may have a smaller number as a word
const VARIED = ["measure", "identifier"]; // kinds that a translation may write otherwise
const NO_WORD = "The training had hardly any word of the text.";
const SHOWN = 6; // letters, numbers or other parts of a text

export class Doubts {
  // `longest`: the 99th percentile of the training's lengths, or null. `spans`: the pattern of
  // protected spans. The tokenizers are those of source and target.
  constructor({ longest, spans, source, target }) {
    Object.assign(this, { longest, source, target, spans: new RegExp(spans, "gu") });
  }

  // One sentence for each reason. `source`: a segment as the model reads it, with `links` to the
  // words of `target`.
  of(source, target, links) {
    const letters = [...unknown(this.source, source), ...unknown(this.target, target)];
    const characters = [...source];
    const all = words(source).filter(([start]) => /[\p{L}\p{N}]/u.test(characters[start]));
    const aligned = all.filter(
      ([start, end]) =>
        target.includes(characters.slice(start, end).join("")) ||
        links.some((link) => link.source[0] < end && start < link.source[1]),
    );
    return [
      this.longest !== null &&
        characters.length > this.longest &&
        "The text is longer than 99 of 100 texts of the training.",
      source !== target && this.knowsNoWord(source) && NO_WORD,
      named("The training had hardly any text with these letters", letters),
      named("The translation lacks these numbers of the text", lostNumbers(source, target)),
      named("The translation lacks these parts, which should stay", this.lost(source, target)),
      aligned.length < all.length / 2 &&
        "Fewer than half of the text's words are aligned with the translation.",
    ].filter(Boolean);
  }

  // The reasons for a text that stays as it is, because the model reads no part of it.
  ofUnread(text) {
    return this.knowsNoWord(text) ? [NO_WORD] : [];
  }

  // Whether the text has words outside its spans, and the tokenizer takes each of them apart.
  knowsNoWord(text) {
    const spans = [...protectedSpans(text, this.spans)].map(({ span }) => span);
    const rest = spans.reduce((left, span) => left.replace(span, ""), text);
    return [text, rest].every((each) => knowsNoWord(this.source, each));
  }

  // The protected spans that the target lacks.
  lost(source, target) {
    const [wanted, there] = [source, target].map((text) =>
      [...protectedSpans(text, this.spans)]
        .filter(({ kind }) => !VARIED.includes(kind))
        .map(({ span }) => span),
    );
    const count = (all, span) => all.filter((each) => each === span).length;
    return wanted.filter((span) => count(wanted, span) > count(there, span));
  }
}

function named(reason, items) {
  const names = [...new Set(items)];
  const ending = names.length <= SHOWN ? "." : " …";
  return names.length > 0 && `${reason}: ${names.slice(0, SHOWN).join(", ")}${ending}`;
}

// The letters that have no subword.
function unknown(tokenizer, text) {
  const letters = [...new Set(text)].filter(hasLetters);
  letters.sort((a, b) => a.codePointAt(0) - b.codePointAt(0));
  return letters.filter((letter) => !tokenizer.knows(tokenizer.encode(letter).at(-1)));
}

// The numbers from 25 on that the target lacks; a year may have two digits.
function lostNumbers(source, target) {
  const [wanted, found] = [source, target].map((text) =>
    (text.replace(SPACED, (number) => number.replaceAll(" ", "")).match(NUMBER) ?? []).map(
      (number) => {
        const digits = number.match(/\p{Nd}/gu).map(valueOf).join("");
        return digits.replace(/^0+(?=\d)/, "");
      },
    ),
  );
  const years = found.filter((number) => number.length === 4).map((number) => number.slice(2));
  const there = new Set([...found, ...years]);
  const kept = (number) =>
    there.has(number) || (number.length === 4 && there.has(String(Number(number.slice(2)))));
  return wanted.filter((number) => Number(number) >= LEAST && !kept(number));
}

// The value of a digit of any script, which has its ten digits in a row.
function valueOf(digit) {
  const code = digit.normalize("NFKC").codePointAt(0);
  const before = Array.from({ length: 9 }, (_, step) => String.fromCodePoint(code - step - 1));
  return (before.findIndex((each) => !/\p{Nd}/u.test(each)) + 10) % 10;
}
