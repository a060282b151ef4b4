// Matrices of float32, and the sums that several parts use.

export class Matrix {
  constructor(rows, columns, data = new Float32Array(rows * columns)) {
    Object.assign(this, { rows, columns, data });
  }

  static of(rows) {
    const matrix = new Matrix(rows.length, rows[0].length);
    rows.forEach((row, place) => matrix.row(place).set(row));
    return matrix;
  }

  row(place) {
    return this.data.subarray(place * this.columns, (place + 1) * this.columns);
  }

  get list() {
    return Array.from({ length: this.rows }, (_, place) => this.row(place));
  }
}

export function add(a, b) {
  const sum = new Matrix(a.rows, a.columns);
  for (let i = 0; i < sum.data.length; i += 1) sum.data[i] = a.data[i] + b.data[i];
  return sum;
}

export function layerNorm(x, { weight, bias }, epsilon) {
  const normed = new Matrix(x.rows, x.columns);
  x.list.forEach((row, place) => {
    let [sum, squares] = [0, 0];
    for (let i = 0; i < row.length; i += 1) sum += row[i];
    const mean = sum / row.length;
    for (let i = 0; i < row.length; i += 1) squares += (row[i] - mean) ** 2;
    const factor = 1 / Math.sqrt(squares / row.length + epsilon);
    const output = normed.row(place);
    for (let i = 0; i < row.length; i += 1)
      output[i] = (row[i] - mean) * factor * weight[i] + bias[i];
  });
  return normed;
}

// Replaces the scores by their softmax; zeros if all are -Infinity.
export function softmax(scores) {
  let largest = -Infinity;
  for (let i = 0; i < scores.length; i += 1) if (scores[i] > largest) largest = scores[i];
  if (largest === -Infinity) return scores.fill(0);
  let sum = 0;
  for (let i = 0; i < scores.length; i += 1) sum += scores[i] = Math.exp(scores[i] - largest);
  for (let i = 0; i < scores.length; i += 1) scores[i] /= sum;
  return scores;
}

// log of the sum of exp: a logit minus this is a log-probability.
export function logSum(logits) {
  let largest = -Infinity;
  for (let i = 0; i < logits.length; i += 1) if (logits[i] > largest) largest = logits[i];
  let sum = 0;
  for (let i = 0; i < logits.length; i += 1) sum += Math.exp(logits[i] - largest);
  return largest + Math.log(sum);
}

// The places of the largest values, the largest first; of equal ones the first comes first.
export function largest(values, count) {
  const best = [];
  let least = -Infinity; // the value that a newcomer has to exceed
  for (let place = 0; place < values.length; place += 1) {
    if (!(values[place] > least)) continue;
    let at = best.length;
    while (at > 0 && values[best[at - 1]] < values[place]) at -= 1;
    best.splice(at, 0, place);
    if (best.length > count) best.pop();
    if (best.length === count) least = values[best[count - 1]];
  }
  return best;
}
