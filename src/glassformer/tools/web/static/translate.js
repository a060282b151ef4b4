// The translator's page: two boxes, whose words show their alignment.
// Typed text and translations become text nodes, never markup.

import { paint } from "./marks.js";
import { stop, translation } from "./ask.js";
import { offerFiles } from "./files.js";
import { themeSwitch } from "./look/display.js";
import { asked, asksForKey, hasKey, served, storeKey } from "./look/server.js";

const $ = (id) => document.getElementById(id);
const ALTERNATIVES = 4;
const ANNOUNCED = 300; // characters of a translation that a screen reader is told

const view = {
  pairs: [],
  pair: null,
  limit: Infinity,
  answer: null,
  text: "",
  chosen: [],
  segment: 0,
  word: null,
};

function make(name, properties = {}, ...children) {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
}

// The share of one translation among those shown: a bar, and a number of 100.
function share(value) {
  const fill = make("span");
  fill.style.width = `${Math.round(value * 100)}%`;
  const number = value > 0 && value < 0.005 ? "below 1" : Math.round(value * 100);
  return make(
    "span",
    { className: "share" },
    make("span", { className: "meter", ariaHidden: "true" }, fill),
    `${number} of 100`,
  );
}

function nameOf(language) {
  try {
    return new Intl.DisplayNames([navigator.language], { type: "language" }).of(language.code);
  } catch {
    return language.name; // not a language code
  }
}

// Take theme, languages and text from the address.
async function begin() {
  $("unstarted").remove();
  const address = new URLSearchParams(location.hash.slice(1) || location.search);
  view.theme = address.get("theme") ?? "";
  const set = (change) => Object.assign(view, change);
  const theme = themeSwitch({ get: () => view, set, listen: () => {} }, () => {});
  $("theme").replaceWith(Object.assign(theme, { id: "theme", className: "quiet" }));
  // LibreTranslate's links hold the text as `q`.
  $("source").value = address.get("text") ?? address.get("q") ?? $("source").value;
  await load(address.get("source"), address.get("target"));
}

// Load languages, limits and translators, choose a pair, and translate what the text field has.
async function load(source, target) {
  try {
    const [languages, settings, facts] = await Promise.all(
      ["languages", "frontend/settings", "api/v1/translators"].map((path) => asked(path)),
    );
    const names = new Map(languages.map((language) => [language.code, nameOf(language)]));
    view.pairs = [...facts, ...further(languages, facts)].map((pair) => ({
      ...pair,
      names: [names.get(pair.source), names.get(pair.target)],
      through: names.get(pair.through),
    }));
    view.limit = settings.charLimit;
    if (served) offer(settings);
    $("key-form").hidden = !settings.keyRequired || hasKey();
  } catch (error) {
    if (asksForKey(error)) $("key-form").hidden = false;
    fail(error.message);
    return;
  }
  fill($("from"), new Map(view.pairs.map((pair) => [pair.source, pair.names[0]])));
  choosePair(pairOf(source, target) ?? view.pairs[0]);
  changed(0);
}

// The pairs of a bundle with many languages, beside its own.
function further(languages, facts) {
  const own = new Set(facts.map(({ source, target }) => `${source} ${target}`));
  return languages.flatMap(({ code, targets }) =>
    targets
      .filter((target) => !own.has(`${code} ${target}`))
      .map((target) => {
        const knows = (one) => one.languages.includes(code) && one.languages.includes(target);
        return { ...facts.find(knows), source: code, target, examples: [] };
      }),
  );
}

// What a person chooses among; nothing, if there is one language.
function fill(select, names) {
  const sorted = [...names].sort((a, b) => a[1].localeCompare(b[1]));
  select.replaceChildren(
    ...sorted.map(([value, textContent]) => make("option", { value, textContent })),
  );
  select.hidden = names.size < 2;
}

const pairOf = (source, target) =>
  view.pairs.find((pair) => pair.source === source && pair.target === target);

