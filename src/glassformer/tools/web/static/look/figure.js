// The paper's Figure 1, drawn for this model, with pre-norm or post-norm.

import { s } from "./dom.js";

const [WIDTH, BOX] = [414, 124];
const CENTRE = { encoder: 104, decoder: 304 };
const GAP = 15;

// The boxes of one block from below; with pre-norm, `norm` and `add` are apart.
function blockItems(side, pre) {
  const sublayers =
    side === "encoder"
      ? ["self_attention", "feed_forward"]
      : ["self_attention", "cross_attention", "feed_forward"];
  return sublayers.flatMap((name) => {
    const label = {
      self_attention:
        side === "decoder" ? ["Masked Multi-Head", "Attention"] : ["Multi-Head", "Attention"],
      cross_attention: ["Multi-Head", "Attention"],
      feed_forward: ["Feed", "Forward"],
    }[name];
    const body = {
      id: `${side}.${name}`,
      label,
      kind: name === "feed_forward" ? "feed" : "attention",
      height: 40,
      enters: true,
    };
    const norm = { id: `${side}.${name}.norm`, kind: "norm", height: 20 };
    return pre
      ? [
          { ...norm, label: ["Norm"], enters: true, opens: true },
          { ...body, enters: false, tight: true },
          { plus: true, height: 14 },
        ]
      : [
          { ...body, opens: true },
          { ...norm, label: ["Add & Norm"], tight: true, closes: true },
        ];
  });
}

// Draw the figure. `shapes`: the texts beside the wires; ownOf(id): whose part a box has, if not
// the package's; onChoose(id): a click on a box.
export function drawFigure({ pre, layers, shapes, ownOf, chosen, onChoose }) {
  const parts = [];
  const column = (side) =>
    drawColumn(side, { pre, layers: layers[side], shapes, ownOf, chosen, onChoose, parts });
  const tops = { encoder: column("encoder"), decoder: column("decoder") };
  const height = Math.max(tops.encoder.low, tops.decoder.low) + 6;
  parts.push(...memoryWire(tops, shapes));
  const top = tops.decoder.high - 4;
  return s(
    "svg",
    {
      class: "figure",
      viewBox: `0 ${top} ${WIDTH} ${height - top}`,
      role: "group",
      "aria-label": "Figure 1 of the paper, with this model's shapes",
    },
    parts,
  );
}

function drawColumn(side, { pre, layers, shapes, ownOf, chosen, onChoose, parts }) {
  const x = CENTRE[side];
  const encoder = side === "encoder";
  let y = 0;
  const wires = [];
  const boxes = [];
  const add = (item, gap) => {
    const below = y;
    y -= gap;
    wires.push(s("path", { class: "wire", d: `M${x} ${below}V${y}` }));
    y -= item.height;
    boxes.push(box({ ...item, own: ownOf(item.id), x, y }, chosen, onChoose));
    return y;
  };
  const note = (text, at) =>
    boxes.push(s("text", { class: "shape", x: x + 5, y: at, "data-shape": `${side}:${at}` }, text));
  parts.push(caption(x, 14, encoder ? "Inputs" : "Outputs (shifted right)"));
  add(
    {
      id: encoder ? "source_embedding" : "target_embedding",
      label: [encoder ? "Input" : "Output", "Embedding"],
      kind: "embed",
      height: 36,
    },
    6,
  );
  note(shapes[side], y - 5);
  const plus = (y -= 20);
  wires.push(s("path", { class: "wire", d: `M${x} ${plus + 20}V${plus}` }));
  boxes.push(sum(x, plus - 7), ...positions(side, x, plus - 7, { ownOf, chosen, onChoose }));
  y = plus - 14;
  const bottom = y - 8;
  y -= 12;
  wires.push(s("path", { class: "wire", d: `M${x} ${plus - 14}V${y}` }));
  let entry = 0;
  let cross = null;
  for (const item of blockItems(side, pre)) {
    if (item.opens) entry = y - 6;
    const gap = item.tight || item.plus ? 8 : GAP;
    if (item.plus) {
      wires.push(
        s("path", { class: "wire", d: `M${x} ${y}V${y - 8}` }),
        residual(side, x, entry, y - 15, 7),
      );
      y -= 22;
      boxes.push(sum(x, y + 7));
    } else {
      add(item, gap);
      if (item.closes) wires.push(residual(side, x, entry, y + item.height / 2, BOX / 2));
      if (item.id === "decoder.cross_attention") cross = y + item.height;
    }
  }
  const stackTop = y - 8;
  parts.push(
    s("rect", {
      class: "stack",
      x: x - 80,
      y: stackTop,
      width: 160,
      height: bottom - stackTop,
      rx: 10,
    }),
    s(
      "text",
      { class: "times", x: encoder ? x - 100 : x + 84, y: (bottom + stackTop) / 2 },
      `${layers}×`,
    ),
  );
  y = stackTop;
  wires.push(s("path", { class: "wire", d: `M${x} ${stackTop + 8}V${y}` }));
  if (pre) add({ id: `${side}.norm`, label: ["Norm"], kind: "norm", height: 20 }, 8);
  if (!encoder) {
    note(shapes.decoder, y - 4);
    add({ id: "output", label: ["Linear"], kind: "linear", height: 24 }, 14);
    note(shapes.logits, y - 4);
    add({ id: "softmax", label: ["Softmax"], kind: "softmax", height: 24 }, 14);
    parts.push(
      caption(x, y - 22, "Output Probabilities"),
      s("path", { class: "wire", d: `M${x} ${y}V${y - 14}` }),
    );
    y -= 34;
  }
  parts.push(...wires, ...boxes);
  return { low: 22, high: y, cross, top: y };
}

