// Depth, skip and norm: six tokens in the plane under layers of attention, and their rank residual by layer.

const NORMS = [["none", "no norm"], ["pre", "pre-norm"], ["post", "post-norm"]];
const ANGLES = [0.1, 0.8, 1.9, 3.0, 4.0, 5.5];
const LENGTHS = [1.5, 0.9, 1.2, 1.6, 0.8, 1.3];

const unit = ([a, b]) => {
  const size = Math.sqrt((a * a + b * b) / 2 + 1e-5);
  return [a / size, b / size];
};

// Attention of the tokens h among themselves, with values turned by `turn` degrees.
function attention(h, turn, causal) {
  const [c, s] = [Math.cos((turn * Math.PI) / 180), Math.sin((turn * Math.PI) / 180)];
  const values = h.map(([a, b]) => [a * c - b * s, a * s + b * c]);
  return h.map((q, i) => {
    const seen = causal ? i + 1 : h.length;
    const weights = softmax(h.slice(0, seen).map((k) => (q[0] * k[0] + q[1] * k[1]) / Math.SQRT2));
    return [0, 1].map((e) => weights.reduce((sum, w, j) => sum + w * values[j][e], 0));
  });
}

// The tokens in front of and behind each of `depth` layers.
function cloud(depth, skip, norm, causal) {
  let x = ANGLES.map((angle, i) => [LENGTHS[i] * Math.cos(angle), LENGTHS[i] * Math.sin(angle)]);
  const found = [x];
  for (let layer = 1; layer <= depth; layer++) {
    const added = attention(norm === "pre" ? x.map(unit) : x, 137.5 * layer, causal);
    x = skip ? x.map(([a, b], i) => [a + added[i][0], b + added[i][1]]) : added;
    if (norm === "post") x = x.map(unit);
    found.push(x);
  }
  return found;
}

function rankResidual(x) {
  const mean = [0, 1].map((e) => x.reduce((sum, point) => sum + point[e], 0) / x.length);
  const size = (points) => Math.hypot(...points.flat());
  return size(x.map(([a, b]) => [a - mean[0], b - mean[1]])) / size(x);
}

function said(depth, skip, norm, causal) {
  const residual = rankResidual(cloud(depth, skip, norm, causal).at(-1));
  const size = residual < 1e-8 ? "below 10^−8" : residual < 0.01 ? `10^−${number(-Math.log10(residual), 1)}` : number(residual);
  const way = `${skip ? "with" : "without"} skip connections, ${NORMS.find(([key]) => key === norm)[1]}${causal ? ", causal" : ""}`;
  return `After ${depth} layer${depth > 1 ? "s" : ""} of attention (${way}) the rank residual of the six tokens is ${size}.`;
}

const HUES = ["query", "key", "value", "weights", "right", "wrong"];

// The tokens behind the last layer, divided by their largest coordinate, so that they fill the square.
function plane(x, box) {
  const largest = Math.max(...x.flat().map(Math.abs), 1e-300);
  const frame = chart({ x: [-1.1, 1.1], y: [-1.1, 1.1], box, xTicks: [], yTicks: [], yLabel: "the tokens, scaled to fit" });
  frame.line([[-1.1, 0], [1.1, 0]], { colour: "residual", width: 1 });
  frame.line([[0, -1.1], [0, 1.1]], { colour: "residual", width: 1 });
  x.forEach(([a, b], i) => frame.dot(a / largest, b / largest, { colour: HUES[i], r: 9 - i }));
  return frame;
}

function curve(states, box) {
  const frame = chart({
    x: [0, 12], y: [-8, 0], box, xTicks: [0, 3, 6, 9, 12], yTicks: [-8, -6, -4, -2, 0],
    xLabel: "layers", yLabel: "power of ten of the rank residual",
  });
  const points = states.map((x, layer) => [layer, Math.max(Math.log10(Math.max(rankResidual(x), 1e-300)), -8)]);
  frame.line(points, { colour: "weights" });
  points.forEach(([layer, y]) => frame.dot(layer, y, { colour: "weights", r: 4 }));
  return frame;
}

export default {
  render({ model, el }) {
    const names = ["depth", "skip", "norm", "causal"];
    const put = connect(model, el, names, draw);
    const now = () => names.map((name) => model.get(name));
    const controls = {
      depth: slider({ label: "layers", min: 1, max: 12, step: 1, value: model.get("depth"), format: String, onInput: (depth) => put({ depth }) }),
      skip: toggle({ label: "skip connections", value: model.get("skip"), onChange: (skip) => put({ skip }) }),
      norm: choice({ label: "norm", options: NORMS, value: model.get("norm"), onChange: (norm) => put({ norm }) }),
      causal: toggle({ label: "causal", value: model.get("causal"), onChange: (causal) => put({ causal }) }),
    };
    const figure = drawing("", (room) => {
      const states = cloud(...now());
      if (room < 480) return [570, plane(states.at(-1), [44, 34, room - 60, 200]), curve(states, [44, 300, room - 60, 210])];
      return [290, plane(states.at(-1), [20, 34, 210, 210]), curve(states, [290, 34, room - 310, 210])];
    });
    const told = sentence();
    function draw(state) {
      for (const name of names) controls[name].set(state[name]);
      figure.redraw();
      figure.describe(`Six tokens as dots, and their rank residual by layer. ${said(...now())}`);
      told.say(said(...now()));
    }
    el.append(controls.depth, row(controls.skip, controls.norm, controls.causal), figure, told);
    draw(Object.fromEntries(names.map((name) => [name, model.get(name)])));
  },
};
