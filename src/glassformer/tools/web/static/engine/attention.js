// Attention (section 3.2): a query reads values, weighted by the match of query and key.
// The twin of glassformer/model/attention.py.

import { Matrix, softmax } from "./tensor.js";

// Equation 1 for one query in one head, whose columns are `first` to `last`: its scores, its
// weights, and the weighted sum of the values. `allowed(k)`: may it attend to key `k`? A query
// that may attend to no key reads zeros. The numbers are of the query's type: float32 in the engine.
export function scaledDotProductAttention(query, keys, values, [first, last], allowed) {
  const zeros = (length) => new query.constructor(length).fill(0);
  const [scores, weights, output] = [keys.length, keys.length, last - first].map(zeros);
  keys.forEach((key, place) => {
    let sum = 0;
    for (let column = first; column < last; column += 1) sum += query[column] * key[column];
    scores[place] = sum / Math.sqrt(last - first);
    weights[place] = allowed(place) ? scores[place] : -Infinity;
  });
  softmax(weights);
  values.forEach((value, place) => {
    const weight = weights[place];
    for (let column = first; column < last; column += 1)
      output[column - first] += weight * value[column];
  });
  return { scores, weights, output };
}

// Section 3.2.2. `off`: heads whose outputs are zeros.
export class MultiHeadAttention {
  constructor(weights, { num_heads }, off = []) {
    Object.assign(this, { heads: num_heads, off });
    for (const name of ["query", "key", "value", "output"]) this[name] = weights.linear(name);
  }

  // Keys and values, a vector for each position: the decoder's cache keeps these.
  projectKeysAndValues(x) {
    return { keys: this.key(x).list, values: this.value(x).list };
  }

  // Without a cache it is self-attention. `cacheOf(row)`: the keys and values that the row reads.
  // `allowed(row, k)`: the mask. `attended`: receives all that is computed on the way.
  forward(x, { cacheOf, allowed = () => true, attended }) {
    const own = cacheOf ? null : this.projectKeysAndValues(x);
    const query = this.query(x);
    const joined = new Matrix(query.rows, query.columns);
    const width = query.columns / this.heads;
    const rows = query.list.map((vector, row) => {
      const { keys, values } = own ?? cacheOf(row);
      return Array.from({ length: this.heads }, (_, head) => {
        const columns = [head * width, (head + 1) * width];
        const seen = scaledDotProductAttention(vector, keys, values, columns, (key) =>
          allowed(row, key),
        );
        if (!this.off.includes(head)) joined.row(row).set(seen.output, columns[0]);
        return seen;
      });
    });
    if (attended) Object.assign(attended, { query: query.list, ...(own ?? cacheOf(0)), rows });
    return this.output(joined);
  }
}