// What the server takes as files.
function offer({ supportedFilesFormat, fileMegabytes, fileCharLimit }) {
  $("file").accept = supportedFilesFormat.join(",");
  $("file-status").textContent =
    `Or drop a file here: ${supportedFilesFormat.join(" ")}, up to ` +
    `${fileMegabytes} MB and ${fileCharLimit.toLocaleString()} characters.`;
}

function choosePair(pair) {
  view.pair = pair;
  const { source, target, names, through } = pair;
  const targets = view.pairs.filter((one) => one.source === source);
  fill($("to"), new Map(targets.map((one) => [one.target, one.names[1]])));
  $("from").value = source;
  $("to").value = target;
  $("source-name").textContent = names[0];
  $("target-name").textContent = names[1];
  $("source").lang = source;
  $("target").lang = target;
  const facts = through ? `by way of ${through}` : origin();
  $("facts").textContent = `${names[0]} to ${names[1]} · ${facts}`;
  $("swap").hidden = !pairOf(target, source);
  showExamples();
}

function origin() {
  const { parameters, learnt_from } = view.pair;
  const size =
    parameters >= 1e6 ? `${(parameters / 1e6).toFixed(1)} million` : parameters.toLocaleString();
  return `${size} parameters${learnt_from ? ` · has learnt from ${learnt_from}` : ""}`;
}

// Sentences that fit this translator; a bundle without them shows none.
function showExamples() {
  $("examples").replaceChildren(
    ...view.pair.examples.map((text) => {
      const button = make("button", { type: "button", className: "push", textContent: text });
      button.title = text;
      button.addEventListener("click", () => {
        $("source").value = text;
        changed(0);
        $("source").focus();
      });
      return button;
    }),
  );
}

// The text has changed: fade the old answer, and translate when the typing pauses.
let pause;
function changed(wait) {
  count();
  view.word = null;
  $("mirror").textContent = `${$("source").value}\u200b`; // without marks, as high as the text
  $("target").classList.add("old");
  clearTimeout(pause);
  const rest = served ? 300 : 30; // milliseconds; a server has others to answer
  pause = setTimeout(translate, wait ?? ($("source").value.length > 2000 ? 900 : rest));
}

function count() {
  const length = [...$("source").value].length;
  $("count").textContent = `${length.toLocaleString()} / ${view.limit.toLocaleString()}`;
  $("count").classList.toggle("error", length > view.limit);
  $("clear").disabled = !length;
  $("examples").hidden = length > 0;
}

// The address holds text and languages: a reload and a bookmark find them.
function keep(text) {
  const { theme, pair: { source, target } } = view;
  const kept = text.length > view.limit ? "" : text; // browsers bound the address
  const address = { source, target, text: kept, ...(theme ? { theme } : {}) };
  const path = location.search ? location.pathname : ""; // without a link's text
  history.replaceState(null, "", `${path}#${new URLSearchParams(address)}`);
}

async function translate() {
  if (!view.pair) return; // no answer of the server yet: load() says why
  const typed = $("source").value;
  const text = typed.toWellFormed ? typed.toWellFormed() : typed;
  keep(text);
  if (!text.trim() || [...text].length > view.limit) {
    stop();
    showAnswer(null, "");
    if (text.trim()) fail(`The text is longer than this ${served ? "server" : "page"} allows.`);
    return;
  }
  document.body.classList.add("busy");
  $("state").textContent = "";
  const { source, target } = view.pair;
  const request = { q: text, source, target, alternatives: ALTERNATIVES, alignment: true };
  let begun = false;
  const progress = (part, count) => {
    const done = part.segments.length;
    if (done === count) return;
    showPart(part, text, begun);
    begun = true;
    $("progress").textContent = `${done} of ${count} …`;
  };
  try {
    const answer = await translation(request, progress);
    showAnswer(answer.documents[0], text, begun);
  } catch (error) {
    if (error.name === "AbortError") return; // a newer request has replaced this one
    if (asksForKey(error)) $("key-form").hidden = false;
    fail(error.message);
  }
}

// A fault stands in the place of the translation.
function fail(message) {
  showAnswer(null, "");
  $("problem").textContent = message;
}

