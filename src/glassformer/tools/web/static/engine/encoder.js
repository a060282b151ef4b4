// The encoder (section 3.1, figure 1 left): a stack of blocks that reads the source.
// The twin of glassformer/model/encoder.py.

import { MultiHeadAttention } from "./attention.js";
import { FeedForward, ResidualBlock } from "./blocks.js";

// A residual block around a part, by its path in the model.
export function residual(Part, weights, config, off) {
  const name = weights.path.slice(0, -1);
  const sublayer = new Part(weights.of("sublayer"), config, off?.(name));
  return new ResidualBlock(name, sublayer, weights, config);
}

export class EncoderBlock {
  constructor(weights, config, off) {
    this.selfAttention = residual(MultiHeadAttention, weights.of("self_attention"), config, off);
    this.feedForward = residual(FeedForward, weights.of("feed_forward"), config);
  }

  forward(x, allowed, seen) {
    return this.feedForward.forward(this.selfAttention.forward(x, { allowed }, seen), {}, seen);
  }
}

export class Encoder {
  constructor(weights, config, { off, norm }) {
    this.norm = norm;
    this.blocks = Array.from(
      { length: config.num_encoder_layers },
      (_, layer) => new EncoderBlock(weights.of(`blocks.${layer}`), config, off),
    );
  }

  forward(x, allowed, seen) {
    const read = (stream, block) => block.forward(stream, allowed, seen);
    return this.norm(this.blocks.reduce(read, x));
  }
}
