// The library of the course's figures to play with. `course.widgets.esm` puts this text in front of each
// module, whose own names go first where both use the same one. What there is:
//
//   connect(model, el, names, draw)   makes `el` a widget; returns put({ name: value, … }), after which `draw(state)` runs once
//   slider, toggle, choice, buttons, field      controls with labels; each has .set(value), which does not call back;
//                                     a slider has a range, min to max by step, or a list of values
//   player({ label, last, onInput })  a slider over steps with a button that plays them
//   numberTable({ title, values, … })           a matrix as a table, to edit or to read; has .set(values)
//   drawing(label, draw)              an SVG in CSS pixels: draw(width) returns [height, ...nodes]; has .redraw() and .describe(text)
//   chart({ x, y, box, … })           axes that draw lines, dots, bars and arrows in the units of the data
//   heatMap({ values, box, … })       a matrix as shaded cells with their numbers
//   handle({ x, y, label, value, said, onMove, onStep })   a dot to drag, and by its label to move with the arrow keys
//   sentence()                        the live text alternative; say(text) replaces it once the hand rests
//   row(...nodes)                     controls side by side, as many as fit
//   part(...nodes)                    a part of a widget that has several, its drawing first
//   element, svg, text, number, power, scientific, clamp, softmax         small change
//
// A module: read the state, draw it, say it; the numbers come from functions of their own, which the tests
// of the chapter hold equal to the Python reference.
//
//   export default {
//     render({ model, el }) {
//       const put = connect(model, el, ["tau"], draw);
//       const heat = slider({ label: "temperature τ", min: 0.1, max: 5, step: 0.1, value: model.get("tau"), onInput: (tau) => put({ tau }) });
//       const picture = drawing("Probabilities at a temperature", (width) => [200, ...nodes(width, model.get("tau"))]);
//       const told = sentence();
//       el.append(picture, heat, told); // the picture first: on a telephone it stays in view while a control moves
//       function draw({ tau }) { heat.set(tau); picture.redraw(); told.say(`At temperature ${number(tau)} …`); }
//       draw({ tau: model.get("tau") });
//     },
//   };
//
// Colours are names of the palette. "query", "key", "value", "residual" (the stream) and "weights" are kept for these five
// things of a transformer; all else is "one", "two", "three", "four", or "right" and "wrong", as a verdict or a warning.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) if (value !== undefined) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

function element(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function text(x, y, content, attributes = {}) {
  return svg("text", { x, y, ...attributes }, String(content));
}

function row(...nodes) {
  return element("div", { class: "course-row" }, ...nodes);
}

// A part of a widget that has several: its drawing, its controls and what it says.
function part(...nodes) {
  return element("div", { class: "course-part" }, ...nodes);
}

// A number with fixed decimals, a true minus and no negative zero.
function number(x, digits = 2) {
  return x.toFixed(digits).replace(/^-(?=[0.]+$)/, "").replace("-", "−");
}

// Ten to a whole power, or another base: 10⁻³.
function power(exponent, base = 10) {
  return base + String(exponent).replace("−", "-").replace(/./g, (c) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(c)]);
}

// A positive number in two digits: 0.13, 42, and beyond 0.01 and 10,000 as 1.3 × 10⁻⁹.
function scientific(x) {
  const [digits, exponent] = x.toExponential(1).split("e").map(Number);
  if (exponent < -2 || exponent > 3) return `${digits.toFixed(1)}\u00a0×\u00a0${power(exponent)}`; // one word, which no line breaks
  return (digits * 10 ** exponent).toFixed(Math.max(1 - exponent, 0));
}

function softmax(scores) {
  const top = Math.max(...scores);
  const powers = scores.map((s) => Math.exp(s - top));
  const sum = powers.reduce((a, b) => a + b, 0);
  return powers.map((p) => p / sum);
}

