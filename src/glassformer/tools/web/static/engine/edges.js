// Signs at the edges of a text that the model has not learnt.
// The twin of glassformer/data/edges.py and protected.py, whose patterns the page's record holds.

import { hasLetters, isSpace } from "./words.js";

const isLetter = (character) => /[\p{L}\p{N}]/u.test(character ?? "");
const isMark = (character) => /\p{M}/u.test(character ?? "");
const PARTS = "\0\x01\x02\x03\x04"; // in the place of protected spans
const [SPAN, JOINED, OPENING, CLOSING, OPAQUE] = PARTS;
const SPANS = /[\0-\x04]+/g;

export class Edges {
  // `starts`, `ends`: the learnt runs, or null if nobody has counted; then a run of `usual` signs
  // is learnt. `spans`: the pattern of all spans. `texts`: kinds of spans that are text. `closers`:
  // the closing signs of each opening sign. `flanked`: signs that open or close by their
  // neighbours. `numbered`: kinds to which a number belongs. `most`, `deepest`: bounds.
  constructor({ spans, ...settings }) {
    Object.assign(this, settings);
    this.spans = new RegExp(spans, "gu");
    this.block = new RegExp(settings.block, "u");
  }

  // The span of a stripped text, in UTF-16; empty if the text has neither letters nor digits.
  // Without `numbers`, numbers that an opaque span parts from all words are signs too. `torn`: the
  // places of torn words, in UTF-16.
  span(text, numbers, torn) {
    const signs = this.bare(text, torn);
    const pairs = this.pairs(signs);
    const [start, end] = core(signs, pairs, numbers ? [0, signs.length] : besideWords(signs));
    if (start === end) return [0, 0];
    const learnt = (run, runs) => this.learnt(run.join("").replace(SPANS, SPAN), runs);
    const firsts = this.lengths(signs.slice(0, start).reverse())
      .map((length) => start - length)
      .filter((place) => learnt(signs.slice(place, start), this.starts));
    const lasts = this.lengths(signs.slice(end))
      .map((length) => end + length)
      .filter((place) => learnt(signs.slice(end, place), this.ends));
    const spans = [start, ...firsts].flatMap((first) =>
      [end, ...lasts].map((last) => [first, last]),
    );
    const whole = spans.filter((span) => !pairs.some((pair) => isParted(pair, span)));
    const longest = whole.reduce((best, span) =>
      span[1] - span[0] > best[1] - best[0] ? span : best,
    );
    const typed = [...text];
    return longest.map((place) => typed.slice(0, place).join("").length);
  }

  // The spans (UTF-16) inside the outermost pairs of signs, such as brackets, that hold all words.
  // The search goes on inside each pair, to a `depth`. Brackets that the model has not learnt hold
  // a text of their own at the beginning or end of a text.
  contents(text, depth = this.deepestPairs) {
    const part = text.trim();
    const lead = text.length - text.trimStart().length;
    return this.outermost(depth ? part : "").flatMap(([start, end]) => {
      const inner = this.contents(part.slice(start, end), depth - 1);
      const spans = inner.length ? inner : [[0, end - start]];
      return spans.map((span) => span.map((place) => lead + start + place));
    });
  }

  // The same for the outermost pairs of a stripped text.
  outermost(text) {
    const closers = Object.values(this.closers).join("");
    const [opens, closes] = [text[0] ?? "", text.at(-1) ?? ""];
    if (!(Object.hasOwn(this.closers, opens) || (text && closers.includes(closes)))) return [];
    let hidden = text;
    for (const { kind, span, index } of protectedSpans(text, this.spans)) {
      if (!isLetter(span) || this.isText(kind, span)) continue;
      const gone = SPAN.repeat(span.length);
      hidden = hidden.slice(0, index) + gone + hidden.slice(index + span.length);
    }
    const pairs = [];
    const ordered = this.pairs(hidden.split("")).sort(([one], [other]) => one - other);
    for (const [first, last] of ordered) {
      if (!pairs.length || pairs.at(-1)[1] < first) pairs.push([first, last]);
    }
    const ends = [...pairs.map(([first]) => first), text.length];
    const rest = ends.map((end, n) => hidden.slice(n ? pairs[n - 1][1] + 1 : 0, end)).join("");
    if (!pairs.length) return [];
    if (hasLetters(hidden) && !hasLetters(rest)) return pairs.map(([first, last]) => [first + 1, last]);
    const [[start, first], [last, end]] = [pairs[0], pairs.at(-1)];
    const isAlone = (place, ...around) =>
      this.unknownBrackets.includes(hidden[place]) && !isLetter(around.join(""));
    if (isAlone(start, hidden.slice(0, start), hidden[first + 1]))
      return [[start + 1, first], [first + 1, text.length]];
    if (isAlone(last, hidden[last - 1], hidden.slice(end))) return [[0, last], [last + 1, end]];
    return [];
  }

