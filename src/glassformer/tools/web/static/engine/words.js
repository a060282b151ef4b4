// The words of a text with their places, counted in characters (code points).
// The twin of glassformer/data/words.py.

// Python's white space; JavaScript's \s is another set.
const SPACES = /^[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]$/;
// Thai, Lao, Burmese, Khmer, kana and Han put no spaces between words.
const UNSPACED = new RegExp(
  "^[\\u0e00-\\u0eff\\u1000-\\u109f\\u1780-\\u17ff\\u3005-\\u3007\\u3040-\\u30ff" +
    "\\u3400-\\u9fff\\uf900-\\ufaff\\u{20000}-\\u{3ffff}]$",
  "u",
);

export const isSpace = (character) => SPACES.test(character);
export const hasLetters = (text) => /\p{L}/u.test(text);

function kindOf(character) {
  if (isSpace(character)) return "space";
  if (/[\p{M}\p{Cf}]/u.test(character)) return "mark";
  return /[\p{L}\p{N}]/u.test(character) && !UNSPACED.test(character) ? "letter" : "alone";
}

// Whether a word is one letter of a script with spaces between words.
const isLetterAlone = (word) => [...word].length === 1 && kindOf(word) === "letter";

// Whether a text has words, and the tokenizer takes each of them apart.
export function knowsNoWord(tokenizer, text) {
  const letters = [...text];
  const found = words(text)
    .map((span) => letters.slice(...span).join(""))
    .filter((word) => hasLetters(word) && !/\p{Nd}/u.test(word) && !isLetterAlone(word));
  const knows = (word) => {
    const ids = tokenizer.encode(word).slice(tokenizer.prefix.length);
    const size = [...word.normalize("NFD")].length; // a Hangul syllable has several letters
    const whole = [...word].length === 1 || size >= 2 * ids.length;
    return whole && ids.every((id) => tokenizer.knows(id));
  };
  return found.length > 0 && !found.some(knows);
}

// Spans: a run of letters and digits, with apostrophes inside, or another visible character.
export function words(text) {
  const letters = [...text];
  const spans = [];
  let open = false; // whether a letter would continue the last word
  const joins = (place) =>
    place > 0 &&
    "'’".includes(letters[place]) &&
    /[\p{L}\p{N}\p{M}]/u.test(letters[place - 1]) &&
    kindOf(letters[place - 1]) !== "alone";
  letters.forEach((character, place) => {
    const kind = kindOf(character);
    const last = spans.at(-1);
    if (kind === "letter" && !open && joins(place - 1)) {
      spans.pop(); // the apostrophe: the word before it goes on
      spans.at(-1)[1] = place + 1;
    } else if ((kind === "letter" && open) || (kind === "mark" && last?.[1] === place)) {
      last[1] = place + 1;
    } else if (kind !== "space") spans.push([place, place + 1]);
    if (kind !== "mark") open = kind === "letter";
  });
  return spans;
}

// The target and source words that attention links, as rows of [target, source, weight]. `weights`
// has a row for each target piece; the spans are those of words and pieces.
// The twin of glassformer/alignment/align.py.
export function links(weights, source, target) {
  const [columns, rows] = [sharesOf(source), sharesOf(target)];
  return rows.flatMap((row, word) => {
    const total = Math.max(row.reduce((sum, [, share]) => sum + share, 0), 1e-9);
    const read = columns.map((column) => {
      const parts = row.map(([piece, share]) =>
        column.reduce((sum, [place, part]) => sum + share * part * weights[piece][place], 0),
      );
      return parts.reduce((sum, part) => sum + part, 0) / total;
    });
    const most = Math.max(...read);
    const linked = (weight) => weight >= 0.5 * most && weight >= 0.2;
    return read.flatMap((weight, place) => (linked(weight) ? [[word, place, weight]] : []));
  });
}

// For each word its pieces, [piece, share]: 1, or less if the piece touches several words.
function sharesOf({ words: spans, pieces }) {
  const shares = spans.map(() => []);
  pieces.forEach(([start, end], piece) => {
    const touched = spans.flatMap(([first, last], word) =>
      Array(Math.max(0, Math.min(end, last) - Math.max(start, first))).fill(word),
    );
    const sums = new Map();
    for (const word of touched) sums.set(word, (sums.get(word) ?? 0) + 1 / touched.length);
    for (const [word, share] of sums) shares[word].push([piece, share]);
  });
  return shares;
}
