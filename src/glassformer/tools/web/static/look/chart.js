// Bars and lines.

import { h, rove, s } from "./dom.js";
import { fixed } from "./numbers.js";

// items: {label, value (0 to 1), text, chosen, key, title, onclick: the bar is a button}.
export function bars(name, items, { largest = 1 } = {}) {
  const list = h(
    "div",
    { class: "bars", role: "group", "aria-label": name },
    items.map((item) => {
      const bar = h("span", { class: "bar" });
      bar.style.width = `${Math.max(0.4, (100 * Math.abs(item.value)) / largest)}%`;
      if (item.value < 0) bar.classList.add("below");
      const parts = [
        h("span", { class: "bar-label" }, item.label),
        h("span", { class: "track" }, bar),
        h("span", { class: "bar-text" }, item.text),
      ];
      const state = { type: "button", "aria-pressed": String(Boolean(item.chosen)) };
      return h(
        item.onclick ? "button" : "div",
        {
          class: item.chosen ? "bar-row chosen" : "bar-row",
          "data-key": item.key,
          title: item.title,
          onclick: item.onclick,
          ...(item.onclick ? state : {}),
        },
        parts,
      );
    }),
  );
  rove(list, () => {});
  return list;
}

// series: {points: [[x, y], …], dots}; one frame, a few ticks, a dashed line at x = mark.
export function lines(
  title,
  series,
  { width = Math.min(520, innerWidth - 60), height = 220, x = "", y = "", mark = null } = {},
) {
  const all = series.flatMap(({ points }) => points);
  const [left, right, top, bottom] = [46, 12, 12, 34];
  const range = (values) => [Math.min(...values), Math.max(...values)];
  const [x0, x1] = range(all.map((point) => point[0]));
  const [y0, y1] = range([0, ...all.map((point) => point[1])]);
  const across = (value) => left + ((value - x0) / (x1 - x0 || 1)) * (width - left - right);
  const up = (value) => height - bottom - ((value - y0) / (y1 - y0 || 1)) * (height - top - bottom);
  const ticks = [y0, (y0 + y1) / 2, y1];
  return s(
    "svg",
    { class: "lines", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title },
    ticks.map((tick) => [
      s("line", { x1: left, x2: width - right, y1: up(tick), y2: up(tick), class: "rule" }),
      s(
        "text",
        { x: left - 6, y: up(tick), class: "tick y" },
        fixed(tick, Math.abs(y1 - y0) < 3 ? 2 : 0),
      ),
    ]),
    [x0, Math.round((x0 + x1) / 2), x1].map((tick) =>
      s("text", { x: across(tick), y: height - bottom + 16, class: "tick x" }, String(tick)),
    ),
    s("text", { x: (left + width - right) / 2, y: height - 4, class: "tick x name" }, x),
    mark === null
      ? null
      : s("line", {
          x1: across(mark),
          x2: across(mark),
          y1: top,
          y2: height - bottom,
          class: "mark",
        }),
    series.map(({ points }) =>
      s("polyline", {
        points: points.map(([a, b]) => `${across(a).toFixed(1)},${up(b).toFixed(1)}`).join(" "),
        class: "line",
      }),
    ),
    series
      .flatMap(({ points, dots }) => (dots ? points : []))
      .map(([a, b]) => s("circle", { cx: across(a), cy: up(b), r: 3, class: "dot" })),
    s("title", {}, y ? `${title}: ${y}` : title),
  );
}
