// Words in capitals, and titles. The twin of glassformer/data/capitals.py.

const WORD = /(?<![^ ])[\p{L}\p{Nl}\p{No}]+(?=[ .,;:!?]|$)/gu;
const TITLE = 4; // words: so many, each with a capital, are a title

// Python's isupper(): a capital letter, and none of another case.
export const isUpper = (text) =>
  /\p{Uppercase}/u.test(text) && !/[\p{Lowercase}\p{Lt}]/u.test(text);

// The normalised text with such words in lower case as the tokenizer knows in one piece.
export function inKnownCase(text, tokenizer) {
  const words = text.match(WORD) ?? [];
  const capitals = words.every((word) => isUpper(String.fromCodePoint(word.codePointAt(0))));
  const title = words.length >= TITLE && capitals && !/\p{Nd}/u.test(text);
  const idsOf = (word) => tokenizer.encode(word).slice(tokenizer.prefix.length);
  return text.replace(WORD, (word, place) => {
    const lower = word.toLowerCase();
    const inTitle = title && place > 0;
    const size = [...word].length;
    if ([...lower].length !== size || !(inTitle || (size > 2 && isUpper(word)))) return word;
    const [typed, known] = [idsOf(word), idsOf(lower)];
    const torn = typed.length > 1 || (inTitle && known[0] < typed[0]);
    return known.length === 1 && torn ? lower : word;
  });
}