// Show an answer, or its part so far: of each segment the best hypothesis, until a person chooses
// another. `begun`: an earlier part of it stands there, and what a person has chosen.
function showPart(answer, text, begun) {
  const chosen = begun ? view.chosen : [];
  view.chosen = answer ? answer.segments.map((_, place) => chosen[place] ?? 0) : [];
  const doubtful = answer?.segments.findIndex(({ hypotheses: [best] }) => best.doubts.length) ?? 0;
  Object.assign(view, { answer, text, word: null });
  if (!begun) view.segment = Math.max(doubtful, 0);
  draw();
}

function showAnswer(answer, text, begun = false) {
  document.body.classList.remove("busy");
  $("progress").textContent = "";
  showPart(answer, text, begun);
  $("announced").textContent = $("target").textContent
    ? `Translation: ${$("target").textContent.slice(0, ANNOUNCED)} ${$("doubts").textContent}`.trim()
    : "";
}

function shown(place) {
  const { hypotheses } = view.answer.segments[place];
  return { hypotheses, now: hypotheses[view.chosen[place]] };
}

// The text of the chosen hypotheses, with the spans of its segments.
function current() {
  const letters = [...view.answer.text];
  let text = "";
  let end = 0;
  const segments = view.answer.segments.map(({ source, target }, place) => {
    text += letters.slice(end, target[0]).join("");
    end = target[1];
    const start = [...text].length;
    const { now } = shown(place);
    text += now.text;
    const links = (now.alignment ?? []).map((link) => ({
      source: link.source.map((at) => at + source[0]),
      target: link.target.map((at) => at + start),
    }));
    return { source, target: [start, [...text].length], links, doubts: now.doubts };
  });
  return { text: text + letters.slice(end).join(""), segments };
}

function draw() {
  const target = $("target");
  target.classList.remove("old");
  $("problem").textContent = "";
  const translated = Boolean(view.answer?.segments.length); // some texts stay as they are
  $("copy").disabled = !view.answer?.text;
  $("others").hidden = !translated;
  $("look").hidden = !translated || !served;
  $("doubts").replaceChildren(...(translated ? [] : items(view.answer?.doubts ?? [])));
  $("readout").replaceChildren();
  if (!view.answer) {
    target.replaceChildren();
    $("mirror").replaceChildren();
    return;
  }
  const { text, segments } = current();
  view.output = text;
  view.segments = segments;
  paint(target, text, segments, "target");
  if ($("source").value === view.text) paint($("mirror"), view.text, segments, "source");
  if (translated) drawChoices();
}

const items = (lines) => lines.map((line) => make("li", { textContent: line }));

function drawChoices() {
  const place = view.segment;
  const { hypotheses } = shown(place);
  const several = view.answer.segments.length > 1;
  const source = [...view.text].slice(...view.answer.segments[place].source).join("");
  $("segment-of").textContent = several ? `of “${source}”` : "";
  const { doubts } = view.segments[place];
  $("doubts").replaceChildren(
    ...items(several && doubts.length ? [`On “${source}”: `, ...doubts] : doubts),
  );
  $("look").href =
    `look/#${new URLSearchParams({ text: source, from: view.pair.source, to: view.pair.target })}`;
  $("choices").replaceChildren(
    ...hypotheses.map((hypothesis, rank) => {
      const button = make(
        "button",
        { type: "button", ariaPressed: String(rank === view.chosen[place]) },
        hypotheses.length > 1 ? share(hypothesis.share) : make("span"),
        make("span", { textContent: hypothesis.text, lang: view.pair.target, dir: "auto" }),
      );
      button.addEventListener("click", () => {
        view.chosen[place] = rank;
        draw();
        $("choices").querySelectorAll("button")[rank].focus();
      });
      return make("li", {}, button);
    }),
  );
}

