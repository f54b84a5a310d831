// The smallest network as a graph: values run forward, slopes come back one step at a time.

const STEPS = 5;
const AT = { loss: 1, prediction: 2, w2: 3, a: 3, z: 4, w1: 5 }; // the step that finds a slope
const LABELS = { loss: "itself", prediction: "the prediction", w2: "w₂", a: "a", z: "z", w1: "w₁" };
const RULES = [
  "Values from left to right. Step back for the slopes.",
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

// Places in a frame of 1 by 1: wide from left to right, on a telephone from top to bottom.
const WIDE = { w1: [0.08, 0.3], x: [0.08, 0.75], z: [0.3, 0.5], a: [0.5, 0.5], w2: [0.5, 0.12], prediction: [0.71, 0.5], loss: [0.92, 0.5] };
const TALL = { w1: [0.25, 0.07], x: [0.75, 0.07], z: [0.4, 0.28], a: [0.4, 0.49], w2: [0.82, 0.49], prediction: [0.5, 0.7], loss: [0.5, 0.91] };
const EDGES = [["w1", "z"], ["x", "z"], ["z", "a"], ["a", "prediction"], ["w2", "prediction"], ["prediction", "loss"]];
const NAMES = { w1: "w₁", x: "x", z: "z = w₁ x", a: "a = tanh z", w2: "w₂", prediction: "w₂ a", loss: "(w₂ a − y)²" };

function graph(state, width) {
  const wide = width >= 560;
  const [places, height] = wide ? [WIDE, 230] : [TALL, 430];
  const nodes = walk(state.x, state.w1, state.w2, state.y);
  const at = Object.fromEntries(Object.entries(places).map(([name, [u, v]]) => [name, [u * width, v * height]]));
  const group = svg("g");
  for (const [from, to] of EDGES) {
    const [[x1, y1], [x2, y2]] = [at[from], at[to]];
    const length = Math.hypot(x2 - x1, y2 - y1);
    const gap = (wide ? 44 : 34) / length;
    const along = (share) => [x1 + share * (x2 - x1), y1 + share * (y2 - y1)];
    const back = AT[from] === state.step;
    const ends = back ? [along(1 - gap), along(gap)] : [along(gap), along(1 - gap)];
    group.append(arrow(...ends, { colour: back ? "var(--wrong)" : "currentColor", width: back ? 2.5 : 1 }));
  }
  for (const [name, [x, y]] of Object.entries(at)) {
    const middle = { "text-anchor": "middle" };
    const [value, slope] = name === "x" ? [state.x] : nodes[name];
    group.append(text(x, y - 16, NAMES[name], middle), text(x, y + 2, number(value, 3), { ...middle, fill: "var(--query)", class: "course-strong" }));
    if (AT[name] <= state.step) group.append(text(x, y + 20, number(slope, 3), { ...middle, fill: "var(--wrong)", class: "course-strong" }));
  }
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
    el.append(...sliders.map(([, node]) => node), moves, rule, figure, told);
    draw(now());
  },
};
