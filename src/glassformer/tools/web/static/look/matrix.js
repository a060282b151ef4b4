// A matrix of numbers as squares: 0 is the page's colour, the largest number the full hue. Numbers
// below zero have a second hue; colour-blind people can tell the two apart (blue, orange).

import { h, s } from "./dom.js";
import { fixed, tone } from "./numbers.js";

const LETTER = 7.2; // width of a label's letter
const LONGEST = 14; // letters of a label

const cut = (label) => (label.length > LONGEST ? `${label.slice(0, LONGEST - 1)}…` : label);
const widest = (labels) => Math.max(0, ...labels.map((label) => cut(label).length)) * LETTER;

// options: key, title, rows, columns (labels), value(r, c), largest, blocked(r, c), shown(r, c),
// row, column (the chosen square), onChoose(r, c), onHover(r, c), onOpen() (Enter on the chosen
// square), axes [rows, columns], digits, side, bare (without the rows' labels: the map stands beside
// one that has them)
export function matrix(options) {
  const { rows, columns } = options;
  const left = options.bare ? 8 : Math.ceil(widest(rows)) + 18;
  const room = left + widest(columns.slice(-3)) * 0.7;
  const zoom = Number(document.documentElement.style.zoom) || 1;
  const [wide, high] = [innerWidth / zoom - 60 - room, innerHeight / zoom - 330];
  const least = Math.min(high / rows.length, 520 / Math.max(rows.length, columns.length));
  const usual = options.side ?? Math.max(14, Math.min(34, Math.floor(least)));
  const side = Math.max(Math.min(12, usual), Math.min(usual, Math.floor(wide / columns.length)));
  const small = side < 16; // labels so near each other are smaller and steeper
  const angle = small ? 65 : 45;
  const turn = (angle * Math.PI) / 180;
  const top = Math.ceil(widest(columns) * Math.sin(turn)) + 18;
  const right = Math.ceil(widest(columns.slice(-3)) * Math.cos(turn));
  const [width, height] = [left + columns.length * side + right + 4, top + rows.length * side + 6];
  const cells = s("g", {});
  rows.forEach((_, r) =>
    columns.forEach((_, c) => cells.append(...square(options, { r, c, side, left, top }))),
  );
  const glow = s("g", { class: "glow" });
  const named = options.bare ? [] : rows;
  const names = [
    labels(named, (r) => ({ x: left - 8, y: top + (r + 0.5) * side, "text-anchor": "end" }), "row"),
    labels(
      columns,
      (c) => {
        const x = left + (c + 0.5) * side;
        return { x, y: top - 8, transform: `rotate(${-angle} ${x} ${top - 8})` };
      },
      "column",
    ),
  ];
  const svg = s(
    "svg",
    {
      class: small ? "matrix small" : "matrix",
      viewBox: `0 0 ${width} ${height}`,
      width,
      height,
      tabindex: 0,
      role: "application",
      "aria-label":
        `${options.title}: ${rows.length} rows, ${columns.length} columns; arrow keys move` +
        (options.onOpen ? ", Enter opens the sum" : ""),
      "data-key": `matrix:${options.key}`,
    },
    cells,
    glow,
    ...names,
  );
  const readout = h("output", {
    class: "readout",
    "aria-live": "polite",
    "data-readout": options.key,
  });
  const chosen = { r: options.row ?? 0, c: options.column ?? 0 };
  const light = (r, c) => {
    glow.replaceChildren(
      s("rect", {
        x: left,
        y: top + r * side,
        width: columns.length * side,
        height: side,
        class: "band",
      }),
      s("rect", {
        x: left + c * side,
        y: top,
        width: side,
        height: rows.length * side,
        class: "band",
      }),
      s("rect", {
        x: left + c * side,
        y: top + r * side,
        width: side,
        height: side,
        class: "here",
      }),
    );
    names
      .flatMap((group) => [...group.children])
      .forEach((label) =>
        label.classList.toggle(
          "lit",
          Number(label.dataset.row ?? -1) === r || Number(label.dataset.column ?? -1) === c,
        ),
      );
    readout.textContent = options.shown(r, c);
    options.onHover?.(r, c);
  };
  follow(svg, { ...options, side, left, top, chosen, light });
  if (rows.length && columns.length) light(chosen.r, chosen.c);
  const axes = options.axes
    ? h("p", { class: "axes" }, `↓ ${options.axes[0]}   → ${options.axes[1]}`)
    : null;
  return h("div", { class: "matrix-box" }, axes, h("div", { class: "scroll" }, svg), readout);
}

