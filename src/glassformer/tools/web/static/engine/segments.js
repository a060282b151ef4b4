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

const size = (text) => [...text].length;
const ascii = (wide) => String.fromCharCode(wide.charCodeAt(0) - 0xfee0);

export class Preprocessing {
  // `normalisation`: null, or patterns as Python has them: characters that no reader sees, and
  // those that Python's version of Unicode lacks. `together`: the most characters of sentences that
  // are translated at once; null: only line ends cut. `longest`: the most subwords of a segment.
  // `breaks`: patterns of places where a longer one is cut, best first. `numbers`: whether a text
  // without letters is translated. `ordinals`: whether "4." may mean fourth. `gap`: what stands
  // between two sentences of the translation. `cutting`: null, or Python's patterns of cells, marks
  // and edges. `spans`: the pattern of protected spans.
  constructor({ normalisation, cutting, breaks, spans, ...settings }) {
    Object.assign(this, settings);
    this.breaks = breaks.map((each) => new RegExp(each, "gu"));
    this.edges = cutting && new Edges({ ...cutting, spans });
    this.row = cutting && new RegExp(`^(?:${cutting.row})$`, "u");
    this.cells = cutting && [cutting.rowCell, cutting.cell].map((each) => new RegExp(each, "gu"));
    this.mark = cutting && new RegExp(cutting.mark, "uy");
    this.sentence = cutting && new RegExp(`^(?:${cutting.sentence})$`, "u");
    this.invisible = normalisation && new RegExp(normalisation.invisible, "gu");
    this.unknown = normalisation && new RegExp(`([${normalisation.unknown}]+)`, "u");
    this.segmenter = new Intl.Segmenter("en", { granularity: "sentence" });
  }

  normalised(text) {
    if (!this.invisible) return text;
    const letters = [...this.composed(text.replace(this.invisible, ""))];
    const spaced = letters.map((letter) => (isSpace(letter) ? " " : letter)).join("");
    return spaced.split(" ").filter(Boolean).join(" ");
  }

  // The text in NFC. A browser's Unicode is newer: characters that Python's lacks stay as they are.
  composed(text) {
    const narrow = text.replace(/[\uff10-\uff19\uff21-\uff3a\uff41-\uff5a]/g, ascii);
    const parts = narrow.split(this.unknown);
    return parts.map((part, place) => (place % 2 ? part : part.normalize("NFC"))).join("");
  }

  // The normalised text, and the place of each of its units (UTF-16) in the text, and of its end.
  withPlaces(text) {
    if (this.normalised(text) === text)
      return { text, places: Array.from({ length: text.length + 1 }, (_, place) => place) };
    let [normalised, end] = ["", 0];
    const places = [];
    for (const { cluster, stands } of this.clusters(text)) {
      const joined = [...this.composed(cluster)];
      joined.forEach((character, number) => {
        const space = isSpace(character);
        if (space && (!normalised || normalised.endsWith(" "))) return;
        const added = space ? " " : character;
        const place = joined.length === stands.length ? stands[number] : stands[0];
        normalised += added;
        for (let unit = 0; unit < added.length; unit += 1) places.push(place + unit);
      });
      if (!isSpace(cluster)) end = stands.at(-1) + [...cluster].at(-1).length;
    }
    if (normalised.endsWith(" ")) [normalised] = [normalised.slice(0, -1), places.pop()];
    return { text: normalised, places: [...places, end] };
  }

  // The shortest parts of the text that NFC can treat alone, and the places of their characters.
  *clusters(text) {
    const gone = new Set();
    for (const { 0: unseen, index } of text.matchAll(this.invisible))
      for (let unit = 0; unit < unseen.length; unit += 1) gone.add(index + unit);
    const joins = (cluster, added) =>
      /\p{M}/u.test(added) ||
      this.composed(cluster) + this.composed(added) !== this.composed(cluster + added);
    let [cluster, stands, place] = ["", [], 0];
    for (const character of text) {
      if (!gone.has(place)) {
        if (cluster && !joins(cluster, character)) {
          yield { cluster, stands };
          [cluster, stands] = ["", []];
        }
        cluster += character;
        stands.push(place);
      }
      place += character.length;
    }
    if (cluster) yield { cluster, stands };
  }

  // The text without invisible characters, but with those of private use, as bullets are.
  visible(text) {
    const kept = (gone) => (/[\ue000-\uf8ff\u{f0000}-\u{10ffff}]/u.test(gone) ? gone : "");
    return this.invisible ? text.replace(this.invisible, kept) : text;
  }

