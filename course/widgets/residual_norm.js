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
  const size = residual < 1e-8 ? `below ${power(-8)}` : residual < 0.01 ? scientific(residual) : number(residual);
  const way = `${skip ? "with" : "without"} skip connections, ${NORMS.find(([key]) => key === norm)[1]}${causal ? ", causal" : ""}`;
  return `After ${depth} layer${depth > 1 ? "s" : ""} of attention (${way}) the rank residual of the six tokens is ${size}.`;
}

const HUES = ["one", "two", "three", "four", "one", "two"];

// The way of each token from layer to layer, every layer divided by its largest coordinate so that it fills the square: rings in
// front of the first layer, dots behind the last.
function plane(states, box) {
  const frame = chart({ x: [-1.25, 1.25], y: [-1.25, 1.25], box, xTicks: [], yTicks: [], axis: false, yLabel: "the tokens' ways, each layer scaled" });
  frame.line([[-1.25, 0], [1.25, 0]], { colour: null, width: 0.4 });
  frame.line([[0, -1.25], [0, 1.25]], { colour: null, width: 0.4 });
  const scaled = states.map((x) => {
    const largest = Math.max(...x.flat().map(Math.abs), 1e-300);
    return x.map(([a, b]) => [a / largest, b / largest]);
  });
  ANGLES.forEach((_, i) => {
    const trail = scaled.map((x) => x[i]);
    const dash = i > 3 ? "4 3" : undefined;
    trail.slice(1).forEach((to, layer) => frame.line([trail[layer], to], { colour: HUES[i], width: 1.5, dash }).setAttribute("stroke-opacity", 0.25 + (0.6 * (layer + 1)) / trail.length));
    const [x, y] = frame.at(...trail[0]);
    const out = Math.hypot(...trail[0]) || 1;
    frame.append(svg("circle", { cx: x, cy: y, r: 4, fill: "none", stroke: `var(--${HUES[i]})`, "stroke-width": 2 }));
    frame.append(text(x + (14 * trail[0][0]) / out, y - (14 * trail[0][1]) / out + 5, i + 1, { "text-anchor": "middle" }));
    frame.dot(...trail.at(-1), { colour: HUES[i], r: 8 - i });
  });
  const ends = []; // of labels at the dots, so that tokens that have met share one
  scaled.at(-1).forEach((end, i) => {
    const near = ends.find(([place]) => Math.hypot(place[0] - end[0], place[1] - end[1]) < 0.2);
    near ? near[1].push(i + 1) : ends.push([end, [i + 1]]);
  });
  for (const [end, names] of ends) {
    const right = end[0] > 0.5;
    frame.note(...end, names.join(" "), { dx: right ? -12 : 12, dy: 5, "text-anchor": right ? "end" : "start", class: "course-strong" });
  }
  return frame;
}

function curve(states, box) {
  const frame = chart({
    x: [0, 12], y: [-8, 0], box, xTicks: [0, 3, 6, 9, 12], yTicks: [-8, -6, -4, -2, 0],
    yFormat: (t) => power(t), xLabel: "layers", yLabel: "rank residual",
  });
  const points = states.map((x, layer) => [layer, Math.max(Math.log10(Math.max(rankResidual(x), 1e-300)), -8)]);
  frame.line(points, { colour: "one" });
  points.forEach(([layer, y]) => frame.dot(layer, y, { colour: "one", r: 3 }));
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
      if (room < 480) return [410, plane(states, [(room - 210) / 2, 30, 210, 210]), curve(states, [44, 276, room - 60, 95])];
      return [300, plane(states, [10, 30, 250, 250]), curve(states, [330, 34, room - 350, 210])];
    });
    const told = sentence();
    function draw(state) {
      for (const name of names) controls[name].set(state[name]);
      figure.redraw();
      figure.describe(`The ways of six tokens in the plane, and their rank residual by layer. ${said(...now())}`);
      told.say(said(...now()));
    }
    el.append(figure, controls.depth, row(controls.skip, controls.norm, controls.causal), told);
    draw(Object.fromEntries(names.map((name) => [name, model.get(name)])));
  },
};