// Joins a model and its element. `draw(state)` runs once after every change, from whichever side it comes,
// with the named values; it is not called at the start. JupyterLab takes no keys from a widget.
function connect(model, el, names, draw) {
  let putting = false;
  el.classList.add("course-widget");
  el.setAttribute("data-lm-suppress-shortcuts", "true");
  const redraw = () => putting || draw(Object.fromEntries(names.map((name) => [name, model.get(name)])));
  for (const name of names) model.on(`change:${name}`, redraw);
  return function put(changes) {
    putting = true;
    for (const [name, value] of Object.entries(changes)) model.set(name, value);
    putting = false;
    redraw();
    model.save_changes();
  };
}

// A text alternative that is seen and, once changes rest, read out.
function sentence() {
  const node = element("p", { class: "course-said", "aria-live": "polite" });
  let later;
  node.say = (said) => {
    clearTimeout(later);
    if (node.textContent) later = setTimeout(() => (node.textContent = said), 150);
    else node.textContent = said;
  };
  return node;
}

// ---------------------------------------------------------------- controls

// A labelled slider that shows its value: from `min` to `max` by `step`, or over a list of `values`, smallest first.
function slider({ label, values, min = 0, max = values?.length - 1, step = 1, value, format = (x) => number(x), colour, onInput }) {
  const shown = element("span", { class: "course-value", "aria-hidden": "true" }); // the input says it
  const style = colour && `--of: var(--${colour})`;
  const input = element("input", { type: "range", min, max, step, style, "data-lm-suppress-shortcuts": "true" });
  const node = element("div", { class: "course-slider" }, element("label", {}, element("span", {}, label), input), shown);
  const place = (x) => (values ? values.reduce((best, y, i) => (Math.abs(y - x) < Math.abs(values[best] - x) ? i : best), 0) : x);
  const given = () => (values ? values[input.value] : Number(input.value));
  const show = () => {
    shown.textContent = format(given());
    input.setAttribute("aria-valuetext", shown.textContent);
    input.style.setProperty("--filled", `${(100 * (input.value - min)) / (max - min)}%`);
  };
  // What reads the same stays where the hand has put it: a state that is rounded would pull each small step back.
  node.set = (x) => {
    if (format(given()) !== format(x)) input.value = place(x);
    show();
  };
  input.addEventListener("input", () => {
    show();
    onInput(given());
  });
  input.value = place(value);
  show();
  return node;
}

// A slider over the steps 0 to `last` with a button that plays them, once each at `pace` a second. Who asked for less motion
// goes on by one step at each press.
function player({ label, last, value, pace = 12, format = String, colour, onInput }) {
  const calm = window.matchMedia("(prefers-reduced-motion: reduce)");
  let timer;
  const scrub = slider({ label, min: 0, max: last, step: 1, value, format, colour, onInput: (x) => (stop(), onInput(x)) });
  const input = scrub.querySelector("input");
  const at = () => Number(input.value);
  const stop = () => {
    clearInterval(timer);
    timer = undefined;
    button.textContent = calm.matches ? "Next step" : "Play";
  };
  const go = () => {
    if (!button.isConnected) return stop();
    onInput(at() < last ? at() + 1 : 0);
    if (at() === last) stop();
  };
  const moves = buttons(["Play", () => {
    if (timer) return stop();
    if (calm.matches) return go();
    if (at() === last) onInput(0);
    timer = setInterval(go, 1000 / pace);
    button.textContent = "Pause";
  }]);
  const [button] = moves.buttons;
  stop();
  return Object.assign(element("div", { class: "course-player" }, button, scrub), { set: scrub.set });
}

// A box to tick.
function toggle({ label, value, onChange }) {
  const input = element("input", { type: "checkbox" });
  const node = element("label", { class: "course-toggle" }, input, label);
  node.set = (x) => (input.checked = x);
  input.addEventListener("change", () => onChange(input.checked));
  node.set(value);
  return node;
}

// One of several: options are [value, label] pairs.
function choice({ label, options, value, onChange }) {
  const select = element("select", {}, ...options.map(([x, name]) => element("option", { value: x }, name)));
  const node = element("label", { class: "course-choice" }, element("span", {}, label), select);
  node.set = (x) => (select.value = x);
  select.addEventListener("change", () => onChange(options[select.selectedIndex][0]));
  node.set(value);
  return node;
}