function caption(x, y, text) {
  return s("text", { class: "name", x, y }, text);
}

function sum(x, y) {
  return s(
    "g",
    { class: "sum" },
    s("circle", { class: "wire", cx: x, cy: y, r: 7 }),
    s("path", { class: "wire", d: `M${x - 4} ${y}h8M${x} ${y - 4}v8` }),
  );
}

// The circle with the wave, beside its column.
function positions(side, x, y, { ownOf, chosen, onChoose }) {
  const out = side === "encoder" ? -1 : 1;
  const centre = x + out * 62;
  const wave = s("path", { class: "wire", d: `M${centre - 7} ${y}q3.5 -8 7 0t7 0` });
  const circle = s("circle", { cx: centre, cy: y, r: 11 });
  const id = `${side === "encoder" ? "source" : "target"}_positions`;
  const own = ownOf(id);
  return [
    s("path", { class: "wire", d: `M${centre - out * 11} ${y}H${x + out * 7}` }),
    button(
      id,
      own ? `Positional encoding, ${own}` : "Positional encoding",
      "positions",
      [circle, wave, ...mark(own, centre + (side === "decoder" ? 24 : 14), y + 17)],
      chosen,
      onChoose,
    ),
  ];
}

// The residual connection around a sublayer.
function residual(side, x, from, to, reach) {
  const out = side === "encoder" ? -1 : 1;
  const edge = x + out * 72;
  return s("path", {
    class: "wire",
    d:
      `M${x} ${from}H${edge - out * 5}q${out * 5} 0 ${out * 5} -5` +
      `V${to + 5}q0 -5 ${-out * 5} -5H${x + out * reach}`,
  });
}

// The memory: from the top of the encoder to the cross-attention of the decoder.
function memoryWire({ encoder, decoder }, shapes) {
  const turn = 204;
  const y = encoder.top - 14;
  const enters = decoder.cross - 20; // the middle of the box
  return [
    s("path", {
      class: "wire",
      d:
        `M${CENTRE.encoder} ${encoder.top}V${y + 5}q0 -5 5 -5H${turn - 5}` +
        `q5 0 5 ${y < enters ? 5 : -5}V${enters}H${CENTRE.decoder - BOX / 2 - 5}`,
    }),
    s("path", { class: "tip", d: `M${CENTRE.decoder - BOX / 2 - 7} ${enters - 3.5}v7l6 -3.5z` }),
    s("text", { class: "shape", x: CENTRE.encoder + 8, y: y - 5 }, shapes.memory),
  ];
}

function box(item, chosen, onChoose) {
  const { id, label, kind, height, own, x, y } = item;
  const lines = label.map((text, place) =>
    s("text", { x, y: y + height / 2 + (place - (label.length - 1) / 2) * 13 }, text),
  );
  const rect = s("rect", { x: x - BOX / 2, y, width: BOX, height, rx: 6 });
  const name = own ? `${label.join(" ")}, ${own}` : label.join(" ");
  const corner = label[0].length < label.at(-1).length ? y + 8 : y + height - 8;
  const words = lines.flatMap((line) => [line, " "]); // with a space, as in the box's name
  const children = [rect, ...words, ...mark(own, x + BOX / 2 - 4, corner)];
  return button(id, name, kind, children, chosen, onChoose);
}

// "yours" in a corner of a box, beside its shorter line; a mistake's name is in the box's title.
function mark(own, x, y) {
  if (!own) return [];
  const word = own === "yours" ? own : "mistake";
  return [
    s("title", {}, own),
    s("text", { class: `own ${word}`, x, y }, word),
  ];
}

function button(id, name, kind, children, chosen, onChoose) {
  return s(
    "g",
    {
      class: `box ${kind}`,
      role: "button",
      tabindex: id === chosen ? 0 : -1,
      "aria-pressed": String(id === chosen),
      "aria-label": name,
      "data-key": `box:${id}`,
      "data-box": id,
      onclick: () => onChoose(id),
    },
    children,
  );
}