  // The segments of a text, each with its ids and its span in the text as typed (in UTF-16).
  segments(text, tokenizer) {
    const units = this.lines(text).flatMap((line) =>
      this.parts(line.text).flatMap((span) => this.unit(line, span, this.edges)),
    );
    return units
      .filter(({ text: read }) => this.numbers || hasLetters(read))
      .map((unit) => this.inKnownCase(unit, tokenizer))
      .flatMap((unit) => this.within(unit, tokenizer))
      .map(({ places, ...segment }) => ({ ...segment, start: places[0], end: places.at(-1) }));
  }

  // The lines, or the cells of a table's lines, normalised and with their places.
  lines(text) {
    return [...text.matchAll(/[^\r\n]+/g)].flatMap((line) => {
      const pattern = this.cells?.[this.row.test(line[0]) ? 0 : 1];
      const cells = pattern ? line[0].matchAll(pattern) : [{ 0: line[0], index: 0 }];
      return [...cells].map((cell) => {
        const { text: read, places } = this.withPlaces(cell[0]);
        return { text: read, places: places.map((place) => line.index + cell.index + place) };
      });
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
    if (this.together === null) return [[0, line.length]];
    const mark = this.markOf(line);
    const spans = [];
    let [first, last] = [mark, mark];
    for (const [start, end] of this.sentences(line.slice(mark))) {
      const whole = line.slice(first, mark + end);
      if (mark + start > first && size(whole) > this.together) {
        spans.push([first, last]);
        first = last;
      }
      last = mark + end;
    }
    return last > first ? [...spans, [first, last]] : spans;
  }

  // The span of each sentence; together they are the whole text.
  sentences(text) {
    const spans = [];
    let start = 0;
    for (const { segment, index } of this.segmenter.segment(text)) {
      const end = index + segment.length;
      const part = text.slice(start, end);
      const short = SHORT.test(part) || (this.ordinals && ORDINAL.test(part));
      const open = short || !hasLetters(part) || /^\p{Ll}/u.test(text.slice(end));
      if (open && end < text.length) continue;
      spans.push([start, end]);
      start = end;
    }
    return spans;
  }

  // The unit of a span, without white space and without the signs at its edges that the model has
  // not learnt; none if nothing is left.
  unit({ text, places }, [start, end], edges) {
    const letters = text.slice(start, end).split("");
    const seen = (letter) => !isSpace(letter);
    if (!letters.some(seen)) return [];
    const from = start + letters.findIndex(seen);
    const read = text.slice(from, start + letters.findLastIndex(seen) + 1);
    const [first, last] = edges?.span(read) ?? [0, read.length];
    if (first === last) return [];
    const part = places.slice(from + first, from + last + 1);
    return [{ text: read.slice(first, last), places: part, capitals: false }];
  }

  inKnownCase(unit, tokenizer) {
    if (!this.invisible) return unit;
    const lower = lowered(unit.text);
    const text = inKnownCase(lower ?? unit.text, tokenizer);
    return { ...unit, text, capitals: lower !== null };
  }

  // The unit with its ids, or several units if it has more than `longest`.
  within(unit, tokenizer) {
    const ids = tokenizer.encode(unit.text);
    if (ids.length <= this.longest) return [{ ...unit, ids }];
    let start = 0;
    return this.split(unit.text, tokenizer).flatMap((part) => {
      const [from, to] = [start, start + part.length];
      start = to;
      return this.unit(unit, [from, to]).map((piece) => {
        return { ...piece, capitals: unit.capitals, ids: tokenizer.encode(piece.text) };
      });
    });
  }

  // A text in parts that are short enough, cut near its middle, then its halves likewise.
  split(text, tokenizer) {
    const letters = [...text];
    const { length } = letters;
    if (length <= 1 || tokenizer.encode(text).length <= this.longest) return [text];
    let cut = Math.floor(length / 2);
    for (const pattern of this.breaks) {
      let [end, at] = [0, 0];
      const ends = [...text.matchAll(pattern)].map(({ 0: found, index }) => {
        end += size(text.slice(at, index + found.length));
        at = index + found.length;
        return end;
      });
      const inside = ends.filter((place) => place / length > 0.25 && place / length < 0.75);
      if (!inside.length) continue;
      const far = (place) => Math.abs(place - length / 2);
      cut = inside.reduce((best, place) => (far(place) < far(best) ? place : best));
      break;
    }
    const halves = [letters.slice(0, cut), letters.slice(cut)];
    return halves.flatMap((half) => this.split(half.join(""), tokenizer));
  }
}

// A text of several words in capitals alone, in lower case but for the first letter; else null.
function lowered(text) {
  const [first, ...rest] = text;
  const lower = first + rest.join("").toLowerCase();
  const words = text.match(/[\p{L}\p{Nl}\p{No}]{2,}/gu) ?? [];
  const alike = [...lower].length === rest.length + 1;
  return isUpper(text) && words.length > 1 && alike ? lower : null;
}