// A row of buttons from [label, onClick] pairs; .buttons are its nodes.
function buttons(...pairs) {
  const nodes = pairs.map(([label, onClick]) => {
    const node = element("button", { type: "button" }, label);
    node.addEventListener("click", onClick);
    return node;
  });
  return Object.assign(row(...nodes), { buttons: nodes });
}

// A text to type.
function field({ label, value, rows = 2, onInput }) {
  const input = element("textarea", { rows, spellcheck: "false" });
  const node = element("label", { class: "course-field" }, element("span", {}, label), input);
  node.set = (x) => input.value !== x && (input.value = x);
  input.addEventListener("input", () => onInput(input.value));
  node.set(value);
  return node;
}

// A matrix as a table. With onInput(values) its numbers can be edited; without, they are read.
// `rows` and `columns` are functions of the index or lists of headings.
function numberTable({ title, values, rows, columns, colour, step = 0.5, limit = 1000, digits = 2, onInput }) {
  const heading = (of, i) => (typeof of === "function" ? of(i) : of?.[i]);
  const node = element("table", { class: "course-numbers", style: colour && `--of: var(--${colour})` });
  let now;
  function cell(i, j) {
    if (!onInput) return element("td", {}, number(now[i][j], digits));
    const label = `${title}, ${heading(rows, i) ?? `row ${i + 1}`}, ${heading(columns, j) ?? `column ${j + 1}`}`;
    const input = element("input", { type: "number", step, value: now[i][j], "aria-label": label });
    input.addEventListener("input", () => {
      const given = input.valueAsNumber;
      if (!Number.isFinite(given)) return; // half typed
      now = now.map((line, r) => line.map((x, c) => (r === i && c === j ? Math.min(Math.max(given, -limit), limit) : x)));
      onInput(now);
    });
    return element("td", {}, input);
  }
  node.set = (given) => {
    const inputs = node.querySelectorAll("input");
    const sameShape = inputs.length && given.length === now.length && given.every((line, i) => line.length === now[i].length);
    now = given;
    if (sameShape) {
      now.flat().forEach((x, k) => inputs[k].valueAsNumber !== x && inputs[k] !== document.activeElement && (inputs[k].value = x));
      return;
    }
    const top = columns && element("tr", {}, rows ? element("td") : "", ...now[0].map((_, j) => element("th", { scope: "col" }, heading(columns, j))));
    const lines = now.map((line, i) =>
      element("tr", {}, rows ? element("th", { scope: "row" }, heading(rows, i)) : "", ...line.map((_, j) => cell(i, j))),
    );
    node.replaceChildren(element("caption", {}, title), element("tbody", {}, ...(top ? [top] : []), ...lines));
  };
  node.set(values);
  return node;
}

// ---------------------------------------------------------------- drawings

// A drawing in CSS pixels, so that letters and targets keep their size on a telephone: draw(width) gives
// [height, ...nodes], at the start, at each redraw() and when there is more or less room.
function drawing(label, draw) {
  const node = svg("svg", { role: "img", "aria-label": label, class: "course-drawing" });
  let width = 640;
  node.redraw = () => {
    const [height, ...nodes] = draw(width);
    const held = node.contains(document.activeElement) && document.activeElement.getAttribute("aria-label");
    node.setAttribute("viewBox", `0 0 ${width} ${height}`);
    node.setAttribute("height", height);
    node.style.setProperty("--height", `${height}px`);
    node.replaceChildren(...nodes);
    const handles = [...node.querySelectorAll("[tabindex]")];
    node.setAttribute("role", handles.length ? "group" : "img"); // what is inside an image is not reached
    if (held) handles.find((one) => one.getAttribute("aria-label") === held)?.focus();
  };
  node.describe = (said) => node.setAttribute("aria-label", said);
  new ResizeObserver(([{ contentRect }]) => {
    if (!contentRect.width || Math.round(contentRect.width) === width) return;
    width = Math.round(contentRect.width);
    node.redraw();
  }).observe(node);
  return node;
}

