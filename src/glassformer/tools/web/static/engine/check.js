// "Check this file": the texts whose numbers Python has computed are computed anew, and compared.

// The engine's numbers may be this many times as far from float64's as Python's float32 is.
const TIMES = 4;
const LEAST = [1e-6, 1e-5]; // roundings of few numbers may be small by chance

// Compare all texts; {lines, right}: sentences for a person, and whether all numbers are right.
export async function check(engine, checks, pause) {
  const { config, model, path } = engine;
  const apart = [[], []]; // vectors, as a share of their lengths; log-probabilities
  let [tokens, wrong] = [0, 0];
  const begun = performance.now();
  for (const { text, source, target, sums, steps } of checks) {
    await pause();
    const ids = [...engine.source.encode(text), config.eos_id];
    const { hypotheses: [best] } = await engine.search(source.slice(0, -1), { pause });
    const written = best.ends ? [...best.ids, config.eos_id] : best.ids;
    tokens += written.length;
    wrong += Number(ids.join() !== source.join());
    wrong += Number(written.slice(0, target.length).join() !== target.join());
    const seen = new Map();
    const memory = model.encode(source, seen);
    model.decode([config.bos_id, ...target.slice(0, -1)], memory, { seen });
    for (const [name, stored] of Object.entries(sums)) {
      const { added, output } = seen.get(name);
      for (const [place, row] of [...added.list, ...output.list].entries())
        apart[0].push(distance(sumOf(row), stored[place]) / Math.max(1, Math.hypot(...row)));
    }
    const logs = engine.logProbabilities(source, target);
    logs.forEach((value, step) => apart[1].push(distance(value, steps[step])));
  }
  const seconds = (performance.now() - begun) / 1000;
  const most = apart.map((values) => Math.max(...values));
  const allowed = LEAST.map(
    (least, kind) => TIMES * Math.max(least, ...checks.map(({ rounding }) => rounding[kind])),
  );
  const right = wrong === 0 && most.every((value, kind) => value <= allowed[kind]);
  const shown = (kind) =>
    `at most ${most[kind].toExponential(1)} (${allowed[kind].toExponential(1)} is allowed)`;
  const lines = [
    `${checks.length} texts, by ${path}: ` +
      (wrong
        ? `${wrong} of ${2 * checks.length} lists of pieces differ from Python's.`
        : "the pieces read and written are Python's."),
    `${apart[0].length.toLocaleString()} vectors, two of every sublayer and position, each as a ` +
      `weighted sum: it differs from Python's by ${shown(0)} of the vector's length.`,
    `The log-probabilities of ${apart[1].length} pieces differ by ${shown(1)}.`,
    `${tokens} pieces written with beam 5 in ${seconds.toFixed(2)} s, the comparison included.`,
  ];
  return { lines, right };
}

// The numbers of a vector as one, in which each place has a weight of its own.
function sumOf(vector) {
  return vector.reduce((sum, value, place) => sum + value * Math.cos(place + 1), 0);
}

// Infinity if one of them is no number.
function distance(computed, stored) {
  const apart = Math.abs(computed - stored);
  return Number.isNaN(apart) ? Infinity : apart;
}