// Mark the word under the pointer, and the words aligned with it on the other side.
function point(side, segment, word) {
  for (const element of document.querySelectorAll(".near, .lit, .here"))
    element.classList.remove("near", "lit", "here");
  $("readout").replaceChildren();
  if (segment === null || !view.segments?.[segment]) return;
  const several = view.segments.length > 1;
  for (const box of ["mirror", "target"]) {
    if (several) $(box).querySelector(`[data-segment="${segment}"]`)?.classList.add("near");
  }
  if (word === null) return;
  const other = side === "source" ? "target" : "source";
  const links = view.segments[segment].links.filter((link) => link[side].join() === word);
  mark(side, segment, word, "here");
  for (const link of links) mark(other, segment, link[other].join(), "lit");
  const cut = (text, [start, end]) => [...text].slice(start, end).join("");
  const text = { source: view.text, target: view.output };
  const others = [...links]
    .sort((a, b) => a[other][0] - b[other][0])
    .map((link) => cut(text[other], link[other]));
  $("readout").append(
    make("b", { textContent: cut(text[side], word.split(",").map(Number)) }),
    others.length ? " ↔ " : " is aligned with no word",
    make("b", { textContent: others.join(" ") }),
  );
}

function mark(side, segment, word, name) {
  const box = side === "source" ? $("mirror") : $("target");
  box.querySelector(`[data-segment="${segment}"] [data-word="${word}"]`)?.classList.add(name);
}

function pointed(element) {
  const segment = element?.closest?.(".segment");
  return segment
    ? [Number(segment.dataset.segment), element.closest(".word")?.dataset.word ?? null]
    : [null, null];
}

// The text field covers its mirror, so the word under the pointer is found by its coordinates.
function under(x, y) {
  const inside = (element) =>
    [...element.getClientRects()].some(
      (box) => x >= box.left && x < box.right && y >= box.top && y < box.bottom,
    );
  const segment = [...$("mirror").querySelectorAll(".segment")].find(inside);
  const word = segment && [...segment.querySelectorAll(".word")].find(inside);
  return segment ? [Number(segment.dataset.segment), word?.dataset.word ?? null] : [null, null];
}

function walk(event) {
  const words = [...$("target").querySelectorAll(".word")];
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  if (!step || !words.length) return;
  event.preventDefault();
  const here = words.findIndex((word) => word.classList.contains("here"));
  const next = words[Math.max(0, Math.min(words.length - 1, here < 0 ? 0 : here + step))];
  const [segment, word] = pointed(next);
  choose(segment);
  point("target", segment, word);
}

function choose(segment) {
  if (segment === null || segment === view.segment) return;
  view.segment = segment;
  drawChoices();
}

$("source").addEventListener("input", () => changed());
$("source").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) changed(0);
});
$("source").addEventListener("mousemove", (event) =>
  point("source", ...under(event.clientX, event.clientY)),
);
$("source").addEventListener("mouseleave", () => point("source", null, null));
$("source").addEventListener("click", (event) => choose(under(event.clientX, event.clientY)[0]));
$("target").addEventListener("mousemove", (event) => point("target", ...pointed(event.target)));
$("target").addEventListener("mouseleave", () => point("target", null, null));
$("target").addEventListener("click", (event) => choose(pointed(event.target)[0]));
$("target").addEventListener("keydown", walk);
for (const side of ["from", "to"])
  $(side).addEventListener("change", () => {
    const source = $("from").value;
    choosePair(
      pairOf(source, $("to").value) ?? view.pairs.find((pair) => pair.source === source),
    );
    changed(0);
  });
$("swap").addEventListener("click", () => {
  const text = view.output;
  choosePair(pairOf(view.pair.target, view.pair.source));
  if (view.answer) $("source").value = text;
  changed(0);
});
$("clear").addEventListener("click", () => {
  $("source").value = "";
  changed(0);
  $("source").focus();
});
$("copy").addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText(view.output);
    $("state").textContent = "Copied";
  } catch {
    getSelection().selectAllChildren($("target"));
    $("state").textContent = "Selected: copy it with Ctrl+C";
  }
});
$("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  storeKey($("key").value.trim());
  load(view.pair?.source, view.pair?.target);
});
$("file").closest("label").hidden = !served;
if (served) offerFiles({ input: $("file"), status: $("file-status"), languages: () => view.pair });
begin();
