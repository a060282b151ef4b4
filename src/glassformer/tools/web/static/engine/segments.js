// From a text as people have it to the segments that the model reads.
// After glassformer/data/preprocessing.py, normaliser.py and splitting.py; the browser finds the
// sentences.

import { inKnownCase, isUpper } from "./capitals.js";
import { Edges } from "./edges.js";
import { hasLetters, isSpace } from "./words.js";

// No sentence ends after an initial, a title, or a number that means "fourth", nor before a small
// letter.
const SHORT = /(?<![\p{L}\p{N}_])(?:\p{Lu}|Mrs?|Ms|Dr|Prof|St|Mme|Mlle|Vol|vol|approx)\.\s*$/u;
const ORDINAL = /(?<![\p{L}\p{N}_])(?:\d{1,3}|[IVXLC]+)\.\s*$/u;

export class Preprocessing {
  // `normalisation`: null, or patterns as Python has them: characters that no reader sees, and
  // those that Python's version of Unicode lacks. `sentences`: whether each is translated alone.
  // `numbers`: whether a text without letters is. `ordinals`: whether "4." may mean fourth. `gap`:
  // what stands between two sentences of the translation. `cutting`: null, or Python's patterns of
  // cells, marks and edges, and the letters that the model knows.
  constructor({ normalisation, sentences, numbers, ordinals, gap, cutting }) {
    Object.assign(this, { sentences, numbers, ordinals, gap });
    this.edges = cutting && new Edges(cutting);
    this.row = cutting && new RegExp(`^(?:${cutting.row})$`, "u");
    this.cells = cutting && [cutting.rowCell, cutting.cell].map((each) => new RegExp(each, "gu"));
    this.letters = cutting?.letters && new Set(cutting.letters);
    this.twins = cutting?.twins;
    this.code = cutting && new RegExp(cutting.code, "gu");
    this.mark = cutting && new RegExp(cutting.mark, "uy");
    this.sentence = cutting && new RegExp(`^(?:${cutting.sentence})$`, "u");
    this.invisible = normalisation && new RegExp(normalisation.invisible, "gu");
    this.unknown = normalisation && new RegExp(`([${normalisation.unknown}]+)`, "u");
    this.segmenter = new Intl.Segmenter("en", { granularity: "sentence" });
  }

  normalised(text) {
    if (!this.invisible) return text;
    const parts = text
      .replace(this.invisible, "")
      .replace(/[\uff10-\uff19\uff21-\uff3a\uff41-\uff5a]/g, (wide) =>
        String.fromCharCode(wide.charCodeAt(0) - 0xfee0),
      )
      .split(this.unknown);
    // A browser's Unicode is newer: characters that Python's lacks stay as they are.
    const composed = parts.map((part, place) => (place % 2 ? part : part.normalize("NFC")));
    const letters = [...composed.join("")].map((letter) => (isSpace(letter) ? " " : letter));
    const known = letters.map((letter) => this.twin(letter));
    return known.join("").split(" ").filter(Boolean).join(" ");
  }

  // The form of an unknown character that the model knows, if there is one.
  twin(letter) {
    if (!this.letters || this.letters.has(letter)) return letter;
    const forms = this.twins.filter((group) => group.includes(letter)).map((group) => group[0]);
    if (/[\p{Lu}\p{Ll}\p{Nd}]/u.test(letter)) forms.push(letter.normalize("NFKC"));
    return forms.find((form) => [...form].every((each) => this.letters.has(each))) ?? letter;
  }

  // The segments of a text: what the model reads, and the span in the text as typed (in UTF-16).
  segments(text, tokenizer) {
    const spans = this.lines(text).flatMap(([line, index]) => {
      const start = this.markOf(line);
      const parts = this.parts(line.slice(start));
      return parts.map((span) => span.map((place) => index + start + place));
    });
    return spans.flatMap((span) => {
      const { read, start, end } = this.withoutEdges(text, this.trimmed(text, span));
      if (!read || !(this.numbers || hasLetters(read))) return [];
      if (!this.invisible) return [{ text: read, start, end, capitals: false }];
      const lower = lowered(read);
      const known = inKnownCase(lower ?? read, tokenizer);
      return [{ text: known, start, end, capitals: lower !== null }];
    });
  }