function square(options, { r, c, side, left, top }) {
  const place = {
    x: left + c * side,
    y: top + r * side,
    width: side - 1,
    height: side - 1,
    rx: 1.5,
  };
  if (options.blocked?.(r, c)) return [s("rect", { ...place, class: "blocked" })];
  const value = options.value(r, c);
  const share = Math.min(1, Math.abs(value) / (options.largest || 1));
  const parts = [
    s("rect", { ...place, class: "empty" }),
    s("rect", { ...place, class: value < 0 ? "below" : "above", "fill-opacity": share.toFixed(3) }),
  ];
  if (options.digits !== undefined && side >= 26 && Number(value.toFixed(options.digits)) !== 0) {
    parts.push(
      s(
        "text",
        { x: place.x + side / 2, y: place.y + side / 2, class: `number ${tone(share)}` },
        fixed(value, options.digits).replace(/^(−?)0\./, "$1."),
      ),
    );
  }
  return parts;
}

function labels(names, place, kind) {
  return s(
    "g",
    { class: "labels" },
    names.map((name, index) =>
      s("text", { ...place(index), [`data-${kind}`]: index }, cut(name), s("title", {}, name)),
    ),
  );
}

// The pointer lights a square; a click or an arrow key chooses one.
function follow(svg, { side, left, top, rows, columns, chosen, light, onChoose, onOpen }) {
  const under = (event) => {
    const box = svg.getBoundingClientRect();
    const scale = svg.viewBox.baseVal.width / box.width;
    const c = Math.floor(((event.clientX - box.left) * scale - left) / side);
    const r = Math.floor(((event.clientY - box.top) * scale - top) / side);
    if (r >= rows.length || c >= columns.length || (r < 0 && c < 0)) return null;
    return [r < 0 ? chosen.r : r, c < 0 ? chosen.c : c]; // on a label: its row or column
  };
  svg.addEventListener("pointermove", (event) => {
    const place = under(event);
    if (place) light(...place);
  });
  svg.addEventListener("pointerleave", () => light(chosen.r, chosen.c));
  svg.addEventListener("click", (event) => {
    const place = under(event);
    if (place) onChoose?.(...place);
  });
  svg.addEventListener("keydown", (event) => {
    if (event.key === "Enter") onOpen?.();
    const step = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[
      event.key
    ];
    if (!step) return;
    event.preventDefault();
    chosen.r = Math.max(0, Math.min(rows.length - 1, chosen.r + step[0]));
    chosen.c = Math.max(0, Math.min(columns.length - 1, chosen.c + step[1]));
    light(chosen.r, chosen.c);
    onChoose?.(chosen.r, chosen.c);
  });
}

// A small matrix without labels: one pixel for each number, on a canvas.
export function thumbnail(values, largest = 1) {
  const canvas = h("canvas", {
    class: "thumbnail",
    width: values[0]?.length || 1,
    height: values.length || 1,
    "aria-hidden": "true",
  });
  const context = canvas.getContext("2d");
  const image = context.createImageData(canvas.width, canvas.height);
  const [red, green, blue] = hue();
  values.forEach((row, r) =>
    row.forEach((value, c) => {
      image.data.set(
        [red, green, blue, Math.round(255 * Math.min(1, value / largest))],
        4 * (r * canvas.width + c),
      );
    }),
  );
  context.putImageData(image, 0, 0);
  return canvas;
}

// The full hue of the current theme as red, green and blue.
function hue() {
  const probe = h("span", { class: "hue-probe" });
  document.body.append(probe);
  const colour = getComputedStyle(probe)
    .color.match(/[\d.]+/g)
    .slice(0, 3)
    .map(Number);
  probe.remove();
  return colour;
}

// The legend of the hues: from 0, or from `-largest` if signed, to `largest`.
export function scaleBar(largest, { signed = false, label = "", digits = 2 } = {}) {
  return h(
    "p",
    { class: signed ? "scale signed" : "scale" },
    h("span", {}, signed ? fixed(-largest, digits) : "0"),
    h("span", { class: "ramp", "aria-hidden": "true" }),
    h("span", {}, fixed(largest, digits)),
    label ? h("span", { class: "what" }, label) : null,
  );
}
