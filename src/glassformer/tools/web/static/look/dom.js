// Makes elements without markup: typed text becomes a text node.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat(3).filter((child) => child !== null && child !== undefined));
  return element;
}

// h("p", {class: "note", onclick: act}, "text", child): an HTML element.
export function h(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

// The same for SVG.
export function s(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

// A radio group of buttons; the arrow keys move the choice.
// options: [value, label] pairs. Returns {el, set(value)}.
export function choice(name, options, onChoose) {
  const buttons = options.map(([value, label]) =>
    h(
      "button",
      {
        type: "button",
        role: "radio",
        "data-key": `${name}:${value}`,
        onclick: () => onChoose(value),
      },
      label,
    ),
  );
  const el = h("div", { class: "choice", role: "radiogroup", "aria-label": name }, buttons);
  rove(el, (place) => onChoose(options[place][0]));
  const set = (chosen) =>
    buttons.forEach((button, place) => {
      const on = options[place][0] === chosen;
      button.setAttribute("aria-checked", String(on));
      button.tabIndex = on ? 0 : -1;
    });
  return { el, set };
}

// Arrow keys, Home and End go from one child button to the next (roving tabindex).
export function rove(container, onMove) {
  container.addEventListener("keydown", (event) => {
    const items = [...container.querySelectorAll("button:not([disabled])")];
    const here = items.indexOf(event.target.closest("button"));
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    let next = step === undefined ? -1 : (here + step + items.length) % items.length;
    if (event.key === "Home") next = 0;
    if (event.key === "End") next = items.length - 1;
    if (here < 0 || next < 0) return;
    event.preventDefault();
    items[next].focus();
    onMove(next);
  });
}

// A slider with its label and its value in words. Returns {el, set(value, shown)}.
export function slider(label, { min, max, step = 1, key = label }, onInput) {
  const input = h("input", {
    type: "range",
    min,
    max,
    step,
    "data-key": `slider:${key}`,
    "aria-label": label,
    oninput: () => onInput(Number(input.value)),
  });
  const output = h("output", {});
  const el = h("label", { class: "slider" }, h("span", {}, label), input, output);
  const set = (value, shown = String(value)) => {
    input.value = value;
    input.setAttribute("aria-valuetext", shown);
    output.textContent = shown;
  };
  return { el, input, set };
}

// Disable a control that needs the model; it stays visible, with the reason as its title.
export function disable(control, reason) {
  const fields = control.matches("button, input")
    ? [control]
    : [...control.querySelectorAll("button, input")];
  for (const field of fields) {
    field.disabled = true;
    field.title = reason;
  }
  control.classList.add("disabled");
  return reason;
}

// Parts side by side if each has `width` pixels, or one below the other.
export function beside(stage, width, ...parts) {
  return h("div", { class: stage.clientWidth < 2 * width + 40 ? "stage" : "pair" }, parts);
}

// Replace the content of `stage`; the keyboard focus returns to the element with the same key.
export function show(stage, ...children) {
  const active = document.activeElement;
  const key = active && stage.contains(active) ? active.getAttribute("data-key") : null;
  stage.replaceChildren(
    ...children.flat(3).filter((child) => child !== null && child !== undefined),
  );
  if (key) stage.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus({ preventScroll: true });
}
