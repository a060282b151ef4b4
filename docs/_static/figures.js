// The live figures of five lessons. Each sum is the package's own: tests/test_docs.py compares them.
const figures = (() => {
  "use strict";

  // The sums.

  // Equation 3, times factor.
  function rate(update, { d_model, warmup, factor }) {
    return factor * d_model ** -0.5 * Math.min(update ** -0.5, update * warmup ** -1.5);
  }

  // Section 5.4: the share of each symbol, the label being the first.
  function smoothedTarget(epsilon, symbols) {
    return Array.from({ length: symbols }, (_, v) => (v ? 0 : 1 - epsilon) + epsilon / symbols);
  }

  function crossEntropy(target, prediction) {
    return target.reduce((sum, share, v) => sum - (share && share * Math.log(prediction[v])), 0);
  }

  function mean(numbers) {
    return numbers.reduce((sum, number) => sum + number, 0) / numbers.length;
  }

  // Weight 1, bias 0.
  function layerNorm(x, epsilon = 1e-5) {
    const centre = mean(x);
    const variance = mean(x.map((number) => (number - centre) ** 2));
    const result = x.map((number) => (number - centre) / Math.sqrt(variance + epsilon));
    return { mean: centre, variance, result };
  }

  function mergePair(subwords, [left, right]) {
    const merged = [];
    for (let place = 0; place < subwords.length; place++) {
      const pair = subwords[place] === left && subwords[place + 1] === right;
      merged.push(pair ? left + right : subwords[place]);
      if (pair) place++;
    }
    return merged;
  }

  const encode = (word, merges) => merges.reduce(mergePair, ["▁", ...word]);

  // Up to `count` merges and the subwords of each word after them; of equal pairs the first counts.
  function learnMerges(frequencies, count) {
    const merges = [];
    let words = frequencies.map(([word, frequency]) => [encode(word, []), frequency]);
    for (;;) {
      const pairs = new Map();
      for (const [subwords, frequency] of words)
        subwords.slice(1).forEach((right, place) => {
          const key = JSON.stringify([subwords[place], right]);
          pairs.set(key, (pairs.get(key) ?? 0) + frequency);
        });
      const often = Math.max(0, ...pairs.values());
      const key = [...pairs.keys()].find((each) => pairs.get(each) === often);
      const next = key && { pair: JSON.parse(key), often };
      if (!next || merges.length === count) return { merges, words, next };
      merges.push(next.pair);
      words = words.map(([subwords, frequency]) => [mergePair(subwords, next.pair), frequency]);
    }
  }

  // A row of an untrained table: normal, with variance 1 / d_model; always the same for a token.
  function tableRow(token, d_model) {
    let state = token;
    const uniform = () => {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      return (state + 0.5) / 2 ** 32;
    };
    const normal = () => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());
    return Array.from({ length: d_model }, () => normal() * d_model ** -0.5);
  }

  const embedded = (row) => row.map((number) => number * Math.sqrt(row.length));

  function positionRow(position, d_model) {
    return Array.from({ length: d_model }, (_, column) => {
      const angle = position / 10000 ** ((column - (column % 2)) / d_model);
      return column % 2 ? Math.cos(angle) : Math.sin(angle);
    });
  }

  // The root of the mean square.
  const size = (numbers) => Math.sqrt(mean(numbers.map((number) => number ** 2)));

  // The drawing.

  const make = (namespace) => (name, attributes, ...children) => {
    const element = document.createElementNS(namespace, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  };
  const h = make("http://www.w3.org/1999/xhtml");
  const s = make("http://www.w3.org/2000/svg");
  const short = (number) => String(Number(number.toPrecision(3)));
  const fixed = (number) => number.toFixed(2).replace("-", "−");
  const whole = (number) => number.toLocaleString("en");

  function svg(name, width, height, ...children) {
    const box = { viewBox: `0 0 ${width} ${height}`, width, height };
    return s("svg", { ...box, role: "img", "aria-label": name }, ...children);
  }

  function names(series, left) {
    const before = (row) => series.slice(0, row).reduce((sum, { name }) => sum + name.length, 0);
    return series.map(({ name, kind }, row) =>
      s("text", { x: left + row * 24 + before(row) * 7, y: 13, class: kind }, `■ ${name}`),
    );
  }

  // series: {name, kind, values}; a group of bars for each label, from a line at zero.
  function bars(name, series, labels, width) {
    const [left, top, height] = [44, 24, 170];
    const all = series.flatMap(({ values }) => values);
    const [low, high] = [Math.min(0, ...all), Math.max(0, ...all)];
    const up = (value) => top + ((high - value) / (high - low || 1)) * (height - top - 24);
    const group = (width - left) / labels.length;
    const bar = (group * 0.8) / series.length;
    const across = (place) => left + group * (place + 0.5);
    const drawn = series.flatMap(({ kind, values }, row) =>
      values.map((value, place) => {
        const x = across(place) + (row - series.length / 2) * bar;
        const y = Math.min(up(value), up(0));
        const box = { x, y, width: bar * 0.94, height: Math.abs(up(value) - up(0)), class: kind };
        return s("rect", box, s("title", {}, `${labels[place]}: ${short(value)}`));
      }),
    );
    const written = labels.map((label, place) =>
      s("text", { x: across(place), y: height - 6, "text-anchor": "middle" }, label),
    );
    const ends = [...new Set([low, 0, high])].map((value) =>
      s("text", { x: left - 6, y: up(value) + 4, "text-anchor": "end" }, fixed(value)),
    );
    const zero = s("line", { x1: left, x2: width, y1: up(0), y2: up(0) });
    return svg(name, width, height, ...drawn, ...written, ...ends, ...names(series, left), zero);
  }

  // series: {name, kind, of}, a function of x from 1 to `most`.
  function curves(name, series, most, width) {
    const [left, top, bottom, height] = [70, 30, 40, 240];
    const xs = Array.from({ length: 401 }, (_, place) => 1 + (place * (most - 1)) / 400);
    const high = Math.max(...series.flatMap(({ of }) => xs.map(of)));
    const across = (x) => left + (x / most) * (width - left - 24);
    const up = (y) => top + (1 - y / high) * (height - top - bottom);
    const drawn = series.map(({ kind, of }) => {
      const points = xs.map((x) => `${across(x).toFixed(1)},${up(of(x)).toFixed(1)}`);
      return s("polyline", { points: points.join(" "), class: kind });
    });
    const below = [0, most / 2, most].map((x) =>
      s("text", { x: across(x), y: height - 22, "text-anchor": "middle" }, whole(x)),
    );
    const beside = [0, high / 2, high].map((y) =>
      s("text", { x: left - 6, y: up(y) + 4, "text-anchor": "end" }, short(y)),
    );
    const axes = s("path", { d: `M${left} ${top}V${up(0)}H${width - 24}`, class: "axis" });
    const update = s("text", { x: width / 2, y: height - 4, "text-anchor": "middle" }, "update");
    return svg(name, width, height, axes, ...drawn, ...below, ...beside, ...names(series, left), update);
  }

  // control: {label, value}; of a slider also min, max, step, and `of` from its place to its value.
  function field({ label, value, of = (place) => place, ...limits }, set) {
    const type = { number: "range", boolean: "checkbox", string: "text" }[typeof value];
    const input = h("input", { type, autocomplete: "off", ...limits, value });
    input.checked = value === true;
    const shown = h("output", {});
    const read = () => {
      const typed = { range: of(Number(input.value)), checkbox: input.checked, text: input.value };
      shown.textContent = type === "range" ? whole(typed[type]) : "";
      set(typed[type]);
    };
    input.addEventListener("input", read);
    read();
    return h("label", { class: type }, h("span", {}, label), input, shown);
  }

  // draw(values, width) answers with the pictures, and with the sentence that says the same.
  function mount(root, { controls, draw }) {
    const values = {};
    const picture = h("div", { class: "picture" });
    const words = h("p", { role: "status" });
    const redraw = () => {
      const { pictures, text } = draw(values, Math.max(240, Math.min(640, root.clientWidth - 32)));
      picture.replaceChildren(...pictures);
      words.textContent = text;
    };
    const fields = Object.entries(controls).map(([name, control]) =>
      field(control, (value) => {
        values[name] = value;
        if (picture.isConnected) redraw();
      }),
    );
    root.replaceChildren(h("div", { class: "controls" }, ...fields), picture, words);
    redraw();
    addEventListener("resize", redraw);
  }

  // The figures.

  const BASE = { d_model: 512, warmup: 4000, factor: 1 };
  const power = (place) => 2 ** place;

  const rateFigure = {
    controls: {
      d_model: { label: "d_model", value: 9, min: 5, max: 11, of: power },
      warmup: { label: "warm-up", value: 4000, min: 500, max: 16000, step: 500 },
      factor: { label: "factor", value: 1, min: 0.25, max: 4, step: 0.25 },
    },
    draw(values, width) {
      const { warmup } = values;
      const yours = { name: "yours", kind: "first", of: (update) => rate(update, values) };
      const base = { name: "the paper's base model", kind: "second", of: (u) => rate(u, BASE) };
      const [top, half] = [warmup, 4 * warmup].map((update) => short(rate(update, values)));
      const text =
        `The rate is highest at the end of the warm-up: ${top} at update ${whole(warmup)}.` +
        ` Four times as many updates halve it: ${half} at update ${whole(4 * warmup)}.`;
      return { pictures: [curves("Learning rate by update", [base, yours], 50000, width)], text };
    },
  };

  const targetFigure = {
    controls: {
      epsilon: { label: "ε", value: 0.1, min: 0, max: 0.5, step: 0.01 },
      symbols: { label: "symbols", value: 8, min: 2, max: 16 },
      sure: { label: "predicted for the label", value: 0.6, min: 0.01, max: 0.99, step: 0.01 },
    },
    draw({ epsilon, symbols, sure }, width) {
      const target = smoothedTarget(epsilon, symbols);
      const prediction = target.map((_, v) => (v ? (1 - sure) / (symbols - 1) : sure));
      const labels = target.map((_, v) => (v ? String(v + 1) : "label"));
      const series = [
        { name: "target", kind: "first", values: target },
        { name: "prediction", kind: "second", values: prediction },
      ];
      const [loss, least] = [prediction, target].map((p) => crossEntropy(target, p).toFixed(3));
      const text =
        `The target is ${short(target[0])} at the label, ${short(target[1])} at each other symbol.` +
        ` The loss is ${loss}; it is lowest, ${least}, if the prediction equals the target.`;
      return { pictures: [bars("Target and prediction", series, labels, width)], text };
    },
  };

  const START = [1, -2, 3, 0.5, 4, 2];
  const normFigure = {
    controls: {
      ...START.map((value, place) => {
        return { label: `number ${place + 1}`, value, min: -5, max: 5, step: 0.5 };
      }),
      times: { label: "all times 10", value: false },
      plus: { label: "all plus 7", value: false },
    },
    draw({ times, plus, ...numbers }, width) {
      const x = Object.values(numbers).map((each) => each * (times ? 10 : 1) + (plus ? 7 : 0));
      const norm = layerNorm(x);
      const labels = x.map((_, place) => String(place + 1));
      const pictures = [
        ["before LayerNorm", "second", x],
        ["after LayerNorm", "first", norm.result],
      ].map(([name, kind, values]) => bars(name, [{ name, kind, values }], labels, width));
      const text =
        `Before: mean ${fixed(norm.mean)}, variance ${fixed(norm.variance)}.` +
        ` After: ${norm.result.map(fixed).join(", ")}.`;
      return { pictures, text };
    },
  };

  const mergesFigure = {
    controls: {
      text: {
        label: "the text",
        value: "sing sing sing sing sing singer singer ring ring ring king king king king bringing",
        maxlength: 2000,
      },
      count: { label: "merges", value: 2, min: 0, max: 40 },
      word: { label: "another word", value: "singing", maxlength: 60 },
    },
    draw({ text, count, word }) {
      const frequencies = new Map();
      for (const each of text.split(/\s+/).filter(Boolean))
        frequencies.set(each, (frequencies.get(each) ?? 0) + 1);
      const { merges, words, next } = learnMerges([...frequencies], count);
      const line = (subwords, note) =>
        h("li", {}, ...subwords.flatMap((each) => [h("kbd", {}, each), " "]), note);
      const list = (name, ...lines) => h("div", {}, h("strong", {}, name), h("ul", {}, ...lines));
      const pictures = [
        list("The text", ...words.map(([subwords, often]) => line(subwords, `${often} ×`))),
        list("The merges", ...merges.map((pair, place) => line(pair, `merge ${place + 1}`))),
        list("Another word", line(encode(word.trim(), merges), "")),
      ];
      const told = next
        ? `The next merge is ${next.pair.join(" + ")}, which stands ${next.often} times in the text.`
        : "No pair is left: each word is one subword.";
      return { pictures, text: told };
    },
  };

  const embeddingFigure = {
    controls: {
      token: { label: "token", value: 1, min: 1, max: 99 },
      position: { label: "position", value: 3, min: 0, max: 99 },
      d_model: { label: "d_model", value: 9, min: 4, max: 10, of: power },
      scaled: { label: "times √d_model", value: true },
    },
    draw({ token, position, d_model, scaled }, width) {
      const row = tableRow(token, d_model);
      const [word, place] = [scaled ? embedded(row) : row, positionRow(position, d_model)];
      const labels = Array.from({ length: 12 }, (_, column) => String(column + 1));
      const series = [
        { name: "word", kind: "first", values: word.slice(0, 12) },
        { name: "position", kind: "second", values: place.slice(0, 12) },
      ];
      const text =
        `Root of the mean square: the row has ${short(size(row))}, times √${d_model} it has` +
        ` ${short(size(embedded(row)))}; the position has ${short(size(place))}.` +
        ` As drawn, the word is ${short(size(word) / size(place))} times as large as its position.`;
      const name = "The first 12 numbers of a word and of its position";
      return { pictures: [bars(name, series, labels, width)], text };
    },
  };

  const all = {
    rate: rateFigure,
    target: targetFigure,
    norm: normFigure,
    merges: mergesFigure,
    embedding: embeddingFigure,
  };
  // Only a loaded page has its style, and so its width.
  globalThis.addEventListener?.("load", () => {
    for (const root of document.querySelectorAll("[data-figure]"))
      mount(root, all[root.dataset.figure]);
  });
  const sums = { rate, smoothedTarget, crossEntropy, layerNorm, encode, learnMerges };
  return { ...sums, tableRow, embedded, positionRow, size };
})();