// A drawing of a fixed size that shrinks with the page; for little that must not be read or touched.
function picture(width, height, label) {
  const node = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label, class: "course-picture" });
  node.describe = (said) => node.setAttribute("aria-label", said);
  return node;
}

// Round numbers from `from` to `to`, about `count` of them.
function ticks(from, to, count = 5) {
  const rough = (to - from) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((x) => x * power >= rough * 0.999);
  const first = Math.ceil(from / step - 1e-9);
  return Array.from({ length: Math.floor(to / step + 1e-9) - first + 1 }, (_, k) => Number(((first + k) * step).toPrecision(12)));
}

// Axes over x: [from, to] and y: [from, to] inside box: [left, top, width, height], without room for labels.
// A node to append, with methods in the units of the data; each returns the node that it drew; at(x, y) gives pixels, of(px, py) data.
function chart({ x, y, box: [left, top, width, height], xLabel = "", yLabel = "", xTicks = ticks(...x), yTicks = ticks(...y, 4), ...how }) {
  const { format = String, xFormat = format, yFormat = format, axis = true } = how;
  const node = svg("g");
  const at = (a, b) => [left + ((a - x[0]) / (x[1] - x[0])) * width, top + height - ((b - y[0]) / (y[1] - y[0])) * height];
  const add = (child) => (node.append(child), child);
  const paint = (colour) => (colour ? `var(--${colour})` : "currentColor");
  for (const t of yTicks) {
    const [, v] = at(0, t);
    add(svg("line", { x1: left, x2: left + width, y1: v, y2: v, class: "course-grid" }));
    add(text(left - 6, v + 4, yFormat(t).replace("-", "−"), { "text-anchor": "end" }));
  }
  for (const t of xTicks) add(text(at(t, 0)[0], top + height + 17, xFormat(t).replace("-", "−"), { "text-anchor": "middle" }));
  if (axis) add(svg("line", { x1: left, x2: left + width, y1: top + height, y2: top + height, class: "course-axis" }));
  if (xLabel) add(text(left + width, top + height + 34, xLabel, { "text-anchor": "end" }));
  if (yLabel) add(text(left, top - 10, yLabel));
  return Object.assign(node, {
    at,
    of: (px, py) => [x[0] + ((px - left) / width) * (x[1] - x[0]), y[0] + ((top + height - py) / height) * (y[1] - y[0])],
    line: (points, { colour = "one", width = 2.5, dash } = {}) =>
      add(svg("polyline", {
        points: points.map((p) => at(...p).map((c) => c.toFixed(1)).join(",")).join(" "),
        fill: "none", stroke: paint(colour), "stroke-width": width, "stroke-dasharray": dash, "stroke-linejoin": "round",
      })),
    dot: (a, b, { colour = "one", r = 5 } = {}) => add(svg("circle", { cx: at(a, b)[0], cy: at(a, b)[1], r, fill: paint(colour), class: "course-dot" })),
    bar: (a, b, { colour = "one", width = 0.8 } = {}) => {
      const [[l, v], [r, zero]] = [at(a - width / 2, b), at(a + width / 2, 0)];
      return add(svg("rect", { x: l, y: Math.min(v, zero), width: r - l, height: Math.abs(zero - v), rx: 2, fill: paint(colour) }));
    },
    arrow: (from, to, { colour = "one", width = 2.5 } = {}) => add(arrow(at(...from), at(...to), { colour: paint(colour), width })),
    note: (a, b, content, attributes = {}) => add(text(...at(a, b), content, attributes)),
  });
}

// A line with a head, in pixels.
function arrow([x1, y1], [x2, y2], { colour = "currentColor", width = 2.5 } = {}) {
  const [length, angle] = [Math.hypot(x2 - x1, y2 - y1), Math.atan2(y2 - y1, x2 - x1)];
  const size = Math.min(4 * width, length);
  const corner = (side) => [x2 - size * Math.cos(angle + side), y2 - size * Math.sin(angle + side)].map((c) => c.toFixed(1)).join(",");
  const [bx, by] = [x2 - 0.8 * size * Math.cos(angle), y2 - 0.8 * size * Math.sin(angle)];
  return svg("g", {},
    svg("line", { x1, y1, x2: bx, y2: by, stroke: colour, "stroke-width": width, "stroke-linecap": "round" }),
    svg("polygon", { points: `${x2},${y2} ${corner(0.42)} ${corner(-0.42)}`, fill: colour }),
  );
}

