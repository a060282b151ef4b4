// The facts on each box of Figure 1: a sentence, an equation, shapes and parameters.

import { fixed, shape } from "./numbers.js";
import { within } from "./state.js";

const ATTENTION = "Attention(Q, K, V) = softmax(QKᵀ / √dₖ) V";

const PARTS = {
  source_embedding: [
    "Input embedding",
    "Each source piece becomes a vector, multiplied by √d_model.",
    "",
    "3.4",
  ],
  target_embedding: [
    "Output embedding",
    "Each target piece so far becomes a vector; the start symbol shifts them right by one.",
    "",
    "3.4",
  ],
  source_positions: [
    "Positional encoding",
    "Adds a vector for the position, because attention alone knows no order.",
    "PE(pos, 2i) = sin(pos / 10000^(2i/d_model))",
    "3.5",
    "positions",
    "Positions",
  ],
  target_positions: [
    "Positional encoding",
    "Adds a vector for the position, because attention alone knows no order.",
    "PE(pos, 2i) = sin(pos / 10000^(2i/d_model))",
    "3.5",
    "positions",
    "Positions",
  ],
  "encoder.self_attention": [
    "Self-attention of the encoder",
    "Each source piece attends to all source pieces.",
    ATTENTION,
    "3.2, equation 1",
    "attention",
    "Attention",
  ],
  "decoder.self_attention": [
    "Masked self-attention",
    "Each target piece attends to itself and to the pieces before it; the mask hides later pieces.",
    ATTENTION,
    "3.2.3",
    "masks",
    "Masks",
  ],
  "decoder.cross_attention": [
    "Attention from target to source",
    "Queries come from the decoder, keys and values from the encoder's output, the memory.",
    ATTENTION,
    "3.2.3",
    "attention",
    "Attention",
  ],
  feed_forward: [
    "Feed-forward network",
    "Two linear layers with a nonlinearity between them, the same at each position.",
    "FFN(x) = max(0, xW₁ + b₁) W₂ + b₂",
    "3.3, equation 2",
    "lens",
    "Layer lens",
  ],
  norm: ["Residual sum and LayerNorm", "", "", "3.1 and 5.4"],
  output: [
    "Linear",
    "Scores every piece of the target vocabulary against the decoder's last state.",
    "logits = xEᵀ",
    "3.4",
    "lens",
    "Layer lens",
  ],
  softmax: [
    "Softmax",
    "Turns the scores into probabilities of the next piece.",
    "p = softmax(logits)",
    "3.4",
    "player",
    "Step by step",
  ],
};

export function factsOf(box, view, state) {
  const { config } = view;
  const kind = box.endsWith("norm") ? "norm" : box.endsWith("feed_forward") ? "feed_forward" : box;
  const [name, text, equation, section, panel = null, panelName = ""] =
    PARTS[kind] ?? PARTS.softmax;
  const side = box.startsWith("encoder") || box.startsWith("source") ? "encoder" : "decoder";
  const shown = kind === "decoder.cross_attention" && state.layer < 0 ? view.aligned[0] : state;
  const layer = within(shown.layer, view.layers(side));
  return {
    name: /\.(self|cross|feed)/.test(box)
      ? `${name}, layer ${layer + 1} of ${view.layers(side)}`
      : name,
    text:
      kind === "norm"
        ? normText(config)
        : text +
          (box === "output" && config.tying !== "none"
            ? " It shares its matrix with the target embedding."
            : ""),
    equation: kind === "norm" ? normEquation(config) : equation,
    shapes: [...shapesOf(kind, box, view), ...lengthsOf(view.sublayer(box, layer))],
    parameters: view.parametersOf(box, layer),
    section: `section ${section}`,
    panel,
    panelName,
  };
}

function normText(config) {
  return config.norm === "pre"
    ? "LayerNorm before each sublayer and at the end of each stack: pre-norm, unlike the paper."
    : "The sublayer's input is added to its output; LayerNorm follows, as in the paper.";
}

function normEquation(config) {
  return config.norm === "pre" ? "x + Sublayer(LayerNorm(x))" : "LayerNorm(x + Sublayer(x))";
}

// The mean length of the vectors around one residual block, over all positions.
function lengthsOf(sublayer) {
  if (!sublayer) return [];
  const mean = (numbers) =>
    fixed(numbers.reduce((sum, value) => sum + value, 0) / numbers.length, 1);
  return [
    [
      "vectors",
      `length ${mean(sublayer.input)} in, ${mean(sublayer.added)} added, ${mean(sublayer.output)} out`,
    ],
  ];
}

function shapesOf(kind, box, view) {
  const { config } = view;
  const { source_pieces: source, target_pieces: target } = view.trace.bounds;
  const length = box.startsWith("encoder") || box.startsWith("source") ? source : target;
  const keys = box === "decoder.cross_attention" ? source : length;
  const [d, heads] = [config.d_model, config.num_heads];
  const vocabulary = box.startsWith("source") ? config.source_vocab_size : config.target_vocab_size;
  if (kind.endsWith("attention")) {
    return [
      ["Q", shape([heads, length, d / heads])],
      ["K and V", shape([heads, keys, d / heads])],
      ["weights", shape([heads, length, keys])],
      ["out", shape([length, d])],
    ];
  }
  return (
    {
      feed_forward: [
        ["in, out", shape([length, d])],
        ["inside", shape([length, config.d_ff])],
      ],
      output: [
        ["in", shape([length, d])],
        ["logits", shape([length, vocabulary])],
      ],
      softmax: [["probabilities", shape([length, vocabulary])]],
    }[kind] ??
    (kind.endsWith("embedding")
      ? [
          ["table", shape([vocabulary, d])],
          ["out", shape([length, d])],
        ]
      : [["in, out", shape([length, d])]])
  );
}
