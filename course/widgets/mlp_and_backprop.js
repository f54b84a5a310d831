// The smallest network as a graph: values run forward, slopes come back one step at a time.

const STEPS = 5;
const AT = { loss: 1, prediction: 2, w2: 3, a: 3, z: 4, w1: 5 }; // the step that finds a slope
const LABELS = { loss: "itself", prediction: "the prediction", w2: "w₂", a: "a", z: "z", w1: "w₁" };
const RULES = [
  "The values have run from the inputs to the loss. Step back for the slopes.",
  "The loss changes by 1 when it changes by 1.",
  "Slope in the prediction: 2 (prediction − y).",
  "For w₂: slope in the prediction × a. For a: slope in the prediction × w₂.",
  "For z: slope in a × (1 − a²), the slope of tanh.",
  "For w₁: slope in z × x.",
];

// [value, slope of the loss] of each node.
function walk(x, w1, w2, y) {
  const a = Math.tanh(w1 * x);
  const prediction = w2 * a;
  const dPrediction = 2 * (prediction - y);
  const dZ = dPrediction * w2 * (1 - a * a);
  return {
    loss: [(prediction - y) ** 2, 1],
    prediction: [prediction, dPrediction],
    w2: [w2, dPrediction * a],
    a: [a, dPrediction * w2],
    z: [w1 * x, dZ],
    w1: [w1, dZ * x],
  };
}

function said({ x, w1, w2, y, step }) {
  const nodes = walk(x, w1, w2, y);
  const first =
    `For x = ${x.toFixed(1)}, w₁ = ${w1.toFixed(1)}, w₂ = ${w2.toFixed(1)} and y = ${y.toFixed(1)} the prediction is ` +
    `${nodes.prediction[0].toFixed(3)} and the loss ${nodes.loss[0].toFixed(3)}. `;
  if (step === 0) return first + "The walk back has not begun.";
  const found = Object.keys(nodes).filter((name) => AT[name] === step);
  return first + found.map((name) => `The slope of the loss in ${LABELS[name]} is ${nodes[name][1].toFixed(3)}.`).join(" ");
}

// Middles of the boxes in a frame of 1 by 1: wide from left to right, on a telephone from top to bottom.
const WIDE = { w1: [0.09, 0.2], x: [0.09, 0.78], z: [0.29, 0.5], a: [0.5, 0.5], w2: [0.5, 0.13], prediction: [0.71, 0.5], loss: [0.905, 0.5] };
const TALL = { w1: [0.25, 0.1], x: [0.75, 0.1], z: [0.28, 0.37], a: [0.28, 0.63], w2: [0.76, 0.5], prediction: [0.28, 0.89], loss: [0.76, 0.89] };
const EDGES = [["w1", "z"], ["x", "z"], ["z", "a"], ["a", "prediction"], ["w2", "prediction"], ["prediction", "loss"]];
const NAMES = { w1: "w₁", x: "x", z: "z = w₁x", a: "a = tanh z", w2: "w₂", prediction: "ŷ = w₂a", loss: "(ŷ − y)²" };
const BOX = [100, 64];

// Where the line between the middles of two boxes leaves the first one.
function edge([x1, y1], [x2, y2], gap = 5) {
  const [dx, dy] = [x2 - x1, y2 - y1];
  const share = Math.min((BOX[0] / 2 + gap) / Math.abs(dx || 1e-9), (BOX[1] / 2 + gap) / Math.abs(dy || 1e-9));
  return [x1 + share * dx, y1 + share * dy];
}

// A box: its name, its value, and below the line the slope of the loss in it, once the walk back has found it.
function box(name, [x, y], [value, slope], step) {
  const [width, height] = BOX;
  const frame = { x: x - width / 2, y: y - height / 2, width, height, rx: 7 };
  const [found, fresh] = [AT[name] <= step, AT[name] === step];
  const middle = { "text-anchor": "middle" };
  return svg("g", {},
    svg("rect", { ...frame, fill: "none", class: "course-box", style: fresh && "stroke: var(--two); stroke-width: 2.5" }),
    found ? svg("path", { d: `M${x - width / 2} ${y + 11}h${width}v${height / 2 - 18}q0 7 -7 7h${14 - width}q-7 0 -7 -7z`, fill: "var(--two)", "fill-opacity": 0.18 }) : "",
    text(x, y - 15, NAMES[name], middle),
    text(x, y + 4, number(value, 3), { ...middle, class: "course-strong" }),
    name === "x" ? "" : text(x, y + 26, found ? `slope ${number(slope, 3)}` : "slope ?", middle),
  );
}

function graph(state, width) {
  const wide = width >= 560;
  const [places, height] = wide ? [WIDE, 260] : [TALL, 330];
  const nodes = { ...walk(state.x, state.w1, state.w2, state.y), x: [state.x] };
  const at = Object.fromEntries(Object.entries(places).map(([name, [u, v]]) => [name, [u * width, v * height]]));
  const group = svg("g");
  for (const [from, to] of EDGES) {
    const back = AT[from] === state.step;
    const ends = [edge(at[from], at[to]), edge(at[to], at[from])];
    group.append(back ? arrow(...ends.reverse(), { colour: "var(--two)", width: 3 }) : arrow(...ends, { width: 1.2 }));
  }
  for (const [name, place] of Object.entries(at)) group.append(box(name, place, nodes[name], state.step));
  return [height, group];
}

export default {
  render({ model, el }) {
    const names = ["x", "w1", "w2", "y", "step"];
    const put = connect(model, el, names, draw);
    const now = () => Object.fromEntries(names.map((name) => [name, model.get(name)]));
    const sliders = [["x", "input x"], ["w1", "weight w₁"], ["w2", "weight w₂"], ["y", "target y"]].map(([name, label]) => [
      name,
      slider({ label, min: -3, max: 3, step: 0.1, value: now()[name], format: (v) => number(v, 1), onInput: (v) => put({ [name]: v }) }),
    ]);
    const moves = buttons(
      ["Step back", () => put({ step: Math.min(now().step + 1, STEPS) })],
      ["Undo", () => put({ step: Math.max(now().step - 1, 0) })],
      ["Values only", () => put({ step: 0 })],
    );
    const rule = element("p", {});
    const figure = drawing("", (width) => graph(now(), width));
    const told = sentence();
    function draw(state) {
      for (const [name, node] of sliders) node.set(state[name]);
      moves.buttons[0].disabled = state.step === STEPS;
      moves.buttons[1].disabled = moves.buttons[2].disabled = state.step === 0;
      rule.textContent = RULES[state.step];
      figure.redraw();
      figure.describe(`The computation graph of a network with two weights. ${said(state)}`);
      told.say(said(state));
    }
    el.append(figure, rule, moves, ...sliders.map(([, node]) => node), told);
    draw(now());
  },
};
