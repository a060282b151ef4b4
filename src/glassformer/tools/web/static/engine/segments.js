// From a text as people have it to the segments that the model reads.
// After glassformer/data/preprocessing.py, normaliser.py and splitting.py; the browser finds the
// sentences.

import { inKnownCase, isUpper } from "./capitals.js";
import { Edges, protectedSpans } from "./edges.js";
import { hasLetters, isSpace, knowsNoWord } from "./words.js";

// No sentence ends after an initial, a title, or a number that means "fourth", nor before a small
// letter.
const SHORT = /(?<![\p{L}\p{N}_])(?:\p{Lu}|Mrs?|Ms|Dr|Prof|St|Mme|Mlle|Vol|vol|approx)\.\s*$/u;
const ORDINAL = /(?<![\p{L}\p{N}_])(?:\d{1,3}|[IVXLC]+)\.\s*$/u;

// The shortest parts that NFC can treat alone; \0 stands for a character that no reader sees.
const HANGUL = "(?:[\\u1100-\\u1112]\\0*[\\u1161-\\u1175]|[가-힣])(?:\\0*[\\u11a8-\\u11c2])?";
const CLUSTER = new RegExp(`(?:${HANGUL}|[^\\0])(?:\\0*\\p{M})*`, "gu");

const LINE = /[^\r\n\v\f\x85\u2028\u2029]+/gu;

export const size = (text) => [...text].length;
const ascii = (wide) => String.fromCharCode(wide.charCodeAt(0) - 0xfee0);

export class Preprocessing {
  // `normalisation`: null, or patterns as Python has them: characters that no reader sees, and
  // those that Python's version of Unicode lacks. `together`: the most characters of sentences that
  // are translated at once; null: only line ends cut. `longest`: the most subwords of a segment.
  // `breaks`: patterns of places where a longer one is cut, best first. `numbers`: whether a text
  // without letters is translated. `ordinals`: whether "4." may mean fourth. `gap`: what stands
  // between two sentences of the translation. `cutting`: null, or Python's patterns of cells, marks
  // and edges, and the letters that the model knows.
  constructor({ normalisation, cutting, breaks, ...settings }) {
    Object.assign(this, settings);
    this.breaks = breaks.map((each) => new RegExp(each, "gu"));
    this.edges = cutting && new Edges(cutting);
    this.row = cutting && new RegExp(`^(?:${cutting.row})$`, "u");
    this.cells = cutting && [cutting.rowCell, cutting.cell].map((each) => new RegExp(each, "gu"));
    this.letters = cutting?.letters && new Set(cutting.letters);
    this.twins = cutting?.twins;
    this.shapes = cutting?.shapes;
    this.code = cutting && new RegExp(cutting.code, "gu");
    this.mark = cutting && new RegExp(cutting.mark, "uy");
    const { torn, tornPart, lone } = cutting ?? {};
    this.torn = torn && [torn, tornPart, lone].map((each) => new RegExp(each, "gu"));
    this.oneLetter = cutting && new RegExp(`^(?:${cutting.oneLetter})$`, "u");
    this.lone = torn && new Set(cutting.loneLetters);
    this.colon = cutting && new RegExp(cutting.colon, "gu");
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
    if (this.normalised(text) === text) return { text, places: [...Array(text.length + 1).keys()] };
    const masked = text.replace(this.invisible, (gone) => "\0".repeat(gone.length));
    let [normalised, end] = ["", 0];
    const places = [];
    for (const { 0: cluster, index } of masked.matchAll(CLUSTER)) {
      const stands = [...cluster.matchAll(/[^\0]/gu)].map((each) => index + each.index);
      const letters = [...this.composed(cluster.replaceAll("\0", ""))];
      letters.forEach((letter, number) => {
        const space = isSpace(letter);
        if (space && (!normalised || normalised.endsWith(" "))) return;
        normalised += space ? " " : letter;
        const place = letters.length === stands.length ? stands[number] : index;
        places.push(...Array(letter.length).fill(place));
      });
      if (!isSpace(cluster)) end = index + cluster.length;
    }
    const kept = normalised.replace(/ $/, "");
    return { text: kept, places: [...places.slice(0, kept.length), end] };
  }