  // Whether a span is text for the model.
  isText(kind, span) {
    const names = [kind, `${kind} ${span[0]}`, `${kind} ${span}`];
    return names.some((name) => this.texts.includes(name)) || /^\$\p{Nd}$/u.test(span);
  }

  learnt(run, runs) {
    const usual = this.usual + SPAN;
    const isUsual = this.usual && [...run].every((sign) => usual.includes(sign));
    return isUsual || Boolean(runs?.includes(run));
  }

  // The lengths of signs after which an edge may be: not in a run or span, nor at a space.
  lengths(signs) {
    const alike = signs.map((sign) => sign.replace(SPANS, SPAN));
    const all = alike.map((_, place) => place + 1);
    const cuts = all.filter((n) => alike[n - 1] !== alike[n] && !isSpace(alike[n - 1]));
    return cuts.slice(0, this.most);
  }

  // The characters, with signs of their own in the place of protected spans, but for numbers.
  bare(text, torn = []) {
    const signs = [...text];
    let [place, before] = [0, 0]; // of a span, in characters and in UTF-16
    for (const { kind, span, index } of protectedSpans(text, this.spans)) {
      place += [...text.slice(before, index)].length;
      before = index;
      if (kind === "measure") signs[place] = "0"; // a minus belongs to its number
      if (this.isText(kind, span)) continue;
      const end = place + [...span].length;
      const sign = this.numbered.includes(kind) ? OPAQUE : SPAN;
      const isNamed = kind === "placeholder" && !this.block.test(span);
      signs.fill(isNamed ? JOINED : sign, place, end);
      const closes = kind === "emphasis" && !isLetter(signs[end]);
      if (span.startsWith("</") || closes) signs[end - 1] = CLOSING;
      else if (/^<[\p{L}\p{N}#]/u.test(span) || kind === "emphasis") signs[place] = OPENING;
    }
    [place, before] = [0, 0];
    for (const [start, end] of torn) {
      const first = place + [...text.slice(before, start)].length;
      const last = first + [...text.slice(start, end)].length;
      [place, before] = [last, end];
      if (signs.slice(first, last).every((sign) => !PARTS.includes(sign))) {
        signs.fill(OPAQUE, first, last);
      }
    }
    return signs;
  }

  // The places of each opening sign and of its closing sign, but of no apostrophe in a word.
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
      } else if (opens && Object.hasOwn(this.closers, sign)) {
        opened.push([this.closers[sign], place]);
      }
    });
    return pairs;
  }
}

// The protected spans of a text with their kinds and places, as the pattern of all kinds finds them.
export function* protectedSpans(text, pattern) {
  pattern.lastIndex = 0;
  for (let match = pattern.exec(text); match; match = pattern.exec(text)) {
    const { 0: found, index, groups } = match;
    const kind = Object.keys(groups).find((name) => name !== "ticks" && groups[name] !== undefined);
    const span = ["url", "path"].includes(kind) ? withoutSentenceEnd(found) : found;
    pattern.lastIndex = index + span.length;
    yield { kind, span, index };
  }
}

// From the first letter or digit to the last, with all that belongs to both.
function core(signs, pairs, [least, most]) {
  const within = signs.slice(least, most);
  if (!within.some(isLetter)) return [0, 0];
  let [start, end] = [within.findIndex(isLetter), within.findLastIndex(isLetter) + 1];
  [start, end] = [least + start, least + end];
  while (isMark(signs[end]) || signs[end] === JOINED) end += 1;
  while (signs[start - 1] === JOINED) start -= 1;
  for (;;) {
    const parted = pairs.filter((pair) => isParted(pair, [start, end]));
    if (!parted.length) return [start, end];
    [start, end] = [Math.min(start, parted[0][0]), Math.max(end, parted.at(-1)[1] + 1)];
  }
}

// The span between the last opaque span before all letters and the first one after them.
function besideWords(signs) {
  const isWord = (sign) => /\p{L}/u.test(sign);
  const [first, last] = [signs.findIndex(isWord), signs.findLastIndex(isWord)];
  const end = signs.indexOf(OPAQUE, Math.max(last, 0));
  return [signs.lastIndexOf(OPAQUE, Math.max(first, 0)) + 1, end < 0 ? signs.length : end];
}

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