  // The lines, or the cells of a table's lines, each with its place in the text.
  lines(text) {
    const gap = (code) => "\t".repeat(code.length);
    const parted = this.code ? text.replace(this.code, gap) : text;
    return [...parted.matchAll(/[^\r\n]+/g)].flatMap(({ 0: line, index }) => {
      if (!this.cells) return [[line, index]];
      const cells = line.matchAll(this.cells[this.row.test(line) ? 0 : 1]);
      return [...cells].map((cell) => [cell[0], index + cell.index]);
    });
  }

  // The length of the marks at the beginning of a line, such as "> " and "1. ". If "4." may mean
  // fourth, a number is a mark only before a whole sentence.
  markOf(line) {
    if (!this.mark) return 0;
    for (let end = 0; ; end = this.mark.lastIndex) {
      this.mark.lastIndex = end;
      const mark = this.mark.exec(line);
      const doubtful = mark?.groups.number !== undefined && this.ordinals;
      if (!mark || (doubtful && !this.sentence.test(line.slice(end + mark[0].length)))) return end;
    }
  }

  // The spans of a line that are translated, each by itself: the line, or its sentences.
  parts(line) {
    if (!this.sentences) return [[0, line.length]];
    const spans = [];
    let start = 0;
    for (const { segment, index } of this.segmenter.segment(line)) {
      const end = index + segment.length;
      const part = line.slice(start, end);
      const short = SHORT.test(part) || (this.ordinals && ORDINAL.test(part));
      const open = short || !hasLetters(part) || /^\p{Ll}/u.test(line.slice(end));
      if (open && end < line.length) continue;
      spans.push([start, end]);
      start = end;
    }
    return spans;
  }

  // The normalised text of a span, and the span, without the signs at the edges that the model has
  // not learnt.
  withoutEdges(text, [start, end]) {
    const whole = this.normalised(text.slice(start, end));
    const [first, last] = this.edges?.span(whole) ?? [0, whole.length];
    const read = (count) => this.normalised(text.slice(start, start + count)).length;
    const place = (index) => start + least(end - start + 1, (count) => read(count) > index) - 1;
    const [from, to] = [first ? place(first) : start, last < whole.length ? place(last) : end];
    const span = this.trimmed(text, [from, to]);
    return { read: whole.slice(first, last), start: span[0], end: span[1] };
  }

  // The span without what no reader sees at its two ends.
  trimmed(text, [start, end]) {
    const part = text.slice(start, end);
    const spaces = (gone) => " ".repeat(gone.length);
    const letters = (this.invisible ? part.replace(this.invisible, spaces) : part).split("");
    const seen = (letter) => !isSpace(letter);
    if (!letters.some(seen)) return [end, end];
    return [start + letters.findIndex(seen), start + letters.findLastIndex(seen) + 1];
  }
}

// The least count up to `most` of which `holds` is true; it is true of all greater counts too.
function least(most, holds) {
  let [no, yes] = [-1, most];
  while (yes - no > 1) {
    const middle = (no + yes) >> 1;
    if (holds(middle)) yes = middle;
    else no = middle;
  }
  return yes;
}

// A text of several words in capitals alone, in lower case but for the first letter; else null.
function lowered(text) {
  const [first, ...rest] = text;
  const lower = first + rest.join("").toLowerCase();
  const words = text.match(/[\p{L}\p{Nl}\p{No}]{2,}/gu) ?? [];
  const alike = [...lower].length === rest.length + 1;
  return isUpper(text) && words.length > 1 && alike ? lower : null;
}