  // The line, with each unknown character in a form that the model knows, if there is one.
  withTwins({ text, places }) {
    if (!this.invisible || !this.letters) return { text, places };
    const [forms, stands] = [[], []];
    let place = 0;
    for (const letter of text) {
      const form = this.twin(letter);
      forms.push(form);
      stands.push(...Array(form.length).fill(places[place]));
      place += letter.length;
    }
    return { text: forms.join(""), places: [...stands, places.at(-1)] };
  }

  // The form of an unknown character that the model knows, if there is one.
  twin(letter) {
    if (this.letters.has(letter)) return letter;
    const forms = this.twins.filter((group) => group.includes(letter)).map((group) => group[0]);
    if (/[\p{Lu}\p{Ll}\p{Nd}]/u.test(letter)) forms.push(letter.normalize("NFKC"));
    return forms.find((form) => [...form].every((each) => this.letters.has(each))) ?? letter;
  }

  // The segments of a text, each with its ids, its span in the text as typed (in UTF-16), and the
  // place there of each of its units.
  segments(text, tokenizer) {
    const units = this.lines(text).flatMap((line) =>
      this.parts(line.text).flatMap((span) => this.unit(line, span, tokenizer)),
    );
    return units
      .map((unit) => ({ ...unit, ...this.read(unit.text, tokenizer) }))
      .flatMap((unit) => this.within(unit, tokenizer))
      .map((unit) => ({ ...unit, start: unit.places[0], end: unit.places.at(-1) }));
  }

