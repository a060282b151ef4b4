// Positional encoding (section 3.5): without it, attention ignores the order of the tokens.
// The twin of glassformer/model/positions.py.

import { rowOf } from "./product.js";
import { layerNorm, Matrix } from "./tensor.js";

export function sinusoidalPosition(place, { d_model, position_layout, position_frequencies }) {
  const half = d_model / 2;
  const steps = position_frequencies === "paper" ? half : Math.max(half - 1, 1);
  const row = new Float32Array(d_model);
  for (let i = 0; i < half; i += 1) {
    const angle = place * Math.exp((-Math.log(10000) * i) / steps);
    const [sine, cosine] =
      position_layout === "interleaved" ? [2 * i, 2 * i + 1] : [i, half + i];
    row[sine] = Math.sin(angle);
    row[cosine] = Math.cos(angle);
  }
  return row;
}

// `off`: it adds no position. BART has a LayerNorm after the sum.
export class PositionalEncoding {
  constructor(weights, config, maxLength, off = false) {
    this.config = config;
    this.maxLength = maxLength;
    this.off = off;
    this.norm = config.embedding_norm ? weights.norm("norm") : null;
    const own = config.embedding_norm ? weights.of("positions") : weights;
    this.table = config.positions === "learned" ? own.matrix("table") : null;
  }

  vector(place) {
    const { config, table } = this;
    if (place >= this.maxLength)
      throw new Error(`The text is longer than this model's ${this.maxLength} positions.`);
    if (this.off) return new Float32Array(config.d_model);
    const row = place + config.position_offset;
    return table ? rowOf(table, row) : sinusoidalPosition(row, config);
  }

  // `placeOf(row)`: the position of a row.
  forward(embedded, placeOf) {
    const sum = new Matrix(embedded.rows, embedded.columns);
    embedded.list.forEach((vector, row) => {
      const position = this.vector(placeOf(row));
      sum.row(row).set(vector.map((value, column) => value + position[column]));
    });
    return this.norm ? layerNorm(sum, this.norm, this.config.norm_epsilon) : sum;
  }
}
