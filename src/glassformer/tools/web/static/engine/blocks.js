// The parts of every block: the feed-forward network, and the residual block of a sublayer.
// The twin of glassformer/model/blocks.py.

import { add, layerNorm } from "./tensor.js";

const ACTIVATIONS = {
  relu: (x) => Math.max(0, x),
  gelu: (x) => 0.5 * x * (1 + erf(x / Math.SQRT2)),
  swish: (x) => x / (1 + Math.exp(-x)),
};

// Off by at most 1.5e-7: Abramowitz and Stegun 1964, formula 7.1.26.
function erf(x) {
  const t = 1 / (1 + 0.3275911 * Math.abs(x));
  const factors = [1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592];
  const sum = factors.reduce((total, factor) => total * t + factor, 0) * t;
  return Math.sign(x) * (1 - sum * Math.exp(-x * x));
}

// Section 3.3, equation 2.
export class FeedForward {
  constructor(weights, { activation }) {
    this.inner = weights.linear("inner");
    this.outer = weights.linear("outer");
    this.activation = ACTIVATIONS[activation];
  }

  forward(x) {
    const hidden = this.inner(x);
    const { data } = hidden;
    for (let i = 0; i < data.length; i += 1) data[i] = this.activation(data[i]);
    return this.outer(hidden);
  }
}

// Section 3.1: a sublayer with its residual connection and its LayerNorm.
export class ResidualBlock {
  constructor(name, sublayer, weights, { norm, norm_epsilon }) {
    this.name = name;
    this.sublayer = sublayer;
    const own = weights.norm("norm");
    this.norm = (x) => layerNorm(x, own, norm_epsilon);
    this.normFirst = norm === "pre";
  }

  // `seen`: a map that receives all that the sublayer computes, by the block's name.
  forward(x, context = {}, seen = null) {
    const attended = seen ? {} : undefined;
    const added = this.sublayer.forward(this.before(x), { ...context, attended });
    const output = this.add(x, added);
    seen?.set(this.name, { input: x, added, output, attended });
    return output;
  }

  before(x) {
    return this.normFirst ? this.norm(x) : x;
  }

  add(x, output) {
    const sum = add(x, output);
    return this.normFirst ? sum : this.norm(sum);
  }
}