  // The lines, or the cells of a table's lines, normalised and with their places.
  lines(text) {
    const gap = (code) => "\t".repeat(code.length);
    const parted = this.code ? text.replace(this.code, gap) : text;
    return [...parted.matchAll(LINE)].flatMap((line) => {
      const pattern = this.cells?.[this.row.test(line[0]) ? 0 : 1];
      const cells = pattern ? line[0].matchAll(pattern) : [{ 0: line[0], index: 0 }];
      return [...cells].map((cell) => {
        const { text: read, places } = this.withTwins(this.withPlaces(cell[0]));
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

  // The spans of a line that are translated, each by itself: the line, or its sentences. If pairs
  // of signs, such as brackets, hold all words, and these are several sentences or have marks of
  // their own, the spans lie inside the pairs.
  parts(line) {
    if (this.together === null) return [[0, line.length]];
    const ends = [...this.colons(line), line.length];
    return ends.flatMap((end, n) => this.betweenColons(line, ends[n - 1] ?? 0, end));
  }

  // The places behind the colons that the model has not learnt, but for protected spans.
  colons(line) {
    const places = this.colon ? [...line.matchAll(this.colon)].map(({ index }) => index + 1) : [];
    const inside = new Set();
    for (const { kind, span, index } of places.length ? protectedSpans(line, this.edges.spans) : []) {
      const end = span.length + (kind === "unknown" ? 0 : 1);
      for (let place = 1; place < end; place += 1) inside.add(index + place);
    }
    return places.filter((place) => !inside.has(place));
  }

  betweenColons(line, start, end) {
    const mark = start + this.markOf(line.slice(start, end));
    const inside = this.edges?.contents(line.slice(mark, end)) ?? [];
    const places = inside.map(([first, last]) => [mark + first, mark + last]);
    const marks = places.map((span) => this.markOf(line.slice(...span)));
    const inner = places.flatMap(([first, last], n) => this.groups(line, first + marks[n], last));
    const divided = inner.length > 1 || marks.some(Boolean);
    return divided ? inner : this.groups(line, mark, end);
  }

  // Spans of one sentence, or of several of at most `together` characters.
  groups(line, start, stop) {
    const part = line.slice(start, stop);
    const sentences = this.sentences(part);
    const cuts = this.edges && sentences.length > 1;
    const [spans, inside] = [[], new Set()]; // places inside protected spans
    for (const { index, span } of cuts ? protectedSpans(part, this.edges.spans) : []) {
      for (let place = 1; place < span.length; place += 1) inside.add(index + place);
    }
    let [first, last] = [start, start];
    for (const [begin, end] of sentences) {
      const cut = start + begin;
      const isLong = size(line.slice(first, start + end)) > this.together;
      if (cut > first && isLong && !inside.has(begin)) {
        spans.push([first, last]);
        first = last;
      }
      last = start + end;
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
  unit({ text, places }, [start, end], tokenizer) {
    const letters = text.slice(start, end).split("");
    const seen = (letter) => !isSpace(letter);
    if (!letters.some(seen)) return [];
    const from = start + letters.findIndex(seen);
    const read = text.slice(from, start + letters.findLastIndex(seen) + 1);
    const torn = this.tornWords(read, tokenizer);
    const [first, last] = this.edges?.span(read, this.numbers, torn) ?? [0, read.length];
    const core = read.slice(first, last);
    const shape = core.replace(/\p{Nd}+/gu, "0");
    const isNumber = this.numbers && (this.shapes?.includes(shape) ?? true);
    if (!core || !(isNumber || hasLetters(core))) return [];
    if (this.torn && this.isUnknown(this.read(core, tokenizer).text, tokenizer)) return [];
    const part = places.slice(from + first, from + last + 1);
    return [{ text: core, places: part, capitals: false }];
  }

  // Whether the model knows no word of a text, or the text is one letter.
  isUnknown(text, tokenizer) {
    return this.oneLetter.test(text) || knowsNoWord(tokenizer, text);
  }

  // The places (UTF-16) of the words that the tokenizer tears, and of unknown letters that stand
  // alone; words that a sign joins are one.
  tornWords(text, tokenizer) {
    const [joined, part, lone] = this.torn ?? [];
    if (!joined) return [];
    const { text: read } = this.read(text, tokenizer);
    const tears = ({ 0: word, index }) => [...word].length > 1 && tokenizer.tears(word, !index);
    const isUnknown = (letter) => !this.lone.has(letter);
    const torn = [...read.matchAll(joined)].filter(([found]) => [...found.matchAll(part)].some(tears));
    const letters = [...read.matchAll(lone)].filter(([x]) => [...x.toLowerCase()].some(isUnknown));
    return [...torn, ...letters]
      .sort((one, other) => one.index - other.index)
      .map(({ 0: found, index }) => [index, index + found.length]);
  }

  // The text in the case that the model knows, and whether it is in capitals.
  read(text, tokenizer) {
    if (!this.invisible) return { text, capitals: false };
    const letters = lowered(text);
    const capitals = letters !== null && isShorter(letters, text, tokenizer);
    return { text: inKnownCase(capitals ? letters : text, tokenizer), capitals };
  }

  // The unit with its ids, or several units if it has more than `longest`.
  within(unit, tokenizer) {
    const ids = tokenizer.encode(unit.text);
    if (ids.length <= this.longest) return [{ ...unit, ids }];
    let end = 0;
    return this.split(unit.text, tokenizer).flatMap((part) => {
      end += part.length;
      const pieces = this.unit(unit, [end - part.length, end], tokenizer);
      const { capitals } = unit;
      return pieces.map((piece) => ({ ...piece, capitals, ids: tokenizer.encode(piece.text) }));
    });
  }

  // A text in parts that are short enough, cut near its middle, then its halves likewise.
  split(text, tokenizer) {
    const letters = [...text];
    const { length } = letters;
    if (length <= 1 || tokenizer.encode(text).length <= this.longest) return [text];
    const places = this.breaks.map((pattern) => {
      const ends = endsOf(text, pattern);
      return ends.filter((end) => end / length > 0.25 && end / length < 0.75);
    });
    const far = (end) => Math.abs(end - length / 2);
    const best = places.find((ends) => ends.length) ?? [Math.floor(length / 2)];
    const cut = best.reduce((nearest, end) => (far(end) < far(nearest) ? end : nearest));
    const halves = [letters.slice(0, cut), letters.slice(cut)];
    return halves.flatMap((half) => this.split(half.join(""), tokenizer));
  }
}

// The ends of a pattern's matches, in characters.
function endsOf(text, pattern) {
  let [end, place] = [0, 0];
  return [...text.matchAll(pattern)].map(({ 0: found, index }) => {
    end += size(text.slice(place, index + found.length));
    place = index + found.length;
    return end;
  });
}

// Whether the tokenizer has fewer subwords for a text than for another one.
function isShorter(text, other, tokenizer) {
  return tokenizer.encode(text).length < tokenizer.encode(other).length;
}

// A text of several words in capitals alone, in lower case but for the first letter; else null.
function lowered(text) {
  const [first, ...rest] = text;
  const lower = first + rest.join("").toLowerCase();
  const words = text.match(/[\p{L}\p{Nl}\p{No}]{2,}/gu) ?? [];
  const alike = [...lower].length === rest.length + 1;
  return isUpper(text) && words.length > 1 && alike ? lower : null;
}
