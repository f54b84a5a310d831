// Shared by all widgets: this text stands in front of each module.

const SVG = "http://www.w3.org/2000/svg";

function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

// A labelled slider that shows its value. JupyterLab takes arrow keys unless told not to.
function slider({ label, min, max, step, value, format = (x) => x.toFixed(2), onInput }) {
  const shown = element("output", { class: "course-value" }, format(value));
  const input = element("input", { type: "range", min, max, step, "data-lm-suppress-shortcuts": "true" });
  input.value = value;
  input.addEventListener("input", () => {
    shown.textContent = format(Number(input.value));
    onInput(Number(input.value));
  });
  const row = element("label", { class: "course-slider" }, element("span", {}, label), input, shown);
  row.set = (x) => {
    input.value = x;
    shown.textContent = format(Number(x));
  };
  return row;
}

// A drawing whose text alternative follows what it shows.
function picture(width, height, label) {
  const node = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label, class: "course-picture" });
  node.describe = (text) => node.setAttribute("aria-label", text);
  return node;
}

function text(x, y, content, attributes = {}) {
  return svg("text", { x, y, ...attributes }, String(content));
}

function softmax(scores) {
  const top = Math.max(...scores);
  const powers = scores.map((s) => Math.exp(s - top));
  const sum = powers.reduce((a, b) => a + b, 0);
  return powers.map((p) => p / sum);
}
