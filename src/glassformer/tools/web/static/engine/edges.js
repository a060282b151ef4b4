// Signs at the edges of a text that the model has not learnt.
// The twin of glassformer/data/edges.py and protected.py, whose patterns the page's record holds.

import { isSpace } from "./words.js";

const isLetter = (character) => /[\p{L}\p{N}]/u.test(character ?? "");
const isMark = (character) => /\p{M}/u.test(character ?? "");

export class Edges {
  // `starts`, `ends`: the learnt runs, or null if nobody has counted; then a run of `usual` signs
  // is learnt. `spans`: the pattern of protected spans. `closers`: the closing signs of each
  // opening sign. `flanked`: signs that open or close by their neighbours. `longest`, `deepest`:
  // bounds.
  constructor({ spans, ...settings }) {
    Object.assign(this, settings);
    this.spans = new RegExp(spans, "gu");
  }

  // The span of a stripped text, in UTF-16; empty if the text has neither letters nor digits.
  // `read` brings a run into the form that was counted.
  span(text, read) {
    const signs = [...text];
    const pairs = this.pairs(signs);
    const [start, end] = this.core(signs, pairs);
    if (start === end) return [start, end];
    const lengths = Array.from({ length: this.longest }, (_, place) => this.longest - place);
    const learnt = (run, runs) => this.learnt(read(run.join("")), runs);
    const firsts = lengths
      .map((length) => start - length)
      .filter((place) => place >= 0 && cuts(signs[place], signs[place - 1]))
      .filter((place) => learnt(signs.slice(place, start), this.starts));
    const lasts = lengths
      .map((length) => end + length)
      .filter((place) => place <= signs.length && cuts(signs[place - 1], signs[place]))
      .filter((place) => learnt(signs.slice(end, place), this.ends));
    const spans = [...firsts, start].flatMap((first) => [...lasts, end].map((last) => [first, last]));
    const whole = spans.filter((span) => !pairs.some((pair) => isParted(pair, span)));
    const longest = whole.reduce((best, span) =>
      span[1] - span[0] > best[1] - best[0] ? span : best,
    );
    return longest.map((place) => signs.slice(0, place).join("").length);
  }

  learnt(run, runs) {
    return runs ? runs.includes(run) : [...run].every((sign) => this.usual.includes(sign));
  }

  // From the first letter or digit to the last, with all that belongs to both.
  core(signs, pairs) {
    let [start, end] = [signs.findIndex(isLetter), signs.findLastIndex(isLetter) + 1];
    if (!end) return [0, 0];
    while (isMark(signs[end])) end += 1;
    if (start === 0 && end === signs.length) return [start, end];
    const text = signs.join("");
    for (const [first, span] of this.protectedSpans(text)) {
      const place = [...text.slice(0, first)].length;
      [start, end] = [Math.min(start, place), Math.max(end, place + [...span].length)];
    }
    for (;;) {
      const parted = pairs.filter((pair) => isParted(pair, [start, end]));
      if (!parted.length) return [start, end];
      [start, end] = [Math.min(start, parted[0][0]), Math.max(end, parted.at(-1)[1] + 1)];
    }
  }

  // The place and the text of each protected span, but for emoji.
  *protectedSpans(text) {
    for (const { 0: span, index, groups } of text.matchAll(this.spans)) {
      if (groups.emoji !== undefined) continue;
      const address = groups.url !== undefined || groups.path !== undefined;
      yield [index, address ? withoutSentenceEnd(span) : span];
    }
  }

  // The places of each opening sign and of its closing sign.
  pairs(signs) {
    const [pairs, opened] = [[], []];
    signs.forEach((sign, place) => {
      const [before, after] = [signs[place - 1] ?? "", signs[place + 1] ?? ""];
      const flanked = this.flanked.includes(sign);
      const closes = !flanked || !(isSpace(before) || isLetter(after));
      const opens = !flanked || !(isSpace(after) || isLetter(before));
      if (opened.length > this.deepest) opened.shift();
      const fitting = opened.findLastIndex(([closers]) => closes && closers.includes(sign));
      if (fitting >= 0) {
        pairs.push([opened[fitting][1], place]);
        opened.splice(fitting);
      } else if (opens && Object.hasOwn(this.closers, sign)) opened.push([this.closers[sign], place]);
    });
    return pairs;
  }
}

// Whether an edge may be between two signs: not in a run of one sign, such as "...".
const cuts = (inside, outside) => inside !== outside && !isSpace(inside);

function isParted(pair, span) {
  const [opens, closes] = pair.map((place) => span[0] <= place && place < span[1]);
  return opens !== closes;
}

// The address or path without the punctuation at the end of the sentence.
function withoutSentenceEnd(address) {
  let trimmed = address.replace(/[.,;:!?'*_…]+$/u, "");
  for (const [opener, closer] of ["()", "[]"]) {
    const count = (sign) => trimmed.split(sign).length;
    if (trimmed.endsWith(closer) && count(closer) > count(opener)) trimmed = trimmed.slice(0, -1);
  }
  return trimmed === address ? address : withoutSentenceEnd(trimmed);
}