// A matrix of numbers in [0, 1] (or what `shade` makes of them) as cells of size: [width, height] from box: [left, top].
// `show(x, i, j)` gives a cell's lines; onChoose(i) makes rows answer to a click, `chosen` is the one with a frame.
function heatMap({ values, rows, columns, box: [left, top], size: [width, height], colour = "weights", chosen, onChoose, ...how }) {
  const { shade = (x) => x, show = (x) => [number(x)] } = how;
  const node = svg("g");
  columns?.forEach((name, j) => node.append(text(left + (j + 0.5) * width, top - 8, name, { "text-anchor": "middle" })));
  values.forEach((line, i) => {
    const middle = top + (i + 0.5) * height;
    if (rows) node.append(text(left - 8, middle + 4, rows[i], { "text-anchor": "end" }));
    line.forEach((x, j) => {
      const at = { x: left + j * width + 1, y: top + i * height + 1, width: width - 2, height: height - 2, rx: 4 };
      node.append(svg("rect", { ...at, fill: `var(--${colour})`, "fill-opacity": 0.06 + 0.44 * Math.min(Math.max(shade(x), 0), 1) }));
      const lines = show(x, i, j);
      lines.forEach((said, k) => {
        const below = 5 + (k - (lines.length - 1) / 2) * 17;
        const look = { "text-anchor": "middle", class: k ? "course-small" : "course-strong" };
        node.append(text(left + (j + 0.5) * width, middle + below, said, look));
      });
    });
    if (!onChoose && i !== chosen) return;
    const frame = { x: left, y: top + i * height, width: width * line.length, height, rx: 5, fill: "transparent" };
    const target = svg("rect", { ...frame, class: i === chosen ? "course-chosen" : undefined, style: onChoose && "cursor: pointer" });
    if (onChoose) target.addEventListener("click", () => onChoose(i));
    node.append(target);
  });
  return node;
}

// A dot to drag by mouse, pen or finger, at pixels x, y of its drawing: onMove(x, y) gets the new ones. With a label it is reached
// by keyboard too: `value` is its number between min and max, `said` the same in words, and onStep(right, up) gets the steps of an
// arrow key, ten with Shift.
function handle({ x, y, colour = "one", label, value, min, max, said = value, onMove, onStep }) {
  const slides = label && {
    role: "slider", tabindex: 0, "aria-label": label, "aria-valuenow": value, "aria-valuemin": min, "aria-valuemax": max, "aria-valuetext": said,
  };
  const node = svg("g", { class: "course-handle", style: `color: var(--${colour})`, ...slides },
    svg("circle", { cx: x, cy: y, r: 18, fill: "transparent" }),
    svg("circle", { cx: x, cy: y, r: 12, class: "course-ring" }),
    svg("circle", { cx: x, cy: y, r: 8, fill: "currentColor", class: "course-dot" }),
  );
  node.addEventListener("pointerdown", (down) => {
    const owner = node.ownerSVGElement; // stays while redraws replace the node
    down.preventDefault();
    if (label) node.focus({ preventScroll: true, focusVisible: false });
    const move = (event) => {
      const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(owner.getScreenCTM().inverse());
      onMove(at.x, at.y);
    };
    const stop = () => {
      window.removeEventListener("pointermove", move);
      for (const end of ["pointerup", "pointercancel"]) window.removeEventListener(end, stop);
    };
    window.addEventListener("pointermove", move);
    for (const end of ["pointerup", "pointercancel"]) window.addEventListener(end, stop);
  });
  if (label) node.addEventListener("keydown", (event) => {
    const step = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
    if (!step) return;
    event.preventDefault();
    onStep(...step.map((x) => x * (event.shiftKey ? 10 : 1)));
  });
  return node;
}

// A number kept between two others.
function clamp(x, low, high) {
  return Math.min(Math.max(x, low), high);
}
