// "Check this file": the texts whose numbers Python has computed are computed anew, and compared.

const CLOSE = 1e-3; // of vectors of length 10 and of log-probabilities; they differ by 1e-5

// Compare all texts; {lines, right}: sentences for a person, and whether all numbers are right.
export async function check(engine, checks, pause) {
  let [tokens, wrong, numbers, largest] = [0, 0, 0, 0];
  const begun = performance.now();
  const compare = (computed, stored) => {
    numbers += 1;
    largest = Math.max(largest, Math.abs(computed - stored) || (computed === stored ? 0 : Infinity));
  };
  for (const { text, source, target, sublayers, steps } of checks) {
    await pause();
    const ids = [...engine.source.encode(text), engine.config.eos_id];
    const found = await engine.search(source.slice(0, -1), { pause });
    const [best] = found.hypotheses;
    const written = best.ends ? [...best.ids, engine.config.eos_id] : best.ids;
    wrong += ids.join() === source.join() ? 0 : 1;
    wrong += written.slice(0, target.length).join() === target.join() ? 0 : 1;
    tokens += written.length;
    const seen = new Map();
    const memory = engine.model.encode(source, seen);
    engine.model.decode([engine.config.bos_id, ...target.slice(0, -1)], memory, { seen });
    for (const { name, ...norms } of sublayers)
      for (const [field, values] of Object.entries(norms)) {
        const rows = seen.get(name)[field].list;
        values.forEach((value, place) => compare(Math.hypot(...rows[place]), value));
      }
    engine.logProbabilities(source, target).forEach((value, step) => compare(value, steps[step]));
  }
  const seconds = (performance.now() - begun) / 1000;
  const right = wrong === 0 && largest < CLOSE;
  const lines = [
    `${checks.length} texts, by ${engine.path}: ` +
      (wrong ? `${wrong} of ${2 * checks.length} lists of pieces differ from Python's.` : "the pieces read and written are Python's."),
    `${numbers.toLocaleString()} numbers (each sublayer's vectors, each piece's log-probability) ` +
      `differ from Python's by at most ${largest.toExponential(1)}.`,
    `${tokens} pieces written with beam 5 in ${seconds.toFixed(2)} s, the comparison included.`,
  ];
  return { lines, right };
}
