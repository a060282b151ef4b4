// The decoder (section 3.1, figure 1 right): a stack of blocks that reads target and memory.
// The twin of glassformer/model/decoder.py.

import { MultiHeadAttention } from "./attention.js";
import { FeedForward } from "./blocks.js";
import { residual } from "./encoder.js";

export class DecoderBlock {
  constructor(weights, config, off) {
    this.selfAttention = residual(MultiHeadAttention, weights.of("self_attention"), config, off);
    this.crossAttention = residual(MultiHeadAttention, weights.of("cross_attention"), config, off);
    this.feedForward = residual(FeedForward, weights.of("feed_forward"), config);
  }

  // All positions at once. `allowed`: the mask of the target.
  forward(x, memory, allowed, seen) {
    const context = this.start(memory);
    x = this.selfAttention.forward(x, { allowed }, seen);
    x = this.crossAttention.forward(x, context, seen);
    return this.feedForward.forward(x, {}, seen);
  }

  // The memory's keys and values, which every step reads, and their mask.
  start({ states, allowed }) {
    const cache = this.crossAttention.sublayer.projectKeysAndValues(states);
    return { cacheOf: () => cache, allowed };
  }

  // One position of each row. `caches`: the keys and values of each row's earlier positions.
  step(x, context, caches) {
    const attention = this.selfAttention.sublayer;
    const y = this.selfAttention.before(x);
    const { keys, values } = attention.projectKeysAndValues(y);
    const grown = caches.map((cache, row) => ({
      keys: [...cache.keys, keys[row]],
      values: [...cache.values, values[row]],
    }));
    x = this.selfAttention.add(x, attention.forward(y, { cacheOf: (row) => grown[row] }));
    x = this.crossAttention.forward(x, context);
    return [this.feedForward.forward(x), grown];
  }
}

export class Decoder {
  constructor(weights, config, { off, norm }) {
    this.norm = norm;
    this.blocks = Array.from(
      { length: config.num_decoder_layers },
      (_, layer) => new DecoderBlock(weights.of(`blocks.${layer}`), config, off),
    );
  }

  forward(x, memory, allowed, seen) {
    const read = (stream, block) => block.forward(stream, memory, allowed, seen);
    return this.norm(this.blocks.reduce(read, x));
  }

  // The state before the first token: one row, with an empty cache in each block.
  start(memory) {
    return {
      length: 0,
      contexts: this.blocks.map((block) => block.start(memory)),
      caches: this.blocks.map(() => [{ keys: [], values: [] }]),
    };
  }

  step(x, { length, contexts, caches }) {
    const following = this.blocks.map((block, layer) => {
      const [output, grown] = block.step(x, contexts[layer], caches[layer]);
      x = output;
      return grown;
    });
    return [this.norm(x), { length: length + 1, contexts, caches: following }];
  }
}

// The state of the given rows, in that order; a row may be named more than once.
export function select(state, rows) {
  return { ...state, caches: state.caches.map((caches) => rows.map((row) => caches[row])) };
}
