// The Transformer (figure 1): embeddings, encoder, decoder, and the projection to logits.
// The twin of glassformer/model/transformer.py, for one sentence.

import { Decoder } from "./decoder.js";
import { Encoder } from "./encoder.js";
import { PositionalEncoding } from "./positions.js";
import { rowOf } from "./product.js";
import { layerNorm, Matrix } from "./tensor.js";
import { linear } from "./weights.js";

export class Transformer {
  // `headsOff(name)`: the heads of an attention that give zeros.
  constructor(weights, config, { headsOff = () => [], positionsOff = false } = {}) {
    this.config = config;
    const joint = ["three-way", "embeddings"].includes(config.tying);
    const tied = ["three-way", "target"].includes(config.tying);
    const target = weights.matrix(`${joint ? "source" : "target"}_embedding.weight`);
    this.tables = { source: weights.matrix("source_embedding.weight"), target };
    const { max_length: longest, source_max_length } = config;
    const length = { source: source_max_length ?? longest, target: longest };
    this.positions = Object.fromEntries(
      ["source", "target"].map((side) => [
        side,
        new PositionalEncoding(weights.of(`${side}_positions`), config, length[side], positionsOff),
      ]),
    );
    const options = (stack) => ({ off: headsOff, norm: finalNorm(weights.of(stack), config) });
    this.encoder = new Encoder(weights.of("encoder"), config, options("encoder"));
    this.decoder = new Decoder(weights.of("decoder"), config, options("decoder"));
    // Section 3.4: the output matrix is the target embedding's, if they are tied.
    const output = tied ? target : weights.matrix("output.weight");
    this.project = linear(weights.store.products, output, weights.vector("output_bias"));
  }

  embed(side, ids, placeOf = (row) => row) {
    const factor = this.config.scale_embeddings ? Math.sqrt(this.config.d_model) : 1;
    const rows = ids.map((id) => rowOf(this.tables[side], id).map((value) => value * factor));
    return this.positions[side].forward(Matrix.of(rows), placeOf);
  }

  // The memory: the encoder's states, and the mask that hides padding. `seen`: a map that receives
  // each sublayer's numbers.
  encode(source, seen = null) {
    const pad = this.config.source_pad_id ?? this.config.pad_id;
    const allowed = (_, key) => source[key] !== pad;
    return { states: this.encoder.forward(this.embed("source", source), allowed, seen), allowed };
  }

  // The decoder's states for a whole target at once, as in training.
  decode(target, memory, { causal = true, seen = null } = {}) {
    const allowed = causal ? (row, key) => key <= row : () => true;
    return this.decoder.forward(this.embed("target", target), memory, allowed, seen);
  }

  start(memory) {
    return this.decoder.start(memory);
  }

  // Read one token in each row; the logits of the next one, and the new state.
  step(tokens, state) {
    const embedded = this.embed("target", tokens, () => state.length);
    const [x, following] = this.decoder.step(embedded, state);
    return [this.project(x), following];
  }
}

// The LayerNorm at the end of a stack of pre-norm blocks.
function finalNorm(weights, { norm, norm_epsilon }) {
  const last = weights.norm("norm");
  return norm === "pre" ? (x) => layerNorm(x, last, norm_epsilon) : (x) => x;
}
