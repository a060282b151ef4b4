// Beam search with the paper's length penalty (section 6.1), of one sentence.
// The twin of glassformer/decoding/beam.py, whose rules these are; a beam of 1 is greedy search.
// The search is a tree: each candidate is a node, and a hypothesis is the path to its node.

import { select } from "./decoder.js";
import { largest, logSum } from "./tensor.js";

const f = Math.fround; // Python adds log-probabilities in float32

export const penalty = (length, alpha) => ((5 + length) / 6) ** alpha;

// The ids of a node's path, without the start symbol.
export function idsOf(node) {
  const ids = [];
  for (let at = node; at.parent; at = at.parent) ids.unshift(at.token);
  return ids;
}

// Which ids may follow, as the OutputRules of glassformer/decoding/constraints.py.
export class OutputRules {
  constructor({ pad_id, unk_id, bos_id, eos_id }, { prefix, blank }, forced = []) {
    Object.assign(this, { prefix, blank, forced, eos: eos_id });
    this.never = [pad_id, unk_id, bos_id].filter((id) => id !== eos_id);
  }

  // Turns the logits into the log-probabilities of all ids after these, -Infinity if an id may not
  // follow.
  logProbabilities(logits, ids) {
    const { prefix, forced, blank, eos } = this;
    if (ids.length < prefix.length) {
      logits.fill(-Infinity)[prefix[ids.length]] = 0;
      return this.only(logits, forced[ids.length]);
    }
    const sum = logSum(logits);
    if (!Number.isFinite(sum)) throw new Error("The weights are damaged: a logit is no number.");
    for (let id = 0; id < logits.length; id += 1) logits[id] -= sum;
    const forbid = (id) => (logits[id] = -Infinity);
    this.never.forEach(forbid);
    const begun = ids.length - prefix.length;
    if (begun === 0) forbid(eos);
    if (begun === 1 && blank.has(ids.at(-1))) [...blank, eos].forEach(forbid);
    return this.only(logits, forced[ids.length]);
  }

  only(logs, id) {
    if (id === undefined) return logs;
    const kept = logs[id];
    logs.fill(-Infinity)[id] = kept;
    return logs;
  }
}

// The best hypotheses, and the tree. `step(tokens, state)` is the model's; `pause()` is awaited
// between two steps, and may throw to end the search; `line`: a target that the search follows.
export async function beamSearch(step, state, settings) {
  const { rules, start, longest, alpha, beam, most = 1, pause = null, line = [] } = settings;
  const root = { parent: null, step: -1, token: start, logProbability: 0, rank: 0, length: 0 };
  root.status = "alive";
  const nodes = [root];
  const finished = [];
  const followed = [];
  let alive = [{ node: root, ids: [], row: 0 }];
  let led = false;
  let over = false;
  for (let length = 1; !over; length += 1) {
    await pause?.();
    const rowsOfState = select(state, alive.map(({ row }) => row));
    const [logits, next] = step(alive.map(({ node }) => node.token), rowsOfState);
    state = next;
    const rows = alive.map(({ ids }, row) => rules.logProbabilities(logits.row(row), ids));
    const candidates = propose(alive, rows, 2 * beam);
    follow(followed, alive, rows, line);
    nodes.push(...candidates);

    // Targets that end are set aside: an end counts only among the first `beam` candidates.
    for (const node of candidates.slice(0, beam)) {
      if (node.token !== rules.eos) continue;
      node.status = "finished";
      const ids = idsOf(node.parent);
      finished.push({ node, ids, ends: true, score: scoreOf(node, alpha) });
    }
    led ||= candidates[0]?.token === rules.eos;
    alive = candidates
      .map((node) => ({ node, ids: null, row: node.row }))
      .filter(({ node }) => node.token !== rules.eos)
      .slice(0, beam)
      .map((each) => ({ ...each, ids: idsOf(each.node) }));
    for (const { node } of alive) node.status = "alive";

    // No unfinished target may overtake the last of the wanted ones; or the search was led long
    // enough; or it is at its greatest length.
    const scores = finished.map(({ score }) => score).sort((a, b) => b - a);
    const bar = led && scores.length >= beam ? Infinity : (scores[most - 1] ?? -Infinity);
    const best = Math.max(...alive.map(({ node }) => node.logProbability));
    const reachable = f(best / f(penalty(longest, alpha)));
    over = alive.length === 0 || reachable <= f(bar) || length >= longest;
    if (over) for (const { node } of alive) node.status = "open";
  }
  finished.sort((a, b) => b.score - a.score);
  const open = ({ node, ids }) => ({ node, ids, ends: false, score: scoreOf(node, alpha) });
  return { hypotheses: [...finished, ...alive.map(open)].slice(0, most), nodes, followed };
}

const scoreOf = ({ logProbability, length }, alpha) => logProbability / penalty(length, alpha);

// The best continuations of all rows, best first.
function propose(alive, rows, count) {
  const choices = rows.flatMap((row, place) =>
    largest(row, count).map((token) => ({
      parent: alive[place].node,
      row: place,
      token,
      logProbability: f(alive[place].node.logProbability + row[token]),
    })),
  );
  choices.sort((a, b) => b.logProbability - a.logProbability);
  return choices.slice(0, count).map(({ parent, row, token, logProbability }, rank) => {
    const [step, length] = [parent.step + 1, parent.length + 1];
    return { parent, row, step, token, logProbability, rank, length, status: "pruned" };
  });
}

// The line's candidate of this step, while an unfinished target is the line's beginning.
function follow(followed, alive, rows, line) {
  const length = alive[0].ids.length;
  const row = alive.findIndex(({ ids }) => ids.every((id, place) => id === line[place]));
  if (length >= line.length || row < 0) return;
  const sums = rows.map((values, place) =>
    values.map((value) => f(alive[place].node.logProbability + value)),
  );
  const logProbability = sums[row][line[length]];
  const better = (values) => values.reduce((sum, value) => sum + (value > logProbability), 0);
  const rank = sums.reduce((sum, values) => sum + better(values), 0);
  followed.push({ step: length, token: line[length], logProbability, rank });
}
